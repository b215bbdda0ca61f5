"""What only the JSONL store does: its lines, segments, names, repair, damage, and who may write."""

import json
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from incarnate.domain.codec import encode_event
from incarnate.domain.commands import AppendMany, Claim
from incarnate.domain.decisions import Decision, StoredLog, decide
from incarnate.domain.errors import LogCorruptionError, ReadOnlyError, StoreBusyError, StoreFileError
from incarnate.domain.events import Opaque, TurnStart
from incarnate.domain.heads import Head
from incarnate.domain.journal import FinalState, Line
from incarnate.domain.keys import ActivationKey
from incarnate.storage.jsonl import JsonlStore
from tests.support.stores import KEY, Log, checkpoint, note, notes, perform

KEPT_BESIDE = ".torn-"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journals"


@pytest.fixture
def store(folder: Path) -> Iterator[JsonlStore]:
    with JsonlStore(str(folder)) as opened:
        yield opened


def journal(folder: Path) -> Path:
    """The folder of the only journal."""
    [found] = [path for path in folder.iterdir() if path.is_dir()]
    return found


def segments(folder: Path) -> list[Path]:
    return sorted(journal(folder).glob("*.jsonl"))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in segments(folder) for line in file.read_bytes().split(b"\n")[:-1]]


def reopened(folder: Path) -> Log:
    """What a store that was opened just now finds."""
    return Log(JsonlStore(str(folder)))


def test_a_folder_that_was_made_anew_is_left_empty_by_whoever_still_looks_at_the_old_one(
    folder: Path, store: JsonlStore
) -> None:
    """With a file of ours in it, and no mark, it would be no store for ever."""
    folder.joinpath("incarnate.json").unlink()
    folder.joinpath("changed").unlink()

    assert 0 == store.version()
    assert [] == list(folder.iterdir())


def test_what_is_written_to_a_folder_that_was_put_back_is_seen_by_who_follows_it(
    folder: Path, store: JsonlStore
) -> None:
    Log(store).append(0, "a")
    seen: list[int] = []
    with JsonlStore(str(folder), read_only=True) as reader:
        shutil.copytree(folder, folder.with_name("backup"))
        shutil.rmtree(folder)
        shutil.copytree(folder.with_name("backup"), folder)
        for offset, name in enumerate("bcd", 1):
            seen.append(reader.version())
            Log(store).append(offset, name)

        assert 4 == len({*seen, reader.version()})


# Lines


def test_each_record_is_one_line_of_json_and_a_rewind_overwrites_nothing(store: JsonlStore, folder: Path) -> None:
    log = Log(store)
    log.append(0, "ab")
    log.next_turn()
    log.put(checkpoint("cp", 2))
    log.append(1, "x")
    kinds = [[name for name in line if name not in {"crc", "lines", "at", "incarnation"}] for line in lines(folder)]

    assert [
        ["journal", "key", "segment", "id", "begins", "created"],
        ["fence"],
        ["offset", "event"],
        ["offset", "event"],
        ["nextTurn"],
        ["checkpoint"],
        ["rewind", "cut", "head"],
        ["offset", "event"],
    ] == kinds
    assert [3, None, None, None, None, 2, None] == [line.get("lines") for line in lines(folder)[1:]]
    assert ["a", "b", "x"] == [line["event"]["id"] for line in lines(folder) if "event" in line]


def test_every_field_of_a_line_is_described_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "storage.md").read_text(encoding="utf-8")
    fields = [field.encode_name for field in (*msgspec.structs.fields(Line), *msgspec.structs.fields(FinalState))]

    assert [] == [name for name in fields if f"`{name}`" not in page]


def test_an_events_own_bytes_stand_in_its_line(store: JsonlStore, folder: Path) -> None:
    events = (note("a", 'quote " and \u2028'), TurnStart(id="t", parent_id=None, turn=3))
    Log(store).append(0, events)
    data = segments(folder)[0].read_bytes()

    assert all(b'"event":' + encode_event(event).payload + b"," in data for event in events)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"type":"new","id":"n","parentId":null,\n"x":1}',
        b' {"type":"new","id":"n","parentId":null} ',
        b'{"type":"new","id":"n","parentId":null,"x":"\xff"}',
    ],
)
def test_bytes_that_cannot_stand_in_a_line_come_back_all_the_same(store: JsonlStore, folder: Path, raw: bytes) -> None:
    event = Opaque("new", "n", None, raw)
    log = Log(store)
    log.append(0, [note("a"), event, note("b")])

    assert [event, event] == [log.events[1].event, reopened(folder).events[1].event]
    assert 5 == len(lines(folder))


