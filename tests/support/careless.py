"""A supervisor as its author might leave it in a file: it makes a new id at each start, so a crash doubles an event."""

__all__ = ["SUPERVISE"]

SUPERVISE = """
from incarnate import ActivationKey, AssistantMessage, OutcomeUnknownError, StoreBusyError
from incarnate.simulation import persist

def supervise(process):
    key = ActivationKey("p", "e")
    session = persist(process, process.system.claim, key)
    for number in range(4):
        while True:
            try:
                session.emit(AssistantMessage(id=f"{number}-{process.starts}", parent_id=None, text=""))
                break
            except (StoreBusyError, OutcomeUnknownError):
                session = persist(process, process.system.lease, key, session.incarnation)
"""
