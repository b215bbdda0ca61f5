"""What every error of incarnate is; the tree of them is drawn in `incarnate.domain.errors`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["IncarnateError"]


class IncarnateError(Exception):
    """Something that incarnate refuses, cannot do, or cannot know.

    `hint` is the next step, in words that the command line prints after `Try:`, and so does a traceback.
    """

    hint: str = ""

    @cached_property
    def __notes__(self) -> list[str]:  # type: ignore[override] # it may be set and added to, as any exception's
        # What a traceback prints below the message. Made when it is asked for: most errors are caught, not printed.
        return [f"Try: {self.hint}"] if self.hint else []

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        # Errors cross threads and processes; most take keyword arguments, which the default cannot rebuild.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(cls: type[IncarnateError], args: tuple[Any, ...]) -> IncarnateError:
    error = cls.__new__(cls)
    error.args = args
    return error