def test_text_that_looks_like_the_end_of_a_line_stays_text(store: JsonlStore, folder: Path) -> None:
    texts = [',"crc":"00000000"}', '\n{"offset":1,"event":', "\0", ',"lines":9']
    Log(store).append(0, [note(str(number), text) for number, text in enumerate(texts)])

    assert texts == [appended.event.text for appended in reopened(folder).events]  # type: ignore[union-attr]


def test_a_line_costs_at_most_a_seventh_of_an_event_of_600_bytes(folder: Path) -> None:
    batch = [note(f"event-{number:06}", "x" * 530) for number in range(100)]
    with JsonlStore(str(folder)) as store:
        for number, event in enumerate(batch):
            Log(store).append(number, [event])
    payloads = sum(len(encode_event(event).payload) for event in batch)

    assert 590 < payloads / 100 < 600
    assert sum(file.stat().st_size for file in journal(folder).iterdir()) <= 1.15 * payloads


def test_spaces_behind_the_last_line_are_written_over_and_gone_when_the_store_is_closed(folder: Path) -> None:
    with JsonlStore(str(folder)) as store, JsonlStore(str(folder), durability="process") as other:
        log = Log(store)
        sizes = set()
        for offset in range(20):
            log.append_one(offset, "e")
            sizes.add(segments(folder)[0].stat().st_size)
        data = segments(folder)[0].read_bytes()

        assert len(sizes) < 10
        assert data.endswith(b" " * 20_000)
        assert data.rstrip(b" ").endswith(b"}\n")
        assert list(range(20)) == reopened(folder).offsets == Log(other).offsets
        Log(other).append(20, "f")
        log.append(21, "gh")
        log.append(19, "i")
        log.append_one(20, "j")
        assert b"  " not in segments(folder)[0].read_bytes().rstrip(b" ")
        assert list(range(21)) == Log(other).offsets
    assert segments(folder)[0].read_bytes().endswith(b"}\n")
    assert list(range(21)) == reopened(folder).offsets


@pytest.mark.parametrize("keep", [0, 1, 50])
def test_a_line_that_is_torn_in_the_spaces_is_cut(folder: Path, keep: int) -> None:
    store = JsonlStore(str(folder))
    log = Log(store)
    for offset in range(10):
        log.append_one(offset, "e")
    [file] = segments(folder)
    size = len(file.read_bytes().rstrip())
    log.append_one(10, "torn")
    end = len(file.read_bytes().rstrip())
    with file.open("r+b") as torn:
        torn.seek(size + 1 + keep)
        torn.write(b" " * (end - size - 20 - keep))
    del store, log

    assert list(range(10)) == reopened(folder).offsets
    reopened(folder).append(10, "x")
    assert "x" == reopened(folder).events[-1].event.id


# Segments


def test_a_journal_goes_on_in_a_new_segment_and_is_read_across_them(folder: Path) -> None:
    with JsonlStore(str(folder), segment_bytes=1000) as store:
        log = Log(store)
        for offset in range(40):
            log.append_one(offset, f"e{offset}")
        log.append(35, "xyz")

        expected = [*(f"e{offset}" for offset in range(35)), "x", "y", "z"]
        assert expected == [appended.event.id for appended in log.events]
        assert expected == [appended.event.id for appended in reopened(folder).events]
    names = [file.name for file in segments(folder)]
    assert [f"{number:08}.jsonl" for number in range(1, len(names) + 1)] == names
    assert len(names) > 5
    assert all(file.stat().st_size <= 1100 for file in segments(folder))


def test_a_batch_stays_in_one_segment(folder: Path) -> None:
    with JsonlStore(str(folder), segment_bytes=500) as store:
        log = Log(store)
        log.append(0, [note(str(number), "x" * 100) for number in range(50)])
        log.append(50, "z")

    assert 51 == len(reopened(folder).events)
    assert 2 == len(segments(folder))


def test_a_segment_that_was_ended_but_not_followed_is_followed_by_the_next_write(folder: Path) -> None:
    with JsonlStore(str(folder), segment_bytes=500) as store:
        log = Log(store)
        while len(segments(folder) if folder.exists() and any(p.is_dir() for p in folder.iterdir()) else []) < 3:
            log.append_one(log.head.next_offset, "e")
        segments(folder)[-1].unlink()
    count = len(reopened(folder).events)
    reopened(folder).append_one(count, "f")

    assert count + 1 == len(reopened(folder).events)
    assert 3 == len(segments(folder))


