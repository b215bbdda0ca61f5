"""`qwen-code`: the record shapes of the reference's adapter, which are the events of Qwen Code's core.

What the command line prints (`--output-format stream-json`) is not read yet: it is counted by kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import ResumeInvocation
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import either, optional_text, require, text_of
from incarnate.domain.dialects.stateless import StatelessDialect

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["QwenCode"]

_NAME = "qwen-code"


def _content(record: dict[str, Any]) -> SessionEvent | None:
    return message(record.get("role"), text_of(_NAME, record.get("text")))


def _thought(record: dict[str, Any]) -> SessionEvent:
    """Subject and description as one text, as they are shown."""
    parts = [optional_text(record, name) for name in ("subject", "description")]
    text = ": ".join([part for part in parts if part is not None])
    return reasoning(text or None, record.get("thoughtSignature"))


def _call(record: dict[str, Any]) -> SessionEvent:
    return tool_call(require(_NAME, record, "callId"), require(_NAME, record, "name"), record.get("args"))


def _result(record: dict[str, Any]) -> SessionEvent:
    call_id, error = require(_NAME, record, "callId"), record.get("error")
    return tool_result(call_id, either(record, "responseParts", "error"), error, ok=error is None)


def _usage(record: dict[str, Any]) -> SessionEvent:
    return usage(record.get("promptTokenCount"), record.get("candidatesTokenCount"), record.get("model"))


_MAKERS: dict[str, Maker] = {
    "content": _content,
    "thought": _thought,
    "tool_call_request": _call,
    "tool_call_response": _result,
    "usage_metadata": _usage,
}


class QwenCode(StatelessDialect):
    """The dialect of Qwen Code; sessions resume by their id on the command line."""

    name = _NAME
    makers = _MAKERS

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("-r", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work; interactive without a prompt.

        The id is part of its flag: apart from it, one that begins with a dash is taken for a flag of its own.
        """
        asked = () if prompt is None else ("-o", "stream-json", "-p", prompt)
        return ("qwen", *asked, f"--resume={session_id}")
