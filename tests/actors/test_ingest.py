import io
import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incarnate.actors.ingest import ingest
from incarnate.actors.ingest_report import IngestReport
from incarnate.actors.system import SessionSystem
from incarnate.domain.codec import encode_event
from incarnate.domain.commands import GetHead
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import LogMismatchError, OutcomeUnknownError, StaleIncarnationError, StoreBusyError
from incarnate.domain.events import AssistantMessage, ToolCall, TurnStart, UserMessage
from incarnate.storage.memory import MemoryStore
from tests.support.commands import KEY, recording

CLAUDE = find_dialect("claude-code")
S7 = recording("S7").read_bytes()


class Dripping(io.BytesIO):
    """A pipe whose writer writes line by line."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.readline(size)


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def feed(system: SessionSystem, data: bytes, **options: Any) -> IngestReport:
    return ingest(system, KEY, CLAUDE, io.BytesIO(data), **options)


def log(system: SessionSystem) -> list[bytes]:
    return [encode_event(appended.event).payload for appended in system.replay(KEY)]


def undisturbed(data: bytes) -> list[bytes]:
    with SessionSystem.open("memory://") as system:
        feed(system, data)
        return log(system)


def say(text: str, **fields: Any) -> bytes:
    """An assistant record of the plain shape."""
    return msgspec.json.encode({"type": "assistant", "message": {"content": text}, **fields}) + b"\n"


def counts(report: IngestReport) -> tuple[int, int, int]:
    return report.appended, report.skipped, report.beyond


def test_a_second_run_over_the_same_file_appends_nothing(system: SessionSystem) -> None:
    first, second = feed(system, S7), feed(system, S7)

    assert [(21, 0, 0), (0, 21, 0)] == [counts(first), counts(second)]
    assert undisturbed(S7) == log(system)


def test_every_run_claims_the_next_incarnation(system: SessionSystem) -> None:
    assert [1, 2, 3] == [feed(system, S7).incarnation for _ in range(3)]


def test_a_file_that_has_grown_is_continued(system: SessionSystem) -> None:
    grown = say("one") + say("two")

    assert (1, 0, 0) == counts(feed(system, say("one")))
    assert (1, 1, 0) == counts(feed(system, grown))
    assert undisturbed(grown) == log(system)


def test_a_file_shorter_than_the_log_changes_nothing_and_says_so(system: SessionSystem) -> None:
    feed(system, say("one") + say("two"))

    assert (0, 1, 1) == counts(feed(system, say("one")))


def test_where_file_and_log_part_the_line_is_named_and_nothing_is_changed(system: SessionSystem) -> None:
    feed(system, say("one") + say("two"))
    before = system.activation(KEY).ask(GetHead())
    with pytest.raises(LogMismatchError, match="line 3 is not what pik-1/implement-task holds at offset 1") as caught:
        feed(system, say("one") + b"\n" + say("three") + say("four"))

    assert (3, 1) == (caught.value.line, caught.value.offset)
    assert before == system.activation(KEY).ask(GetHead())


def test_true_is_not_taken_for_1(system: SessionSystem) -> None:
    def call(argument: object) -> bytes:
        block = {"type": "tool_use", "id": "t", "name": "f", "input": {"x": argument}}
        return msgspec.json.encode({"type": "assistant", "message": {"content": [block]}}) + b"\n"

    feed(system, call(1))
    with pytest.raises(LogMismatchError):
        feed(system, call(argument=True))


def test_a_log_that_ends_inside_a_record_parts_from_its_file(system: SessionSystem) -> None:
    blocks = [{"type": "text", "text": text} for text in ("one", "two")]
    record = msgspec.json.encode({"type": "assistant", "message": {"content": blocks}}) + b"\n"
    [first, _] = [appended.event for appended in _events(record)]
    system.claim(KEY).emit(first)
    with pytest.raises(LogMismatchError):
        feed(system, record)


def _events(data: bytes) -> list[Any]:
    with SessionSystem.open("memory://") as system:
        feed(system, data)
        return list(system.replay(KEY))


def test_a_pipe_is_appended_at_the_head(system: SessionSystem) -> None:
    feed(system, say("one"))
    feed(system, say("two"), at_head=True)
    first, second = [appended.event for appended in system.replay(KEY)]

    assert first.id == second.parent_id


def test_what_a_pipe_brought_can_be_continued_from_the_file(system: SessionSystem) -> None:
    lines = S7.splitlines(keepends=True)
    feed(system, b"".join(lines[:12]), at_head=True)
    feed(system, S7)

    assert undisturbed(S7) == log(system)


def test_turn_numbers_are_those_of_the_log(system: SessionSystem) -> None:
    session = system.claim(KEY)
    assert 0 == session.next_turn()
    feed(system, S7)
    feed(system, S7)
    turns = [found.event.turn for found in system.replay(KEY) if isinstance(found.event, TurnStart)]

    assert [1, 2] == turns
    assert 3 == system.claim(KEY).next_turn()


def test_ids_come_from_the_record_or_else_from_its_place_and_bytes(system: SessionSystem) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    feed(
        system,
        say("one", uuid="u-1")
        + say("two")
        + msgspec.json.encode({"type": "assistant", "message": {"content": [call]}}),
    )
    ids = [appended.event.id for appended in system.replay(KEY)]

    assert ["u-1:0", "call:t1"] == [ids[0], ids[2]]
    assert ids[1].startswith("2-")
    assert ids[1].endswith(":0")


def test_damaged_lines_are_counted_with_their_numbers_and_the_rest_goes_on(system: SessionSystem) -> None:
    deep = b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"f","input":%s}]}}\n'
    report = feed(
        system,
        say("one") + b"{\n" + b'{"type":"assistant"}\n' + deep % (b"[" * 300 + b"]" * 300) + b"7\n" + say("two"),
    )

    assert [(2, len(say("one"))), (3, len(say("one")) + 2)] == [(at.line, at.byte) for at in report.refused_lines[:2]]
    assert [2, 3, 4] == [refused.line for refused in report.refused_lines]
    assert [(5, "7")] == [(text.line, text.note) for text in report.text_lines]
    assert (3, 2, 6) == (report.refused, report.mapped, report.lines)
    assert ["one", "two"] == [found.event.text for found in system.replay(KEY)]  # type: ignore[union-attr]
    assert not report.complete


def test_a_refused_record_is_passed_over_by_the_next_run_too(system: SessionSystem) -> None:
    call = b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"f","input":%s}]}}\n'
    data = say("one") + call % (b"[" * 300 + b"]" * 300) + say("two")
    feed(system, data)

    assert (0, 2, 0) == counts(feed(system, data))
    assert (1, 2, 0) == counts(feed(system, data + say("three")))


def test_a_torn_last_line_is_told_and_taken_when_it_is_whole(system: SessionSystem) -> None:
    data = say("one") + say("two")
    report = feed(system, data[:-5])

    assert report.torn is not None
    assert 2 == report.torn.line
    assert (1, 1, 0) == counts(feed(system, data))


def test_a_whole_last_record_without_a_line_feed_is_taken_once(system: SessionSystem) -> None:
    data = say("one")

    assert (1, 0, 0) == counts(feed(system, data.rstrip()))
    assert (0, 1, 0) == counts(feed(system, data))


def test_line_separators_of_unicode_do_not_break_a_record(system: SessionSystem) -> None:
    feed(system, '{"type":"assistant","message":{"content":"a\u2028b\x85c"}}\n'.encode())
    [appended] = system.replay(KEY)

    assert isinstance(appended.event, AssistantMessage)
    assert "a\u2028b\x85c" == appended.event.text


def test_what_maps_to_nothing_is_counted_by_kind(system: SessionSystem) -> None:
    report = feed(system, b'{"type":"new-thing"}\n' * 3 + b"\n")

    assert ({"new-thing": 3}, 4, 0) == (report.ignored, report.lines, report.mapped)


def test_mended_places_are_counted(system: SessionSystem) -> None:
    report = feed(system, b'{"type":"assistant","message":{"content":"\\ud800"}}\n')

    assert 1 == report.mended


def test_a_writer_that_appends_until_it_is_fenced_is_compared_to_the_end(system: SessionSystem) -> None:
    data = say("one") + say("two") + say("three")
    lines = data.splitlines(keepends=True)
    feed(system, lines[0])

    class Slow(Dripping):
        """A file during whose second line the old writer adds what that line says."""

        def read1(self, size: int | None = -1, /) -> bytes:
            line = super().read1(size)
            if line == lines[1]:
                feed(system, lines[0] + lines[1])
            return line

    report = ingest(system, KEY, CLAUDE, Slow(data))

    assert (1, 2, 0) == counts(report)
    assert undisturbed(data) == log(system)


def test_a_run_that_someone_else_takes_over_from_stops(system: SessionSystem) -> None:
    data = say("one") + say("two")

    with pytest.raises(StaleIncarnationError):
        ingest(system, KEY, CLAUDE, Dripping(data), on_line=lambda _: system.claim(KEY))
    assert 1 == len(log(system))


def test_progress_is_told_in_bytes(system: SessionSystem) -> None:
    told: list[int] = []
    feed(system, S7, on_line=told.append)

    assert len(S7) == sum(told)


def test_a_long_log_is_compared_in_pages(system: SessionSystem) -> None:
    data = b"".join([say(str(number)) for number in range(2500)])
    feed(system, data)

    assert (1, 2500, 0) == counts(feed(system, data + say("more")))


@settings(max_examples=40)
@given(st.sampled_from(["S2", "S7", "S8x1", "S6x", "S4i"]), st.lists(st.floats(0, 1), max_size=5))
def test_a_file_that_is_cut_anywhere_and_continued_gives_the_undisturbed_log(scenario: str, cuts: list[float]) -> None:
    data = recording(scenario).read_bytes()
    with SessionSystem.open("memory://") as system:
        for cut in sorted(cuts):
            feed(system, data[: int(cut * len(data))], commit_sha=lambda: "-")
        feed(system, data, commit_sha=lambda: "-")

        assert undisturbed(data) == log(system)


@settings(max_examples=40)
@given(st.binary(max_size=200), st.integers(0, 23), st.integers(0, 24))
def test_foreign_bytes_between_records_stop_nothing(junk: bytes, at: int, cut: int) -> None:
    lines = S7.splitlines(keepends=True)
    lines.insert(at, junk.replace(b"\n", b"") + b"\n")
    with SessionSystem.open("memory://") as system:
        feed(system, b"".join(lines[:cut]))
        feed(system, b"".join(lines))

        assert len(undisturbed(S7)) == len(log(system))


def test_a_checkpoint_stands_right_after_each_turn_end(system: SessionSystem) -> None:
    shas = (f"sha-{number}" for number in itertools.count())
    report = feed(system, S7, commit_sha=lambda: next(shas), clock=lambda: 0)
    seed = system.claim(KEY).restore("turn-end:16")

    assert 3 == report.checkpoints
    assert seed.checkpoint is not None
    assert (16, "sha-1", 5) == (seed.next_offset, seed.checkpoint.commit_sha, seed.discards)
    assert "1970-01-01T00:00:00.000Z" == seed.checkpoint.at


def test_a_checkpoint_names_the_session_of_the_harness(system: SessionSystem) -> None:
    feed(system, S7, commit_sha=lambda: "-")
    checkpoint = system.claim(KEY).restore().checkpoint

    assert checkpoint is not None
    [entry] = checkpoint.effect_ledger
    assert "harness-session" == entry.kind
    assert {"harness": "claude-code", "sessionId": "7047a2a0-9a1f-4d1d-9bce-b68d33358904"} == entry.detail


def test_without_being_asked_for_there_are_no_checkpoints(system: SessionSystem) -> None:
    feed(system, S7)

    assert system.claim(KEY).restore().checkpoint is None


@pytest.mark.parametrize("at_head", [False, True])
def test_a_turn_end_whose_checkpoint_was_lost_gets_it_from_the_next_run(
    system: SessionSystem, *, at_head: bool
) -> None:
    feed(system, S7)
    report = feed(system, b"" if at_head else S7, at_head=at_head, commit_sha=lambda: "late")
    checkpoint = system.claim(KEY).restore().checkpoint

    assert 1 == report.checkpoints
    assert checkpoint is not None
    assert (21, "late") == (checkpoint.offset, checkpoint.commit_sha)


def test_an_error_of_the_commit_ends_the_run_and_the_next_one_makes_the_checkpoint(system: SessionSystem) -> None:
    def broken() -> str:
        raise RuntimeError("no repository")

    with pytest.raises(RuntimeError):
        feed(system, S7, commit_sha=broken)
    assert 3 == feed(system, S7, commit_sha=lambda: "-").checkpoints


@pytest.mark.parametrize("failure", [StoreBusyError("busy"), OutcomeUnknownError("who knows")])
def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_is_doubled(
    failure: Exception, system: SessionSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, transact = itertools.count(1), MemoryStore.transact

    def unsteady(*arguments: Any) -> Any:
        decision = transact(*arguments)
        if next(calls) % 3 == 0:
            raise failure
        return decision

    monkeypatch.setattr(MemoryStore, "transact", unsteady)
    report = feed(system, S7, commit_sha=lambda: "-")

    assert (21, 0, 0) == counts(report)
    assert undisturbed(S7) == log(system)


def test_a_store_that_stays_busy_ends_the_run(system: SessionSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any) -> Any:
        raise StoreBusyError("busy")

    monkeypatch.setattr(MemoryStore, "transact", busy)
    with pytest.raises(StoreBusyError):
        feed(system, S7)


def test_calls_and_prompts_arrive_as_events(system: SessionSystem) -> None:
    feed(system, recording("S7").read_bytes() + b'{"type":"user","message":{"content":"hi"},"session_id":"s"}\n')
    kinds = [type(appended.event) for appended in system.replay(KEY)]

    assert 2 == kinds.count(ToolCall)
    assert UserMessage in kinds
