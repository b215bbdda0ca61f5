"""The session files of a harness on this machine: where they are, and what the last turn in them holds."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from incarnate.actors.ingest_files import open_session
from incarnate.actors.logs import log
from incarnate.domain.dialects.base import Finishing
from incarnate.domain.dialects.records import Found
from incarnate.domain.errors import DialectError, IncarnateError
from incarnate.domain.events import UserMessage
from incarnate.storage.homes import home_folder
from incarnate.supervision.commands import carried_tail
from incarnate.supervision.reconcile import last_turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from incarnate.domain.dialects.base import Dialect
    from incarnate.domain.events import SessionEvent

__all__ = ["HarnessFiles", "SessionFolder", "default_root"]

_WITH_DATABASE = "opencode"

_ROOTS: dict[str, tuple[tuple[str | None, str], ...]] = {
    "@github/copilot": (("COPILOT_HOME", ""), (None, ".copilot")),
    "claude-code": (("CLAUDE_CONFIG_DIR", "projects"), (None, ".claude/projects")),
    "codex": (("CODEX_HOME", "sessions"), (None, ".codex/sessions")),
    "gemini-cli": ((None, ".gemini/tmp"),),
    "kimi": ((None, ".kimi/sessions"), (None, ".kimi-code/sessions")),
    "opencode": (("XDG_DATA_HOME", "opencode"), (None, ".local/share/opencode")),
    "pi": (("PI_CODING_AGENT_DIR", "sessions"), (None, ".pi/agent/sessions")),
    "qwen-code": ((None, ".qwen/projects"),),
}
"""For each harness, folders below one that a variable names, or below the home folder."""


def default_root(harness: str, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where the harness keeps its sessions, whether or not it has any yet; nothing where that is not known."""
    home = home_folder(env)
    bases = [(home if variable is None else env.get(variable), below) for variable, below in _ROOTS.get(harness, ())]
    return tuple([Path(base) / below for base, below in bases if base])


class HarnessFiles(Protocol):
    """What a harness itself keeps of its sessions."""

    def place(self) -> str:
        """Where it keeps them, for a person to read."""
        ...

    def is_here(self, session: str) -> bool:
        """Whether this machine has the session, or may have it."""
        ...

    def newest(self, since: float, theirs: frozenset[str] = frozenset()) -> str | None:
        """The session that was written last, if that is after `since` (seconds since the epoch); none of `theirs`."""
        ...

    def last_turn(self, session: str) -> list[SessionEvent]:
        """The last turn that its files hold, as drafts; nothing where there are none."""
        ...


class SessionFolder:
    """Session files below some folders; OpenCode has a database there. Without folders every session may be here."""

    def __init__(self, dialect: Dialect, roots: tuple[Path, ...], *, is_known: bool = True) -> None:
        self._dialect = dialect
        self._roots = roots
        self._is_known = is_known

    @classmethod
    def of(cls, dialect: Dialect, env: Mapping[str, str], folder: Path | None = None) -> SessionFolder:
        """Those of `folder`, or of where the harness keeps them."""
        if folder is not None:
            return cls(dialect, (folder,))
        return cls(dialect, default_root(dialect.name, env), is_known=dialect.name in _ROOTS)

    def place(self) -> str:
        """As the port; it says so where there is no such folder."""
        named = " or ".join(map(str, self._roots)) or "any known folder"
        is_there = not self._roots or any(root.is_dir() for root in self._roots)
        return named if is_there else f"{named} (no such folder)"

    def is_here(self, session: str) -> bool:
        """As the port."""
        return not self._is_known or self._find(session) is not None

    def newest(self, since: float, theirs: frozenset[str] = frozenset()) -> str | None:
        """As the port."""
        ours = [one for one in self._sessions() if not any(other.startswith(one[0]) for other in theirs)]
        found = [(_modified(path), at, session) for at, (session, path) in enumerate(ours)]
        modified, _, session = max(found, default=(0.0, 0, ""))
        return session if modified >= since and session else None

    def last_turn(self, session: str) -> list[SessionEvent]:
        """As the port."""
        found = self._find(session)
        if found is None:
            return []
        try:
            return last_turn(map(_uncarried, self._drafts(found[1], found[0])))
        except Exception as error:  # noqa: BLE001 - whatever a harness left there, its session must come back
            log(logging.WARNING, "harness_files", "%s cannot be read", found[1], error=error)
            return []

    def _find(self, session: str) -> tuple[str, Path] | None:
        # Gemini's file names hold the first eight characters of the id alone.
        found = [(name, path) for name, path in self._sessions() if session.startswith(name)]
        return max(found, key=lambda one: (len(one[0]), _modified(one[1])), default=None)

    def _sessions(self) -> list[tuple[str, Path]]:
        """Each session with its file; of a database the newest one last."""
        paths = [path for root in self._roots for path in _files_below(root)]
        if self._dialect.name == _WITH_DATABASE:
            databases = [Path(path) for path in paths if Path(path).match("opencode*.db")]
            return [(name, path) for path in databases for name in reversed(_in_database(path))]
        found = [(files.session, Path(files.path)) for files in self._dialect.layout.sessions(paths)]
        return [one for one in found if one[1].is_file()]  # to open a pipe would wait for ever

    def _drafts(self, path: Path, session: str) -> Iterator[SessionEvent]:
        """What the main agent's file holds; open calls of sub-agents are closed in the log anyway."""
        normalizer = self._dialect.normalizer()
        with open_session(path, [self._dialect], session=session) as opened:
            for sourced in opened.source:
                if isinstance(sourced.piece, Found):
                    with suppress(DialectError):
                        yield from normalizer.feed(sourced.piece.value).drafts
        if isinstance(normalizer, Finishing):
            yield from normalizer.finish().drafts  # its harness is dead


def _uncarried(draft: SessionEvent) -> SessionEvent:
    """A prompt that told a new session of an old one, as the log has it: what the old one did is in the log already."""
    return replace(draft, text=carried_tail(draft.text)) if isinstance(draft, UserMessage) else draft


def _files_below(root: Path) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        yield from [f"{folder}/{name}" for name in names]


def _modified(path: Path) -> float:
    """When it, or the journal of a database, was written last."""
    found = 0.0
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            found = max(found, file.stat().st_mtime)
    return found


def _in_database(path: Path) -> Sequence[str]:
    # By its name, when a database is there: whoever supervises another harness needs no driver.
    try:
        names: Sequence[str] = import_module("incarnate.storage.opencode_database").root_sessions(path)
    except (OSError, IncarnateError) as error:
        log(logging.WARNING, "harness_files", "%s cannot be read: %s", path, error)
        return ()
    return names
