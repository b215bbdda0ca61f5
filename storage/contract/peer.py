"""Another process on the store: `python -m incarnate.storage.contract.peer URL take-over|race|go-on`."""

from __future__ import annotations

import itertools
import sys

from incarnate.domain.errors import HeadMovedError
from incarnate.storage.contract.log import Log, note
from incarnate.storage.locate import open_store

__all__ = ["RACED", "append_at_the_head", "race"]

RACED = 40
"""How many events each side of a race appends."""


def append_at_the_head(log: Log, name: str) -> int:
    """Append one event wherever the head is by then; its offset."""
    while True:
        head = log.head
        try:
            return log.append(head.next_offset, [note(name)], expected=head.expected)[0].offset
        except HeadMovedError:
            continue


def race(log: Log, side: str) -> dict[int, str]:
    """What one side of a race was acknowledged: names by offset."""
    names = [f"{side}-{number}" for number in range(RACED)]
    return {append_at_the_head(log, name): name for name in names}


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def _run(url: str, errand: str) -> None:
    with open_store(url) as store:
        log = Log(store)
        match errand:
            case "take-over":
                _say(log.lease(7).fence)
                log.append(log.head.next_offset, "p", incarnation=7)
            case "race":
                _say("ready")
                sys.stdin.readline()
                for offset, name in race(log, "theirs").items():
                    _say(offset, name)
            case _:
                for number in itertools.count():
                    _say(append_at_the_head(log, str(number)), number)


if __name__ == "__main__":
    _run(*sys.argv[1:])
