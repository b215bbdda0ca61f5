"""`incarnate show`: a log as a transcript, or another view of it, now or as it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.choices import one_of
from incarnate.cli.follow import follow_as_json, follow_as_text
from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.text import write_json_array
from incarnate.cli.views import ENCODED, PRINTED, EncodedView
from incarnate.domain.projections.log import LogEvents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from incarnate.actors.system import SessionSystem
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.base import Projection

__all__ = ["show"]


@click.command()
@key_argument
@click.option(
    "--view", "name", type=one_of(sorted(PRINTED)), help="A person's (studio), the model's or a client's view."
)
@click.option("--follow", is_flag=True, help="Go on as the log changes, until Ctrl-C.")
@click.option("--full", is_flag=True, help="Do not cut what tools were given and answered.")
@store_option
@json_option
def show(key: ActivationKey, name: str | None, store: str | None, *, follow: bool, full: bool, as_json: bool) -> None:
    """Print KEY as a transcript, or another view of it.

    Turns, prompts, answers, thoughts, tool calls and their results, in the order of the log. What a sub-agent did
    stands further in. Control characters are shown as escapes.

    --view model prints the messages that a provider would be sent, --view frames what a streaming client would see.
    --follow prints what comes, and says how far back a rewind goes; with --json one line for each change.
    """
    with open_system(store) as system:
        known_head(system, key)
        if follow:
            _follow(system, key, name, full=full, as_json=as_json)
        elif as_json:
            write_json_array(map(ENCODED[name].encode, _items(system, key, ENCODED[name].projection)))
        else:
            shown = PRINTED[name or "studio"]
            printer = shown.printer(full=full)
            for item in _items(system, key, shown.projection):
                printer.show(item)


def _items(system: SessionSystem, key: ActivationKey, projection: Callable[[], Projection[Any]]) -> Iterable[Any]:
    # The events need no view: a replay gives a log of any size in bounded memory.
    return system.replay(key) if projection is LogEvents else system.view(key, projection()).get()


def _follow(system: SessionSystem, key: ActivationKey, name: str | None, *, full: bool, as_json: bool) -> None:
    shown = ENCODED[name] if as_json else PRINTED[name or "studio"]
    try:
        with system.view(key, shown.projection()).changes() as changes:
            if isinstance(shown, EncodedView):
                follow_as_json(changes, shown)
            else:
                follow_as_text(changes, shown, full=full)
    except KeyboardInterrupt:
        return  # it is how one stops following
