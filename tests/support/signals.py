"""What comes in at a line of the code, as a signal handler would."""

import linecache
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["at_line"]


@contextmanager
def at_line(folder: str, line: int, act: Callable[[], object]) -> Generator[list[int]]:
    """Do `act` before the `line`-th line that runs in `folder`; the list counts them."""
    seen = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(folder):
            return None
        # CPython handles signals at calls and jumps back alone. Two lines have neither, and no handler covers them:
        # a `with` line, run again between its body and its exit, and a `try:`.
        if event == "line" and not linecache.getline(name, frame.f_lineno).lstrip().startswith(("with ", "try:")):
            seen[0] += 1
            if seen[0] == line:
                sys.settrace(None)
                act()
                sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)
