"""One message of a chat that Gemini CLI saved, read out of the several spellings that it has."""

from __future__ import annotations

from typing import Any, NamedTuple

from incarnate.domain.dialects.claude_usage import Tokens
from incarnate.domain.dialects.fields import count, either, optional_text, require
from incarnate.domain.dialects.gemini_stream import NAME

__all__ = ["Answer", "Call", "ChatMessage", "chat_message", "parts_of", "told_to_model"]

_SETTING = "<session_context>"
"""How the message begins that tells the model where it is: written anew at each start, and no prompt."""


class Answer(NamedTuple):
    """The result of a call, as the model saw it."""

    call_id: str
    result: Any
    ok: bool
    error: str | None
    at: str | None


class Call(NamedTuple):
    """A call; its answer stands in the same record, once it is there."""

    call_id: str
    name: str
    args: Any
    answer: Answer | None


class ChatMessage(NamedTuple):
    """A message; its kind is user, gemini, info, error or warning."""

    message_id: str
    kind: str
    at: str | None
    text: str
    thoughts: tuple[tuple[str, str | None], ...]
    calls: tuple[Call, ...]
    answers: tuple[Answer, ...]
    tokens: Tokens
    model: str | None
    ignored: str | None

    @property
    def setting(self) -> bool:
        """The words about date and folders, put before the first prompt."""
        return self.kind == "user" and self.text.startswith(_SETTING)


def chat_message(record: dict[str, Any]) -> ChatMessage:
    """The message of a record.

    Raises:
        DialectError: it has no id or no type, or a call without its id or name.
    """
    message_id, kind = require(NAME, record, "id"), require(NAME, record, "type")
    at, parts = optional_text(record, "timestamp"), parts_of(record.get("content"))
    texts = [text for part in parts if part.get("thought") is not True and (text := optional_text(part, "text"))]
    inside = [_part_call(part["functionCall"]) for part in parts if isinstance(part.get("functionCall"), dict)]
    listed = record.get("toolCalls")
    calls = [_call(call, at) for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    answers = [
        answer
        for part in parts
        if isinstance(part.get("functionResponse"), dict) and (answer := _answer(part["functionResponse"], at))
    ]
    known = {"text", "functionCall", "functionResponse"}
    strange = next((name for part in parts if known.isdisjoint(part) for name in part), None)
    return ChatMessage(
        message_id,
        kind,
        at,
        "".join(texts),
        (*_thoughts(record.get("thoughts")), *_part_thoughts(parts)),
        (*calls, *(call for call in inside if call.call_id not in {known.call_id for known in calls})),
        tuple(answers),
        _tokens(record.get("tokens")),
        optional_text(record, "model"),
        None if strange is None else f"{kind}/{strange}",
    )


def parts_of(content: object) -> list[dict[str, Any]]:
    """The parts of a content, however it is spelled: a text, a part or a list of them."""
    if isinstance(content, str):
        return [{"text": content}]
    found = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else part for part in found if isinstance(part, str | dict)]


def _thoughts(thoughts: object) -> list[tuple[str, str | None]]:
    """Subject and description as one text, as they are shown."""
    listed = [one for one in thoughts if isinstance(one, dict)] if isinstance(thoughts, list) else []
    texts = [[text for name in ("subject", "description") if (text := optional_text(one, name))] for one in listed]
    return [(": ".join(words), None) for words in texts if words]


def _part_thoughts(parts: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    thoughts = [part for part in parts if part.get("thought") is True]
    return [(optional_text(part, "text") or "", optional_text(part, "thoughtSignature")) for part in thoughts]


def _part_call(call: dict[str, Any]) -> Call:
    name = require(NAME, call, "name", "functionCall")
    return Call(optional_text(call, "id") or name, name, call.get("args"), None)


def _call(call: dict[str, Any], at: str | None) -> Call:
    call_id, name = require(NAME, call, "id", "tool call"), require(NAME, call, "name", "tool call")
    time = optional_text(call, "timestamp") or at
    return Call(call_id, name, call.get("args"), _own_answer(call, call_id, time))


def _own_answer(call: dict[str, Any], call_id: str, at: str | None) -> Answer | None:
    """The answer that a call holds: none before it is done, and words instead of a result where it failed early."""
    parts, status = call.get("result"), call.get("status")
    given = [part["functionResponse"] for part in parts_of(parts) if isinstance(part.get("functionResponse"), dict)]
    if given:
        found = _answer(given[0], at)
        shown = optional_text(call, "resultDisplay")
        ok = found.ok if not isinstance(status, str) else status == "success"
        return Answer(call_id, found.result, ok, None if ok else found.error or shown, at)
    if status in ("error", "cancelled"):
        return Answer(call_id, None, ok=False, error=optional_text(call, "resultDisplay") or str(status), at=at)
    return None if parts is None else Answer(call_id, parts, status == "success", None, at)


def _answer(response: dict[str, Any], at: str | None) -> Answer:
    call_id = optional_text(response, "id") or require(NAME, response, "name", "functionResponse")
    result, ok, error = told_to_model(response.get("response"))
    return Answer(call_id, result, ok, error, at)


def told_to_model(body: object) -> tuple[Any, bool, str | None]:
    """A function's response: its `output` or `error` where it holds nothing else, whether it is ok, and if not why."""
    if not isinstance(body, dict):
        return body, True, None
    result = either(body, "output", "error") if len(body) == 1 else body
    return body if result is None else result, "error" not in body, optional_text(body, "error")


def _tokens(tokens: object) -> Tokens:
    if not isinstance(tokens, dict):
        return Tokens()
    cached = count(tokens.get("cached"))
    # The prompt counts what was cached; thoughts and the tools' own prompts stand beside it and the output.
    prompt = count(tokens.get("input")) + count(tokens.get("tool"))
    return Tokens(max(0, prompt - cached), count(tokens.get("output")), cached, 0, count(tokens.get("thoughts")))
