"""An independent checker: what writers say was acknowledged against what a store holds, read without the library.

It imports nothing of incarnate: SQLite is read by plain SQL, journals are read and folded as JSON here.
"""

import json
import sqlite3
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

Row = tuple[int, str]
"""An event's incarnation and id."""


@dataclass
class Rewind:
    cut: int
    head: int
    superseded: dict[int, Row]


@dataclass
class Stored:
    """One activation, as it lies on the disk."""

    fence: int = -1
    generation: int = 0
    next_turn: int = 0
    events: dict[int, Row] = field(default_factory=dict[int, Row])
    rewinds: list[Rewind] = field(default_factory=list[Rewind])
    checkpoints: dict[str, int] = field(default_factory=dict[str, int])

    def place(self, generation: int, offset: int) -> dict[int, Row]:
        """Where an event must lie that was written at `offset` in that generation."""
        later = (rewind.superseded for rewind in self.rewinds[generation:] if rewind.cut <= offset)
        return next(later, self.events)


def read_sqlite(path: Path) -> dict[str, Stored]:
    found: dict[str, Stored] = {}
    with closing(sqlite3.connect(path)) as db:
        assert [("ok",)] == db.execute("PRAGMA integrity_check").fetchall()
        by_id = {}
        for number, one, other, *numbers in db.execute(
            "SELECT id, process_instance_key, element_id, fence, generation, next_turn FROM activation"
        ):
            by_id[number] = found[f"{one}/{other}"] = Stored(*numbers)
        for number, cut, head in db.execute("SELECT activation, cut, head FROM rewind ORDER BY activation, generation"):
            by_id[number].rewinds.append(Rewind(cut, head, {}))
        for number, generation, offset, incarnation, payload in db.execute(
            "SELECT activation, generation, offset, incarnation, payload FROM superseded"
        ):
            by_id[number].rewinds[generation - 1].superseded[offset] = (incarnation, json.loads(payload)["id"])
        for number, offset, incarnation, payload in db.execute(
            "SELECT activation, offset, incarnation, payload FROM event ORDER BY activation, offset"
        ):
            by_id[number].events[offset] = (incarnation, json.loads(payload)["id"])
        for number, offset, payload in db.execute("SELECT activation, offset, payload FROM checkpoint"):
            by_id[number].checkpoints[json.loads(payload)["id"]] = offset
    return found


def read_journals(folder: Path) -> dict[str, Stored]:
    found: dict[str, Stored] = {}
    for journal in sorted(path for path in folder.iterdir() if path.is_dir()):
        stored = Stored()
        key = ""
        for line in (line for segment in sorted(journal.glob("*.jsonl")) for line in whole_lines(segment)):
            key = line.get("key", key)
            fold(stored, line)
        found[key] = stored
    return found


def whole_lines(segment: Path) -> Iterator[dict[str, Any]]:
    """The lines of whole commits; each must hold the CRC-32 of all that stands before it."""
    crc = 0
    waiting: list[dict[str, Any]] = []
    *lines, _ = segment.read_bytes().split(b"\n")
    for text in (line + b"\n" for line in lines):
        body, comma, crc_field = text.rpartition(b',"crc":')
        crc = zlib.crc32(body, crc)
        assert f'"{crc:08x}"}}\n' == crc_field.decode(), segment
        crc = zlib.crc32(comma + crc_field, crc)
        waiting.append(json.loads(text))
        if "more" not in waiting[-1]:
            yield from waiting
            waiting.clear()


def fold(stored: Stored, line: dict[str, Any]) -> None:
    if "rewind" in line:
        cut, head = line["cut"], line["head"]
        stored.generation += 1
        assert (stored.generation, len(stored.events)) == (line["rewind"], head)
        stored.rewinds.append(Rewind(cut, head, {at: stored.events.pop(at) for at in range(cut, head)}))
        stored.checkpoints = {name: offset for name, offset in stored.checkpoints.items() if offset <= cut}
    elif "event" in line:
        assert line["offset"] not in stored.events
        stored.events[line["offset"]] = (line["incarnation"], line["event"]["id"])
    elif "fence" in line:
        assert line["fence"] > stored.fence
        stored.fence = line["fence"]
    elif "nextTurn" in line:
        stored.next_turn = line["nextTurn"]
    elif "checkpoint" in line:
        stored.checkpoints.setdefault(line["checkpoint"]["id"], line["checkpoint"]["offset"])


def read_acknowledgements(files: Iterable[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def check(said: list[dict[str, Any]], found: dict[str, Stored]) -> list[str]:
    """All that is wrong with what was `found`."""
    by_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in said:
        by_key[line["key"]].append(line)
    wrong = [f"{key}: {what}" for key, lines in by_key.items() for what in wrong_with(lines, found.get(key, Stored()))]
    return wrong + [f"{key} was never written to" for key in found.keys() - by_key.keys()]


def wrong_with(lines: list[dict[str, Any]], stored: Stored) -> Iterator[str]:
    yield from wrong_in_itself(stored)
    held = Counter(name for rows in places(stored) for _, name in rows.values())
    refused, unknown, acknowledged = set[str](), set[str](), set[str]()
    for line in lines:
        match line["said"]:
            case "events":
                acknowledged.update(line["ids"])
                yield from misplaced(line, stored)
            case "refused":
                refused.update(line["ids"])
            case "unknown":
                unknown.update(line["ids"])
            case "checkpoint":
                pruned = any(rewind.cut < line["offset"] for rewind in stored.rewinds[line["generation"] :])
                if stored.checkpoints.get(line["id"]) != (None if pruned else line["offset"]):
                    yield f"checkpoint {line} is not as it must be (pruned: {pruned})"
            case _:
                pass
    yield from (f"{name} stands there {count} times" for name, count in held.items() if count > 1)
    yield from (f"{name} was refused and stands there" for name in refused & held.keys())
    yield from (f"{name} stands there, and nobody wrote it" for name in held.keys() - acknowledged - unknown)
    for what, limit in (("claim", stored.fence + 1), ("turn", stored.next_turn)):
        numbers = [line["number"] for line in lines if line["said"] == what]
        yield from (f"{what} {number} was given {n} times" for number, n in Counter(numbers).items() if n > 1)
        yield from (f"{what} {number} was forgotten" for number in numbers if number >= limit)


def misplaced(line: dict[str, Any], stored: Stored) -> Iterator[str]:
    for offset, name in enumerate(line["ids"], line["offset"]):
        row = stored.place(line["generation"], offset).get(offset)
        if row != (line["incarnation"], name):
            yield f"{name} was acknowledged at {offset} in generation {line['generation']}; there is {row}"


def places(stored: Stored) -> list[dict[int, Row]]:
    return [stored.events, *(rewind.superseded for rewind in stored.rewinds)]


def wrong_in_itself(stored: Stored) -> Iterator[str]:
    if list(stored.events) != list(range(len(stored.events))):
        yield "its offsets have gaps"
    if stored.generation != len(stored.rewinds):
        yield f"its generation is {stored.generation} after {len(stored.rewinds)} rewinds"
    for number, rewind in enumerate(stored.rewinds, 1):
        if sorted(rewind.superseded) != list(range(rewind.cut, rewind.head)):
            yield f"rewind {number} does not hold all that it superseded"
    writers = [incarnation for incarnation, _ in stored.events.values()]
    if any(one > other for one, other in pairwise([*writers, stored.fence])):
        yield "a stale incarnation has written"
