"""`acp`: the Agent Client Protocol, as a client that supervises an agent hears and says it, or as it logs it.

A record is a JSON-RPC message of either side, or what one carries: the parameters of a `session/update`, the update
alone, or the result of a prompt.
"""

from __future__ import annotations

from incarnate.domain.dialects.acp_normalizer import NAME, AcpNormalizer
from incarnate.domain.dialects.base import Capabilities, ResumeInvocation
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.layouts import FILES_OF_ONE

__all__ = ["Acp"]

_METHODS = frozenset(
    {"session/update", "session/prompt", "session/new", "session/load", "session/resume", "session/cancel"}
    | {"session/request_permission", "session/set_mode"}
)


class Acp:
    """The dialect of the Agent Client Protocol; sessions resume by a call of the protocol."""

    name = NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = FILES_OF_ONE

    def normalizer(self) -> AcpNormalizer:
        """A normalizer for one connection or log."""
        return AcpNormalizer()

    def likeness(self, record: object) -> int:
        """Its methods and its updates are its own; other messages are JSON-RPC's."""
        if not isinstance(record, dict):
            return 0
        update, result, params = record.get("update"), record.get("result", record), record.get("params")
        if record.get("method") == "initialize" and isinstance(params, dict) and "clientCapabilities" in params:
            return 2
        if optional_text(record, "method") in _METHODS or "sessionUpdate" in record:
            return 2
        if isinstance(update, dict) and "sessionUpdate" in update:
            return 2
        if isinstance(result, dict) and "stopReason" in result and "type" not in result:
            return 2
        return int("jsonrpc" in record and "method" not in record and not {"result", "error"}.isdisjoint(record))

    def record_id(self, record: object) -> str | None:  # noqa: ARG002
        """Nothing: the ids of requests count from 0 on either side of every connection."""
        return None

    def session_id(self, record: object) -> str | None:
        """The `sessionId` of the parameters, of the result, or of the record itself."""
        if not isinstance(record, dict):
            return None
        places = (record.get("params"), record.get("result"), record)
        found = [optional_text(place, "sessionId") for place in places if isinstance(place, dict)]
        return next((name for name in found if name is not None), None)

    def resume(self, session_id: str) -> ResumeInvocation:
        """A `session/load`; an agent that can do without a replay takes a `session/resume`."""
        return ResumeInvocation(transport="sdk", session_id=session_id, call="session/load", args=(session_id,))

    def resume_command(self, session_id: str, prompt: str | None = None) -> None:
        """There is no command line: the agent is a program of its own."""
