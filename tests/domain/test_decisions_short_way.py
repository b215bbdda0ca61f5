"""The short way that `decide` takes for one more event at the head comes to what its checks come to one by one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain import decisions
from incarnate.domain.commands import Append, AppendMany, Lease, WriteCommand
from incarnate.domain.decisions import Decision, decide, encode_command
from incarnate.domain.events import MAX_INTEGER, Opaque, SessionEvent, TurnEnd, TurnStart, UserMessage
from incarnate.domain.heads import Head
from tests.domain.test_decisions import Log, row

NUMBERS = st.sampled_from([0, 1, 2, 3, MAX_INTEGER - 1, MAX_INTEGER])
ODD = NUMBERS | st.sampled_from([-1, MAX_INTEGER + 1, True, 1.0, "1", None])
EVENTS: st.SearchStrategy[SessionEvent | Opaque] = st.sampled_from(
    [
        UserMessage(id="a", parent_id=None, text="hi"),
        UserMessage(id="a", parent_id=None, text="\ud800"),
        TurnStart(id="a", parent_id=None, turn=1),
        TurnEnd(id="a", parent_id=None, turn=7, label="turn-9"),
        Opaque("future", "a", None, b'{"type":"future","id":"a","parentId":null}'),
    ]
)
HEADS = st.builds(Head, st.none() | NUMBERS, NUMBERS, st.integers(0, 2), st.integers(0, 8), st.booleans())
EXPECTED: Any = st.none() | st.tuples(ODD, ODD) | st.sampled_from([5, (1,), [0, 3], "no"])
COMMANDS: st.SearchStrategy[WriteCommand] = st.one_of(
    st.builds(Append, ODD, ODD, EVENTS, EXPECTED),
    st.builds(AppendMany, ODD, ODD, st.lists(EVENTS, max_size=2).map(tuple), EXPECTED),
    st.builds(Lease, ODD),
)


def told(decision: Decision) -> tuple[Any, ...]:
    return decision.change, decision.head, decision.reply, type(decision.error), str(decision.error)


def both_ways(head: Head, command: WriteCommand) -> tuple[Decision, Decision]:
    log = Log(head, [row(offset, "old") for offset in range(4)])
    payload = encode_command(command)
    short = decide(log, command, payload, 7)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decisions, "_one_more", lambda *_: None)
        return short, decide(log, command, payload, 7)


@given(head=HEADS, command=COMMANDS)
def test_any_command_is_decided_the_same_on_both_ways(head: Head, command: WriteCommand) -> None:
    short, long = both_ways(head, command)

    assert told(long) == told(short)


@given(head=HEADS, event=EVENTS)
def test_an_append_at_the_head_is_decided_the_same_on_both_ways(head: Head, event: SessionEvent | Opaque) -> None:
    command = Append(head.fence or 0, head.next_offset, event, head.expected)

    short, long = both_ways(head, command)

    assert told(long) == told(short)


def test_the_short_way_is_taken_for_one_more_event_at_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "_append", None)
    command = Append(1, 3, UserMessage(id="a", parent_id=None, text="hi"), (0, 3))

    assert 4 == decide(Log(Head(1, 3, 0, 0)), command, encode_command(command), 7).head.next_offset
