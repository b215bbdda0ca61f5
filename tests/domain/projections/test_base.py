"""The list-like projection: whatever an event does to the list, a rewind undoes (I7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate import AppendedEvent, OffsetError, SystemMessage
from incarnate.domain.projections.base import Change, ListProjection, apply_change


class Script(ListProjection[int]):
    """Does to the list what the text of each event says: drop so many, replace some, add so many."""

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: list[int] = []

    def _forget(self, offset: int) -> None:
        self.forgotten.append(offset)

    def _reduce(self, appended: AppendedEvent) -> Change:
        assert isinstance(appended.event, SystemMessage)
        drop, replace, add = map(int, appended.event.text.split())
        keep = max(0, len(self._items) - drop)
        mark = appended.offset * 10
        replaced = tuple((index, mark + 5) for index in {0, keep - replace} if 0 <= index < keep and replace)
        return Change(self.generation, keep, tuple(range(mark, mark + add)), replaced)


def step(offset: int, script: str) -> AppendedEvent:
    return AppendedEvent(offset, 0, 0, SystemMessage(id="e", parent_id=None, text=script))


SCRIPT = st.tuples(st.sampled_from([0, 0, 0, 1, 3]), st.sampled_from([0, 0, 1, 2]), st.integers(0, 4))
STEPS = st.lists(st.one_of(SCRIPT.map(lambda s: "{} {} {}".format(*s)), st.floats(0, 1)), max_size=60)


@given(STEPS)
def test_i7_after_any_appends_and_rewinds_the_list_and_its_copy_are_those_of_a_fresh_replay(
    steps: list[str | float],
) -> None:
    live, copy, kept = Script(), list[int](), list[str]()
    for each in steps:
        if isinstance(each, str):
            change = live.apply(step(len(kept), each))
            kept.append(each)
        else:
            cut = round(each * len(kept))
            change = live.rewind(cut)
            del kept[cut:]
        apply_change(copy, change)
        again = live.fresh()
        for offset, script in enumerate(kept):
            again.apply(step(offset, script))

        assert list(again.value) == list(live.value) == copy
        assert change.generation == live.generation
        assert all(index < change.keep for index, _ in change.replaced)


def test_an_event_out_of_its_turn_is_refused_and_changes_nothing() -> None:
    live = Script()
    live.apply(step(0, "0 0 1"))

    for offset in (0, 2):
        with pytest.raises(OffsetError, match=f"has come to offset 1; it cannot take {offset}"):
            live.apply(step(offset, "0 0 1"))

    assert ([0], 1) == (list(live.value), live.next_offset)


@pytest.mark.parametrize("offset", [-1, 2])
def test_a_rewind_to_where_no_event_is_is_refused_and_changes_nothing(offset: int) -> None:
    live = Script()
    live.apply(step(0, "0 0 1"))

    with pytest.raises(OffsetError, match="cannot be rewound"):
        live.rewind(offset)

    assert ([0], 0) == (list(live.value), live.generation)


def test_a_rewind_of_ten_in_a_long_log_touches_ten() -> None:
    live = Script()
    for offset in range(5000):
        live.apply(step(offset, "0 0 1"))

    change = live.rewind(4990)

    assert Change(1, 4990, ()) == change
    assert list(range(4999, 4989, -1)) == live.forgotten


def test_a_copy_that_missed_a_change_is_told() -> None:
    with pytest.raises(ValueError, match="keeps 3 items of a copy that has 1"):
        apply_change([1], Change(0, 3, ()))


def test_a_projection_is_known_by_its_name() -> None:
    assert Script().name == Script().fresh().name
