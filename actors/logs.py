"""What the actors log, all under the one logger `incarnate`.

Each record carries `event`, a fixed word, and what it is about as further attributes, so that a handler can filter
and count without reading the message.
"""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["log"]

_LOGGER = logging.getLogger("incarnate")


def log(level: int, event: str, message: str, *args: object, error: BaseException | None = None, **about: Any) -> None:
    """Log `message % args` with `event` and `about` as attributes of the record, and the traceback of `error`.

    A handler that fails must not take the actor down that had something to say, so whatever it raises is dropped.
    """
    if _LOGGER.isEnabledFor(level):
        try:
            _LOGGER.log(level, message, *args, exc_info=error, extra={"event": event, **about}, stacklevel=2)
        except KeyboardInterrupt:
            raise  # it is the process's
        except BaseException:  # noqa: BLE001 - logging has told it on the standard error if it could
            return
