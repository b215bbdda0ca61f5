"""Retirement and sweeps: what is closed for ever, and what is removed."""

from __future__ import annotations

import pytest

from incarnate.domain.commands import Claim, Lease, Retire
from incarnate.domain.errors import RetiredError, StaleIncarnationError
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.domain.rewinds import Rewind
from incarnate.storage.contract.harness import Capability, Contract, needs
from incarnate.storage.contract.log import ALL, Log
from incarnate.storage.port import Store, Swept

__all__ = ["Retirement"]


class Retirement(Contract):
    """A retired log is read and never written; a sweep removes old retired logs and old archives alone."""

    @needs(Capability.RETIREMENT)
    def test_a_retired_log_is_closed_for_ever_and_still_read(self, store: Store) -> None:
        log = Log(store)
        log.append(0, "ab")
        head = log.do(Retire())

        assert Head(2, 2, 0, 0, retired=True) == head == log.head == log.do(Retire())
        for command in (Claim(), Lease(2), Lease(9)):
            with pytest.raises(RetiredError):
                log.do(command)
        with pytest.raises(StaleIncarnationError):
            log.append(2, "c")
        assert "ab" == log.names
        assert head == log.head

    @needs(Capability.RETIREMENT, Capability.SWEEPS)
    def test_a_sweep_removes_old_retired_activations_and_keeps_their_fence(self, store: Store) -> None:
        old, young, live = (ActivationKey("pik", name) for name in ("old", "young", "live"))
        for key in (old, young, live):
            Log(store, key).append(0, "ab")
        Log(store, old).do(Retire(), 5)
        Log(store, young).do(Retire(), 10)

        assert Swept(1, 0, 2) == store.sweep(10)
        assert [live, young] == [info.key for info in store.activations()]
        assert ("", "ab") == (Log(store, old).names, Log(store, young).names)
        with pytest.raises(RetiredError):
            Log(store, old).do(Claim())
        assert Swept(0, 0, 0) == store.sweep(10)

    @needs(Capability.ARCHIVES, Capability.RETIREMENT, Capability.SWEEPS)
    def test_a_sweep_of_a_retired_activation_takes_its_archives_too(self, store: Store) -> None:
        log = Log(store)
        log.append(0, "ab")
        log.append_at(1, "c", 50)
        log.do(Retire(), 5)

        assert Swept(1, 1, 3) == store.sweep(10)

    @needs(Capability.ARCHIVES, Capability.SWEEPS)
    def test_a_sweep_removes_old_archives_and_keeps_their_cuts(self, store: Store) -> None:
        log = Log(store)
        log.append(0, "ab")
        log.append_at(1, "c", 5)
        log.append_at(0, "d", 10)

        assert Swept(0, 1, 1) == store.sweep(10)
        assert [Rewind(1, 1, 2, 1, 5, swept=True), Rewind(2, 0, 2, 1, 10)] == log.rewinds
        assert ([], ["a", "c"]) == (log.superseded(1), log.superseded(2))
        assert "d" == log.names
        assert 0 == log.lowest_cut(0)

    @needs(Capability.ARCHIVES, Capability.RETIREMENT, Capability.SWEEPS)
    def test_a_sweep_of_some_keys_leaves_all_others_alone(self, store: Store) -> None:
        retired, rewound, other, unknown = (ActivationKey("pik", name) for name in "abcd")
        for key in (retired, rewound, other):
            Log(store, key).append(0, "ab")
            Log(store, key).append_at(1, "c", 5)
        for key in (retired, other):
            Log(store, key).do(Retire(), 5)

        assert Swept(0, 0, 0) == store.sweep(10, []) == store.sweep(10, [unknown])
        assert Swept(0, 1, 1) == store.sweep(10, [rewound, unknown, rewound])
        assert Swept(1, 1, 3) == store.sweep(10, [retired])
        assert [rewound, other] == [info.key for info in store.activations()]
        assert ["b"] == Log(store, other).superseded(1)
        assert Swept(1, 1, 3) == store.sweep(10)

    @needs(Capability.RETIREMENT, Capability.SWEEPS)
    def test_a_snapshot_tells_when_it_was_retired_until_it_is_swept(self, store: Store) -> None:
        log = Log(store)
        before = log.retired_ms
        log.append(0, "a")
        live = log.retired_ms
        log.do(Retire(), 5)
        retired = log.retired_ms
        log.do(Retire(), 7)

        assert (None, None, 5, 5) == (before, live, retired, log.retired_ms)
        store.sweep(10)
        assert log.retired_ms is None

    @needs(Capability.SWEEPS)
    def test_vacuum_changes_nothing_that_can_be_read(self, store: Store) -> None:
        log = Log(store)
        log.append(0, "abc")
        log.append(1, "d")
        store.sweep(ALL)
        store.vacuum()

        assert "ad" == log.names
        log.append(2, "e")
        assert "ade" == log.names
