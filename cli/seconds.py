"""Options that are a number of seconds."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import click

__all__ = ["SECONDS"]

_A_DAY = 86_400.0  # the kernel's clocks take no infinite time, and whoever waits longer has mistyped


class _Seconds(click.FloatRange):
    """From 0 to a day; click lets NaN pass, of which nothing is ever over."""

    name = "SECONDS"  # in the help

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = math.nan
        with suppress(click.BadParameter):  # of a text it says "is not a valid float range"
            seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r:.100} is no number of seconds from 0 to {_A_DAY:.0f}, which is a day.", param, ctx)
        return seconds


SECONDS = _Seconds(min=0, max=_A_DAY)
