"""What the kernel runs a program's file with: the interpreter of a script, the loader of a binary."""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Needed", "is_bare_text", "needed_by"]

_HEAD_BYTES = 256  # of a script the kernel reads no more
_SEARCHES = "env"  # `#!/usr/bin/env node`: most harnesses are such scripts
_ASSIGNMENT = re.compile(r"\w+=[^'\"\\$]*")
_PLAIN = re.compile(r"[^-'\"\\$][^'\"\\$]*")

# Where the ELF format of 32 and of 64 bits has what we read: the table of segments, the size and number of its entries;
# of an entry its kind, and where its data begin and how long they are.
_TABLE, _WIDE_TABLE = (("I", 28), ("H", 42), ("H", 44)), (("Q", 32), ("H", 54), ("H", 56))
_ENTRY, _WIDE_ENTRY = (("I", 0), ("I", 4), ("I", 16)), (("I", 0), ("Q", 8), ("Q", 32))
_PT_INTERP = 3
_MACHINE = slice(18, 20)
_MOST_PATH = 4096


class Needed(NamedTuple):
    """The name of a program that another one cannot run without; `is_searched` in `PATH` though it has no slash."""

    name: str
    is_searched: bool = False


def needed_by(file: Path) -> Iterator[Needed]:
    """What must be there for `file` to run, as its first bytes tell; nothing of one that cannot be read or is neither.

    What those need in turn is not told.
    """
    with suppress(OSError, OverflowError, struct.error), file.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
        if head.startswith(b"#!"):
            yield from _of_script(head)
        elif head.startswith(b"\x7fELF"):
            yield from _of_binary(stream, head)


def is_bare_text(file: Path) -> bool:
    """Whether it is a text that names no interpreter: a shell would run it with itself, the kernel does not."""
    with suppress(OSError), file.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
        return b"\0" not in head and not head.startswith(b"#!")
    return False


def _of_script(head: bytes) -> Iterator[Needed]:
    # A line that ends in CR LF names a program that ends in CR, as the kernel sees it.
    words = head[2:].partition(b"\n")[0].decode("utf-8", "surrogateescape").strip(" \t").replace("\t", " ").split(" ")
    if words[0]:
        yield Needed(words[0])
    if words[0].rpartition("/")[2] == _SEARCHES:
        yield from [Needed(found, is_searched=True) for found in _searched(words[1:])]


def _searched(words: list[str]) -> list[str]:
    """What `env` searches for; nothing where that would be a guess: behind other options, quotes, another `PATH`."""
    left = [word for word in words if word and word != "-S"]
    while left and _ASSIGNMENT.fullmatch(left[0]):
        if left.pop(0).startswith("PATH="):
            return []
    return left[:1] if left and _PLAIN.fullmatch(left[0]) else []


def _of_binary(stream: BinaryIO, head: bytes) -> Iterator[Needed]:
    """The loader, which is another one in Alpine's containers than elsewhere.

    Not of a binary for another processor: an emulator runs it, and has the loader elsewhere.
    """
    if head[_MACHINE] != _our_machine():
        return
    is_wide, order = head[4:5] == b"\2", "<" if head[5:6] == b"\1" else ">"
    table, size, count = _fields(head, order, _WIDE_TABLE if is_wide else _TABLE)
    for at in range(count):
        stream.seek(table + at * size)
        kind, start, length = _fields(stream.read(size), order, _WIDE_ENTRY if is_wide else _ENTRY)
        if kind == _PT_INTERP:
            stream.seek(start)
            yield Needed(stream.read(min(length, _MOST_PATH)).rstrip(b"\0").decode("utf-8", "surrogateescape"))


def _fields(data: bytes, order: str, places: tuple[tuple[str, int], ...]) -> list[int]:
    return [struct.unpack_from(order + kind, data, at)[0] for kind, at in places]


@cache
def _our_machine() -> bytes:
    with suppress(OSError), Path("/proc/self/exe").open("rb") as stream:
        return stream.read(_HEAD_BYTES)[_MACHINE]
    return b""
