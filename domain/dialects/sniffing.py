"""Whose records these are, told from the records alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.errors import DialectError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from incarnate.domain.dialects.base import Dialect

__all__ = ["FOREIGN", "NO_RECORD", "Sniffer"]

_UNKNOWN = "check what it is: incarnate.domain.dialects.registry.DIALECTS names the harnesses whose records are read"

NO_RECORD = "it holds no record of any known harness"
"""The reason of the refusal where there was nothing to tell anybody by."""

FOREIGN = "no known harness writes such records"
"""The reason where there were records, and nobody's."""

_SURE = 2


class Sniffer:
    """Hears records until it knows, or all that there are.

    A harness that alone writes one of them is it. Where none or several do, it is the one that may have written most.
    """

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        self._dialects = {dialect.name: dialect for dialect in dialects}
        self._likeness = dict.fromkeys(self._dialects, 0)
        self._certain = dict.fromkeys(self._dialects, 0)
        self._heard = 0

    def hear(self, record: object) -> None:
        """One more record."""
        self._heard += 1
        for name, dialect in self._dialects.items():
            likeness = dialect.likeness(record)
            self._likeness[name] += likeness
            self._certain[name] += likeness >= _SURE

    @property
    def sure(self) -> Dialect | None:
        """The harness that alone writes a record that was heard; None where there is none, or more than one."""
        certain = [name for name, count in self._certain.items() if count]
        return self._dialects[certain[0]] if len(certain) == 1 else None

    def verdict(self) -> Dialect:
        """Whose records were heard.

        Raises:
            DialectError: nobody's that is known, or it cannot be told whose; its message lists who it may be.
        """
        if self.sure is not None:
            return self.sure
        most = max(self._likeness.values(), default=0)
        likeliest = sorted(name for name, likeness in self._likeness.items() if likeness == most)
        if most and len(likeliest) == 1:
            return self._dialects[likeliest[0]]
        if not self._heard:
            raise DialectError("unknown", NO_RECORD, hint=_UNKNOWN)
        if not most:
            raise DialectError("unknown", FOREIGN, hint=_UNKNOWN)
        whose = f"they may be those of {', '.join(likeliest)}"
        raise DialectError("unknown", whose, hint="give the dialect of that harness alone")
