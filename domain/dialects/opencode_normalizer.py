"""OpenCode's records to drafts: what `run --format json` prints, the rows of its database, and its exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.fields import as_object, optional_text
from incarnate.domain.dialects.opencode_parts import NAME, outcome_of, stamp_at
from incarnate.domain.dialects.opencode_sessions import SessionLog
from incarnate.domain.dialects.opencode_steps import Steps
from incarnate.domain.dialects.reader import read_record
from incarnate.domain.dialects.stamped import OpenTurn
from incarnate.domain.errors import DialectError, EventShapeError

if TYPE_CHECKING:
    from incarnate.domain.dialects.claude_blocks import Stamp
    from incarnate.domain.events import SessionEvent

__all__ = ["OpenCodeNormalizer"]

_STREAMED = {"step_start", "text", "reasoning", "tool_use", "step_finish", "error", "done"}


class OpenCodeNormalizer:
    """One stream, database or export, told from each record.

    A database may hold many sessions: the first one that has no parent is the session, and those that its agents
    started are inside it.
    """

    def __init__(self) -> None:
        self._stream = _Stream()
        self._log = SessionLog()
        self._has_events = False

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or lacks what its kind must have.
        """
        record = as_object(NAME, value)
        if isinstance(record.get("table"), str):
            return self._row(record["table"], record.get("row"))
        if isinstance(record.get("messages"), list) or {"info", "parts"} <= record.keys():
            return self._export(record)
        kind = record.get("type")
        if not isinstance(kind, str):
            raise DialectError(NAME, "a record without type, table or messages")
        return self._stream.feed(kind, record) if kind in _STREAMED else Normalized((), kind)

    def finish(self) -> Normalized:
        """What is held when the harness is dead."""
        return Normalized(tuple(self._stream.finish() + self._log.finish()))

    def _row(self, table: str, row: object) -> Normalized:
        """A row of the database. Its log of events tells all; databases of before have messages and parts alone."""
        if not isinstance(row, dict):
            raise DialectError(NAME, f"a row of {table} that is no object")
        if table == "event":
            self._has_events = True
            kind = optional_text(row, "type") or "unknown"
            return self._event(kind.rstrip("0123456789").rstrip("."), _data_of(table, row), kind)
        if table == "session":
            return self._noted(self._log.session({**row, "parentID": row.get("parent_id")}), table)
        if self._has_events or table not in ("message", "part"):
            return Normalized((), f"table/{table}")
        data = {**_data_of(table, row), "id": row.get("id"), "sessionID": row.get("session_id")}
        if table == "message":
            return self._noted(self._log.message(data), table)
        return self._noted(self._log.part({**data, "messageID": row.get("message_id")}), table)

    def _event(self, kind: str, data: dict[str, Any], full: str) -> Normalized:
        info, part = data.get("info"), data.get("part")
        if kind in ("session.created", "session.updated") and isinstance(info, dict):
            return self._noted(self._log.session(info), full)
        if kind == "message.updated" and isinstance(info, dict):
            return self._noted(self._log.message(info), full)
        if kind == "message.part.updated" and isinstance(part, dict):
            return self._noted(self._log.part(part), f"{full}/{part.get('type')}")
        return Normalized((), full)

    def _export(self, record: dict[str, Any]) -> Normalized:
        messages, info = record.get("messages"), record.get("info")
        drafts: list[SessionEvent] = []
        if not isinstance(messages, list):
            messages = [record]
        elif isinstance(info, dict):
            drafts += self._log.session(info) or []
        for message in messages:
            drafts += self._exported(message)
        drafts += self._log.finish()
        return Normalized(tuple(drafts), None if drafts else "export")

    def _exported(self, message: object) -> list[SessionEvent]:
        if not isinstance(message, dict) or not isinstance(message.get("info"), dict):
            return []
        info, parts = message["info"], message.get("parts")
        begun = {**info, "time": {**_as_dict(info.get("time")), "completed": None}, "error": None}
        drafts = self._log.message(begun) or []
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict):
                drafts += self._log.part(part) or []
        return drafts + (self._log.message(info) or [])

    def _noted(self, drafts: list[SessionEvent] | None, kind: str) -> Normalized:
        """None means that the row belongs to no session of ours; no drafts, that it shows later or not at all."""
        if drafts is None:
            return Normalized((), "other session")
        return Normalized(tuple(drafts), None if drafts else kind)


class _Stream:
    """What `run` prints of the session; of its sub-agents it prints nothing."""

    def __init__(self) -> None:
        self._turn = OpenTurn()
        self._steps = Steps()
        self._message: str | None = None

    def feed(self, kind: str, record: dict[str, Any]) -> Normalized:
        stamp = stamp_at(record.get("timestamp"))
        if kind == "error":
            begun = [] if self._turn.is_open else self._turn.begin(stamp)
            left = self._steps.give_up()
            return Normalized((*begun, *left, *self._turn.end(outcome_of(record.get("error")), stamp)))
        if kind == "done":
            ended = self._steps.give_up() + self._turn.end("completed", stamp)
            return Normalized(tuple(ended), None if ended else kind)
        part = record.get("part")
        if not isinstance(part, dict):
            raise DialectError(NAME, f"{kind} without a part")
        if kind == "tool_use" and not isinstance(part.get("state"), dict):
            raise DialectError(NAME, "tool_use without a state")
        begun = self._goes_on(part, stamp)
        if kind == "step_start":
            self._steps.begin()
            return Normalized(tuple(begun), None if begun else kind)
        if kind == "step_finish":
            drafts = self._steps.end(part, None)
            ended = [] if part.get("reason") == "tool-calls" else self._turn.end("completed", stamp)
            return Normalized((*begun, *drafts, *ended))
        return Normalized((*begun, *self._steps.take({**part, "type": _PARTS[kind]})))

    def finish(self) -> list[SessionEvent]:
        return self._steps.give_up()

    def _goes_on(self, part: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """A part of another message while a step is open is a new process: the one before it was killed."""
        message = optional_text(part, "messageID")
        known, self._message = self._message, message
        if self._turn.is_open and self._steps.is_open and known is not None and message != known:
            return self._steps.give_up() + self._turn.begin(stamp)
        return [] if self._turn.is_open else self._turn.begin(stamp)


_PARTS = {"text": "text", "reasoning": "reasoning", "tool_use": "tool"}


def _data_of(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """The JSON that a row holds as a text."""
    data = row.get("data")
    if isinstance(data, str):
        try:
            record = read_record(data.encode("utf-8", "replace"))
        except EventShapeError as error:
            raise DialectError(NAME, f"a row of {table}: {error}") from error
        data = None if record is None else record.value
    if not isinstance(data, dict):
        raise DialectError(NAME, f"a row of {table} without data")
    return data


def _as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
