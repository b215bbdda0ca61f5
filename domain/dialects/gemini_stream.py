"""What `gemini -o stream-json` prints: one process, one turn, from `init` to `result`.

An answer comes in pieces and has no end mark: the pieces up to the next record that is none are one message. A stream
that the harness tried again says everything again, without a mark: see `_Answer`. Thoughts and their signatures are
not printed at all.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

from msgspec import UNSET

from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_usage import Tokens, usage_draft
from incarnate.domain.dialects.fields import count, optional_text, require
from incarnate.domain.dialects.stamped import OpenTurn, answered, called, failure, prompted, said
from incarnate.domain.events import SessionEvent, TurnOutcome

__all__ = ["NAME", "STREAM_KINDS", "GeminiStream"]

NAME = "gemini-cli"

STREAM_KINDS = frozenset({"init", "message", "tool_use", "tool_result", "error", "result"})

_PAUSE_S = 0.5
"""The shortest pause before a stream that is tried again; 1.1 s was measured, pieces come 10 ms apart."""

_OUTCOMES: dict[str, TurnOutcome] = {"FatalTurnLimitedError": "step_limit", "FatalCancellationError": "interrupted"}


class GeminiStream:
    """The records of processes, one after the other."""

    def __init__(self) -> None:
        self._turn = OpenTurn()
        self._answer = _Answer()
        self._model: str | None = None

    def feed(self, kind: str, record: dict[str, Any]) -> Normalized:
        """What a record of this kind means.

        Raises:
            DialectError: it lacks what its kind must have.
        """
        stamp = Stamp(UNSET, optional_text(record, "timestamp") or UNSET)
        match kind:
            case "init":
                self._model = optional_text(record, "model")
                return Normalized((*self._said(), *self._turn.begin(stamp)))
            case "message":
                return self._message(record, stamp)
            case "tool_use":
                call_id, name = require(NAME, record, "tool_id"), require(NAME, record, "tool_name")
                return Normalized((*self._said(), called(call_id, name, record.get("parameters"), stamp)))
            case "tool_result":
                result = _result(record, stamp)
                return Normalized((*self._said(), result))
            case "result":
                ended = self._turn.end(_outcome(record), stamp)
                return Normalized((*self._said(), *_usage(record, self._model, stamp), *ended), None)
            case _:
                return Normalized((), f"error/{record.get('severity')}")

    def finish(self) -> Normalized:
        """The part of an answer that came."""
        return Normalized(tuple(self._said()))

    def _message(self, record: dict[str, Any], stamp: Stamp) -> Normalized:
        role, text = require(NAME, record, "role"), require(NAME, record, "content")
        if role == "user":
            begun = [] if self._turn.is_open else self._turn.begin(stamp)
            return Normalized((*self._said(), *begun, prompted(text, stamp)))
        if record.get("delta") is True:
            self._answer.add(text, stamp)
            return Normalized(())
        whole = [said(text, stamp)] if text else []
        return Normalized((*self._said(), *whole), None if text else "message/empty")

    def _said(self) -> list[SessionEvent]:
        answer, self._answer = self._answer, _Answer()
        return answer.drafts()


class _Answer:
    """An answer in pieces.

    What is said after a pause and begins with all that was said before it is the same answer, tried again: only what
    was said last stands.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[str, Stamp]] = []

    def add(self, text: str, stamp: Stamp) -> None:
        """Another piece."""
        self._pieces.append((text, stamp))

    def drafts(self) -> list[SessionEvent]:
        """The message; nothing where nothing was said."""
        text = self._text()
        return [said(text, self._pieces[0][1])] if text else []

    def _text(self) -> str:
        runs, text = self._runs(), ""
        for at, run in enumerate(runs):
            if text.strip() and (run.startswith(text) or text.startswith(run)):
                rest = "".join(runs[at:])
                if text.startswith(rest):
                    return text  # the second try was cut earlier than the first
                if rest.startswith(text):
                    text = ""
            text += run
        return text

    def _runs(self) -> list[str]:
        """The text between one pause and the next."""
        runs = [self._pieces[0][0]] if self._pieces else []
        for (_, before), (text, stamp) in pairwise(self._pieces):
            if _seconds(before, stamp) >= _PAUSE_S:
                runs.append(text)
            else:
                runs[-1] += text
        return runs


def _seconds(before: Stamp, after: Stamp) -> float:
    try:
        first, second = [datetime.fromisoformat(str(stamp.occurred_at)) for stamp in (before, after)]
        return (second - first).total_seconds()
    except (ValueError, TypeError):  # no time, or only one of them names its zone
        return 0.0


def _result(record: dict[str, Any], stamp: Stamp) -> SessionEvent:
    """A result; a cancelled one says success, and one that is shown as a picture or a diff has no output."""
    error = record.get("error")
    reason = optional_text(error, "message") if isinstance(error, dict) else None
    output = record.get("output")
    result = reason if output is None else output
    return answered(require(NAME, record, "tool_id"), result, stamp, ok=record.get("status") != "error", error=reason)


def _usage(record: dict[str, Any], model: str | None, stamp: Stamp) -> list[SessionEvent]:
    """The tokens of the process, by model: a process is a turn, so these are no running totals."""
    stats = record.get("stats")
    if not isinstance(stats, dict):
        return []
    models = stats.get("models")
    by_model: dict[str | None, object] = {**models} if isinstance(models, dict) and models else {model: stats}
    counted = [(name, _tokens(found)) for name, found in by_model.items() if isinstance(found, dict)]
    return [usage_draft(tokens, name, stamp) for name, tokens in counted if tokens.total]


def _tokens(stats: dict[str, Any]) -> Tokens:
    """The input counts the cache's; the total also counts thoughts, which no field names."""
    total, prompt = count(stats.get("total_tokens")), count(stats.get("input_tokens"))
    output, cached = count(stats.get("output_tokens")), count(stats.get("cached"))
    thoughts = max(0, total - prompt - output)
    return Tokens(max(0, prompt - cached), output, cached, 0, thoughts)


def _outcome(record: dict[str, Any]) -> TurnOutcome:
    if record.get("status") == "success":
        return "completed"
    error = record.get("error")
    detail = error if isinstance(error, dict) else {}
    kind = optional_text(detail, "type") or "error"
    return _OUTCOMES.get(kind) or failure(kind, optional_text(detail, "message") or str(record.get("status")))
