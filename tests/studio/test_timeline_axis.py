"""The axis of a timeline: in the order of the log, with long pauses left out."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.studio.timeline_axis import duration, make_axis

HOUR, DAY = 3_600_000, 86_400_000


@given(st.lists(st.integers(-(2**61), 2**61) | st.integers(0, 10**7), max_size=60), st.sampled_from([320, 1200]))
def test_events_lie_in_the_order_of_the_log_and_within_the_edges(moments: list[int], width: int) -> None:
    axis = make_axis(moments, 10.0, float(width))

    assert len(moments) + 1 == len(axis.xs)
    assert all(after - before >= -1e-6 for before, after in pairwise(axis.xs))
    assert 10.0 <= axis.xs[0] <= axis.xs[-1] <= width
    assert all(10.0 <= one.left < one.right <= width + 1e-6 for one in axis.breaks)


def test_events_at_one_moment_are_as_far_apart_as_each_other() -> None:
    axis = make_axis([7] * 10, 0.0, 100.0)

    assert [10.0 * number for number in range(11)] == pytest.approx(list(axis.xs))


def test_two_days_of_nothing_are_a_break_and_take_no_room() -> None:
    work = [number * 10_000 for number in range(20)]
    axis = make_axis([*work, *[2 * DAY + moment for moment in work]], 0.0, 1000.0)
    [pause] = axis.breaks

    assert (20, 2 * DAY - work[-1]) == (pause.offset, pause.ms)
    assert 22 == pytest.approx(pause.right - pause.left)
    assert axis.xs[19] == pytest.approx(1000 - axis.xs[21], abs=30)


def test_a_pause_takes_more_room_the_longer_it_is() -> None:
    axis = make_axis([0, 1000, 3000, 33_000, 633_000], 0.0, 1000.0)
    steps = [after - before for before, after in pairwise(axis.xs[:-1])]

    assert sorted(steps) == steps
    assert steps[0] < steps[-1]


def test_the_longest_pauses_are_breaks_where_there_are_too_many() -> None:
    moments = [0]
    for hours in range(1, 200):
        moments += [moments[-1] + 1000, moments[-1] + 1000 + hours * HOUR]
    axis = make_axis(moments, 0.0, 900.0)

    assert 10 == len(axis.breaks)
    assert all(one.ms >= 190 * HOUR for one in axis.breaks)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=60), st.sampled_from([320, 1200]))
def test_no_time_is_written_over_another(moments: list[int], width: int) -> None:
    ticks = make_axis(sorted(moments), 10.0, float(width)).ticks

    assert all(after.x - before.x >= 80 for before, after in pairwise(ticks))
    assert all(width - tick.x >= 80 for tick in ticks[1:])


def test_a_tick_tells_the_day_where_it_is_another_one() -> None:
    axis = make_axis([number * 6 * HOUR for number in range(12)], 0.0, 1000.0)

    assert ["1970-01-01 UTC", "1970-01-02", "1970-01-03"] == [tick.day for tick in axis.ticks if tick.day]


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (12_340, "12.3 s"),
        (123_000, "2 min 3 s"),
        (HOUR, "1 h"),
        (3 * DAY + 4 * HOUR + 5, "3 d 4 h"),
    ],
)
def test_a_length_of_time_is_told_in_two_units_at_most(ms: int, told: str) -> None:
    assert told == duration(ms)
