"""The commit that a working tree stands at."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from incarnate.cli.errors import Failure

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["git_head"]


def git_head(folder: Path) -> str:
    """The full sha of HEAD in `folder`."""
    command = ["git", "-C", str(folder), "rev-parse", "--verify", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603 - a list, no shell
    except FileNotFoundError:
        raise Failure(
            f"--repo {folder} needs git, which is not installed", "install git, or leave --repo out"
        ) from None
    if answer.returncode:
        reason = answer.stderr.strip().partition("\n")[0]
        raise Failure(
            f"{folder} has no commit to name: {reason}", "name a repository that has a commit, or leave --repo out"
        )
    return answer.stdout.strip()
