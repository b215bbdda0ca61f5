"""What the sentences of the contract stand on: the store under test, its capabilities, and the table of both."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import pytest

from incarnate.storage.contract.log import Log
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Capability", "Contract", "Open", "needs"]

Open = Callable[[], Store]
"""Each call is one more opening of the same store."""

P = ParamSpec("P")
R = TypeVar("R")

_VECTORS = "vectors"


class Capability(StrEnum):
    """What a store may lack and still be of use; a test class names what its store lacks in `lacks`."""

    DURABLE = "durable"
    """A store that was closed and is opened again holds what it had acknowledged."""
    SHARED = "shared"
    """Several openings at once are one store: each decides on what the others have left."""
    PROCESSES = "processes"
    """So are openings in several processes, and the death of one of them loses nothing. Needs `store_url`."""
    ARCHIVES = "archives"
    """What a rewind superseded is listed and read."""
    FORKS = "forks"
    """`fork` makes a new activation from a prefix."""
    RETIREMENT = "retirement"
    """A change that retires closes the log for ever."""
    SWEEPS = "sweeps"
    """`sweep` removes what is old, `vacuum` gives its room back."""
    READ_ONLY = "read-only"
    """There is a read-only opening, which refuses every write. Needs `store_url` or `open_read_only`."""


def needs(*capabilities: Capability) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A sentence for stores with all of these capabilities; when it fails it says how a store is exempted from it."""

    def mark(sentence: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(sentence)
        def told(*args: P.args, **kwargs: P.kwargs) -> R:
            __tracebackhide__ = True
            try:
                return sentence(*args, **kwargs)
            except BaseException as failure:
                flags = "".join(f'"{one}", ' for one in capabilities)[:-1]
                failure.add_note(f"A store that is not meant to do this is exempted by: lacks = ({flags})")
                raise

        vars(told)["needed"] = frozenset(capabilities)
        return told

    return mark


class Contract:
    """The store under test; `StoreContract` says how it is named, and how one uses this."""

    lacks: ClassVar[Collection[str]] = ()
    """The capabilities that the store does not have (`Capability`); their sentences are not collected."""

    vectors: ClassVar[Path | None] = None
    """The folder of recorded vectors, if its log traces are to be replayed."""

    exempted: ClassVar[dict[str, Any]] = {}
    """The sentences that are not collected, by name."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        lacking = {cls.lacks} if isinstance(cls.lacks, str) else set(cls.lacks)
        unknown = sorted(lacking - set(Capability))
        if unknown:
            raise TypeError(
                f"{cls.__name__} lacks {', '.join(map(repr, unknown))}: the capabilities are {', '.join(Capability)}"
            )
        if cls.vectors is None:
            lacking.add(_VECTORS)
        known = {name: getattr(cls, name) for name in dir(cls) if name.startswith("test_")}
        for base in cls.__mro__[1:]:
            known |= vars(base).get("exempted", {})
        cls.exempted = {name: test for name, test in known.items() if lacking & getattr(test, "needed", frozenset())}
        for name, test in known.items():
            if name in cls.exempted:
                setattr(cls, name, None)  # pytest collects what can be called
            elif getattr(cls, name) is None:
                setattr(cls, name, test)  # exempted in the class above, which lacks more

    def store_url(self, folder: Path) -> str:
        """The URL of a store in `folder`: the same store for the same folder."""
        raise NotImplementedError(
            f"{type(self).__name__} needs store_url, or open_store and a `lacks` that names what needs a URL"
        )

    def open_store(self, folder: Path) -> Store:
        """One more opening of the store in `folder`."""
        return open_store(self.store_url(folder))

    def open_read_only(self, folder: Path) -> Store:
        """An opening of the store in `folder` that refuses to write."""
        return open_store(self.store_url(folder), read_only=True)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """The store, fresh."""
        with self.open_store(tmp_path) as store:
            yield store

    @pytest.fixture
    def log(self, store: Store) -> Log:
        """One activation of it."""
        return Log(store)

    @pytest.fixture
    def open_again(self, tmp_path: Path) -> Iterator[Open]:
        """Each call opens the same store; all are closed in the end, which twice is no error."""
        with ExitStack() as stack:
            yield lambda: stack.enter_context(self.open_store(tmp_path))

    @pytest.fixture(autouse=True)
    def _listed(self, request: pytest.FixtureRequest) -> None:
        plugins = request.config.pluginmanager
        table = plugins.get_plugin(_Table.name) or _Table()
        if not table.rows:
            plugins.register(table, _Table.name)
        table.rows.setdefault(f"{type(self).__module__}.{type(self).__qualname__}", type(self))


class _Table:
    """Prints what each store was held to, below the tests."""

    name = "incarnate-store-contract"

    def __init__(self) -> None:
        self.rows: dict[str, type[Contract]] = {}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        columns = [*Capability, _VECTORS]
        width = max(len(row.__qualname__) for row in self.rows.values())
        terminalreporter.write_sep("=", "incarnate store contract")
        terminalreporter.write_line(f"{'':{width}}  {'  '.join(columns)}  sentences")
        for row in self.rows.values():
            lacking = {*row.lacks} if row.vectors is not None else {*row.lacks, _VECTORS}
            marks = "  ".join(f"{'-' if name in lacking else 'yes':{len(name)}}" for name in columns)
            sentences = sum(name.startswith("test_") and callable(getattr(row, name)) for name in dir(row))
            told = f"{sentences}, {len(row.exempted)} exempted" if row.exempted else f"{sentences}"
            terminalreporter.write_line(f"{row.__qualname__:{width}}  {marks}  {told}")
