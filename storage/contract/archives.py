"""I4: what a rewind superseded stays in an archive."""

from __future__ import annotations

from incarnate.domain.rewinds import Rewind
from incarnate.storage.contract.harness import Capability, Contract, needs
from incarnate.storage.contract.log import ALL, Log
from incarnate.storage.port import Store

__all__ = ["Archives"]


class Archives(Contract):
    """An archive tells every rewind and keeps its events until it is swept."""

    @needs(Capability.ARCHIVES)
    def test_i4_a_rewind_leaves_what_it_superseded_in_the_archive(self, store: Store) -> None:
        log = Log(store)
        log.append(0, "abc")
        log.append_at(1, "d", 5)
        log.append(2, "e")
        log.append_at(0, "f", 9)

        assert "f" == log.names
        assert [Rewind(1, 1, 3, 1, 5), Rewind(2, 0, 3, 1, 9)] == log.rewinds
        assert ["b", "c"] == log.superseded(1)
        assert ["a", "d", "e"] == log.superseded(2)
        assert [] == log.superseded(3)

    @needs(Capability.ARCHIVES)
    def test_an_archive_is_read_in_pages(self, store: Store) -> None:
        log = Log(store)
        log.append(0, "abcde")
        log.append(1, "x")

        assert ["c", "d"] == log.superseded(1, 2, 4)
        assert ["b"] == log.superseded(1, 0, ALL, 1)
