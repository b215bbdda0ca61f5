"""What a dialect is: how one harness writes a session, and how it is told to go on with one.

A record of the harness becomes drafts, the linker turns drafts into events. A draft is an event of ours with holes:

- `id` is `""` where the harness gives none,
- `parent_id` is None, because it is not linked yet,
- `turn` is `UNNUMBERED` where the log hands the number out,
- `replaces_from` of a `Compaction` is `UNPLACED` where it begins with the log and `kept(n)` where it takes back the
  last `n` events alone; `replaces_to` is `kept(n)` where it ends `n` events before the place where it lands.

`incarnate.domain.dialects.linker` fills all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec
from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    from incarnate.domain.dialects.layouts import Layout
    from incarnate.domain.events import SessionEvent

__all__ = [
    "UNNUMBERED",
    "UNPLACED",
    "Advertisement",
    "Capabilities",
    "Dialect",
    "Finishing",
    "FollowsAgents",
    "HearsText",
    "Normalized",
    "Normalizer",
    "ReadsFields",
    "ResumeInvocation",
    "advertisement",
    "kept",
]

UNNUMBERED = -1
"""The turn of a draft whose number the log hands out."""

UNPLACED = -1
"""The range of a draft compaction that replaces all that is before it."""


def kept(events: int) -> int:
    """The `replaces_to` of a draft compaction that keeps the last `events` before it; `UNPLACED` for none."""
    return UNPLACED - events


class Normalized(msgspec.Struct, frozen=True, gc=False):
    """What one record became.

    `ignored` is the kind of what maps to nothing, such as `system/status`: the whole record where there are no drafts,
    else a part of it, such as `user/image`. No drafts and nothing ignored means that the record was taken in and shows
    later, as a compaction boundary does that waits for its summary.
    """

    drafts: tuple[SessionEvent, ...]
    ignored: str | None = None


class Normalizer(Protocol):
    """One stream of records; it holds what must be known across them. Equal records in equal order, equal drafts."""

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record of the harness. The normalizer is as if it had never seen it.
        """
        ...


@runtime_checkable
class Finishing(Protocol):
    """A normalizer that holds drafts until a later record completes them, such as a message that comes in pieces."""

    def finish(self) -> Normalized:
        """What is held when the harness is dead and no record will come; turns that are open stay open."""
        ...


@runtime_checkable
class HearsText(Protocol):
    """A normalizer of a harness that also tells something in lines that are no JSON, such as its errors."""

    def text(self, line: str) -> Normalized:
        """What this line means; one that is ignored is counted as a text, whatever its kind."""
        ...


@runtime_checkable
class FollowsAgents(Protocol):
    """A normalizer that maps the files of sub-agents by others of its own kind, which know what it knows."""

    def agent(self, name: str) -> Normalizer:
        """A normalizer for the file of this sub-agent; without one the records go through the session's own."""
        ...


@runtime_checkable
class ReadsFields(Protocol):
    """A dialect that reads few fields of records with many: the rest need not be made into values."""

    def decode(self, line: bytes, /) -> dict[str, Any]:
        """A line's record with all the fields that the dialect ever reads; it maps as the whole record does.

        Bytes that are no UTF-8, and numbers that no double holds, are seen in these fields only.

        Raises:
            msgspec.MsgspecError: the line is damaged, or one of them is of another shape than the harness writes.
        """
        ...


class Capabilities(msgspec.Struct, frozen=True):
    """What a harness declares: it streams records while it works, it resumes a session by its id."""

    streaming: bool
    resume_by_id: bool

    @property
    def durable_resume(self) -> bool:
        """A dead session can go on: what it did is known up to its death, and it can be named to the harness."""
        return self.streaming and self.resume_by_id


class Advertisement(msgspec.Struct, frozen=True, rename="camel"):
    """The capabilities of a harness as the reference writes them."""

    harness: str
    streaming: bool
    resume_by_id: bool
    durable_resume: bool


class ResumeInvocation(msgspec.Struct, frozen=True, rename="camel"):
    """How a supervisor resumes a session: arguments of the command line, or a call of the harness's SDK."""

    transport: Literal["cli", "sdk"]
    session_id: str
    args: tuple[str, ...]
    call: str | UnsetType = UNSET


class Dialect(Protocol):
    """The record format of one harness. Dialects hold no state; their normalizers do."""

    @property
    def name(self) -> str:
        """The harness's name in the registry."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the harness declares."""
        ...

    @property
    def layout(self) -> Layout:
        """Which files of its folders are sessions."""
        ...

    def normalizer(self) -> Normalizer:
        """A normalizer for one stream or file, from its first record."""
        ...

    def likeness(self, record: object) -> int:
        """How surely the harness wrote this record: 2 where no other one does, 1 where it may have, 0 where not.

        It tells whose a stream is, and a record from what only looks like one behind a damaged place of its line.
        """
        ...

    def record_id(self, record: object) -> str | None:
        """The id that the harness gave this record, if it gave one."""
        ...

    def session_id(self, record: object) -> str | None:
        """The harness's own id of the session, if this record tells it."""
        ...

    def resume(self, session_id: str) -> ResumeInvocation:
        """How a supervisor resumes the session."""
        ...

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...] | None:
        """The full command line that resumes the session, for people and `subprocess`; None without a command line."""
        ...


def advertisement(dialect: Dialect) -> Advertisement:
    """The dialect's capabilities as the reference advertises them."""
    declared = dialect.capabilities
    return Advertisement(dialect.name, declared.streaming, declared.resume_by_id, declared.durable_resume)
