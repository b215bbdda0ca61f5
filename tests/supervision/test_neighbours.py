"""The supervisors of one activation on one machine, as each sees the others."""

from pathlib import Path

from incarnate.supervision.edge import Deadlines, Ended, Identity
from incarnate.supervision.neighbours import Neighbours
from incarnate.supervision.registry import Registry, RunRecord
from tests.support.replayed import ReplayEdge

TREE = Identity("run-1", "boot", 7, 8)


class Ends(ReplayEdge):
    def __init__(self) -> None:
        super().__init__()
        self.ended: list[Identity] = []

    def leftovers(self, identity: Identity, deadlines: Deadlines) -> Ended:
        self.ended.append(identity)
        return super().leftovers(identity, deadlines)


def record(key: str, started: int) -> RunRecord:
    return RunRecord(key=key, store="s", harness="pi", pid=1, started_at=str(started))


def neighbours(folder: Path, key: str = "a/b", started: int = 0) -> Neighbours:
    return Neighbours(Registry(folder), record(key, started), lambda: 0)


def note(one: Neighbours, *, identity: Identity | None = None, offset: int = 0) -> None:
    one.note(phase="alive", incarnation=3, identity=identity, restarts=1, offset=offset, session="s")


def test_whoever_was_there_before_is_a_predecessor_and_nobody_else(tmp_path: Path) -> None:
    first, other, second = neighbours(tmp_path), neighbours(tmp_path, "c/d", 1), neighbours(tmp_path, started=2)

    assert [False, False, True] == [one.has_predecessor() for one in (first, other, second)]
    first.close()
    assert not second.has_predecessor()
    for one in (other, second):
        one.close()


def test_a_predecessor_that_does_not_end_its_harness_has_it_ended(tmp_path: Path) -> None:
    first, second, edge = neighbours(tmp_path), neighbours(tmp_path, started=2), Ends()
    note(first, identity=TREE)
    second.end_leftovers(edge, Deadlines())
    second.end_predecessor(edge, Deadlines())
    for one in (first, second):
        one.close()

    assert [TREE] == edge.ended


def test_a_record_tells_when_the_log_grew_last(tmp_path: Path) -> None:
    clock = iter(range(0, 10_000, 1000))
    one = Neighbours(Registry(tmp_path), record("a/b", 0), lambda: next(clock))
    note(one, offset=5)
    note(one, offset=5)
    [found] = Registry(tmp_path).live()
    one.close()

    assert (5, "1970-01-01T00:00:00.000Z") == (found.record.offset, found.record.offset_at)
    assert ("alive", 3, 1) == (found.record.phase, found.record.incarnation, found.record.restarts)
    assert [] == list(Registry(tmp_path).live())