def test_a_missing_segment_is_told(folder: Path) -> None:
    with JsonlStore(str(folder), segment_bytes=500) as store:
        for offset in range(20):
            Log(store).append_one(offset, "e")
    for missing in segments(folder)[:2]:
        missing.unlink()
        with pytest.raises(LogCorruptionError, match=r"a segment is missing"):
            reopened(folder).claim()


# Names


def test_keys_that_differ_by_little_have_folders_that_differ_by_more_than_case(store: JsonlStore, folder: Path) -> None:
    parts = [
        "a",
        "A",
        "a/",
        "a%2F",
        "con",
        "CON",
        "..",
        ".",
        "x" * 1024,
        "x" * 1023 + "y",
        "ä",
        "a\u0308",
        "~",
        "\\",
        ":",
    ]
    keys = [ActivationKey(first, second) for first in parts for second in ("a", "A", "nul.txt")]
    for key in keys:
        perform(store, key, Claim())
    names = [path.name for path in folder.iterdir() if path.is_dir()]

    assert sorted(keys) == [info.key for info in store.activations()]
    assert len(keys) == len({name.lower() for name in names})
    assert all(len(name.encode()) <= 200 and name.isascii() for name in names)


def test_a_journal_under_another_keys_name_is_refused(store: JsonlStore, folder: Path) -> None:
    Log(store).claim()
    other = ActivationKey("pik", "other")
    perform(store, other, Claim())
    found = {path.name.partition("~")[0]: path for path in folder.iterdir() if path.is_dir()}
    file = found["pik_other"] / "00000001.jsonl"
    (found["pik-1_implement-task"] / file.name).replace(file)

    with pytest.raises(LogCorruptionError, match="is segment 1 of pik-1/implement-task"):
        Log(JsonlStore(str(folder)), other).claim()


# Torn tails


@pytest.mark.parametrize("batch", ["x", "xyz"])
def test_a_tail_torn_at_any_byte_takes_its_whole_commit_along(tmp_path: Path, batch: str) -> None:
    origin = tmp_path / "origin"
    with JsonlStore(str(origin)) as store:
        log = Log(store)
        log.append(0, "abc")
        before = segments(origin)[0].read_bytes()
        log.append(2, batch)
    after = segments(origin)[0].read_bytes()
    name = segments(origin)[0].relative_to(origin)

    for cut in range(len(before) + 1, len(after)):
        folder = copied(origin, tmp_path / str(cut), name, after[:cut])
        with JsonlStore(str(folder), read_only=True) as reader:
            assert (Head(1, 3, 0, 0), "abc") == (Log(reader).head, Log(reader).names)
        assert after[:cut] == (folder / name).read_bytes()
        with JsonlStore(str(folder)) as store:
            Log(store).append(3, "d")
            assert "abcd" == Log(store).names
        [saved] = [path for path in journal(folder).iterdir() if KEPT_BESIDE in path.name]
        assert after[len(before) : cut] == saved.read_bytes()
        assert (folder / name).read_bytes().startswith(before)


