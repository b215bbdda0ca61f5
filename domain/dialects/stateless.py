"""What the dialects have in common whose records are each understood alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from incarnate.domain.dialects.base import Capabilities, Normalized
from incarnate.domain.dialects.fields import as_object, optional_text
from incarnate.domain.dialects.layouts import FILES_OF_ONE
from incarnate.domain.errors import DialectError
from incarnate.domain.events import SessionEvent

__all__ = ["Maker", "StatelessDialect"]

Maker = Callable[[dict[str, Any]], SessionEvent | None]
"""A record to its draft; None where it says nothing."""


class StatelessDialect:
    """A dialect that makes at most one draft of a record, whatever came before it.

    As nothing is held between records, it is its own normalizer. A subclass names the harness, the field that tells a
    record's kind and what makes the drafts of each kind, and says how a session is resumed.
    """

    name: str
    kind_field: ClassVar[str] = "type"
    makers: ClassVar[Mapping[str, Maker]]
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = FILES_OF_ONE

    def normalizer(self) -> Self:
        """Itself."""
        return self

    def likeness(self, record: object) -> int:
        """Of the reference's shapes: 1 for a kind that has a maker."""
        return int(isinstance(record, dict) and optional_text(record, self.kind_field) in self.makers)

    def record_id(self, record: object) -> str | None:  # noqa: ARG002
        """Nothing: an `id` in these records names a tool call, and two records share it."""
        return None

    def session_id(self, record: object) -> str | None:
        """The `sessionId` or `session_id` of a record that has one."""
        return optional_text(record, "sessionId", "session_id") if isinstance(record, dict) else None

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or lacks what its kind must have.
        """
        record = as_object(self.name, value)
        kind = record.get(self.kind_field)
        if not isinstance(kind, str):
            return Normalized((), self.foreign_kind(record))
        make = self.makers.get(kind)
        draft = None if make is None else make(record)
        return Normalized((), kind) if draft is None else Normalized((draft,))

    def foreign_kind(self, record: dict[str, Any]) -> str:  # noqa: ARG002
        """The kind under which a record without the kind's field is counted.

        Raises:
            DialectError: the harness writes no such records.
        """
        raise DialectError(self.name, f"a record without {self.kind_field}")
