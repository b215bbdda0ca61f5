"""What a drawn timeline is made of: bars, marks, columns and lines, each with its place in pixels."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Bar", "Column", "Label", "Mark", "Place", "Rule", "shortened", "text_width"]

_LETTER = 6.1  # pixels of a usual letter at eleven pixels; one beyond Latin may be as wide as its line is high
_WIDE_LETTER = 11.0
_LATIN = 0x250


class Bar(NamedTuple):
    """Something with a beginning and an end, or `many` of them where they are too narrow to be seen alone."""

    left: float
    right: float
    top: float
    height: float
    part: str  # what it is: writer, turn, call, agent
    tone: str  # its colour
    state: str  # how it ended: done, failed, open or lost
    many: int
    failed: float  # the share of those that failed
    offset: int
    title: str
    label: str


class Mark(NamedTuple):
    """A thing without a length, or `many` of them."""

    x: float
    top: float
    height: float
    part: str  # user, assistant, reasoning, system, compaction, checkpoint or rewind
    many: int
    offset: int
    title: str


class Column(NamedTuple):
    """Tokens of one stretch: heights above the line, fresh input upon what came from the cache, and below it."""

    left: float
    width: float
    line: float
    cached: float
    fresh: float
    output: float
    offset: int
    title: str


class Label(NamedTuple):
    """The name of a lane; `value` is the scale of one that has one."""

    x: float
    y: float
    text: str


class Rule(NamedTuple):
    """A line through all lanes: where an incarnation took over, or where a rewind cut."""

    x: float
    part: str


class Place(NamedTuple):
    """The free part of a drawing: its left and right edges."""

    left: float
    right: float


def text_width(text: str) -> float:
    """About how wide `text` is in pixels, rather too wide than too narrow."""
    return sum(_LETTER if ord(letter) < _LATIN else _WIDE_LETTER for letter in text)


def shortened(text: str, width: float) -> str:
    """As much of `text` as fits; nothing where that would say nothing."""
    if text_width(text) <= width:
        return text
    kept, room = 0, width - _WIDE_LETTER
    for letter in text:
        room -= _LETTER if ord(letter) < _LATIN else _WIDE_LETTER
        if room < 0:
            break
        kept += 1
    return f"{text[:kept].rstrip()}…" if kept >= 3 else ""  # noqa: PLR2004 - two letters name nothing
