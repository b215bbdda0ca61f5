"""What Codex keeps of a conversation, item by item: the Responses items of a rollout, the tool items of the stream."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result
from incarnate.domain.dialects.fields import either, optional_text, require
from incarnate.domain.dialects.provider_errors import provider_failure
from incarnate.domain.events import FailedOutcome, SessionEvent, SystemMessage

__all__ = [
    "NAME",
    "STREAM_TOOLS",
    "Outcome",
    "call_of",
    "failed_outcome",
    "is_note",
    "output_of",
    "outcome_of",
    "result_of",
    "said",
    "stream_call",
    "stream_result",
    "texts",
    "thought",
]

NAME = "codex"

STREAM_TOOLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "web_search"})
"""The items of the stream that are calls of tools."""

_NOTES = (
    *("<environment_context>", "<user_instructions>", "<turn_aborted>", "<INSTRUCTIONS>", "<permissions instructions>"),
    *("# AGENTS.md instructions", "<subagent_notification>", "<skill>", "<user_shell_command>"),
)
"""Beginnings of messages in the user's name that Codex wrote itself; newer versions tell their provenance too."""

_ENDS = frozenset({"status", "exit_code", "success", "result"})
"""Fields that tell how a tool ended."""

_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_HEAD = 400  # characters of an output in which its exit code is told before the tool's own words begin

_decode = msgspec.json.Decoder().decode


class Outcome(NamedTuple):
    """How a tool ended, by a record beside its output."""

    ok: bool
    reason: str | None = None


# messages


def texts(content: object) -> str:
    """The text of a content: itself, or that of its parts, whatever their kinds are called."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1:  # nearly every one
        [part] = content
        text = part.get("text") if isinstance(part, dict) else part
        return text if isinstance(text, str) else ""
    parts = content if isinstance(content, list) else [content]
    found = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "".join([text for text in found if isinstance(text, str)])


def said(payload: dict[str, Any]) -> SessionEvent | None:
    """A message; what Codex itself put before the model is the system's, in whatever role."""
    text, role = texts(payload.get("content")), payload.get("role")
    if text and (role == "developer" or (role == "user" and is_note(payload, text))):
        return SystemMessage(id="", parent_id=None, text=text)
    return message(role, text)


def is_note(payload: dict[str, Any], text: str) -> bool:
    """A message in the user's name that the user did not write."""
    passthrough = payload.get("internal_chat_message_metadata_passthrough")
    told = passthrough.get("content_item_metadata") if isinstance(passthrough, dict) else None
    if isinstance(told, list) and told and isinstance(told[0], dict):
        provenance = told[0].get("provenance")
        if isinstance(provenance, dict) and isinstance(provenance.get("type"), str):
            return bool(provenance["type"] != "user")
    return text.lstrip().startswith(_NOTES)


def thought(payload: dict[str, Any]) -> SessionEvent:
    """A reasoning item: its summary, or else its raw text, and the provider's blob."""
    summary, raw = payload.get("summary"), payload.get("content")
    parts = [texts(part) for part in summary] if isinstance(summary, list) else []
    text = "\n\n".join([part for part in parts if part]) or (texts(raw) if raw else "")
    return reasoning(text or None, payload.get("encrypted_content"))


# calls


def call_of(kind: str, payload: dict[str, Any], fallback_id: str) -> list[SessionEvent]:
    """The call that an item of a rollout is; one that the provider ran itself is its own result."""
    match kind:
        case "function_call":
            name = require(NAME, payload, "name", kind)
            namespace = optional_text(payload, "namespace")
            full = name if namespace is None else f"{namespace}.{name}"
            return [tool_call(require(NAME, payload, "call_id", kind), full, _arguments(payload.get("arguments")))]
        case "custom_tool_call":
            call_id, name = require(NAME, payload, "call_id", kind), require(NAME, payload, "name", kind)
            return [tool_call(call_id, name, payload.get("input"))]
        case "local_shell_call" | "tool_search_call":
            call_id = optional_text(payload, "call_id", "id") or fallback_id
            return [tool_call(call_id, kind.removesuffix("_call"), either(payload, "action", "arguments"))]
        case _:
            call_id = optional_text(payload, "id", "call_id") or fallback_id
            ok = payload.get("status") not in ("failed", "incomplete")
            call = tool_call(call_id, kind.removesuffix("_call"), either(payload, "action", "revised_prompt"))
            return [call, tool_result(call_id, payload.get("result"), None if ok else "failed", ok=ok)]


