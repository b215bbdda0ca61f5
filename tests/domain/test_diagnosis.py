"""The examiner: what it finds in what could be read."""

from hypothesis import given
from hypothesis import strategies as st

from incarnate import (
    ActivationKey,
    AppendedEvent,
    AssistantMessage,
    Head,
    ReplayAnalysis,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from incarnate.domain.diagnosis import Diagnosis, Examiner, Stretch
from incarnate.domain.rewinds import Rewind
from tests.support.stores import checkpoint, note

KEY = ActivationKey("pik", "task")


def examined(*events: SessionEvent, head: Head | None = None, incarnations: tuple[int, ...] = ()) -> Diagnosis:
    examiner = Examiner(KEY, head or Head(1, len(events), 0, 100))
    for offset, event in enumerate(events):
        examiner.take(AppendedEvent(offset, incarnations[offset] if incarnations else 1, 0, event))
    examiner.take_end()
    return examiner.diagnosis


def told(found: Diagnosis) -> list[tuple[str, str, int | None]]:
    return [(finding.severity, finding.kind, finding.offset) for finding in found.findings]


def call(name: str, id: str) -> ToolCall:
    return ToolCall(id=id, parent_id=None, call_id=name, name="bash", args={})


def result(name: str, id: str) -> ToolResult:
    return ToolResult(id=id, parent_id=None, call_id=name, ok=True, result="x")


def test_a_whole_log_has_no_findings() -> None:
    found = examined(note("a"), note("b"))

    assert () == found.findings
    assert (2, [Stretch(1, 0, 2)]) == (found.events, list(found.history))


def test_offsets_where_nothing_stands_are_a_gap_wherever_they_are() -> None:
    examiner = Examiner(KEY, Head(1, 9, 0, 0))
    for offset in (2, 3, 6):
        examiner.take(AppendedEvent(offset, 1, 0, note(str(offset))))
    examiner.take_end()

    assert [("damage", "gap", 0), ("damage", "gap", 4), ("damage", "gap", 7)] == told(examiner.diagnosis)
    assert "2 events missing: nothing stands at 0 up to 2" == examiner.diagnosis.findings[0].text
    assert "incarnate fork pik/task NEW_KEY --at 4 " in examiner.diagnosis.findings[1].repair


def test_neighbours_that_cannot_be_read_for_one_reason_are_one_finding() -> None:
    examiner = Examiner(KEY, Head(1, 7, 0, 0))
    for offset, reason in enumerate(("", "torn page", "torn page", "no event", "", "torn page", "")):
        if reason:
            examiner.take_unreadable(offset, reason)
        else:
            examiner.take(AppendedEvent(offset, 1, 0, note(str(offset))))
    examiner.take_end()
    found = examiner.diagnosis.findings

    assert [(1, "2 events cannot be read: torn page"), (3, "no event"), (5, "torn page")] == [
        (one.offset, one.text) for one in found
    ]
    assert found == examiner.diagnosis.findings


def test_who_wrote_what_is_told_in_stretches() -> None:
    found = examined(note("a"), note("b"), note("c"), head=Head(3, 3, 0, 0), incarnations=(1, 3, 3))

    assert (Stretch(1, 0, 1), Stretch(3, 1, 3)) == found.history
    assert () == found.findings


def test_i2_an_older_incarnation_above_a_newer_one_is_damage() -> None:
    found = examined(note("a"), note("b"), note("c"), head=Head(3, 3, 0, 0), incarnations=(1, 3, 2))

    assert [("damage", "fence", 2)] == told(found)
    assert "incarnation 2 wrote above what incarnation 3 wrote" == found.findings[0].text


def test_i2_an_incarnation_above_the_fence_is_damage() -> None:
    found = examined(note("a"), note("b"), head=Head(1, 2, 0, 0), incarnations=(1, 7))

    assert [("damage", "fence", 1)] == told(found)
    assert "lease it at incarnation 8 or above, which raises the fence" == found.findings[0].repair


def test_events_of_a_log_without_a_fence_are_damage() -> None:
    assert [("damage", "fence", 0)] == told(examined(note("a"), head=Head(None, 1, 0, 0)))


def test_i5_a_checkpoint_above_the_head_or_the_fence_is_damage() -> None:
    head = Head(1, 2, 0, 0)
    examiner = Examiner(KEY, head)
    examiner.take_checkpoint(checkpoint("whole", 2), head)
    examiner.take_checkpoint(checkpoint("dangling", 3), head)
    examiner.take_checkpoint(checkpoint("foreign", 1, incarnation=2), head)
    found = examiner.diagnosis

    assert [("damage", "fence", 1), ("damage", "checkpoint", 3)] == told(found)
    assert 3 == found.checkpoints


def test_i8_a_turn_counter_below_the_turns_of_the_log_is_damage() -> None:
    marks = (TurnStart(id="a", parent_id=None, turn=7), TurnEnd(id="b", parent_id=None, turn=7))

    assert [("damage", "turns", None)] == told(examined(*marks, head=Head(1, 2, 0, 7)))
    assert [] == told(examined(*marks, head=Head(1, 2, 0, 8)))


def test_i4_a_rewind_that_the_archive_does_not_know_is_damage() -> None:
    examiner = Examiner(KEY, Head(1, 0, 2, 0))
    examiner.take_rewinds([Rewind(2, 0, 3, 1, 0)])

    assert ["nothing tells what rewind 1 of 2 cut"] == [finding.text for finding in examiner.diagnosis.findings]


def test_an_id_that_comes_again_is_a_warning() -> None:
    assert [("warning", "doubled-id", 2)] == told(examined(note("a"), note("b"), note("a")))


def test_a_result_that_nobody_called_is_a_warning_and_a_call_without_one_a_note() -> None:
    found = examined(result("x", "a"), call("y", "b"), call("z", "c"), result("z", "d"), result("z", "e"))

    assert [("warning", "orphan-result", 0), ("note", "unmatched-call", 1)] == told(found)


def test_a_turn_that_did_not_end_is_a_note() -> None:
    start = TurnStart(id="a", parent_id=None, turn=0)
    inner = TurnStart(id="b", parent_id=None, turn=1, parent_call_id="c")

    assert [("note", "open-turn", 0)] == told(examined(start, inner))


def test_a_retired_log_is_a_note() -> None:
    assert [("note", "retired", None)] == told(examined(head=Head(2, 0, 0, 0, retired=True)))


def test_of_one_kind_twenty_are_told_and_the_rest_counted() -> None:
    found = examined(*[note("a")] * 100)

    assert 21 == len(found.findings)
    assert "79 more of the kind doubled-id" == found.findings[-1].text


def test_damage_comes_first() -> None:
    found = examined(call("x", "a"), note("a"), head=Head(0, 2, 0, 0))

    assert ["damage", "warning", "note"] == [finding.severity for finding in found.findings]


names = st.sampled_from("xyz")
work = st.one_of(
    st.builds(call, names, st.uuids().map(str)),
    st.builds(result, names, st.uuids().map(str)),
    st.builds(lambda id: TurnStart(id=id, parent_id=None, turn=1), st.uuids().map(str)),
    st.builds(lambda id: TurnEnd(id=id, parent_id=None, turn=1), st.uuids().map(str)),
    st.builds(lambda id: AssistantMessage(id=id, parent_id=None, text=""), st.uuids().map(str)),
)


@given(st.lists(work, max_size=20))
def test_calls_results_and_turns_are_counted_as_the_analysis_counts_them(events: list[SessionEvent]) -> None:
    analysis = ReplayAnalysis()
    for offset, event in enumerate(events):
        analysis.apply(AppendedEvent(offset, 1, 0, event))
    kinds = [kind for _, kind, _ in told(examined(*events))]
    expected = analysis.value

    assert len(expected.dangling_tool_calls) == kinds.count("unmatched-call")
    assert len(expected.orphan_tool_results) == kinds.count("orphan-result")
    assert bool(expected.dangling_turns) == ("open-turn" in kinds)
