"""Arguments and options that are a whole number, refused in words that say which."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["whole"]


class _Whole(click.IntRange):
    """A range of integers: click's own message for anything else is `is not a valid integer range`."""

    name = "N"  # in the help

    def __init__(self, unit: str, least: int, most: int | None) -> None:
        super().__init__(least, most)
        within = f"of at least {least}" if most is None else f"from {least} to {most}"
        self._wanted = f"a whole number {within}" if not unit else f"a whole number of {unit}, {within}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r:.100} is not {self._wanted}.", param, ctx)
        return number


def whole(least: int, most: int | None = None, *, unit: str = "") -> click.IntRange:
    """The type of a whole number from `least` to `most` (None: without end), of `unit` if it has one."""
    return _Whole(unit, least, most)
