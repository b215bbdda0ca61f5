"""Properties: every back end gives the same answers, the invariants hold after each step, JSON reads back equal."""

import datetime as dt
import decimal
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incarnate.domain.commands import Append, AppendMany, Claim, Lease, NextTurn, PutCheckpoint, WriteCommand
from incarnate.domain.errors import UnencodableEventError
from incarnate.domain.events import MAX_INTEGER, AssistantMessage, SessionEvent, ToolCall, ToolResult, TurnStart
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.port import Store
from tests.support.postgres_server import is_to_be_had
from tests.support.stores import BACKENDS, Backend, Log, checkpoint, decided, note

CHECKPOINT_IDS = ("p", "q", "r")

# A step says what to do relative to the head, so that most steps hit something: `writer` counts from the fence, `back`
# from the next offset, and `seen` is the head that the writer believes in, as (generation, offset) from the stored one.
Seen = tuple[int, int] | None


class LeaseStep(NamedTuple):
    writer: int


class TurnStep(NamedTuple):
    writer: int


class AppendStep(NamedTuple):
    writer: int
    back: int
    events: list[SessionEvent]
    seen: Seen
    alone: bool


class CheckpointStep(NamedTuple):
    writer: int
    back: int
    name: str
    sha: str
    forged: bool
    seen: Seen


class Again(NamedTuple):
    """The last command once more: what a caller does after an unknown outcome."""


class Reopen(NamedTuple):
    """Every store that keeps what it holds is closed and opened again."""


Step = AppendStep | CheckpointStep | LeaseStep | TurnStep | Lease | Claim | Again | Reopen

writers = st.sampled_from([0, 0, 0, 0, 0, 0, -1, 1])
backs = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3, 4, -1])
seens: st.SearchStrategy[Seen] = (
    st.none() | st.just((0, 0)) | st.tuples(st.sampled_from([0, 0, 0, -1, 1]), st.sampled_from([0, 0, 0, -1, 1]))
)
notes = st.sampled_from("abc").map(note)
events: st.SearchStrategy[SessionEvent] = st.one_of(
    notes,
    notes,
    notes,
    st.builds(TurnStart, id=st.just("t"), parent_id=st.none(), turn=st.integers(0, 12)),
    st.builds(
        TurnStart, id=st.just("t"), parent_id=st.none(), turn=st.just(0), label=st.sampled_from(["turn-20", "x"])
    ),
    st.just(note("\ud800")),
)
appends = st.builds(AppendStep, writers, backs, st.lists(events, max_size=4), seens, st.booleans())
steps: st.SearchStrategy[Step] = st.one_of(
    appends,
    appends,
    st.builds(
        CheckpointStep, writers, backs, st.sampled_from(CHECKPOINT_IDS), st.sampled_from("xy"), st.booleans(), seens
    ),
    st.builds(LeaseStep, writers),
    st.builds(TurnStep, writers),
    st.sampled_from([Claim(), Lease(-1), Lease(MAX_INTEGER + 1), Again(), Reopen()]),
)


def command_of(step: Step, head: Head) -> WriteCommand | None:
    """The step's command on a log at `head`; None where it is not one by itself."""
    fence = 0 if head.fence is None else head.fence
    match step:
        case AppendStep(writer, back, batch, seen, alone):
            offset = head.next_offset - back
            if alone and batch:
                return Append(fence + writer, offset, batch[0], believed(seen, head))
            return AppendMany(fence + writer, offset, tuple(batch), believed(seen, head))
        case CheckpointStep(writer, back, name, sha, forged, seen):
            kept = checkpoint(name, max(0, head.next_offset - back), max(0, fence + writer + forged), sha)
            return PutCheckpoint(fence + writer, kept, believed(seen, head))
        case LeaseStep(writer):
            return Lease(fence + writer)
        case TurnStep(writer):
            return NextTurn(fence + writer)
        case Again() | Reopen():
            return None
        case _:
            return step


def believed(seen: Seen, head: Head) -> Seen:
    return None if seen is None else (head.generation + seen[0], head.next_offset + seen[1])


def answer(log: Log, command: WriteCommand, now_ms: int) -> tuple[object, Head]:
    """The reply, or the refusal with all that it tells; and the head that subscribers would be told."""
    decision = decided(log.store, log.key, command, now_ms)
    error = decision.error
    return decision.reply if error is None else (type(error), str(error), vars(error)), decision.head


class State(NamedTuple):
    """All that a reader can see of a log."""

    head: Head
    events: list[Any]
    checkpoints: list[Any]
    latest: str | None
    cuts: list[int | None]
    listed: list[Any]


