"""Starts `agent.py` in processes of their own and speaks with them by lines."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

AGENT = Path(__file__).with_name("agent.py")


class Child:
    """A process that runs one command of `agent.py`, or of another `program`; killed at the end of its block."""

    def __init__(self, command: str, *arguments: object, under: Sequence[str] = (), program: Path = AGENT) -> None:
        line = [*under, sys.executable, str(program), command, *map(str, arguments)]
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self._rest = b""

    def read(self) -> str:
        """The next line; empty at the end."""
        while b"\n" not in self._rest:
            some = self._stdout.read(65536)
            if not some:
                return ""
            self._rest += some
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def read_all(self) -> list[str]:
        """The lines up to the end."""
        return list(iter(self.read, ""))

    def expect(self, line: str) -> None:
        found = self.read()
        assert line == found

    def go_on(self) -> None:
        self._stdin.write(b"\n")

    def pause(self) -> None:
        """Stop it where it is, until `resume`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def send(self, line: str) -> None:
        self._stdin.write(line.encode() + b"\n")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    def end(self) -> list[str]:
        """Let it end by itself, well; its last lines."""
        self._stdin.close()
        lines = self.read_all()
        code = self._process.wait()
        assert code == 0
        return lines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.kill()
        self._process.wait()
        self._stdin.close()
        self._stdout.close()
