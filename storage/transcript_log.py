"""A transcript in memory, for tests and sessions that nobody will look at again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from incarnate.domain.errors import ClosedError, OutOfRangeError
from incarnate.domain.events import MAX_INTEGER
from incarnate.domain.transcripts.rows import Row, decode_row, encode_row
from incarnate.domain.transcripts.turns import next_turn_after_rows
from incarnate.domain.turns import turn_id

if TYPE_CHECKING:
    from typing import Self

__all__ = ["TranscriptLog"]


class TranscriptLog:
    """What `TranscriptFile` does, without a file. Its turn counter survives `clear`, as the reference's does."""

    write_errors = 0

    def __init__(self) -> None:
        self._lines: list[bytes] = []  # as bytes: what a caller changes later changes no row
        self._next_turn = 0
        self._closed = False
        self._lock = threading.RLock()

    def append(self, row: Row) -> bool:
        """Keep a row.

        Raises:
            UnencodableEventError: it would not read back equal; nothing was changed.
            ClosedError: the log was closed.
        """
        line = encode_row(row)
        with self._lock:
            self._check()
            self._next_turn = next_turn_after_rows((row,), self._next_turn)
            self._lines.append(line)
            return True

    def sync(self) -> None:
        """Nothing: there is no disk.

        Raises:
            ClosedError: the log was closed.
        """
        self._check()

    def events(self) -> list[Row]:
        """Every row.

        Raises:
            ClosedError: the log was closed.
        """
        with self._lock:
            self._check()
            return [decode_row(line) for line in self._lines]

    def next_turn_id(self) -> str:
        """`turn-0`, `turn-1`, ...: above every number that was kept or given here.

        Raises:
            OutOfRangeError: the largest number has been used.
        """
        with self._lock:
            if self._next_turn > MAX_INTEGER:
                raise OutOfRangeError("turn", self._next_turn)
            number, self._next_turn = self._next_turn, self._next_turn + 1
            return turn_id(number)

    def keep(self, count: int) -> None:
        """Keep the first `count` rows and drop the rest; turn numbers go on.

        Raises:
            ValueError: `count` is negative.
            ClosedError: the log was closed.
        """
        if count < 0:
            raise ValueError(f"a transcript cannot keep {count} rows")
        with self._lock:
            self._check()
            del self._lines[count:]

    def clear(self) -> None:
        """Forget every row; turn numbers go on.

        Raises:
            ClosedError: the log was closed.
        """
        with self._lock:
            self._check()
            self._lines.clear()

    def close(self) -> None:
        """Let go of the rows. Closing twice is no error."""
        with self._lock:
            self._closed = True
            self._lines.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _check(self) -> None:
        if self._closed:
            closed = ClosedError("the transcript was closed")
            closed.hint = "make a new one"
            raise closed
