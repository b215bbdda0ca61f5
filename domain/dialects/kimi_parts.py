"""Contents, calls and results as both Kimi command lines spell them: OpenAI's messages with parts of their own."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_usage import Tokens
from incarnate.domain.dialects.fields import count, optional_text, require
from incarnate.domain.dialects.stamped import answered, called, prompted, said, thought
from incarnate.domain.events import SessionEvent, timestamp

__all__ = [
    "NAME",
    "Content",
    "arguments_of",
    "call_of",
    "content_of",
    "failed_by_words",
    "moment",
    "result_content",
    "result_of",
    "tokens_of",
]

NAME = "kimi"

_ERROR = "<system>ERROR"
_LATEST_MS = 1e14  # the year 5138: what is later is no time
_decode = msgspec.json.Decoder().decode


class Content(NamedTuple):
    """The drafts of a content, and the kind of its first part that maps to nothing."""

    drafts: list[SessionEvent]
    ignored: str | None


def moment(value: object, *, seconds: bool) -> str | UnsetType:
    """A time as both write it, in seconds or milliseconds after the epoch."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNSET
    at_ms = value * 1000 if seconds else value
    return timestamp(int(at_ms)) if 0 < at_ms < _LATEST_MS else UNSET


def content_of(role: str, content: object, stamp: Stamp) -> Content:
    """The drafts of a content, one a part; texts that follow each other are one."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    drafts: list[SessionEvent] = []
    texts: list[str] = []
    ignored: str | None = None
    for part in parts if isinstance(parts, list) else []:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
            continue
        drafts += _text(role, texts, stamp)
        if kind == "think":
            drafts.append(thought(part.get("think"), part.get("encrypted"), stamp))
        else:
            ignored = ignored or f"{role}/{kind}"
    drafts += _text(role, texts, stamp)
    return Content(drafts, ignored if drafts else ignored or f"{role}/empty")


def _text(role: str, texts: list[str], stamp: Stamp) -> list[SessionEvent]:
    text = "".join(texts)
    texts.clear()
    if not text:
        return []
    return [prompted(text, stamp) if role == "user" else said(text, stamp)]


def arguments_of(arguments: object) -> tuple[Any, bool]:
    """The arguments of a call, and whether they are whole: a text of JSON, which a cut stream leaves cut."""
    if not isinstance(arguments, str):
        return arguments, True
    if not arguments.strip():
        return {}, True
    try:
        return _decode(arguments), True
    except (msgspec.MsgspecError, RecursionError):
        return _mended(arguments)


def _mended(arguments: str) -> tuple[Any, bool]:
    """Raw control characters are what models leave in; a number that no log can hold leaves the text as it is."""
    try:
        json.loads(arguments, strict=False)
        return _decode(json.dumps(json.loads(arguments, strict=False), allow_nan=False)), True
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return arguments, False


def call_of(call: dict[str, Any], stamp: Stamp) -> tuple[SessionEvent, bool]:
    """A call, and whether it is whole.

    Raises:
        DialectError: it has no id or no name.
    """
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    arguments, whole = arguments_of(named.get("arguments"))
    return called(require(NAME, call, "id", "call"), require(NAME, named, "name", "call"), arguments, stamp), whole


def result_of(call_id: str, content: object, stamp: Stamp, *, ok: bool | None = None) -> SessionEvent:
    """A result as the model saw it; whether it failed is told by its words alone, where nothing else does."""
    words, content = _words(content), _joined(content)
    ok = not words.startswith(_ERROR) if ok is None else ok
    return answered(call_id, content, stamp, ok=ok, error=None if ok else words)


def _joined(content: object) -> object:
    """A content that holds nothing but texts as one text, as the model reads it."""
    if not isinstance(content, list) or not content:
        return content
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content]
    return (
        "".join([text for text in texts if isinstance(text, str)])
        if all(isinstance(text, str) for text in texts)
        else content
    )


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = (
        [optional_text(part, "text") or "" for part in content or [] if isinstance(part, dict)]
        if isinstance(content, list)
        else []
    )
    return "\n".join(texts)


def failed_by_words(content: object) -> bool:
    """Whether a result of kimi-code says that its call failed, which its command line marks in no other way."""
    last = _words(content).rstrip().rpartition("\n")[2]
    return last == "Session closed" or (
        last.startswith("Command failed with exit code: ") and last[31:].rstrip(".").lstrip("-").isdigit()
    )


def result_content(value: object) -> tuple[Any, bool]:
    """A saved return value as the content that kimi-cli sends to the model, and whether it is ok."""
    if not isinstance(value, dict):
        return value, True
    message, output, failed = optional_text(value, "message"), value.get("output"), value.get("is_error") is True
    parts: list[Any] = []
    if message is not None or failed:
        words = f"ERROR: {message or ''}" if failed else message
        parts.append({"type": "text", "text": f"<system>{words}</system>"})
    if isinstance(output, str):
        parts += [{"type": "text", "text": output}] if output else []
    elif isinstance(output, list):
        parts += output
    elif output is not None:
        parts.append(output)
    return parts or "<system>Tool output is empty.</system>", not failed


def tokens_of(usage: object, *names: str) -> Tokens | None:
    """Counts under these names: input without the cache's, output, cache read, cache written."""
    if not isinstance(usage, dict):
        return None
    return Tokens(*[count(usage.get(name)) for name in names])
