"""Texts of which only some are known: an option's choices, and what was meant by one that is none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["nearest", "one_of"]


def nearest(text: str, known: Iterable[str]) -> str | None:
    """Which of `known` was most likely meant; None where none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - as click: what starts well has no need of it

    folded = {name.casefold(): name for name in known}
    begun = [name for name in folded if text and name.startswith(text.casefold())]
    found = begun if len(begun) == 1 else get_close_matches(text.casefold(), folded, n=1)
    return folded[found[0]] if found else None


class _OneOf(click.Choice[str]):
    """Click asks what was meant by a wrong command or option, and not by a wrong choice."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        told = super().get_invalid_choice_message(value, ctx)
        meant = nearest(str(value), self.choices)
        return told if meant is None else f"{told} Did you mean {meant!r}?"


def one_of(names: Iterable[str]) -> click.Choice[str]:
    """The type of an option that takes one of `names`."""
    return _OneOf(tuple(names))
