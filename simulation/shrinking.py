"""From a run that failed to the fewest choices that still fail: delta debugging over what did not go the usual way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.simulation.choices import Plan

__all__ = ["shrunk"]

_MOST_RUNS = 400
"""A run takes milliseconds: a failure is told within seconds."""


def shrunk(plan: Plan, fails: Callable[[Plan], Plan | None]) -> Plan:
    """A part of `plan` that still fails, from which nothing more can be left out, as far as 400 runs tell.

    `fails` runs a plan and gives what of it came to be, or None where the run did not fail in the same way.
    """
    best = plan
    runs_left = _MOST_RUNS
    size = len(best)
    while size and runs_left:
        smaller, runs_left = _without_one(best, size, fails, runs_left)
        if smaller is None:
            size //= 2
        else:
            best = smaller
            size = min(size, len(best))
    return best


def _without_one(
    plan: Plan, size: int, fails: Callable[[Plan], Plan | None], runs_left: int
) -> tuple[Plan | None, int]:
    """`plan` without a stretch of `size` choices, if it fails without one, the latest first; and the runs left."""
    places = list(plan)
    for stop in range(len(places), 0, -size):
        if not runs_left:
            break
        runs_left -= 1
        left_out = set(places[max(0, stop - size) : stop])
        made = fails({place: chosen for place, chosen in plan.items() if place not in left_out})
        if made is not None and len(made) < len(plan):
            return made, runs_left
    return None, runs_left
