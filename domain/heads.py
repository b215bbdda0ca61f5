"""The head of a log: all that a write needs to know of what is stored."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

__all__ = ["EMPTY_HEAD", "ExpectedHead", "Head"]


class ExpectedHead(NamedTuple):
    """Where a writer last saw the log: the rewind generation and the next offset. Any pair compares equal."""

    generation: int
    next_offset: int


class Head(msgspec.Struct, frozen=True, gc=False):
    """Where a log stands.

    `fence` is the highest incarnation ever admitted, None before the first (I2). `next_offset` is where the next
    event goes (I1). `generation` counts the rewinds (I4). `next_turn` is one above the largest turn number ever
    handed out or seen (I8). `retired`: the log is closed for ever.
    """

    fence: int | None
    next_offset: int
    generation: int
    next_turn: int
    retired: bool = False

    @property
    def expected(self) -> ExpectedHead:
        """What a writer who saw this head expects to find."""
        return ExpectedHead(self.generation, self.next_offset)


EMPTY_HEAD = Head(None, 0, 0, 0)
"""The head of an activation that nobody has touched."""
