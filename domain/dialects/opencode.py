"""`opencode`: the stream of `opencode run --format json`, the rows of its database, and `opencode export`.

What it prints of a tool is one record, when the tool has answered: a call that was running when it died is only in the
database, which also holds what the sub-agents did.
"""

from __future__ import annotations

from incarnate.domain.dialects.base import Capabilities, ResumeInvocation
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.layouts import Layout
from incarnate.domain.dialects.opencode_normalizer import OpenCodeNormalizer
from incarnate.domain.dialects.opencode_parts import NAME

__all__ = ["OpenCode"]

_STREAM = frozenset({"step_start", "text", "reasoning", "tool_use", "step_finish", "error", "done"})
_TABLES = frozenset({"event", "event_sequence", "message", "part", "project", "project_directory", "session"})


class OpenCode:
    """The dialect of OpenCode; sessions resume by their id on the command line."""

    name = NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = Layout(main=r"/(?P<session>ses_[^/]+)\.jsonl?$")

    def normalizer(self) -> OpenCodeNormalizer:
        """A normalizer for one stream, database or export."""
        return OpenCodeNormalizer()

    def likeness(self, record: object) -> int:
        """Its sessions' ids are spelled like nobody else's."""
        if not isinstance(record, dict):
            return 0
        if optional_text(record, "table") in _TABLES and isinstance(record.get("row"), dict):
            return 2
        info = record.get("info")
        if isinstance(info, dict) and ("messages" in record or "parts" in record):
            return 2
        return 2 if optional_text(record, "type") in _STREAM and self.session_id(record) is not None else 0

    def record_id(self, record: object) -> str | None:
        """The id of the part, or of the event of the database."""
        if not isinstance(record, dict):
            return None
        holder = record.get("row") if record.get("table") == "event" else record.get("part")
        return optional_text(holder, "id") if isinstance(holder, dict) else None

    def session_id(self, record: object) -> str | None:
        """The `sessionID` of what is printed, the root session of a database or an export."""
        if not isinstance(record, dict):
            return None
        if record.get("table") == "session":
            row = record.get("row")
            return optional_text(row, "id") if isinstance(row, dict) and not row.get("parent_id") else None
        info = record.get("info")
        if isinstance(info, dict) and "messages" in record:
            return optional_text(info, "id")
        return optional_text(record, "sessionID")

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("--session", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work; interactive without a prompt."""
        if prompt is None:
            return ("opencode", "--session", session_id)
        return ("opencode", "run", "--format", "json", "--thinking", "--session", session_id, prompt)
