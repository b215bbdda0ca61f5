"""The record shapes of the reference's adapter for pi: JSON-RPC notifications such as `session/message`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import require, text_of
from incarnate.domain.dialects.pi_messages import NAME
from incarnate.domain.errors import DialectError

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["NOTIFICATIONS", "Notifications"]


def _message(params: dict[str, Any]) -> SessionEvent | None:
    return message(params.get("role"), text_of(NAME, params.get("text")))


def _reasoning(params: dict[str, Any]) -> SessionEvent:
    return reasoning(params.get("text"), params.get("continuation"))


def _call(params: dict[str, Any]) -> SessionEvent:
    call_id, name = [require(NAME, params, field, "session/toolCall") for field in ("id", "name")]
    return tool_call(call_id, name, params.get("args"))


def _result(params: dict[str, Any]) -> SessionEvent:
    call_id = require(NAME, params, "id", "session/toolResult")
    return tool_result(call_id, params.get("result"), ok=params.get("ok") is not False)


def _usage(params: dict[str, Any]) -> SessionEvent:
    return usage(params.get("inputTokens"), params.get("outputTokens"), params.get("model"))


def _of_params(make: Maker) -> Maker:
    """Makes the draft of what a notification carries; one that carries nothing says nothing."""

    def made(record: dict[str, Any]) -> SessionEvent | None:
        params = record.get("params")
        return make(params) if isinstance(params, dict) else None

    return made


_MAKERS: dict[str, Maker] = {
    "session/message": _of_params(_message),
    "session/reasoning": _of_params(_reasoning),
    "session/toolCall": _of_params(_call),
    "session/toolResult": _of_params(_result),
    "session/usage": _of_params(_usage),
}


class Notifications:
    """Each is understood alone; an answer to a request is counted as a `response`."""

    makers: ClassVar[dict[str, Maker]] = _MAKERS

    def feed(self, record: dict[str, Any]) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it has neither a method nor an answer, or lacks what its kind must have.
        """
        kind = record.get("method")
        if not isinstance(kind, str):
            if record.keys().isdisjoint(("result", "error")):
                raise DialectError(NAME, "a record without method or type")
            return Normalized((), "response")
        make = self.makers.get(kind)
        draft = None if make is None else make(record)
        return Normalized((), kind) if draft is None else Normalized((draft,))


NOTIFICATIONS = Notifications()
