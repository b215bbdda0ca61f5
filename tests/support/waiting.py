"""Waiting for what another thread, process or server does in its own time."""

import threading
import time
from collections.abc import Callable


def soon(happened: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether it has happened within that time."""
    until, pause = time.monotonic() + seconds, threading.Event()
    while not happened():
        if time.monotonic() >= until:
            return False
        pause.wait(0.002)
    return True