def copied(origin: Path, folder: Path, name: Path, data: bytes) -> Path:
    """A store as `origin`, but for one file."""
    (folder / name).parent.mkdir(parents=True)
    (folder / "incarnate.json").write_bytes((origin / "incarnate.json").read_bytes())
    (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize(
    "tail", [b"\0" * 5000, b"{", b'{"offset":3}\n', b"\n", b"\xff" * 10, b'{"offset":3,"incar\0\0\n']
)
def test_what_a_power_cut_leaves_behind_the_last_commit_is_cut_and_told(
    folder: Path, tail: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with JsonlStore(str(folder)) as store:
        Log(store).append(0, "abc")
    [file] = segments(folder)
    size = file.stat().st_size
    with file.open("ab") as end:
        end.write(tail)
    with caplog.at_level(logging.WARNING, "incarnate"):
        reopened(folder).append(3, "d")

    assert "abcd" == reopened(folder).names
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"{file}: cut {len(tail)} torn bytes at byte {size}; they are in {file}{KEPT_BESIDE}")


def test_a_torn_tail_longer_than_what_is_read_at_once_is_cut(folder: Path) -> None:
    with JsonlStore(str(folder)) as store:
        log = Log(store)
        log.append(0, "a")
        [file] = segments(folder)
        size = file.stat().st_size
        log.append(1, [note(str(number), "x" * 100_000) for number in range(40)])
        assert 41 == len(reopened(folder).events)
    os.truncate(file, size + 3_900_000)

    assert "a" == reopened(folder).names
    reopened(folder).append(1, "b")
    assert "ab" == reopened(folder).names


# Damage


def test_damage_in_front_of_valid_records_is_told_with_its_place_and_left_alone(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    with JsonlStore(str(origin)) as store:
        log = Log(store)
        for offset, letter in enumerate("abcd"):
            log.append_one(offset, letter)
    name = segments(origin)[0].relative_to(origin)
    whole = segments(origin)[0].read_bytes()
    starts = [0, *(at + 1 for at in range(len(whole)) if whole[at] == 10)]
    last = starts[-2]

    for at in sorted({*range(0, last, 7), *(start - 1 for start in starts[2:-1])}):
        damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        folder = copied(origin, tmp_path / str(at), name, damaged)
        for read_only in (True, False):
            store = JsonlStore(str(folder), read_only=read_only)
            with store, pytest.raises((LogCorruptionError, StoreFileError)) as told:
                _ = Log(store).head if read_only else Log(store).claim()
            if at >= starts[1]:
                line = max(number for number, start in enumerate(starts) if start <= at)
                place = f"{folder / name}, line {line + 1}, byte {starts[line]}"
                assert place == getattr(told.value, "place", "")
        assert damaged == (folder / name).read_bytes()


def test_a_last_record_that_is_whole_but_changed_is_told(folder: Path) -> None:
    with JsonlStore(str(folder)) as store:
        Log(store).append(0, [note("a", "before")])
    [file] = segments(folder)
    file.write_bytes(file.read_bytes().replace(b"before", b"behind"))

    with pytest.raises(LogCorruptionError, match=r"line 3, byte \d+: is damaged, and records follow"):
        reopened(folder).claim()


def test_a_record_that_was_taken_out_is_told(folder: Path) -> None:
    with JsonlStore(str(folder)) as store:
        for offset, name in enumerate("abcd"):
            Log(store).append_one(offset, name)
    [file] = segments(folder)
    parts = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join(parts[:3] + parts[4:]))

    with pytest.raises(LogCorruptionError, match="line 4, byte"):
        reopened(folder).claim()


def test_an_event_that_changes_under_an_open_store_is_told_when_it_is_read(store: JsonlStore, folder: Path) -> None:
    log = Log(store)
    log.append(0, [note("a", "before")])
    log.append(1, "b")
    [file] = segments(folder)
    with file.open("r+b") as changed:
        changed.seek(file.read_bytes().index(b"before"))
        changed.write(b"behind")

    with pytest.raises(LogCorruptionError, match=r"00000001.jsonl, byte \d+: a record of \S+ has changed"):
        _ = log.events


# Who may write


def test_two_openings_in_one_process_never_write_at_once(folder: Path) -> None:
    with JsonlStore(str(folder)) as mine, JsonlStore(str(folder), busy_seconds=0.01) as theirs:

        def claim_meanwhile(stored: StoredLog) -> Decision:
            with pytest.raises(StoreBusyError, match=r"was locked by another process for 0\.01 seconds"):
                Log(theirs).claim()
            return decide(stored, Claim(), None, 0)

        mine.transact(KEY, claim_meanwhile, 0)

        assert 2 == Log(theirs).claim().fence


def test_another_activation_is_not_held_up(folder: Path) -> None:
    with JsonlStore(str(folder)) as mine, JsonlStore(str(folder), busy_seconds=0) as theirs:

        def claim_meanwhile(stored: StoredLog) -> Decision:
            perform(theirs, ActivationKey("pik", "other"), Claim())
            return decide(stored, Claim(), None, 0)

        assert 1 == mine.transact(KEY, claim_meanwhile, 0).head.fence


def test_a_reader_does_not_wait_for_a_writer(store: JsonlStore) -> None:
    log = Log(store)
    log.append(0, "a")
    seen: list[str] = []

    def read_meanwhile(stored: StoredLog) -> Decision:
        reader = threading.Thread(target=lambda: seen.append(log.names))
        reader.start()
        reader.join()
        return decide(stored, Claim(), None, 0)

    store.transact(KEY, read_meanwhile, 0)
    assert {"a"} == set(seen)


def test_a_removed_lock_file_locks_nobody_out_and_keeps_nobody_in(store: JsonlStore, folder: Path) -> None:
    log = Log(store)
    log.claim()
    (journal(folder) / "lock").unlink()
    with JsonlStore(str(folder)) as other:
        Log(other).claim()

    assert 3 == log.claim().fence
    assert (journal(folder) / "lock").exists()


def test_a_group_commits_up_to_its_first_refusal(store: JsonlStore) -> None:
    def command(offset: int, name: str) -> Any:
        event = encode_event(note(name))
        return lambda stored: decide(stored, AppendMany(1, offset, notes(name)), (event,), 0)

    decision = store.transact_all(KEY, [command(0, "a"), command(1, "b"), command(5, "c"), command(2, "d")], 0)

    assert decision.error is not None
    assert "ab" == Log(store).names


# The folder


def test_folder_and_files_are_their_owners_alone(store: JsonlStore, folder: Path) -> None:
    old = os.umask(0)
    try:
        Log(store).claim()
    finally:
        os.umask(old)
    folders = [folder, journal(folder)]

    assert [0o700, 0o700] == [path.stat().st_mode & 0o777 for path in folders]
    assert {0o600} == {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}


def test_a_folder_with_other_files_is_refused_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(StoreFileError, match="holds other files and is no store of incarnate"):
        JsonlStore(str(folder))

    assert ["notes.txt"] == [path.name for path in folder.iterdir()]


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        (b'{"store":"incarnate-jsonl","version":2}', "newer version of incarnate"),
        (b'{"store":"other","version":1}', "is not what incarnate writes"),
        (b"", "is not what incarnate writes"),
    ],
)
def test_a_store_of_another_kind_is_refused(folder: Path, mark: bytes, reason: str) -> None:
    folder.mkdir()
    (folder / "incarnate.json").write_bytes(mark)
    with pytest.raises(StoreFileError, match=reason):
        JsonlStore(str(folder))

    assert ["incarnate.json"] == [path.name for path in folder.iterdir()]


