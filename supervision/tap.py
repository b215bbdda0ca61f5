"""A harness that runs, with the two tasks beside it: one reads and passes on, one records."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from incarnate.actors.logs import log
from incarnate.domain.errors import IncarnateError, StaleIncarnationError
from incarnate.supervision.knowledge import Exited, Fenced, OutputRecorded, RecordingFailed
from incarnate.supervision.recorder import Output

if TYPE_CHECKING:
    from incarnate.actors.ingest_report import IngestReport
    from incarnate.actors.runtime import Runtime
    from incarnate.supervision.edge import Running
    from incarnate.supervision.knowledge import Fact
    from incarnate.supervision.recorder import Recorder

__all__ = ["PassOn", "Tap"]

PassOn = Callable[[bytes | memoryview], int | None]
"""Is given what the harness printed, and answers how many of the bytes it took, within a moment; None for all."""

_LOOK_SECONDS = 0.5  # how often a silent harness is asked whether it lives: its end wakes the reader at once anyway
_MOST_KINDS = 20  # a fact is a line of a log: a report may hold a thousand kinds
_HELD_SECONDS = 0.05  # between looks at an output that others hold open after the harness's own process has ended


class Tap:
    """Reads what `running` prints: passed on byte for byte at once, recorded as fast as the store takes it.

    Passing on never waits for the store until 8 MiB wait to be recorded. Recording never waits for whoever reads what
    is passed on; the harness does, as it would without us.
    """

    def __init__(
        self,
        runtime: Runtime,
        running: Running,
        recorder: Recorder,
        *,
        pass_on: PassOn,
        tell: Callable[[Fact], object],
    ) -> None:
        self.running = running
        self.recorder = recorder
        self._runtime = runtime
        self._pass_on: PassOn | None = pass_on
        self._patience = math.inf  # how many seconds whoever reads what is passed on may take nothing
        self._tell = tell
        self._output = Output(runtime)
        self._pause = runtime.event()
        self._has_exited = False
        self._tasks = [
            runtime.spawn(self._read, "incarnate-read"),
            runtime.spawn(self._record, "incarnate-record"),
        ]

    def hurry(self, seconds: float) -> None:
        """Pass on no more once nothing of it was taken for so long."""
        self._patience = seconds

    def give_up(self) -> None:
        """Record no more, and pass on what is taken at once."""
        self.hurry(0.0)
        self._output.give_up()

    def join(self) -> None:
        """Wait for both tasks; the harness must be at its end."""
        for task in self._tasks:
            task.join()

    def _read(self) -> None:
        try:
            while (chunk := self.running.read(_LOOK_SECONDS)) != b"":
                if chunk is not None:
                    self._take(chunk)
                elif self._look():
                    self._pause.wait(_HELD_SECONDS)
            while not self._look():
                self._pause.wait(_HELD_SECONDS)
        except Exception as error:  # noqa: BLE001 - told as a fact: the supervisor must hear of it
            log(logging.ERROR, "harness_failed", "the output of the harness cannot be read", error=error)
            self._tell(RecordingFailed(f"its output cannot be read: {error}"))
        finally:
            self._output.end()

    def _take(self, chunk: bytes) -> None:
        taken = self._pass(chunk)
        self._output.put(chunk)
        since = self._runtime.monotonic()
        while taken < len(chunk):
            some = self._pass(memoryview(chunk)[taken:])
            now = self._runtime.monotonic()
            since = now if some else since
            taken += some
            if not some and now - since >= self._patience:
                log(logging.WARNING, "harness_failed", "the output is not passed on any more: nobody reads it")
                self._pass_on = None
                return
            self._look()  # its end is told whoever reads

    def _pass(self, chunk: bytes | memoryview) -> int:
        """How much of it was taken: all of it where nobody wants it."""
        if self._pass_on is not None:
            try:
                taken = self._pass_on(chunk)
            except (OSError, ValueError) as error:
                # Whoever read our output has gone. The session goes on: it is what we are here for.
                log(logging.WARNING, "harness_failed", "the output is not passed on any more: %s", error)
                self._pass_on = None
            else:
                return len(chunk) if taken is None else taken
        return len(chunk)

    def _look(self) -> bool:
        """Whether the harness's own process has ended; its end is told once."""
        if self._has_exited:
            return True
        status = self.running.poll()
        if status is None:
            return False
        self._has_exited = True
        self._tell(Exited(status, self._runtime.monotonic()))
        return True

    def _record(self) -> None:
        fact: Fact
        try:
            self.recorder.run(self._output)
            fact = _recorded(self.recorder.report)
        except StaleIncarnationError as error:
            fact = Fenced(error.incarnation, error.current)
        except IncarnateError as error:
            fact = RecordingFailed(f"its output cannot be recorded: {error}")
        except Exception as error:  # noqa: BLE001 - told as a fact: the supervisor must hear of it
            log(logging.ERROR, "harness_failed", "the output of the harness cannot be recorded", error=error)
            fact = RecordingFailed(f"its output cannot be recorded: {error!r}")
        self._output.give_up()
        self._tell(fact)


def _recorded(report: IngestReport) -> OutputRecorded:
    ignored = sorted(report.ignored.items(), key=lambda kind: -kind[1])[:_MOST_KINDS]
    unread = report.lines if report.barren else 0
    return OutputRecorded(report.appended, unread, report.refused, tuple(ignored))
