"""A system's metrics, put together from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.actors.metrics import Histogram, Metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.actors.directory import ActivationRef, Directory
    from incarnate.actors.view import View

__all__ = ["measure"]


def measure(directory: Directory, views: Sequence[View[Any]]) -> Metrics:
    """See `Metrics`. Costs a step for each live actor."""
    activations = directory.live()
    actors: list[ActivationRef | View[Any]] = [*activations, *views]
    queued = [actor.queued for actor in actors]
    meter = directory.services.meters.total()
    return Metrics(
        live_activations=len(activations),
        live_views=sum(view.is_live for view in views),
        queued=sum(queued),
        longest_queue=max(queued, default=0),
        turned_away=directory.messages_refused,
        started=directory.activations_started,
        passivated=directory.passivated,
        failures=dict(directory.failures),
        backing_off=sum(actor.backs_off for actor in actors),
        commits=meter.commits,
        events=meter.events,
        rewinds=meter.rewinds,
        refused=meter.refused,
        fenced=meter.fenced,
        busy=meter.busy,
        unknown=meter.unknown,
        write_seconds=Histogram(tuple(meter.latencies), 1e-6),
        group_sizes=Histogram(tuple(directory.services.store.group_sizes())),
    )