def state(log: Log) -> State:
    head = log.head
    return State(
        head,
        log.events,
        [log.checkpoint(name) for name in CHECKPOINT_IDS],
        log.latest,
        [log.lowest_cut(generation) for generation in range(head.generation + 1)],
        [info for info in log.store.activations() if info.key == log.key],
    )


def check_invariants(before: State, after: State, command: WriteCommand, reply: object) -> None:
    old, new = before.head, after.head
    assert [appended.offset for appended in after.events] == list(range(new.next_offset)), "I1"
    assert old.fence is None or (new.fence is not None and new.fence >= old.fence), "I2"
    assert new.next_turn >= old.next_turn, "I8"
    if new.generation != old.generation:
        check_rewind(before, after, command)
    else:
        assert before.events == after.events[: old.next_offset], "I4: what is not cut stays"
        assert all(kept in after.checkpoints for kept in before.checkpoints if kept is not None), "I5"
    if isinstance(command, NextTurn) and isinstance(reply, int):
        assert (reply, reply + 1) == (old.next_turn, new.next_turn), "I8"
    for kept in after.checkpoints:
        assert kept is None or kept.offset <= new.next_offset, "I5"


def check_rewind(before: State, after: State, command: WriteCommand) -> None:
    assert isinstance(command, Append | AppendMany)
    assert after.head.generation == before.head.generation + 1, "I4"
    assert command.offset < before.head.next_offset, "I4"
    assert before.events[: command.offset] == after.events[: command.offset], "I4: what is below the cut stays"
    kept = [old if old is not None and old.offset <= command.offset else None for old in before.checkpoints]
    assert kept == after.checkpoints, "I4"
    assert command.offset == after.cuts[before.head.generation], "I4"


# Of the rows of one server one will do, and where there is none the others are still held to each other.
ROWS = {name: row for name, row in BACKENDS.items() if not name.startswith("postgres")}
if is_to_be_had():
    ROWS["postgres"] = BACKENDS["postgres"]


