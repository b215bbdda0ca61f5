"""Keeping a harness alive: pure plans of what to do next, one small edge to processes, and the supervisor between."""

from incarnate.supervision.commands import Command
from incarnate.supervision.edge import Deadlines, Edge, Ended, Identity, Running
from incarnate.supervision.harness import Harness
from incarnate.supervision.harness_files import SessionFolder
from incarnate.supervision.knowledge import Known, Policy
from incarnate.supervision.plan import Finish
from incarnate.supervision.processes import ProcessEdge
from incarnate.supervision.supervisor import Supervisor
from incarnate.supervision.world import Repository

__all__ = [
    "Command",
    "Deadlines",
    "Edge",
    "Ended",
    "Finish",
    "Harness",
    "Identity",
    "Known",
    "Policy",
    "ProcessEdge",
    "Repository",
    "Running",
    "SessionFolder",
    "Supervisor",
]
