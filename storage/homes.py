"""The home folder of whoever runs us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["home_folder"]


def home_folder(env: Mapping[str, str]) -> Path:
    """The one that `HOME` of `env` names, or that the system knows.

    `/` of a user that the system does not know either, as containers have it that are started under a bare number.
    """
    try:
        return Path(env.get("HOME") or Path.home())
    except RuntimeError:
        return Path("/")
