"""Durable, fenced, event-sourced session logs for AI agents."""

from incarnate.domain.checkpoints import Checkpoint, EffectEntry, Seed
from incarnate.domain.events import AppendedEvent

__all__ = [
    "AppendedEvent",
    "Checkpoint",
    "EffectEntry",
    "Seed",
]
