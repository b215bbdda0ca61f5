from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.dialects.base import UNNUMBERED, UNPLACED, kept
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.events import AssistantMessage, Compaction, SessionEvent, TurnEnd, TurnStart

START = TurnStart(id="", parent_id=None, turn=UNNUMBERED)
END = TurnEnd(id="", parent_id=None, turn=UNNUMBERED)


def said(event_id: str = "") -> AssistantMessage:
    return AssistantMessage(id=event_id, parent_id=None, text="x")


def compaction(start: int, end: int) -> Compaction:
    return Compaction(id="", parent_id=None, reason="auto", replaces_from=start, replaces_to=end)


drafts = st.lists(
    st.one_of(
        st.sampled_from(["", "call:1", "result:1"]).map(said),
        st.sampled_from([START, END, compaction(UNPLACED, UNPLACED)]),
        st.integers(0, 60).map(lambda n: compaction(UNPLACED, kept(n))),
    ),
    max_size=40,
)


def linker(parent: str | None, offset: int) -> Linker:
    ids, turns = iter(range(1000)), iter(range(7, 1000))
    return Linker(parent, offset, lambda: f"n-{next(ids)}", lambda: next(turns))


@given(drafts, st.none() | st.just("prev"), st.integers(0, 50))
def test_events_follow_each_other(found: list[SessionEvent], parent: str | None, offset: int) -> None:
    linked = linker(parent, offset)
    events = linked.link(found)
    assert [parent, *[event.id for event in events]][:-1] == [event.parent_id for event in events][: len(events)]
    assert offset + len(events) == linked.next_offset
    assert "" not in [event.id for event in events]


@given(drafts, st.integers(0, 40))
def test_it_makes_no_difference_where_records_end(found: list[SessionEvent], cut: int) -> None:
    parts = linker("prev", 3)
    assert linker("prev", 3).link(found) == parts.link(found[:cut]) + parts.link(found[cut:])


@given(drafts)
def test_no_two_turns_share_a_number(found: list[SessionEvent]) -> None:
    events = linker(None, 0).link(found)
    starts = [event.turn for event in events if isinstance(event, TurnStart)]
    ends = [event.turn for event in events if isinstance(event, TurnEnd)]
    assert sorted(set(starts)) == starts
    assert sorted(set(ends)) == sorted(ends)


@given(drafts, st.integers(0, 50))
def test_a_compaction_replaces_only_what_is_before_it(found: list[SessionEvent], offset: int) -> None:
    for place, event in enumerate(linker(None, offset).link(found), offset):
        if isinstance(event, Compaction):
            assert 0 == event.replaces_from <= event.replaces_to <= place


def test_an_end_takes_the_number_of_its_start(linker: Callable[..., Linker]) -> None:
    turns = [event.turn for event in linker().link([START, END, START, END]) if isinstance(event, TurnEnd)]
    assert [0, 1] == turns


def test_an_end_without_a_start_gets_a_number_of_its_own(linker: Callable[..., Linker]) -> None:
    [end, start] = linker().link([END, START])
    assert [0, 1] == [end.turn, start.turn]  # type: ignore[union-attr]


def test_numbers_and_ranges_of_the_harness_stay(linker: Callable[..., Linker]) -> None:
    given_by_harness: list[SessionEvent] = [TurnStart(id="", parent_id=None, turn=9), compaction(2, 5)]
    [start, placed] = linker().link(given_by_harness)
    assert [9, 2, 5] == [start.turn, placed.replaces_from, placed.replaces_to]  # type: ignore[union-attr]


def test_what_a_compaction_kept_is_outside_its_range(linker: Callable[..., Linker]) -> None:
    *_, placed = linker().link([said(), said(), said(), compaction(UNPLACED, kept(2))])
    assert [0, 1] == [placed.replaces_from, placed.replaces_to]  # type: ignore[union-attr]


def test_a_rewind_takes_back_the_last_events_alone(linker: Callable[..., Linker]) -> None:
    *_, placed, beyond = linker().link(
        [said(), said(), said(), compaction(kept(2), UNPLACED), compaction(kept(9), UNPLACED)]
    )
    assert [1, 3] == [placed.replaces_from, placed.replaces_to]  # type: ignore[union-attr]
    assert 0 == beyond.replaces_from  # type: ignore[union-attr]


def test_a_long_log_is_linked_in_one_chain(linker: Callable[..., Linker]) -> None:
    events = linker().link([said()] * 5000)
    assert all(after.parent_id == before.id for before, after in pairwise(events))
