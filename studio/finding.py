"""Where in a log a text stands, or events of a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.codec import encode_appended
from incarnate.domain.events import Opaque
from incarnate.studio.masking import mask_json
from incarnate.studio.problems import Problem

if TYPE_CHECKING:
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.archive import Archive
    from incarnate.studio.requests import Parameters

__all__ = ["find"]


def find(archive: Archive, key: ActivationKey, parameters: Parameters) -> dict[str, Any]:
    raise Problem(404, "unknown-address", "not yet")