def test_a_journal_of_a_newer_version_is_refused(folder: Path) -> None:
    with JsonlStore(str(folder)) as store:
        Log(store).claim()
    [file] = segments(folder)
    file.write_bytes(file.read_bytes().replace(b'"journal":1', b'"journal":2'))

    with pytest.raises(StoreFileError, match="was written by a newer version of incarnate"):
        reopened(folder).claim()


def test_what_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, reason in (
        ("file", "is no folder"),
        ("none/inner", "its folder does not exist"),
        ("a\ud800", "looked up"),
    ):
        with pytest.raises(StoreFileError, match=reason):
            JsonlStore(str(tmp_path / name))
    with pytest.raises(StoreFileError, match="does not exist"):
        JsonlStore(str(tmp_path / "none"), read_only=True)

    assert ["file"] == [path.name for path in tmp_path.iterdir()]


def test_a_read_only_store_writes_nothing(folder: Path) -> None:
    with JsonlStore(str(folder)) as store:
        Log(store).append(0, "abc")
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}
    with JsonlStore(str(folder), read_only=True) as store:
        assert ("abc", 1) == (Log(store).names, len(list(store.activations())))
        assert Log(store, ActivationKey("pik", "nobody")).head.fence is None
        with pytest.raises(ReadOnlyError):
            Log(store).claim()

    assert before == {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


def test_more_journals_than_may_be_open_are_written_and_read(store: JsonlStore) -> None:
    logs = [Log(store, ActivationKey("pik", str(number))) for number in range(300)]
    for offset in range(2):
        for log in logs:
            log.append_one(offset, str(offset))

    assert [["0", "1"]] * 300 == [[appended.event.id for appended in log.events] for log in logs]
    assert 300 == len(list(store.activations()))
    assert len(os.listdir("/proc/self/fd")) < 900  # noqa: PTH208


def test_a_damaged_journal_does_not_hide_the_others(store: JsonlStore, folder: Path) -> None:
    Log(store).claim()
    [file] = segments(folder)
    perform(store, ActivationKey("pik", "other"), Claim())
    with file.open("r+b") as damaged:
        damaged.write(b"?")

    with JsonlStore(str(folder)) as other:
        assert [ActivationKey("pik", "other")] == list(other.keys())
        with pytest.raises(LogCorruptionError):
            list(other.activations())