def _arguments(text: object) -> Any:
    """The value of a JSON text; the text itself where it was cut."""
    if not isinstance(text, str):
        return text
    try:
        return _decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text


# results


def output_of(payload: dict[str, Any]) -> tuple[Any, bool | None]:
    """What the model read as the output of a call, and whether the item says that it went well."""
    output = either(payload, "output", "tools")
    if isinstance(output, dict) and ("content" in output or "success" in output):  # before 0.50
        success = output.get("success")
        return output.get("content"), success if isinstance(success, bool) else None
    parts = output if isinstance(output, list) else [output]
    if not isinstance(output, str) and parts and all(_is_text(part) for part in parts):
        return texts(parts), None
    return output, None


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("type") != "input_image"


def result_of(kind: str, payload: dict[str, Any], known: Outcome | None) -> SessionEvent:
    """The answer to a call. How it went is told by the item, else by a record beside it, else by its first lines."""
    call_id = require(NAME, payload, "call_id", kind)
    output, ok = output_of(payload)
    if ok is None:
        ok = known.ok if known is not None else not (isinstance(output, str) and _tells_failure(output))
    reason = None if ok or output else (known.reason if known is not None else None) or "failed"
    return tool_result(call_id, output, reason, ok=ok)


def _tells_failure(output: str) -> bool:
    head = output[:_HEAD].partition("\nOutput:")[0]
    exit_code = _EXIT.search(head)
    return (exit_code is not None and exit_code[1] != "0") or head == "aborted" or head.endswith("\naborted by user")


def outcome_of(kind: str, payload: dict[str, Any]) -> tuple[str, Outcome] | None:
    """The call that a record beside the items speaks of and how it ended; None for a record of anything else."""
    item = payload.get("item") if kind == "item_completed" else None
    told = item if isinstance(item, dict) else payload
    if _ENDS.isdisjoint(told):  # a message, most often
        return None
    call_id = optional_text(told, "call_id", "id")
    if call_id is None:
        return None
    result = told.get("result")
    if isinstance(result, dict) and "Err" in result:
        return call_id, Outcome(ok=False, reason=texts(result["Err"]) or None)
    inner = result.get("Ok") if isinstance(result, dict) else None
    ok = _went_well(told) and not (isinstance(inner, dict) and inner.get("isError") is True)
    return call_id, Outcome(ok, None if ok else _reason(told))


def _went_well(told: dict[str, Any]) -> bool:
    failed = told.get("status") in ("failed", "declined") or told.get("success") is False
    return not failed and told.get("exit_code") in (0, None) and told.get("error") is None


def _reason(told: dict[str, Any]) -> str:
    error, exit_code = told.get("error"), told.get("exit_code")
    words = optional_text(error, "message") if isinstance(error, dict) else error if isinstance(error, str) else None
    if words is None and isinstance(exit_code, int) and exit_code:
        words = f"exit code {exit_code}"
    return words or (told["status"] if isinstance(told.get("status"), str) else "failed")


# the stream


def stream_call(item: dict[str, Any]) -> SessionEvent:
    """The call of a tool item, by what the item tells of it: the model's own words for it are not printed."""
    call_id, kind = require(NAME, item, "id", "item"), item["type"]
    if kind == "command_execution":
        return tool_call(call_id, kind, {"command": item.get("command")})
    if kind == "file_change":
        return tool_call(call_id, kind, {"changes": item.get("changes")})
    if kind == "mcp_tool_call":
        return tool_call(call_id, f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments"))
    if kind == "collab_tool_call":
        told = {name: item[name] for name in ("prompt", "receiver_thread_ids") if name in item}
        return tool_call(call_id, str(item.get("tool") or kind), told)
    return tool_call(call_id, kind, {"query": item.get("query")})


def stream_result(item: dict[str, Any]) -> SessionEvent:
    """The answer of a tool item."""
    result = either(item, "aggregated_output", "result", "agents_states", "action")
    ok = _went_well(item) and item.get("status") != "in_progress"
    reason = None if ok else _reason(item)
    if reason is not None and isinstance(result, str) and result:
        reason = f"{reason}\n{result}"
    return tool_result(item["id"], result, reason, ok=ok)


# turns


def failed_outcome(error: object) -> FailedOutcome:
    """Why a turn failed."""
    told: dict[str, Any] = error if isinstance(error, dict) else {"message": error}
    info = told.get("codex_error_info")
    named = info if isinstance(info, str) else next(iter(info), None) if isinstance(info, dict) else None
    kind = named if isinstance(named, str) and named != "other" else "error"
    return provider_failure(optional_text(told, "message") or "error", kind)
