"""Closed stores and read-only ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from incarnate.domain.errors import ClosedError, ReadOnlyError
from incarnate.storage.contract.harness import Capability, Contract, needs
from incarnate.storage.contract.log import KEY, OTHER, Log
from incarnate.storage.port import Store

__all__ = ["Closing"]

USES: dict[str, Callable[[Log], object]] = {
    "transact": Log.claim,
    "snapshot": lambda log: log.head,
    "head": lambda log: log.store.head(KEY),
    "activations": lambda log: list(log.store.activations()),
}


class Closing(Contract):
    """A closed store says so, a read-only one refuses to write."""

    def test_closing_twice_is_no_error(self, store: Store) -> None:
        store.close()
        store.close()

    @pytest.mark.parametrize("use", USES.values(), ids=USES)
    def test_a_closed_store_says_so(self, log: Log, use: Callable[[Log], object]) -> None:
        log.claim()
        log.head  # noqa: B018 - leaves an idle reader behind
        log.store.close()

        with pytest.raises(ClosedError):
            use(log)

    @needs(Capability.READ_ONLY)
    def test_a_read_only_store_refuses_to_write(self, tmp_path: Path) -> None:
        self.open_store(tmp_path).close()

        with self.open_read_only(tmp_path) as reader, pytest.raises(ReadOnlyError):
            Log(reader).claim()

    @needs(Capability.READ_ONLY, Capability.FORKS)
    def test_a_read_only_store_refuses_to_fork(self, tmp_path: Path) -> None:
        self.open_store(tmp_path).close()

        with self.open_read_only(tmp_path) as reader, pytest.raises(ReadOnlyError):
            reader.fork(KEY, OTHER, 0, 0)

    @needs(Capability.READ_ONLY, Capability.SWEEPS)
    def test_a_read_only_store_refuses_to_sweep_and_to_vacuum(self, tmp_path: Path) -> None:
        self.open_store(tmp_path).close()

        with self.open_read_only(tmp_path) as reader:
            with pytest.raises(ReadOnlyError):
                reader.sweep(0)
            with pytest.raises(ReadOnlyError):
                reader.vacuum()

    @needs(Capability.READ_ONLY, Capability.DURABLE)
    def test_a_read_only_store_reads_what_was_written(self, tmp_path: Path) -> None:
        with self.open_store(tmp_path) as store:
            Log(store).append(0, "abc")

        with self.open_read_only(tmp_path) as reader:
            assert "abc" == Log(reader).names
