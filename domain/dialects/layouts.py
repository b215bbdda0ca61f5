"""Where a harness keeps its sessions: which files of a folder are sessions, and which belong to their sub-agents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FILES_OF_ONE", "AgentFile", "Layout", "SessionFiles"]


class AgentFile(NamedTuple):
    """The file of a sub-agent, and its name there."""

    path: str
    agent: str


class SessionFiles(NamedTuple):
    """The files of one session: its own, those of the sub-agents that it started, and further ones of its own."""

    session: str
    path: str
    agents: tuple[AgentFile, ...] = ()
    more: tuple[str, ...] = ()


class Layout(NamedTuple):
    """Regular expressions over whole paths with `/`, found anywhere in them.

    Both have a group `session`; `agents` also has a group `agent`. A sub-agent's file belongs to the session of the
    same name, or to the one whose name is a part of it: some harnesses shorten it in one of the two places.
    `in_parts` where files of one folder that tell the same session are parts of it.
    """

    main: str
    agents: str | None = None
    in_parts: bool = False

    def session_of(self, path: str) -> str | None:
        """The session that the name of a file tells; None where it tells none, or every name would do."""
        found = None if self.main == FILES_OF_ONE.main else re.search(self.main, path)
        return None if found is None else found["session"]

    def sessions(self, paths: Iterable[str]) -> list[SessionFiles]:
        """The sessions among the files of a folder, by path; what is neither a session nor a sub-agent is left out."""
        mains: dict[str, tuple[str, list[str]]] = {}
        firsts: dict[tuple[str, str], str] = {}
        agents: list[tuple[str, AgentFile]] = []
        for path in sorted(paths):
            helper = re.search(self.agents, path) if self.agents is not None else None
            found = re.search(self.main, path)
            if helper is not None:
                agents.append((helper["session"], AgentFile(path, helper["agent"])))
            elif found is not None:
                own = (path.rpartition("/")[0], found["session"]) if self.in_parts else (path, "")
                first = firsts.setdefault(own, path)
                mains.setdefault(first, (found["session"], []))[1].append(path)
        return [
            SessionFiles(session, path, tuple([file for owner, file in agents if session in owner]), tuple(parts[1:]))
            for path, (session, parts) in mains.items()
        ]


FILES_OF_ONE = Layout(main=r"/(?P<session>[^/]+)\.jsonl?$")
"""Each file is a session."""
