"""What a system counts of itself.

Each thread counts in a `Meter` of its own, so that counting takes no lock and loses nothing; `Meters` adds them up.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

import msgspec

from incarnate.domain.errors import OutcomeUnknownError, StaleIncarnationError, StoreBusyError

if TYPE_CHECKING:
    from incarnate.domain.decisions import Decision

__all__ = ["Histogram", "Meter", "Meters", "Metrics"]

_BUCKETS = 40
_FOLD_AFTER = 64
"""Threads come and go in some programs: the meters of those that went are added up and let go of."""


class Histogram(msgspec.Struct, frozen=True):
    """How often which values came, by powers of two: `counts[i]` were below `2**i` units and not below half of it.

    `unit` is what a value of 1 stands for: microseconds of a latency in seconds (1e-6), or 1 for a size.
    """

    counts: tuple[int, ...]
    unit: float = 1.0

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """A bound that at least `share` (0 to 1) of the values do not exceed, at most twice too high; 0 without any."""
        wanted = share * self.count
        seen = 0
        for power, count in enumerate(self.counts):
            seen += count
            if count and seen >= wanted:
                return self.unit * 2.0**power
        return 0.0


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """A system at one moment, and what it has done since it was opened.

    Attributes:
        live_activations: activation actors now; at most `max_live`, but for those that are busy.
        live_views: projector actors now.
        queued: messages in the inboxes of all of them; `longest_queue` in the longest one.
        turned_away: messages that were refused because as many as may wait did so.
        started: activation actors started, of which `passivated` were put to rest again as the least recently used.
        failures: actors that failed and were replaced, by the first words of what they call themselves.
        backing_off: actors that are refused to start for a while, because they failed again and again.
        commits: writes that changed a log; `events` what they appended, `rewinds` how many of them rewound.
        refused: writes that a log refused, of which `fenced` came from a stale incarnation.
        busy: writes given up because the store was busy; `unknown`: writes whose outcome the store could not tell.
        write_seconds: from a write's start to its answer.
        group_sizes: how many writes went into one transaction of the store; empty where each is alone.
    """

    live_activations: int
    live_views: int
    queued: int
    longest_queue: int
    turned_away: int
    started: int
    passivated: int
    failures: dict[str, int]
    backing_off: int
    commits: int
    events: int
    rewinds: int
    refused: int
    fenced: int
    busy: int
    unknown: int
    write_seconds: Histogram
    group_sizes: Histogram


class Meter:
    """What one thread counted."""

    __slots__ = ("__weakref__", "busy", "commits", "events", "fenced", "latencies", "refused", "rewinds", "unknown")

    def __init__(self) -> None:
        self.commits = self.events = self.rewinds = self.refused = self.fenced = self.busy = self.unknown = 0
        self.latencies = [0] * _BUCKETS

    def answered(self, decision: Decision, seconds: float) -> None:
        """A write was answered so, after so long."""
        self._took(seconds)
        change, error = decision.change, decision.error
        if change is not None:
            self.commits += 1
            self.events += len(change.events)
            if change.cut is not None:
                self.rewinds += 1
        if error is not None:
            self.refused += 1
            if isinstance(error, StaleIncarnationError):
                self.fenced += 1

    def failed(self, error: BaseException, seconds: float) -> None:
        """A store failed at a write, after so long."""
        self._took(seconds)
        if isinstance(error, StoreBusyError):
            self.busy += 1
        elif isinstance(error, OutcomeUnknownError):
            self.unknown += 1

    def _took(self, seconds: float) -> None:
        self.latencies[min(int(seconds * 1e6).bit_length(), _BUCKETS - 1)] += 1

    def add(self, other: Meter) -> None:
        """Count what `other` counted too."""
        for name in ("commits", "events", "rewinds", "refused", "fenced", "busy", "unknown"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latencies = [mine + theirs for mine, theirs in zip(self.latencies, other.latencies, strict=True)]


class Meters:
    """The meters of all threads that wrote in one system."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._lock = threading.RLock()  # a signal handler may come in while it is held
        self._threads: list[tuple[weakref.ref[threading.Thread], Meter]] = []
        self._gone = Meter()

    def mine(self) -> Meter:
        """The running thread's own."""
        try:
            meter: Meter = self._local.meter
        except AttributeError:
            meter = self._local.meter = Meter()
            with self._lock:
                self._threads.append((weakref.ref(threading.current_thread()), meter))
                if len(self._threads) % _FOLD_AFTER == 0:
                    self._fold()
        return meter

    def total(self) -> Meter:
        """All of them as one."""
        total = Meter()
        with self._lock:
            self._fold()
            for meter in (self._gone, *(meter for _, meter in self._threads)):
                total.add(meter)
        return total

    def _fold(self) -> None:
        living = []
        for thread, meter in self._threads:
            alive = thread()
            if alive is not None and alive.is_alive():
                living.append((thread, meter))
            else:
                self._gone.add(meter)
        self._threads = living
