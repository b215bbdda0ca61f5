"""Options that are a number of seconds."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["SECONDS"]

_A_DAY = 86_400.0  # the kernel's clocks take no infinite time, and whoever waits longer has mistyped


class _Seconds(click.FloatRange):
    """From 0 to a day; click lets what is no number pass, of which nothing is ever over."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


SECONDS = _Seconds(min=0, max=_A_DAY)
