"""A log in the forms that others read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from incarnate.domain.codec import encode_appended, encode_json
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.renderings.anthropic import to_anthropic
from incarnate.domain.renderings.openai_chat import to_openai_chat
from incarnate.domain.transcripts.rows import encode_row
from incarnate.domain.transcripts.translation import left_out, to_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from incarnate.actors.system import SessionSystem
    from incarnate.domain.keys import ActivationKey

__all__ = ["Export", "ExportFormat", "export"]

ExportFormat = Literal["transcript", "canonical", "openai", "anthropic"]


class Export(NamedTuple):
    """An export on its way.

    Attributes:
        lines: JSON, one document a line.
        left_out: what the form has no place for, counted by kind; complete when the lines are at their end.
    """

    lines: Iterator[bytes]
    left_out: Counter[str]


def export(system: SessionSystem, key: ActivationKey, form: ExportFormat) -> Export:
    """The log of `key` as `form`.

    `transcript` and `canonical` are a line an event, in bounded memory; `openai` (the `messages` of a chat completion)
    and `anthropic` (`system` and `messages` of a request) are one line, the model's history balanced `valid`.

    Raises:
        LogRewoundError: from the lines, when a rewind cut below what they already gave.
    """
    counts: Counter[str] = Counter()
    if form == "transcript":
        return Export(_rows(system, key, counts), counts)
    if form == "canonical":
        return Export(map(encode_appended, system.replay(key)), counts)
    history = system.view(key, ModelHistory()).get()
    request = to_openai_chat(history) if form == "openai" else to_anthropic(history)
    return Export(iter((encode_json(request),)), counts)


def _rows(system: SessionSystem, key: ActivationKey, counts: Counter[str]) -> Iterator[bytes]:
    for appended in system.replay(key):
        row, kind = to_row(appended.event), left_out(appended.event)
        if kind is not None:
            counts[kind] += 1
        if row is not None:
            yield encode_row(row)
