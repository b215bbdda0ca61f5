"""`pi`: the stream of `pi --mode json`, the session files on disk, and the reference's JSON-RPC notifications.

The stream tells a message many times: as deltas, whole, at the end of its step and of its run; only the whole one
counts. A session file is a tree, whose last entry is the tip of the branch that the model sees.
"""

from __future__ import annotations

from incarnate.domain.dialects.base import Capabilities, ResumeInvocation
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.layouts import Layout
from incarnate.domain.dialects.pi_messages import NAME
from incarnate.domain.dialects.pi_normalizer import PiNormalizer
from incarnate.domain.dialects.pi_notifications import NOTIFICATIONS

__all__ = ["Pi"]

_STREAM = frozenset(
    {
        "agent_end",
        "agent_settled",
        "agent_start",
        "auto_retry_end",
        "auto_retry_start",
        "entry_appended",
        "message_end",
        "message_start",
        "message_update",
        "tool_execution_end",
        "tool_execution_start",
        "tool_execution_update",
        "turn_end",
        "turn_start",
    }
)
_FILE = frozenset(
    {
        "branch_summary",
        "compaction",
        "context_edit",
        "custom",
        "custom_message",
        "label",
        "message",
        "model_change",
        "session_info",
        "thinking_level_change",
    }
)


class Pi:
    """The dialect of pi; sessions resume by their id on the command line."""

    name = NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = Layout(main=r"/[^/]*_(?P<session>[0-9a-f]{8}-[0-9a-f-]{27})\.jsonl$")

    def normalizer(self) -> PiNormalizer:
        """A normalizer for one stream or session file."""
        return PiNormalizer()

    def likeness(self, record: object) -> int:
        """The kinds of the stream are pi's alone, and so are the links of a session file's entries."""
        if not isinstance(record, dict):
            return 0
        kind = optional_text(record, "type")
        if kind == "session":
            return 2 if {"version", "cwd"} <= record.keys() else 0
        if kind in _STREAM:
            return 2
        if kind in _FILE:
            return 2 if {"id", "parentId"} <= record.keys() else 0
        return int(kind is None and optional_text(record, "method") in NOTIFICATIONS.makers)

    def record_id(self, record: object) -> str | None:
        """The id of an entry of a session file; nothing in the stream has one."""
        return optional_text(record, "id") if isinstance(record, dict) and "parentId" in record else None

    def session_id(self, record: object) -> str | None:
        """The id of the first line, of either form."""
        if not isinstance(record, dict):
            return None
        return optional_text(record, "id" if record.get("type") == "session" else "sessionId", "session_id")

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("--session-id", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work; interactive without a prompt.

        pi takes whatever stands behind its flag for the id, and would not know a flag with the id in it.
        """
        named = ("--session", session_id)
        return ("pi", *named) if prompt is None else ("pi", "--mode", "json", *named, prompt)