class Stores:
    """Each row of the table, opened twice where both openings see the same logs."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folders = {name: folder / name for name in ROWS}
        for inner in self._folders.values():
            inner.mkdir()
        self._stack = stack
        self._keys = count()
        self._open: dict[str, tuple[Store, Store]] = {}
        self.reopen()

    def reopen(self) -> None:
        """Close every store that keeps what it holds, and open it again."""
        for name, backend in ROWS.items():
            if name not in self._open:
                self._open[name] = self._twice(name, backend)
            elif backend.keeps:
                for store in self._open[name]:
                    store.close()
                self._open[name] = self._twice(name, backend)

    def _twice(self, name: str, backend: Backend) -> tuple[Store, Store]:
        first = self._stack.enter_context(backend.open(self._folders[name]))
        return first, self._stack.enter_context(backend.open(self._folders[name])) if backend.keeps else first

    def new_key(self) -> ActivationKey:
        return ActivationKey("property", str(next(self._keys)))

    def logs(self, key: ActivationKey, opening: int = 0) -> list[Log]:
        return [Log(openings[opening], key) for openings in self._open.values()]


@pytest.fixture(scope="module")
def stores(swift_module_path: Path) -> Iterator[Stores]:
    with ExitStack() as stack:
        yield Stores(swift_module_path, stack)


def the_one(values: list[Any]) -> Any:
    """What all back ends gave."""
    assert all(value == values[0] for value in values), values
    return values[0]


@pytest.mark.timeout(900)  # under coverage on a busy machine; and to find a small failure takes longer than to find one
@settings(max_examples=50)
@given(script=st.lists(st.tuples(st.integers(0, 1), steps), min_size=10, max_size=30))
def test_any_sequence_of_commands_is_answered_alike_by_every_back_end(
    stores: Stores, script: list[tuple[int, Step]]
) -> None:
    key = stores.new_key()
    before = State(EMPTY_HEAD, [], [None] * 3, None, [None], [])
    last: WriteCommand = Claim()
    for now_ms, (opening, step) in enumerate(script):
        if isinstance(step, Reopen):
            stores.reopen()
        else:
            last = command_of(step, before.head) or last
            reply, told = the_one([answer(log, last, now_ms) for log in stores.logs(key, opening)])
            after = the_one([state(log) for log in stores.logs(key, opening)])
            check_invariants(before, after, last, reply)
            assert told == after.head
            before = after
        assert before == the_one([state(log) for log in stores.logs(key, 1 - opening)])


# JSON

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "\0", "\u2028", "\ufeff", "\U0001f9e0"]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**53, 2**63, 2**64, -(2**64), 10**4299, -(10**300)]),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


def nested(depth: int, innermost: object = 0) -> Any:
    for _ in range(depth):
        innermost = [innermost]
    return innermost


def exactly(value: object) -> str:
    """Tells 1 from 1.0 and True, and 0.0 from -0.0; the order of keys does not matter."""
    match value:
        case dict():
            return repr(sorted((name, exactly(item)) for name, item in value.items()))
        case list():
            return f"[{','.join(map(exactly, value))}]"
        case int():
            return f"{type(value).__name__}:{value:x}"
        case _:
            return repr(value)


@pytest.mark.timeout(300)  # 100 values on seven stores: over 60 seconds where ten others want the processor
@given(value=values | st.integers(200, 256).map(nested))
def test_any_json_reads_back_equal_from_every_back_end(stores: Stores, value: Any) -> None:
    key = stores.new_key()
    call = ToolCall(id="c", parent_id=None, call_id="c", name="n", args=value)
    done = ToolResult(id="r", parent_id="c", call_id="c", ok=True, result=value)
    kept = checkpoint("cp", 2, detail=value)
    for log in stores.logs(key):
        log.append(0, [call, done])
        log.put(kept)

        assert [call, done, kept] == [*(appended.event for appended in log.events), log.checkpoint("cp")]
        first: Any = log.events[0].event
        stored: Any = log.checkpoint("cp")
        assert [exactly(value)] * 2 == [exactly(first.args), exactly(stored.effect_ledger[0].detail)]


class Bad(NamedTuple):
    """A value with one flaw, and the path below the value at which it must be reported."""

    value: Any
    path: str

    def __repr__(self) -> str:
        return f"Bad {type(self.value).__name__} at {self.path!a}"  # an integer of 4,301 digits has no repr


class Other:
    """No JSON value."""


flaws = st.sampled_from(
    [
        *(
            Bad(flaw, "")
            for flaw in (float("nan"), float("inf"), float("-inf"), "\ud800", "a\udfff", 10**4300, -(10**5000))
        ),
        *(Bad(flaw, "") for flaw in (b"x", (), (1, 2), {1}, frozenset[int](), Other(), Other, decimal.Decimal(1), 1j)),
        Bad(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), ""),
        *(Bad({flaw: 1}, "") for flaw in (1, None, True, 1.5, (), "\ud800")),
        Bad(nested(257), "[0]" * 256),
    ]
)


def in_list(bad: Bad, left: list[Any], right: list[Any]) -> Bad:
    return Bad([*left, bad.value, *right], f"[{len(left)}]{bad.path}")


def in_object(bad: Bad, name: str, others: dict[str, Any]) -> Bad:
    return Bad({**others, name: bad.value}, f".{name}{bad.path}")


few = st.lists(values, max_size=2)
bads = st.recursive(
    flaws.filter(lambda bad: not bad.path),
    lambda inner: (
        st.builds(in_list, inner, few, few)
        | st.builds(in_object, inner, texts, st.dictionaries(texts, scalars, max_size=2))
    ),
    max_leaves=4,
)


@given(bad=bads | flaws)
def test_anything_outside_the_contract_is_refused_with_its_path(stores: Stores, bad: Bad) -> None:
    key = stores.new_key()
    call = ToolCall(id="c", parent_id=None, call_id="c", name="n", args=bad.value)
    for log in stores.logs(key):
        with pytest.raises(UnencodableEventError) as refused_event:
            log.append(0, [note("a"), call])
        with pytest.raises(UnencodableEventError) as refused_checkpoint:
            log.put(checkpoint("cp", 0, detail=bad.value))

        assert f"$.args{bad.path}" == refused_event.value.path
        assert f"$.effectLedger[0].detail{bad.path}" == refused_checkpoint.value.path
        assert ([], None) == (log.events, log.latest)


@given(text=st.text(max_size=6))
def test_text_with_a_lone_surrogate_is_refused_and_any_other_reads_back_equal(stores: Stores, text: str) -> None:
    event = AssistantMessage(id="a", parent_id=None, text=text)
    for log in stores.logs(stores.new_key()):
        if any(0xD800 <= ord(character) < 0xE000 for character in text):
            with pytest.raises(UnencodableEventError) as refused:
                log.append(0, [event])
            assert "$.text" == refused.value.path
        else:
            log.append(0, [event])
            assert event == log.events[0].event
