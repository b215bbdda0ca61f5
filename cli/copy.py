"""`incarnate copy`: logs from one store to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.errors import EXIT_INCOMPLETE, UsageFailure
from incarnate.cli.options import KEY, json_option, known_head, open_system, refuse_memory
from incarnate.cli.text import make_console, say, write_json_array
from incarnate.domain.codec import encode_json
from incarnate.domain.wording import counted
from incarnate.storage.locate import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.copying import Copied

__all__ = ["copy"]


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("keys", metavar="[KEY]...", nargs=-1, type=KEY)
@json_option
def copy(source: str, target: str, keys: tuple[ActivationKey, ...], *, as_json: bool) -> None:
    """Copy logs from the store FROM to the store TO.

    All that FROM holds, or the KEYs, with offsets, incarnations, times and bytes, checkpoints, fence, turn counter
    and retirement as they are; each event is read back and compared. What rewinds superseded is not copied. FROM is
    not changed, and TO is made if it is not there.

    A copy that was killed is continued when it is run again, and so is one of a log that has grown. Where TO holds
    something else under a key, that one is refused and left as it is; the exit code is then 3.
    """
    if source == target:
        raise UsageFailure("FROM and TO are the same store", "name another one")
    refuse_memory(target)
    with open_system(source, missing="check FROM, which must be there; TO alone is made") as system:
        for key in keys:
            known_head(system, key)
        with open_store(target) as store:
            whole = _tell(system.copy_to(store, keys), as_json=as_json)
    if not whole:
        raise click.exceptions.Exit(EXIT_INCOMPLETE)


def _tell(copies: Iterable[Copied], *, as_json: bool) -> bool:
    """Print each copy as it is done; whether none was refused."""
    whole = True

    def noted() -> Iterator[Copied]:
        nonlocal whole
        for copied in copies:
            whole = whole and copied.error is None
            yield copied

    if as_json:
        write_json_array(encode_json(_fields(copied)) for copied in noted())
        return whole
    console, errors = make_console(), make_console(stderr=True)
    for copied in noted():
        if copied.error is not None:
            say(errors, f"Error: {copied.error}")
            say(errors, f"Try: {copied.error.hint}")
            continue
        held = f"{counted(copied.events, 'event')} and {counted(copied.checkpoints, 'checkpoint')} verified"
        left = f"; archives of {counted(copied.archives, 'rewind')} not copied" if copied.archives else ""
        say(console, f"{copied.key}: {held}, {counted(copied.added, 'event')} new{left}")
    return whole


def _fields(copied: Copied) -> dict[str, object]:
    return {
        "key": str(copied.key),
        "events": copied.events,
        "added": copied.added,
        "checkpoints": copied.checkpoints,
        "archivesLeft": copied.archives,
        "error": None if copied.error is None else str(copied.error),
    }
