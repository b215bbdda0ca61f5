"""Our standard input, which no harness is given, and our terminal, which any may leave in another mode."""

from __future__ import annotations

import os
import stat
import termios
from contextlib import contextmanager, suppress
from fcntl import ioctl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["INPUT_LEFT", "has_input", "terminal_kept"]

INPUT_LEFT = (
    "what standard input holds is not passed on, since a harness that is started again would lack it: make it a part "
    "of the prompt, or a file that the prompt names"
)
"""Why it is left where it is, and what to do instead."""

_INTEGER_BYTES = 4


def has_input(descriptor: int) -> bool:
    """Whether something stands there to be read: a pipe that holds some, a file that is not at its end."""
    with suppress(OSError):
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return os.lseek(descriptor, 0, os.SEEK_CUR) < status.st_size
        if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
            return any(ioctl(descriptor, termios.FIONREAD, bytes(_INTEGER_BYTES)))
    return False


@contextmanager
def terminal_kept(descriptor: int) -> Generator[None]:
    """Give the terminal the mode again that it had, if a program that was killed left it in another one.

    Not while another job has it, such as an editor or the shell: the mode is theirs.
    """
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError, termios.error):  # it was closed, or is not ours any more
            if os.tcgetpgrp(descriptor) == os.getpgrp() and termios.tcgetattr(descriptor) != before:
                termios.tcsetattr(descriptor, termios.TCSANOW, before)
