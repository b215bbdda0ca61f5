"""What both Kimi command lines print with `stream-json`, and the `context.jsonl` of kimi-cli: messages without times.

Nothing of it counts tokens, and only kimi-code marks where a process begins (its version) and ends well (how to resume
it). kimi-cli prints a step once it is over: what was running when it died is not printed at all. An answer without
calls is its last word, and its errors are plain lines. Where it tries a cut stream again, both tries stand in one
message: a call that was cut was never made.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import optional_text, require
from incarnate.domain.dialects.kimi_parts import NAME, call_of, content_of, failed_by_words, result_of
from incarnate.domain.dialects.stamped import OpenTurn, failure
from incarnate.domain.events import AssistantMessage, SessionEvent, ToolCall

__all__ = ["KimiPrint"]

_NOW = Stamp()
_REMINDER = "<system-reminder>"


class KimiPrint:
    """The records of processes, one after the other."""

    def __init__(self) -> None:
        self._turn = OpenTurn()
        self._marked = False  # kimi-code, which marks where its processes begin and end
        self._waiting: set[str] = set()
        self._cut: dict[str, SessionEvent] = {}
        self._words: list[str] = []

    def feed(self, role: str, record: dict[str, Any]) -> Normalized:
        """What a record of this role means.

        Raises:
            DialectError: it is a call or a result without its id or name.
        """
        match role:
            case "assistant":
                return self._assistant(record)
            case "tool":
                return self._tool(record)
            case "user":
                return self._user(record)
            case "meta":
                return self._meta(record)
            case _:
                return Normalized((), role)

    def text(self, line: str) -> Normalized:
        """A line that is no JSON: why kimi-cli ends; kimi-code has none."""
        if self._marked:
            return Normalized((), "text")
        if line == "Interrupted by user":
            return Normalized(tuple(self._turn.end("interrupted", _NOW)))
        self._words.append(line)
        return Normalized(())

    def finish(self) -> Normalized:
        """The end that kimi-cli told in plain lines."""
        return Normalized(tuple(self._failed()))

    def _failed(self) -> list[SessionEvent]:
        """The turn failed with the plain lines; they are broken at 80 columns, inside words too, and left so."""
        words, self._words = self._words, []
        if not words:
            return []
        begun = [] if self._turn.is_open else self._turn.begin(_NOW)
        ended = self._turn.end(
            "step_limit" if words[0].startswith("Max ") else failure("error", "\n".join(words)), _NOW
        )
        self._waiting.clear()
        self._cut.clear()
        return begun + ended

    def _assistant(self, record: dict[str, Any]) -> Normalized:
        listed = record.get("tool_calls")
        calls = (
            [call_of(call, _NOW) for call in listed or [] if isinstance(call, dict)] if isinstance(listed, list) else []
        )
        content = content_of("assistant", record.get("content"), _NOW)
        broken = sum(not whole for _, whole in calls)
        drafts = [_folded(draft, broken) for draft in content.drafts] + [call for call, whole in calls if whole]
        early = self._failed()
        # Without a mark between them, an answer to nothing while calls are open is another process's.
        new = self._turn.is_open and bool(self._waiting) and not self._marked
        begun = self._turn.begin(_NOW) if drafts and (new or not self._turn.is_open) else []
        self._cut = {call.call_id: call for call, whole in calls if not whole and isinstance(call, ToolCall)}
        self._waiting = {call.call_id for call, _ in calls if isinstance(call, ToolCall)}
        ended = self._turn.end("completed", _NOW) if drafts and not calls and not self._marked else []
        ignored = "assistant/cut_call" if broken else content.ignored
        return Normalized((*early, *begun, *drafts, *ended), ignored if not drafts or broken else None)

    def _tool(self, record: dict[str, Any]) -> Normalized:
        call_id, content = require(NAME, record, "tool_call_id", "tool"), record.get("content")
        failed = self._marked and failed_by_words(content)
        result = result_of(call_id, content, _NOW, ok=False if failed else None)
        early = self._failed()
        begun = [] if self._turn.is_open else self._turn.begin(_NOW)
        self._waiting.discard(call_id)
        cut = self._cut.pop(call_id, None)  # it was made after all, with arguments that are no JSON
        ended = self._turn.end("interrupted", _NOW) if failed and content == "Session closed" else []
        return Normalized((*early, *begun, *([] if cut is None else [cut]), result, *ended))

    def _user(self, record: dict[str, Any]) -> Normalized:
        content = content_of("user", record.get("content"), _NOW)
        first = content.drafts[0] if content.drafts else None
        reminder = first is not None and str(getattr(first, "text", "")).startswith(_REMINDER)
        begun = [] if reminder or first is None else self._turn.begin(_NOW)
        if begun:
            self._waiting.clear()
        return Normalized((*self._failed(), *begun, *content.drafts), content.ignored)

    def _meta(self, record: dict[str, Any]) -> Normalized:
        kind = optional_text(record, "type") or "unknown"
        if kind == "system.version":
            self._marked = True
            self._waiting.clear()
            return Normalized(tuple(self._turn.begin(_NOW)))
        if kind == "session.resume_hint":
            ended = self._turn.end("completed", _NOW)
            return Normalized(tuple(ended), None if ended else kind)
        return Normalized((), kind)


def _folded(draft: SessionEvent, broken: int) -> SessionEvent:
    """A text without the tries of it that were cut: each cut call was one."""
    if broken and isinstance(draft, AssistantMessage):
        for tries in range(broken + 1, 1, -1):
            part = draft.text[: len(draft.text) // tries]
            if part * tries == draft.text:
                return replace(draft, text=part)
    return draft
