"""What to ingest, from a path: whose records they are, and which files and sub-agents belong to the session."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from incarnate.actors.ingest_source import MergedSource, RowSource, StreamSource, decoder_of
from incarnate.actors.lines import MAX_LINE_BYTES, read_lines, reader_of
from incarnate.domain.dialects.records import Found, RecordStream
from incarnate.domain.dialects.sniffing import Sniffer
from incarnate.domain.errors import DialectError, SessionChoiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from typing import BinaryIO

    from incarnate.actors.ingest_source import Source
    from incarnate.actors.lines import ByteStream
    from incarnate.domain.dialects.base import Dialect
    from incarnate.domain.dialects.layouts import SessionFiles

__all__ = ["NOTHING", "Opened", "open_session", "sniff_stream"]

T = TypeVar("T")

NOTHING = "is empty"
"""The reason of the refusal of a pipe that gives nothing."""

_ENDINGS = frozenset({".jsonl", ".json", ".db"})
_DATABASE = b"SQLite format 3\0"  # how every file of SQLite begins
_WITH_DATABASE = "opencode"
_MOST_SNIFFED = 200  # records; most harnesses are known by their first one
_MOST_FILES_SNIFFED = 16
_MOST_LISTED = 5


class Opened(NamedTuple):
    """A source, whose records it gives, how many bytes it has, and the session that its files' names tell."""

    source: Source
    dialect: Dialect
    size: int
    session: str | None


@contextmanager
def open_session(
    path: Path,
    dialects: Sequence[Dialect],
    *,
    session: str | None = None,
    on_line: Callable[[int], object] | None = None,
) -> Generator[Opened]:
    """The session at `path`: a file, or a folder of a harness, of whose sub-agents the files are read too.

    Args:
        path: a file of records, a folder with sessions of one harness somewhere below it, or OpenCode's database.
        dialects: those that it may be; more than one are told apart by their records.
        session: which one of several, by its id or the beginning of it; of a file, whose name tells it, its id.
        on_line: told the size of each line once it is dealt with.

    Raises:
        SessionChoiceError: there are several sessions and `session` names none of them, or more than one.
        DialectError: no known harness writes such records, or it cannot be told which.
        OSError: a file cannot be read.
    """
    with ExitStack() as files:
        if path.is_dir():
            yield _open_folder(path, dialects, session, on_line, files)
        elif _is_database(path):
            yield _open_database(path, dialects, session)
        else:
            dialect = _sniffed([path], dialects)
            stream = files.enter_context(path.open("rb"))
            source = StreamSource(stream, dialect.likeness, on_line, decode=decoder_of(dialect))
            told = dialect.layout.session_of(path.absolute().as_posix())
            yield Opened(source, dialect, path.stat().st_size, told or session)


def sniff_stream(stream: BinaryIO, dialects: Sequence[Dialect]) -> tuple[Dialect, BinaryIO | ByteStream]:
    """Whose records a pipe gives, and a stream that begins with what was read to find out.

    Raises:
        DialectError: no known harness writes such records, or it cannot be told which.
    """
    if len(dialects) == 1:
        return dialects[0], stream
    sniffer, heard = Sniffer(dialects), _Heard(stream)
    _hear(sniffer, heard)
    if not any(heard.kept):
        raise DialectError("unknown", NOTHING, hint="read it once the harness has written something")
    return sniffer.verdict(), _Rejoined(heard.kept, stream)


def _open_folder(
    folder: Path,
    dialects: Sequence[Dialect],
    session: str | None,
    on_line: Callable[[int], object] | None,
    files: ExitStack,
) -> Opened:
    found = sorted(path for path in folder.rglob("*") if path.suffix in _ENDINGS and path.is_file())
    databases = [path for path in found if path.match("opencode*.db") and _is_database(path)]
    texts = [path for path in found if path.suffix != ".db"]
    if databases and any(dialect.name == _WITH_DATABASE for dialect in dialects):
        return _open_database(databases[0], dialects, session)
    newest = sorted(texts, key=lambda path: path.stat().st_mtime_ns, reverse=True)
    dialect = _sniffed(newest[:_MOST_FILES_SNIFFED], dialects)
    sessions = dialect.layout.sessions([path.absolute().as_posix() for path in texts])
    chosen = _chosen(folder, [(one.session, one) for one in sessions], session)
    return _opened(chosen, folder, dialect, on_line, files)


def _opened(
    chosen: SessionFiles, folder: Path, dialect: Dialect, on_line: Callable[[int], object] | None, files: ExitStack
) -> Opened:
    sources: list[StreamSource] = []
    size = 0
    own = [(Path(path), None) for path in (chosen.path, *chosen.more)]
    for place, agent in (*own, *((Path(file.path), file.agent) for file in chosen.agents)):
        name = place.relative_to(folder.absolute()).as_posix()
        stream = files.enter_context(place.open("rb"))
        source = StreamSource(stream, dialect.likeness, on_line, decode=decoder_of(dialect), agent=agent, file=name)
        sources.append(source)
        size += place.stat().st_size
    return Opened(sources[0] if len(sources) == 1 else MergedSource(sources), dialect, size, chosen.session)


def _open_database(path: Path, dialects: Sequence[Dialect], session: str | None) -> Opened:
    dialect = next((one for one in dialects if one.name == _WITH_DATABASE), dialects[0])
    # By its name, when a database asks for it: no actor is bound to a driver.
    reader = import_module("incarnate.storage.opencode_database")
    chosen = _chosen(path, [(name, name) for name in reader.root_sessions(path)], session)
    return Opened(RowSource(reader.session_rows(path, chosen)), dialect, 0, chosen)


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE


def _chosen(place: Path, sessions: Sequence[tuple[str, T]], named: str | None) -> T:
    """The session that is named, or the only one.

    Raises:
        SessionChoiceError: there is not exactly one.
    """
    found = [one for name, one in sessions if name == named]
    found = found or [one for name, one in sessions if named is None or name.startswith(named)]
    if len(found) != 1:
        names = tuple([name for name, _ in sessions[:_MOST_LISTED]])
        raise SessionChoiceError(str(place), named, names, len(sessions))
    return found[0]


def _sniffed(paths: Iterable[Path], dialects: Sequence[Dialect]) -> Dialect:
    if len(dialects) == 1:
        return dialects[0]
    sniffer = Sniffer(dialects)
    for path in paths:
        with path.open("rb") as file:
            _hear(sniffer, file)
        if sniffer.sure is not None:
            break
    return sniffer.verdict()


def _hear(sniffer: Sniffer, stream: BinaryIO | ByteStream) -> None:
    """The first records of a stream, until it is sure whose they are."""
    records = RecordStream(lambda _: 0, MAX_LINE_BYTES)
    heard = 0
    for line in read_lines(stream):
        pieces = [] if line.data is None else records.feed(line.number, line.start, line.data, whole=line.whole)
        for piece in pieces:
            if isinstance(piece, Found):
                sniffer.hear(piece.value)
                heard += 1
        if sniffer.sure is not None or heard >= _MOST_SNIFFED:
            return


class _Heard:
    """A stream that keeps what was read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._read = reader_of(stream)
        self.kept: list[bytes] = []

    def read1(self, size: int, /) -> bytes:
        data = self._read(size)
        self.kept.append(data)
        return data


class _Rejoined:
    """What was read of a stream, and the rest of it."""

    def __init__(self, kept: Iterable[bytes], stream: BinaryIO) -> None:
        self._kept = deque([data for data in kept if data])
        self._read = reader_of(stream)

    def read1(self, size: int, /) -> bytes:
        return self._kept.popleft() if self._kept else self._read(size)
