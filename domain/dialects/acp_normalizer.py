"""A conversation of the Agent Client Protocol, of both sides or of the agent's notifications alone, to drafts."""

from __future__ import annotations

from typing import Any, NamedTuple

from incarnate.domain.dialects.acp_calls import AcpCalls
from incarnate.domain.dialects.acp_history import AcpCompactions, AcpHistory
from incarnate.domain.dialects.acp_updates import AcpMessage, classify, text_blocks
from incarnate.domain.dialects.acp_usage import prompt_usage
from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import as_object, optional_text
from incarnate.domain.dialects.implied_turns import ImpliedTurns
from incarnate.domain.dialects.provider_errors import provider_failure
from incarnate.domain.dialects.stamped import failure, prompted, said, thought
from incarnate.domain.events import FailedOutcome, SessionEvent, TurnOutcome

__all__ = ["NAME", "AcpNormalizer"]

NAME = "acp"

_OUTCOMES: dict[str, TurnOutcome] = {
    "end_turn": "completed",
    "cancelled": "cancelled",
    "max_tokens": "step_limit",
    "max_turn_requests": "step_limit",
}

_WHOLE = {"user_message": "user_message_chunk", "agent_message": "agent_message_chunk"} | {
    "agent_thought": "agent_thought_chunk"
}
"""Messages that come whole, in version 2, by the pieces that they are in version 1."""


class _Message(NamedTuple):
    """The message whose pieces are coming."""

    role: str
    message_id: str | None
    pieces: list[str]


