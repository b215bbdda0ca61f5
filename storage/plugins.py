"""The table of URL schemes: ours, those registered in this process, and those of installed distributions."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Protocol

from incarnate.domain.errors import IncarnateError, StoreServerError, StoreUrlError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Self

    from incarnate.storage.port import Store

__all__ = [
    "GROUP",
    "Registration",
    "StoreFactory",
    "factory_of",
    "known_schemes",
    "register_store",
    "without_password",
]

GROUP = "incarnate.stores"
"""The entry point group of distributions that bring a back end: the name is the scheme, the value a factory."""

_SCHEME = re.compile(r"[a-z][a-z0-9.+-]*", re.ASCII)


class StoreFactory(Protocol):
    """Opens the store that a URL names."""

    def __call__(self, url: str, *, read_only: bool) -> Store:
        """The store; `url` is whole, with its scheme.

        Raises:
            StoreUrlError: it names no store.
            StoreFileError, StoreServerError, StoreBusyError, MissingExtraError: it cannot be opened. Whatever else
                the factory of a distribution raises is told as a `StoreServerError` that names the distribution.
        """
        ...


class Registration:
    """One row of the table; `undo` takes it out again, and so does the end of a `with` block."""

    def __init__(self, scheme: str, factory: StoreFactory) -> None:
        self.scheme = scheme
        self.factory = factory

    def undo(self) -> None:
        """Let the scheme mean what it meant before; twice is no error."""
        with _lock:
            _table[self.scheme] = [row for row in _table.get(self.scheme, ()) if row is not self]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.undo()


_lock = threading.Lock()
_table: dict[str, list[Registration]] = {}


def register_store(scheme: str, factory: StoreFactory) -> Registration:
    """From now on, `scheme://...` is opened by `factory(url, read_only=...)`, in this process.

    The later registration of a scheme wins, ours included: a test swaps the store below any code that opens one by URL.

    ```python
    with register_store("sqlite", lambda url, read_only: faulty):
        ...
    ```

    Raises:
        StoreUrlError: `scheme` cannot begin a URL.
    """
    if not _SCHEME.fullmatch(scheme):
        raise StoreUrlError(
            f"{scheme!r} is no scheme of a URL", hint="use lower-case letters, digits, dots, dashes and +"
        )
    row = Registration(scheme, factory)
    with _lock:
        _table.setdefault(scheme, []).append(row)
    return row


def factory_of(scheme: str) -> StoreFactory | None:
    """Who opens `scheme://`: the latest registration, else the distribution that brings it; None for nobody.

    Raises:
        StoreUrlError: the distribution cannot be loaded, or there are two.
    """
    rows = _table.get(scheme)
    if rows:
        return rows[-1].factory
    found = [point for point in _points() if point.name == scheme]
    if not found:
        return None
    if len({point.value for point in found}) > 1:
        raise StoreUrlError(
            f"{scheme}:// is brought by {' and by '.join(map(_distribution, found))}",
            hint=f"uninstall one of them, or choose with register_store({scheme!r}, ...)",
        )
    return _load(found[0])


def known_schemes() -> list[str]:
    """Every scheme that means something here: ours and those registered first."""
    return list(dict.fromkeys([*(scheme for scheme, rows in _table.items() if rows), *(p.name for p in _points())]))


def _points() -> list[EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - 20 ms that none of our own schemes needs

    return list(entry_points(group=GROUP))


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def without_password(text: str) -> str:
    """`text`, a URL or a message with one in it, for whoever reads it."""
    return re.sub(r"(?<=://)([^:@/?]*):.*@", r"\1:...@", text)


class _Brought:
    """The factory of a distribution: who calls it by a URL alone knows neither it nor what its errors mean."""

    def __init__(self, distribution: str, factory: StoreFactory) -> None:
        self._distribution = distribution
        self._factory = factory

    def __call__(self, url: str, *, read_only: bool) -> Store:
        try:
            return self._factory(url, read_only=read_only)
        except IncarnateError:
            raise
        except Exception as error:
            name = self._distribution
            raise StoreServerError(
                without_password(url),
                f"{name} could not open it: {type(error).__name__}: {without_password(str(error))}",
                hint=f"check the URL and what it names; where they are sound, tell the authors of {name}",
            ) from error


def _load(point: EntryPoint) -> StoreFactory:
    try:
        factory: StoreFactory = point.load()
    except Exception as error:
        raise StoreUrlError(
            f"{point.name}:// is brought by {_distribution(point)}, whose {point.value} cannot be loaded: "
            f"{type(error).__name__}: {error}",
            hint=f"reinstall {_distribution(point)}, or tell its authors",
        ) from error
    return _Brought(_distribution(point), factory)
