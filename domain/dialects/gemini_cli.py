"""`gemini-cli`: the stream of `gemini -o stream-json` and the chats that it saves.

The records themselves tell the form: the stream's have a `type` of its own and no `id`, those of a chat an `id`, a
`sessionId` or a patch.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.base import Capabilities, Normalized, ResumeInvocation
from incarnate.domain.dialects.fields import as_object, optional_text
from incarnate.domain.dialects.gemini_chats import GeminiChats, session_id_of
from incarnate.domain.dialects.gemini_stream import NAME, STREAM_KINDS, GeminiStream
from incarnate.domain.dialects.layouts import Layout

__all__ = ["GeminiCli"]

_CHAT_KINDS = frozenset({"user", "gemini", "info", "error", "warning"})


class GeminiNormalizer:
    """One stream or chat."""

    def __init__(self, inside: str | UnsetType = UNSET) -> None:
        self._stream = GeminiStream()
        self._chats = GeminiChats(inside)

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or lacks what its kind must have.
        """
        record = as_object(NAME, value)
        kind = record.get("type")
        if isinstance(kind, str) and "id" not in record:
            return self._stream.feed(kind, record) if kind in STREAM_KINDS else Normalized((), kind)
        return self._chats.feed(record)

    def finish(self) -> Normalized:
        """The part of an answer that came before the stream was cut."""
        return self._stream.finish()

    def agent(self, name: str) -> GeminiNormalizer:
        """A normalizer for a sub-agent's file; its call is saved when it is done, so the agent's name stands in."""
        return GeminiNormalizer(f"agent:{name}")


class GeminiCli:
    """The dialect of Gemini CLI; sessions resume by their id on the command line."""

    name = NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    # A resume in another minute than the one that the file is named after leaves a second file, which holds no message.
    layout = Layout(
        main=r"/chats/session-[^/]*-(?P<session>[^/-]+)\.jsonl?$",
        agents=r"/chats/(?P<session>[^/]+)/(?P<agent>[^/]+)\.jsonl$",
        in_parts=True,
    )

    def normalizer(self) -> GeminiNormalizer:
        """A normalizer for one stream or chat."""
        return GeminiNormalizer()

    def likeness(self, record: object) -> int:
        """Patches, project hashes and messages of the type gemini are its alone."""
        if not isinstance(record, dict):
            return 0
        kind = optional_text(record, "type")
        if not {"$set", "$rewindTo", "projectHash"}.isdisjoint(record) or kind == "gemini":
            return 2
        if kind in STREAM_KINDS and "timestamp" in record:
            return 2 if _STREAM_MARKS[kind] in record else 1
        return int(kind in _CHAT_KINDS and "id" in record and "content" in record)

    def record_id(self, record: object) -> None:
        """Nothing: the id of a message stands on every record that fills it up."""

    def session_id(self, record: object) -> str | None:
        """The `session_id` of the stream, the `sessionId` of a chat."""
        return optional_text(record, "session_id") or session_id_of(record) if isinstance(record, dict) else None

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("--resume", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work; interactive without a prompt.

        The id is part of its flag: apart from it, one that begins with a dash is taken for a flag of its own.
        """
        asked = () if prompt is None else ("-o", "stream-json", "-p", prompt)
        return ("gemini", *asked, f"--resume={session_id}")


_STREAM_MARKS = {
    "init": "model",
    "message": "content",
    "tool_use": "tool_name",
    "tool_result": "tool_id",
    "error": "severity",
    "result": "stats",
}
"""The field by which a kind of the stream is told from those of other harnesses."""
