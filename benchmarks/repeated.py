"""The recordings of a harness as one long session.

They are joined and repeated, and made into what a real session of that length is: the harness's session has one id
from the first record to the last, and no other id comes twice. Repeated as they are, all but their first records are
what a dialect takes for a copy, which costs next to nothing and gives no event, and a session begins every few lines.
Everything else, every text too, is as it was recorded, and ids keep their length.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Settings

__all__ = ["recorded"]

_RECORDINGS = Path(__file__).resolve().parent.parent / "fixtures" / "recordings"
_OMITTED = re.compile(rb"<omitted (\d+) chars sha256:[0-9a-f]+>")
_PROSE = rb"Use the tools that you are given, and quote \"paths\" as they are.\n"
_DASH = "—".encode()  # the vendors' texts are no plain ASCII, which is read faster

_SESSION = re.compile(rb'"(?:session_id|sessionId|thread_id)":"([0-9a-f-]{36})"')
# A random id, that of a sub-agent of Claude Code's, or one of the model that the recordings were made with.
_ID = re.compile(rb"(?<![0-9A-Za-z-])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|a[0-9a-f]{16})\b|_stub(?=_?S)")
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"


def recorded(settings: Settings, folder: str, form: str, megabytes: int) -> Path:
    """A session of about so many megabytes, in a file that is made when it is first asked for.

    `form` is "disk" for the session files of the harness, "stdout" for what it printed.
    """
    path = settings.folder / f"{folder}-{form}-{megabytes}.jsonl"
    if not path.exists():
        once = _restored(b"".join([file.read_bytes().rstrip(b"\n") + b"\n" for file in _files(folder, form)]))
        with path.open("wb") as file:
            for part in _repeated(once, max(1, megabytes * 1_000_000 // len(once))):
                file.write(part)
    return path


def _files(folder: str, form: str) -> list[Path]:
    scenarios = sorted((_RECORDINGS / folder).iterdir())
    if form == "stdout":
        return [scenario / "stdout.jsonl" for scenario in scenarios]
    disks = [scenario / "disk" for scenario in scenarios]
    found = [(path.relative_to(disk), path) for disk in disks for path in sorted(disk.rglob("*.jsonl"))]
    longest: dict[Path, Path] = {}  # a resumed session's file begins with all that it held before
    for name, path in found:
        if name not in longest or path.stat().st_size > longest[name].stat().st_size:
            longest[name] = path
    return list(longest.values())


def _restored(data: bytes) -> bytes:
    """The records as long as the harness wrote them: the fixtures leave out long texts of the vendors."""
    return _OMITTED.sub(lambda found: _DASH + _PROSE * (int(found[1]) // len(_PROSE)), data)


def _repeated(once: bytes, times: int) -> Iterator[bytes]:
    sessions = set(_SESSION.findall(once))
    one = min(sessions)
    places = [(found.span(), found[0]) for found in _ID.finditer(once)]
    ends = [0, *[end for (_, end), _ in places]]
    texts = [
        once[end:begin] for end, begin in zip(ends, [*[begin for (begin, _), _ in places], len(once)], strict=True)
    ]
    for number in range(times):
        ids = [one if name in sessions else _renamed(name, number) for _, name in places]
        yield b"".join([part for pair in zip(texts, [*ids, b""], strict=True) for part in pair])


def _renamed(name: bytes, number: int) -> bytes:
    if name != b"_stub":
        return name[:-8] + b"%08x" % number
    places = [number // 36**place % 36 for place in (3, 2, 1, 0)]
    return b"_" + bytes([_DIGITS[place] for place in places])