class AcpNormalizer:
    """The messages of one connection after the other, in whichever direction, one JSON-RPC message a record.

    The history that an agent replays for a `session/load` is taken in where nothing came before it, and passed over
    where it tells again what this stream has told: all of it until the answer to the load, and behind it, where some
    agents go on with it, what was told in the same words.
    """

    def __init__(self) -> None:
        self._turns = ImpliedTurns()
        self._calls = AcpCalls()
        self._message: _Message | None = None
        self._prompt: str | None = None
        self._prompts: set[Any] = set()
        self._loads: set[Any] = set()
        self._asked_by_agent: set[Any] = set()
        self._compactions = AcpCompactions()
        self._history = AcpHistory()

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no JSON object.
        """
        record = as_object(NAME, value)
        params, method = record.get("params"), record.get("method")
        if isinstance(method, str):
            return self._request(method, record, params if isinstance(params, dict) else {})
        if "sessionUpdate" in record:
            return self._update(record)
        if isinstance(record.get("update"), dict):
            return self._update(record["update"])
        return self._response(record)

    def finish(self) -> Normalized:
        """The message that was coming, and calls that were announced."""
        return Normalized(tuple(self._flush()))

    # requests and responses

    def _request(self, method: str, record: dict[str, Any], params: dict[str, Any]) -> Normalized:
        name = _hashable(record.get("id"))
        match method:
            case "session/update":
                return self._update(params.get("update"))
            case "session/prompt":
                self._prompts.add(name)
                return self._asked(text_blocks(params.get("prompt")))
            case "session/load":
                self._loads.add(name)
                self._history.begin_replay()
            case "session/request_permission":
                self._asked_by_agent.add(name)
                tool = params.get("toolCall")
                if isinstance(tool, dict) and (call_id := optional_text(tool, "toolCallId")) is not None:
                    return self._call(method, call_id, tool)
            case "initialize":  # another connection: what the last one left open it left open for ever
                self._prompts.clear()
                self._loads.clear()
                return _told([*self._flush(), *self._end("interrupted")], method)
            case _ if method.startswith(("fs/", "terminal/")):
                self._asked_by_agent.add(name)
            case _:
                pass
        return Normalized((), method)

    def _asked(self, text: str) -> Normalized:
        held = self._flush()
        self._calls.forget()
        self._prompt = text or None
        self._history.tell("user", text)
        asked = [prompted(text, Stamp())] if text else []
        return Normalized((*held, *self._turns.marked(), *asked))

    def _response(self, record: dict[str, Any]) -> Normalized:
        name, result, error = _hashable(record.get("id")), record.get("result", record), record.get("error")
        if isinstance(result, dict) and isinstance(result.get("stopReason"), str):
            self._prompts.discard(name)
            return self._answered(result)
        if name in self._asked_by_agent:
            self._asked_by_agent.discard(name)
        elif name in self._prompts and isinstance(error, dict):
            self._prompts.discard(name)
            return _told([*self._flush(), *self._end(_failed(error))], "response")
        elif name in self._loads:
            self._loads.discard(name)
            self._history.answer_load()
            told = self._flush()
            return _told([*told, *self._end("completed" if self._turns.is_answered else "interrupted")], "response")
        is_foreign = {"jsonrpc", "id"}.isdisjoint(record)
        return Normalized((), (optional_text(record, "type") or "unknown") if is_foreign else "response")

    def _answered(self, result: dict[str, Any]) -> Normalized:
        reason: str = result["stopReason"]
        outcome = _OUTCOMES.get(reason) or failure(reason, f"stopped: {reason}")
        told = [*self._flush(), *self._turns.ensured(), *prompt_usage(result), *self._end(outcome)]
        self._history.end_replay()
        return Normalized(tuple(told))

    def _end(self, outcome: TurnOutcome) -> list[SessionEvent]:
        self._calls.forget()
        return self._turns.end(outcome, Stamp())

    # updates

    def _update(self, update: object) -> Normalized:
        kind = update.get("sessionUpdate") if isinstance(update, dict) else None
        if not isinstance(update, dict) or not isinstance(kind, str):
            return Normalized((), "session/update")
        call_id = optional_text(update, "toolCallId")
        if self._history.is_replay(update, known=call_id is not None and self._calls.knows(call_id)):
            return Normalized((), f"replayed/{kind}")
        if kind in _WHOLE:
            whole = {"type": "text", "text": text_blocks(update.get("content"))}
            return self._piece({**update, "sessionUpdate": _WHOLE[kind], "content": whole}, is_whole=True)
        if self._compactions.concern(kind, update):
            return self._compacted(kind, update)
        if kind in ("tool_call", "tool_call_update") and call_id is not None:
            return self._call(kind, call_id, update)
        return self._piece(update)

    def _piece(self, update: dict[str, Any], *, is_whole: bool = False) -> Normalized:
        found = classify(update)
        if not isinstance(found, AcpMessage) or not found.text:
            return Normalized((), update["sessionUpdate"])
        open_message = self._message
        if open_message is not None and open_message[:2] == (found.role, found.message_id):
            if is_whole:
                open_message.pieces.clear()
            open_message.pieces.append(found.text)
            return Normalized(())
        drafts = self._flush()
        self._message = _Message(found.role, found.message_id, [found.text])
        return Normalized(tuple(drafts))

    def _call(self, kind: str, call_id: str, update: dict[str, Any]) -> Normalized:
        asks = kind == "session/request_permission"
        drafts = self._calls.update(call_id, update, is_call=asks or kind == "tool_call", is_final=asks)
        if drafts is None:
            return Normalized((), kind)
        before = self._said()
        if not drafts:
            return Normalized(tuple(before))
        self._turns.is_answered = False
        return Normalized((*before, *self._turns.ensured(), *drafts))

    def _compacted(self, kind: str, update: dict[str, Any]) -> Normalized:
        compaction = self._compactions.take(update)
        return Normalized((), kind) if compaction is None else Normalized((*self._flush(), compaction))

    # what is held

    def _flush(self) -> list[SessionEvent]:
        """Everything that is held: something else is said now."""
        told, held = self._said(), self._calls.settle()
        return told + ((self._turns.ensured() + held) if held else [])

    def _said(self) -> list[SessionEvent]:
        """The message whose pieces came; one that echoes the prompt was told with it."""
        message, self._message = self._message, None
        if message is None:
            return []
        text = "".join(message.pieces)
        prompt, self._prompt = self._prompt, None
        if message.role == "user" and text == prompt:
            return []
        self._history.tell(message.role, text)
        if message.role == "user":
            return [*self._turns.prompted(), prompted(text, Stamp())]
        begun = self._turns.ensured()
        self._turns.is_answered = message.role == "assistant"
        told = said(text, Stamp()) if message.role == "assistant" else thought(text, None, Stamp())
        return [*begun, told]


def _failed(error: dict[str, Any]) -> FailedOutcome:
    """Why a prompt was refused: agents name it beside the message, in it, or by a number."""
    data = error.get("data")
    named = optional_text(data, "errorName", "errorKind") if isinstance(data, dict) else None
    kind = named or str(error.get("code", "error"))
    return provider_failure(optional_text(error, "message") or "error", kind)


def _told(drafts: list[SessionEvent], kind: str) -> Normalized:
    return Normalized(tuple(drafts), None if drafts else kind)


def _hashable(name: object) -> object:
    """The id of a request; null where it is no id."""
    return name if isinstance(name, str | int) else None
