"""How a harness's session is gone on with."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.dialects.registry import DIALECTS, find_dialect

if TYPE_CHECKING:
    from incarnate.domain.dialects.base import ResumeInvocation

__all__ = ["PROMPT", "Way", "way_of"]

PROMPT = "go on"
"""What a session that is gone on with is asked, unless somebody says otherwise."""


class Way(NamedTuple):
    """What resumes a session."""

    invocation: ResumeInvocation
    command: tuple[str, ...] | None

    @property
    def shell(self) -> str | None:
        """The command as one line; None where only the SDK resumes."""
        return None if self.command is None else shlex.join(self.command)


def way_of(harness: str | None, session_id: str | None, prompt: str = PROMPT) -> Way | None:
    """How `harness` resumes the session, where both are known; None where not."""
    if harness not in DIALECTS or session_id is None:
        return None
    dialect = find_dialect(harness)
    return Way(dialect.resume(session_id), dialect.resume_command(session_id, prompt))
