"""Simulate supervisors and the system under them: one thread, virtual time, every race a choice of the seed.

Needs the extra `simulation`. `docs/simulation.md` tells how to test a supervisor with it.
"""

from incarnate.simulation.checks import (
    CHECKS,
    Check,
    checkpoints_follow_rewinds,
    gap_free,
    linearizable,
    no_acknowledged_event_lost,
    no_event_twice,
    no_stale_write,
    views_equal_folds,
)
from incarnate.simulation.choices import Chosen, Plan
from incarnate.simulation.exploring import Explored, Scenario, explore
from incarnate.simulation.history import ActivationHistory, Call, Commit, History, Stored, ViewRead
from incarnate.simulation.kit import Simulation, StoreSource
from incarnate.simulation.process import Process
from incarnate.simulation.scenarios import SCENARIOS, persist

__all__ = [
    "CHECKS",
    "SCENARIOS",
    "ActivationHistory",
    "Call",
    "Check",
    "Chosen",
    "Commit",
    "Explored",
    "History",
    "Plan",
    "Process",
    "Scenario",
    "Simulation",
    "StoreSource",
    "Stored",
    "ViewRead",
    "checkpoints_follow_rewinds",
    "explore",
    "gap_free",
    "linearizable",
    "no_acknowledged_event_lost",
    "no_event_twice",
    "no_stale_write",
    "persist",
    "views_equal_folds",
]
