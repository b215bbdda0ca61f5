"""The forms of `incarnate export` that people look at: a page, and the picture of a timeline."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from incarnate.cli.errors import Failure, UsageFailure
from incarnate.cli.numbers import whole
from incarnate.cli.options import store_url
from incarnate.storage.locate import open_store
from incarnate.studio.limits import LEAST_WIDTH, MOST_BYTES, MOST_WIDTH, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.exported import Exported

__all__ = ["FORMS", "Look", "look_options", "looked_at"]

F = TypeVar("F", bound="Callable[..., Any]")

FORMS = ("html", "svg")
_MEGABYTE = 1024 * 1024
_LARGEST = 1024
_TAKES = {"html": ("mask", "max_size"), "svg": ("mask", "width")}


class Look(NamedTuple):
    """How a form that people look at is written; None where the command line says nothing."""

    mask: bool | None
    max_size: int | None  # megabytes
    width: int | None

    def check(self, form: str) -> None:
        """Refuse an option that would say nothing.

        Raises:
            UsageFailure: with the option.
        """
        options = {"mask": "--no-mask" if self.mask is False else "--mask", "max_size": "--max-size"}
        for name, value in self._asdict().items():
            if value is not None and name not in _TAKES.get(form, ()):
                takes = " and ".join(f"--format {one}" for one, names in _TAKES.items() if name in names)
                raise UsageFailure(f"--format {form} has no {options.get(name, '--width')}", f"it is for {takes}")


def look_options(command: F) -> F:
    """The options of these forms, as one `look`."""

    @wraps(command)
    def looked(*args: Any, mask: bool | None, max_size: int | None, width: int | None, **options: Any) -> Any:
        return command(*args, look=Look(mask, max_size, width), **options)

    masked = click.option(
        "--mask/--no-mask", default=None, help="html, svg: mask API keys and tokens, which is so unless said otherwise."
    )
    bounded = click.option(
        "--max-size",
        metavar="MB",
        type=whole(1, _LARGEST, unit="MB"),
        help=f"html: cut long texts beyond this size, then refuse; {MOST_BYTES // _MEGABYTE} unless given.",
    )
    wide = click.option(
        "--width", type=whole(LEAST_WIDTH, MOST_WIDTH, unit="pixels"), help=f"svg: pixels; {WIDTH} unless given."
    )
    return masked(bounded(wide(cast("F", looked))))


def looked_at(store: str | None, key: ActivationKey, form: str, look: Look) -> Exported:
    """The file of a session that the store is known to hold.

    Raises:
        PageTooLargeError: no page of the size can hold it.
        LogRewoundError, StoreBusyError, UnavailableError, LogCorruptionError: it could not be read.
    """
    # No other command needs what this loads, which takes a tenth of the time that they start in.
    from incarnate.studio.exported import Exported, export_html, export_svg  # noqa: PLC0415

    mask = look.mask is not False
    with closing(open_store(store_url(store), read_only=True)) as opened:
        if form == "html":
            most = MOST_BYTES if look.max_size is None else look.max_size * _MEGABYTE
            page = export_html(opened, key, time.time_ns() // 1_000_000, mask=mask, most_bytes=most)
        else:
            drawn = export_svg(opened, key, width=look.width or WIDTH, mask=mask)
            page = None if drawn is None else Exported([drawn.encode()], Counter())
    if page is None:  # swept since it was looked for
        raise Failure(f"{store_url(store)} holds no activation {key} any more", "incarnate ls lists what it holds")
    return page
