"""`codex`: the stream of `codex exec --json`, and the rollouts on disk.

A rollout's records have a `payload`; records of the stream have none.
"""

from __future__ import annotations

from typing import Any

from incarnate.domain.dialects.base import Capabilities, Normalized, ResumeInvocation
from incarnate.domain.dialects.codex_fields import decode
from incarnate.domain.dialects.codex_items import NAME
from incarnate.domain.dialects.codex_rollout import ITEMS, RolloutNormalizer
from incarnate.domain.dialects.codex_stream import StreamNormalizer
from incarnate.domain.dialects.fields import as_object, optional_text
from incarnate.domain.dialects.layouts import Layout
from incarnate.domain.errors import DialectError

__all__ = ["Codex"]

_OF_A_ROLLOUT = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "token_usage_record"}
)
_OF_THE_STREAM = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})


class CodexNormalizer:
    """One stream or rollout; each record tells which of them it is of."""

    def __init__(self) -> None:
        self._stream = StreamNormalizer()
        self._rollout = RolloutNormalizer()

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or lacks what its kind must have.
        """
        record = value if type(value) is dict else as_object(NAME, value)
        kind = record.get("type")
        if type(kind) is not str:
            return _untyped(record)
        payload = record.get("payload")
        if isinstance(payload, dict):
            return self._rollout.feed(kind, record, payload)
        if kind in ITEMS:
            return self._rollout.feed("response_item", record, record)
        return self._stream.feed(kind, record)


def _untyped(record: dict[str, Any]) -> Normalized:
    foreign = None if "type" in record else _foreign_kind(record)
    if foreign is None:
        raise DialectError(NAME, "a record has a type")
    return Normalized((), foreign)


def _foreign_kind(record: dict[str, Any]) -> str | None:
    """What a record without a type is in the forms of early versions, which are counted only."""
    message = record.get("msg")
    if isinstance(message, dict):
        return f"msg/{message['type']}" if isinstance(message.get("type"), str) else "msg"
    if isinstance(record.get("record_type"), str):
        return f"record/{record['record_type']}"
    return "header" if "id" in record and "timestamp" in record else None


class Codex:
    """The dialect of the Codex CLI; sessions resume by their id on the command line."""

    name = NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = Layout(main=r"/rollout-[^/]*?(?P<session>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$")

    decode = staticmethod(decode)

    def normalizer(self) -> CodexNormalizer:
        """A normalizer for one stream or rollout."""
        return CodexNormalizer()

    def likeness(self, record: object) -> int:
        """The kinds of both forms are Codex's own; items without an envelope are the provider's."""
        if not isinstance(record, dict) or not isinstance(kind := record.get("type"), str):
            return 0
        if kind in _OF_A_ROLLOUT and isinstance(record.get("payload"), dict):
            return 2
        if kind in _OF_THE_STREAM or (kind.startswith("item.") and isinstance(record.get("item"), dict)):
            return 2
        return int(kind in ITEMS and kind != "message" and "payload" not in record)

    def record_id(self, record: object) -> str | None:
        """The id of an item of a rollout; an item's id in the stream is used again by every process."""
        if not isinstance(record, dict) or record.get("type") != "response_item":
            return None
        payload = record.get("payload")
        return optional_text(payload, "id") if isinstance(payload, dict) else None

    def session_id(self, record: object) -> str | None:
        """The thread's id: the first line of a stream or a rollout has it."""
        if not isinstance(record, dict):
            return None
        kind = record.get("type")
        if kind == "thread.started":
            return optional_text(record, "thread_id")
        if kind != "session_meta":
            return None
        payload = record.get("payload")
        return optional_text(payload, "id", "session_id") if isinstance(payload, dict) else None

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("resume", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work; interactive without a prompt. What the run may do is not in it."""
        if prompt is None:
            return ("codex", "resume", session_id)
        return ("codex", "exec", "--json", "--skip-git-repo-check", "resume", session_id, prompt)
