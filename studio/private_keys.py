"""Private keys in their armour, whole or cut off, in lines or in a text where the ends of lines are escapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["private_key_spans"]

_EDGE = r"-----{} (?:[A-Z0-9]{{1,16}}+ ){{0,5}}?PRIVATE KEY(?: BLOCK)?-----"
_begin = re.compile(_EDGE.format("BEGIN"))
_end = re.compile(_EDGE.format("END"))
_LONGEST = 32 * 1024  # twice a key of 16,384 bits: two mentions that are farther apart are no key
# What follows an armour whose end is missing: its headers, and lines of base64.
_GAP = r"(?:[\s\"'+,|]|\\[nrt\"'\\])*+"
_body = re.compile(
    rf"(?:{_GAP}(?:Proc-Type|DEK-Info|Version|Comment): [^\\\n]{{0,200}}+)*+"
    rf"(?:(?:{_GAP}[A-Za-z0-9+/=]{{16,}}+)++(?:(?:\s|\\[nrt])*+[A-Za-z0-9+/]{{1,15}}+=*+)?)?"
)
_LINES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n\\"


def private_key_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where private keys stand, begin and end."""
    if "PRIVATE KEY" not in text:
        return
    ends = [found.span() for found in _end.finditer(text)]
    ends.reverse()
    done = 0
    for begin in _begin.finditer(text):
        yield from _tails(text, ends, done, begin.start())
        if begin.start() < done:
            continue
        if ends and ends[-1][1] - begin.start() <= _LONGEST:
            done = ends.pop()[1]
        else:
            body = _body.match(text, begin.end())
            done = begin.end() if body is None else body.end()
        yield begin.start(), done
    yield from _tails(text, ends, done, len(text))


def _tails(text: str, ends: list[tuple[int, int]], done: int, stop: int) -> Iterator[tuple[int, int]]:
    """The keys whose beginning is missing and whose end stands before `stop`; `ends` are the last first."""
    while ends and ends[-1][0] < stop:
        start, end = ends.pop()
        if start >= done:
            lines = text[max(done, start - _LONGEST) : start]
            yield start - (len(lines) - len(lines.rstrip(_LINES))), end
            done = end
