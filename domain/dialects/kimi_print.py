"""What both Kimi command lines print with `stream-json`, and the `context.jsonl` of kimi-cli: messages without times.

Nothing of it counts tokens, and only kimi-code marks where a process begins (its version) and ends well (how to resume
it). kimi-cli prints a message when its first result comes, or its last word; its errors are plain lines behind that.
Where it tries a cut stream again, all tries stand in one message: see `_Calls` and `_tried`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import optional_text, require
from incarnate.domain.dialects.kimi_parts import NAME, call_of, content_of, failed_by_words, result_of
from incarnate.domain.dialects.stamped import OpenTurn, failure
from incarnate.domain.events import AssistantMessage, SessionEvent, ToolCall, TurnOutcome

__all__ = ["KimiPrint"]

_NOW = Stamp()
_REMINDER = "<system-reminder>"
_MOST_PARTS = 64  # of a message whose tries are looked for; three parts a try were seen


class _Calls(NamedTuple):
    """The calls of a message.

    One whose arguments are no JSON was cut. The last one may be in the making while the result of another is printed,
    and be made after all: whether it is shows later. The others are tries of a stream that was cut.
    """

    whole: list[ToolCall]
    cut: list[ToolCall]
    flying: ToolCall | None


def _calls_of(listed: object) -> _Calls:
    """The calls of a message.

    Raises:
        DialectError: one has no id or no name.
    """
    calls = [call_of(call, _NOW) for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    found = [(call, whole) for call, whole in calls if isinstance(call, ToolCall)]
    whole, cut = [[call for call, is_whole in found if is_whole is wanted] for wanted in (True, False)]
    flying = cut[-1] if cut and not found[-1][1] else None
    return _Calls(whole, cut, flying)


class KimiPrint:
    """The records of processes, one after the other."""

    def __init__(self) -> None:
        self._turn = OpenTurn()
        self._marked = False  # kimi-code, which marks where its processes begin and end
        self._open: set[str] = set()
        self._cut: dict[str, ToolCall] = {}
        self._flying: ToolCall | None = None
        self._done = False  # the last word was said, if no error follows
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
            return Normalized((*self._flown(), *self._turn.end("interrupted", _NOW)))
        self._words.append(line)
        return Normalized(())

    def finish(self) -> Normalized:
        """The end that kimi-cli told in plain lines, or with its last word."""
        return Normalized((*self._ended(), *self._flown()))

    def _ended(self) -> list[SessionEvent]:
        """The end of a turn that nothing can change any more.

        Plain lines tell why it failed; they are broken at 80 columns, inside words too, and left so.
        """
        words, self._words, done, self._done = self._words, [], self._done, False
        if not words:
            return self._turn.end("completed", _NOW) if done else []
        self._forget()
        begun = [] if self._turn.is_open else self._turn.begin(_NOW)
        outcome: TurnOutcome = "step_limit" if words[0].startswith("Max ") else failure("error", "\n".join(words))
        return begun + self._turn.end(outcome, _NOW)

    def _flown(self) -> list[SessionEvent]:
        """The call that was in the making when the process died: it may have been made."""
        flying = self._flying
        self._forget()
        return [] if flying is None else [flying]

    def _forget(self) -> None:
        self._open.clear()
        self._cut.clear()
        self._flying = None

    def _assistant(self, record: dict[str, Any]) -> Normalized:
        calls, content = _calls_of(record.get("tool_calls")), _tried(record.get("content"))
        read = content_of("assistant", content, _NOW)
        drafts = [*[_folded(draft, len(calls.cut)) for draft in read.drafts], *calls.whole]
        early, open_before = self._ended(), bool(self._open)
        flown = self._flown()
        # Without a mark between them, an answer to nothing while calls are open is another process's.
        is_new = not self._turn.is_open or ((open_before or bool(flown)) and not self._marked)
        begun = self._turn.begin(_NOW) if (drafts or calls.cut) and is_new else []
        self._open = {call.call_id for call in calls.whole}
        self._cut, self._flying = {call.call_id: call for call in calls.cut}, calls.flying
        self._done = bool(drafts) and not calls.whole and not calls.cut and not self._marked
        ignored = "assistant/cut_call" if calls.cut else None if drafts else read.ignored
        return Normalized((*early, *flown, *begun, *drafts), ignored)

    def _tool(self, record: dict[str, Any]) -> Normalized:
        call_id, content = require(NAME, record, "tool_call_id", "tool"), record.get("content")
        failed = self._marked and failed_by_words(content)
        result = result_of(call_id, content, _NOW, ok=False if failed else None)
        early = self._ended()
        begun = [] if self._turn.is_open else self._turn.begin(_NOW)
        self._open.discard(call_id)
        made = self._cut.pop(call_id, None)  # after all, with arguments that are no JSON
        self._flying = None if made is self._flying else self._flying
        ended = self._turn.end("interrupted", _NOW) if failed and content == "Session closed" else []
        return Normalized((*early, *begun, *([] if made is None else [made]), result, *ended))

    def _user(self, record: dict[str, Any]) -> Normalized:
        content = content_of("user", record.get("content"), _NOW)
        first = content.drafts[0] if content.drafts else None
        if first is None or str(getattr(first, "text", "")).startswith(_REMINDER):
            return Normalized(tuple(content.drafts), content.ignored)
        return Normalized((*self._ended(), *self._flown(), *self._turn.begin(_NOW), *content.drafts), content.ignored)

    def _meta(self, record: dict[str, Any]) -> Normalized:
        kind = optional_text(record, "type") or "unknown"
        if kind == "system.version":
            self._marked = True
            return Normalized((*self._ended(), *self._flown(), *self._turn.begin(_NOW)))
        if kind == "session.resume_hint":
            ended = self._turn.end("completed", _NOW)
            return Normalized(tuple(ended), None if ended else kind)
        return Normalized((), kind)


def _tried(content: object) -> object:
    """A content without the tries of it that were cut: each begins with the parts of the one before it."""
    if not isinstance(content, list) or len(content) > _MOST_PARTS:
        return content
    for size in range(1, len(content) // 2 + 1):
        tries = [content[at : at + size] for at in range(0, len(content), size)]
        if len(tries[-1]) == size and all(map(_begins_with, tries[1:], tries)):
            return tries[-1]
    return content


def _begins_with(later: list[Any], former: list[Any]) -> bool:
    return all(_is_longer(new, old) for new, old in zip(later, former, strict=True))


def _is_longer(new: object, old: object) -> bool:
    if not isinstance(new, dict) or not isinstance(old, dict) or new.get("type") != old.get("type"):
        return False
    after, before = [part.get("think" if part.get("type") == "think" else "text") for part in (new, old)]
    return isinstance(after, str) and isinstance(before, str) and bool(before) and after.startswith(before)


def _folded(draft: SessionEvent, cut: int) -> SessionEvent:
    """A text without the tries of it that were cut: each cut call was one."""
    if cut and isinstance(draft, AssistantMessage):
        for tries in range(cut + 1, 1, -1):
            part = draft.text[: len(draft.text) // tries]
            if part * tries == draft.text:
                return replace(draft, text=part)
    return draft
