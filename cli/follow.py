"""A view on a terminal as it changes, and its changes as JSON lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from incarnate.cli.text import make_console, say, write_json_lines
from incarnate.domain.projections.base import Change, apply_change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from incarnate.actors.changes import ChangeStream
    from incarnate.cli.views import EncodedView, PrintedView

__all__ = ["follow_as_json", "follow_as_text"]


_GLANCE_SECONDS = 0.5
"""A signal that comes just before a wait does not end it: so the wait ends by itself, and then Ctrl-C is seen."""


def follow_as_json(changes: ChangeStream, shown: EncodedView) -> None:
    """Print each change as one line."""
    for change in _heeding_signals(changes):
        items = b",".join(map(shown.encode, change.items))
        replaced = b",".join([b"[%d,%b]" % (index, shown.encode(item)) for index, item in change.replaced])
        place = b'{"generation":%d,"keep":%d,' % (change.generation, change.keep)
        write_json_lines([place + b'"items":[%b],"replaced":[%b]}' % (items, replaced)])
        sys.stdout.flush()


def follow_as_text(changes: ChangeStream, shown: PrintedView, *, full: bool) -> None:
    """Print what comes, and of what goes how much it is."""
    screen = _Screen(shown.item, shown.printer(full=full).show)
    for change in _heeding_signals(changes):
        screen.take(change)
        sys.stdout.flush()


def _heeding_signals(changes: ChangeStream) -> Iterator[Change]:
    while True:
        change = changes.next(_GLANCE_SECONDS)
        if change is not None:
            yield change
        elif changes.closed:
            return


class _Screen:
    """What was printed so far. A reader who fell behind gets the whole view anew, of which only the news is printed."""

    def __init__(self, item: str, show: Callable[[Any], None]) -> None:
        self._item = item
        self._show = show
        self._console = make_console()
        self._items: list[Any] = []
        self._generation = 0

    def take(self, change: Change) -> None:
        """Print a change."""
        items = self._items
        keep, added = change.keep, change.items
        if keep == 0:
            keep = _common(items, added)
            added = added[keep:]
        gone = len(items) - keep
        if gone:
            how = "rewound" if change.generation > self._generation else "changed"
            self._mark(how, f"to {self._item} {keep}: the last {gone} above {'is' if gone == 1 else 'are'} void")
        self._generation = change.generation
        for index, item in change.replaced:
            self._mark("changed", f"{self._item} {index} above is now")
            self._show(item)
        for item in added:
            self._show(item)
        apply_change(items, Change(change.generation, keep, added, change.replaced))

    def _mark(self, name: str, text: str) -> None:
        say(self._console, (f"{name:<10}{text}", "bold magenta"))


def _common(items: Sequence[Any], others: Sequence[Any]) -> int:
    """How many items both begin with."""
    pairs = enumerate(zip(items, others, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(items), len(others)))
