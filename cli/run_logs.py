"""What `incarnate run` tells on standard error while it runs: lines, JSON lines, or one line of status."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.text import Text

from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from incarnate.domain.keys import ActivationKey
    from incarnate.supervision.knowledge import Known

__all__ = ["LogForm", "logging_to", "status_line"]

LogForm = Literal["text", "json", "none"]

_LOGGER = logging.getLogger("incarnate")

_ABOUT = ("event", "phase", "code", "key")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        told |= {name: getattr(record, name) for name in _ABOUT if hasattr(record, name)}
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told)


@contextmanager
def logging_to(form: LogForm) -> Generator[None]:
    """Log to standard error meanwhile: each fact as JSON, or what a person should know as text."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else logging.Formatter("incarnate: %(message)s"))
    level = _LOGGER.level
    _LOGGER.setLevel(logging.INFO if form == "json" else logging.WARNING)
    if form != "none":
        _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level)


@contextmanager
def status_line(key: ActivationKey, form: LogForm) -> Generator[Callable[[Known, int], object] | None]:
    """What to tell of each change: one line that changes on a terminal that shows no output, else a line each."""
    if form != "text":
        yield None
        return
    if sys.stderr.isatty() and not sys.stdout.isatty():
        console = Console(stderr=True, highlight=False)
        with console.status(Text(f"{key} begins")) as status:
            yield lambda known, offset: status.update(Text(_told(key, known, offset)))
        return
    told = [""]

    def tell(known: Known, offset: int) -> None:
        line = _told(key, known, offset)
        change = f"{known.phase} {known.incarnation}"
        if known.phase in _TELLING and change != told[0]:
            told[0] = change
            sys.stderr.write(f"incarnate: {line}\n")
            sys.stderr.flush()

    yield tell


_TELLING = {"alive", "gone", "level"}


def _told(key: ActivationKey, known: Known, offset: int) -> str:
    words = {
        "alive": "runs",
        "gone": f"ended with status {known.status}",
        "level": "is level",
    }
    what = words.get(known.phase, known.phase)
    restarts = f", {counted(known.restarts, 'restart')}" if known.restarts else ""
    return f"{key} {what}: incarnation {known.incarnation}, {counted(offset, 'event')}{restarts}"
