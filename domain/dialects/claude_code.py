"""`claude-code`: the stream of `claude -p --output-format stream-json` and the transcripts on disk.

The records themselves tell the form: the stream's carry `session_id`, the transcript's `sessionId`, and records with
neither are the reference's plain shape, which has no turns. File order is the order of the session: the official walk
along `parentUuid` drops all parallel results but the last.
"""

from __future__ import annotations

from incarnate.domain.dialects.base import Capabilities, ResumeInvocation
from incarnate.domain.dialects.claude_blocks import NAME
from incarnate.domain.dialects.claude_fields import decode
from incarnate.domain.dialects.claude_normalizer import ClaudeNormalizer
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.layouts import Layout

__all__ = ["ClaudeCode"]

_KINDS = frozenset(
    {"assistant", "user", "system", "result", "stream_event", "attachment", "queue-operation", "summary"}
)


class ClaudeCode:
    """The dialect of Claude Code; sessions resume by their id on the command line."""

    name = NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = Layout(
        main=r"/(?P<session>[0-9a-f]{8}-[0-9a-f-]{27})\.jsonl$",
        agents=r"/(?P<session>[^/]+)/subagents/(?:[^/]+/)*agent-(?P<agent>[^/]+)\.jsonl$",
    )

    decode = staticmethod(decode)

    def normalizer(self) -> ClaudeNormalizer:
        """A normalizer for one stream or transcript."""
        return ClaudeNormalizer()

    def likeness(self, record: object) -> int:
        """Both forms name the session and most of their lines, in their own spelling; Qwen Code copies the stream's."""
        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
            return 0
        message = record.get("message")
        if not {"qwen_code_version", "provenance"}.isdisjoint(record) or (
            isinstance(message, dict) and "parts" in message
        ):
            return 0
        if not {"claude_code_version", "isSidechain", "request_id", "userType"}.isdisjoint(record):
            return 2
        plain = record["type"] in ("assistant", "user") and isinstance(message, dict) and "content" in message
        named = not {"session_id", "sessionId"}.isdisjoint(record) and record["type"] in _KINDS
        return int(plain or named)

    def record_id(self, record: object) -> str | None:
        """The `uuid` of a record that has one."""
        told = record.get("uuid") if isinstance(record, dict) else None
        return told if isinstance(told, str) and told else None

    def session_id(self, record: object) -> str | None:
        """The `session_id` of the stream, the `sessionId` of a transcript."""
        if not isinstance(record, dict):
            return None
        told = record.get("session_id")  # of nearly every record: it is asked for at each
        return told if isinstance(told, str) and told else optional_text(record, "sessionId")

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("--resume", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The command line that was recorded to work; without a prompt it reads one from standard input.

        The id is part of its flag, so that one which begins with a dash is not taken for a flag of its own.
        """
        asked = ("-p",) if prompt is None else ("-p", prompt)
        return ("claude", *asked, f"--resume={session_id}", "--output-format", "stream-json", "--verbose")
