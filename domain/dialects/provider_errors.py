"""The error of a model's provider in the words of a harness: many pass its JSON on as a text."""

from __future__ import annotations

import msgspec

from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.stamped import failure
from incarnate.domain.events import FailedOutcome

__all__ = ["provider_failure"]

_decode = msgspec.json.Decoder().decode


def provider_failure(text: str, kind: str) -> FailedOutcome:
    """The outcome of a turn that failed with `text`: the provider's own kind and words, if they are in it."""
    try:
        told = _decode(text)
    except (msgspec.MsgspecError, RecursionError):
        told = None
    found = told.get("error") if isinstance(told, dict) else None
    if not isinstance(found, dict):
        return failure(kind, text)
    named = optional_text(found, "type", "status", "code")
    return failure(named or kind, optional_text(found, "message") or text)
