"""Items of the OpenAI Agents SDK as session events, and back, each exactly as it was.

An item is one event, so that offsets count items and a rewind by an item is a rewind by an event. Where the event
cannot say all of the item, the item stands beside it as JSON text (`native`). The other ways were worse: a second
event for the rest doubles the log, shows up in every view and can be torn off by a rewind; keeping the item alone, as
an event of an unknown type, hides the conversation from every view. What means nothing to us (hosted tools,
approvals, references) is such an `Opaque`, which views leave out and count.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from incarnate.domain.codec import encode_json
from incarnate.domain.encoding import first_violation
from incarnate.domain.errors import UnencodableEventError
from incarnate.domain.events import (
    AssistantMessage,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from incarnate.domain.projections.model_messages import ROLES
from incarnate.domain.renderings.parts import arguments_text

__all__ = ["ITEM", "REWOUND", "is_item", "rewound", "to_event", "to_item"]

ITEM = "openai-agents.item"
"""The type of an event that holds an item of no other meaning."""

REWOUND = "openai-agents.rewound"
"""The type of the event that stands where items were taken away: a rewind is a write, and this says nothing else."""

_decode = msgspec.json.Decoder().decode

_SPEAKERS: dict[str, type[SystemMessage | UserMessage | AssistantMessage]] = {
    "assistant": AssistantMessage,
    "developer": SystemMessage,
    "system": SystemMessage,
    "user": UserMessage,
}
_LOCAL_CALLS = frozenset({"apply_patch_call", "computer_call", "shell_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", *(f"{call}_output" for call in _LOCAL_CALLS)})
_FRAME = frozenset({"type", "id", "call_id", "status"})


def to_event(item: object, id: str, parent_id: str | None, path: str = "$") -> SessionEvent | Opaque:
    """The event of an item, by the name `id`, following the event `parent_id`.

    Raises:
        UnencodableEventError: a value outside the encoding contract, with its path below `path`.
    """
    text = _json(item, path)
    said = _said(item)
    if said is None:
        return _opaque(ITEM, id, parent_id, item=item)
    kind, fields = said
    event: SessionEvent = kind(id=id, parent_id=parent_id, **fields)
    if is_item(event) and encode_json(_plain(event)) == text:
        return event
    return msgspec.structs.replace(event, native=text.decode())


def is_item(event: SessionEvent | Opaque) -> bool:
    """Whether an event is part of the conversation, by whomever it was written.

    Usage and turn marks are not, and neither is what happened inside a call: it is the sub-agent's conversation.
    """
    if isinstance(event, Opaque):
        return event.type == ITEM
    if event.native is not UNSET:
        return True
    kinds = (SystemMessage, UserMessage, AssistantMessage, ToolCall, ToolResult)
    return event.parent_call_id is UNSET and isinstance(event, kinds)


def to_item(event: Any) -> Any:
    """The item of an event that `is_item`: the one that it was made of, or what says the same."""
    if isinstance(event, Opaque):
        return _decode(event.raw)["item"]
    return _plain(event) if event.native is UNSET else _decode(event.native)


def rewound(id: str, parent_id: str | None, by: str) -> Opaque:
    """The event to put where the items were that `by` takes away."""
    return _opaque(REWOUND, id, parent_id, by=by)


def _opaque(kind: str, id: str, parent_id: str | None, **fields: object) -> Opaque:
    raw = encode_json({"type": kind, "id": id, "parentId": parent_id, **fields})
    return Opaque(kind, id, parent_id, raw)


def _json(item: object, path: str) -> bytes:
    violation = first_violation(item)
    if violation is not None:
        where, reason = violation
        raise UnencodableEventError(path=path + where[1:], reason=reason)
    try:
        return encode_json(item)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:  # such as a subclass of a number
        raise UnencodableEventError(path=path, reason=str(error)) from error


def _said(item: Any) -> tuple[Any, dict[str, Any]] | None:
    """The kind of event that means the same as an item, and its fields; None where none does."""
    match item:
        case {"type": "function_call", "call_id": str(call_id), "name": str(name), "arguments": str(arguments)}:
            return ToolCall, {"call_id": call_id, "name": name, "args": _arguments(arguments)}
        case {"type": "custom_tool_call", "call_id": str(call_id), "name": str(name), "input": str(text)}:
            return ToolCall, {"call_id": call_id, "name": name, "args": text}
        case {"type": str(kind), "call_id": str(call_id)} if kind in _LOCAL_CALLS:
            args = {key: value for key, value in item.items() if key not in _FRAME}
            return ToolCall, {"call_id": call_id, "name": kind.removesuffix("_call"), "args": args}
        case {"type": str(kind), "call_id": str(call_id), "output": output} if kind in _OUTPUTS:
            return ToolResult, {"call_id": call_id, "ok": True, "result": output}  # the format marks no failure
        case {"type": "reasoning", "summary": list(summary)}:
            return Reasoning, _thought(item, summary)
        case {"role": str(role), "content": content} if item.get("type", "message") == "message" and role in _SPEAKERS:
            words = _text(content, "" if role == "assistant" else "\n")
            return None if words is None else (_SPEAKERS[role], {"text": words})
        case _:
            return None


def _arguments(text: str) -> Any:
    """What the model wrote as arguments; the text itself where it is no JSON that an event may hold."""
    try:
        args = _decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return text
    return text if first_violation(args) else args


def _thought(item: dict[str, Any], summary: list[Any]) -> dict[str, Any]:
    parts = item.get("content") or summary
    text = _text(parts, "\n") if isinstance(parts, list) else None
    blob = item.get("encrypted_content")
    return {"text": text or UNSET, "provider_continuation": blob if isinstance(blob, str) else UNSET}


def _text(content: object, joint: str) -> str | None:
    """The words of a message's content, with `[input_image]` and the like where something else stands."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    for part in content:
        match part:
            case {"text": str(text)} | {"refusal": str(text)}:
                texts.append(text)
            case {"type": str(kind)}:
                texts.append(f"[{kind}]")
            case _:
                return None
    return joint.join(texts)


def _plain(event: Any) -> dict[str, Any]:
    """The item that says what an event says, its fields in the order in which the SDK writes them."""
    match event:
        case ToolCall():
            call = {"arguments": arguments_text(event.args), "call_id": event.call_id, "name": event.name}
            return {**call, "type": "function_call"}
        case ToolResult():
            return {"call_id": event.call_id, "output": _output(event), "type": "function_call_output"}
        case _:
            return {"content": event.text, "role": ROLES[type(event)]}


def _output(event: ToolResult) -> Any:
    if not event.ok and event.error:
        return event.error
    if isinstance(event.result, str) or _is_content(event.result):
        return event.result
    return encode_json(event.result).decode()


def _is_content(result: object) -> bool:
    """Whether it is what the SDK takes for an output besides a text: a list of texts, images and files."""
    return isinstance(result, list) and all(
        isinstance(part, dict) and str(part.get("type")).startswith("input_") for part in result
    )
