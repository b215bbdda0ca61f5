"""Commands that were built wrongly: a refusal that names the field, and nothing changed."""

from typing import Any

import pytest

from incarnate.domain.commands import (
    Append,
    AppendMany,
    GetCheckpoint,
    Lease,
    NextTurn,
    PutCheckpoint,
    Replay,
    Subscribe,
    WriteCommand,
)
from incarnate.domain.decisions import decide, encode_command
from incarnate.domain.errors import MalformedCommandError, RefusedError, StaleIncarnationError
from incarnate.domain.events import UserMessage
from incarnate.domain.heads import Head
from tests.domain.test_decisions import Log, checkpoint, said

STANDING = Head(1, 3, 0, 0)
ANY: Any = None


@pytest.mark.parametrize("incarnation", [1, 9], ids=["holder", "newcomer"])
@pytest.mark.parametrize("expected", [5, "text", (1,), (1, 2, 3), object()], ids=str)
def test_an_expected_head_that_is_no_pair_is_refused_by_its_name(incarnation: int, expected: Any) -> None:
    for command in (
        Append(incarnation, 3, said("x"), expected),
        AppendMany(incarnation, 3, (said("x"),), expected),
        PutCheckpoint(incarnation, checkpoint(3, incarnation), expected),
    ):
        decision = decide(Log(STANDING), command, encode_command(command), 7)

        assert isinstance(decision.error, MalformedCommandError)
        assert ("expected_head", type(command).__name__) == (decision.error.field, decision.error.command)
        assert (None, STANDING) == (decision.change, decision.head)


@pytest.mark.parametrize("events", [None, 5, UserMessage(id="a", parent_id=None, text="x")])
def test_events_that_are_no_tuple_are_refused_by_their_name(events: Any) -> None:
    command = AppendMany(9, 3, events)

    decision = decide(Log(STANDING), command, encode_command(command), 7)

    assert isinstance(decision.error, MalformedCommandError)
    assert ("events", None, STANDING) == (decision.error.field, decision.change, decision.head)


def test_a_stale_writer_is_told_so_whatever_it_wrote() -> None:
    command = AppendMany(0, 3, ANY)

    assert isinstance(decide(Log(STANDING), command, encode_command(command), 7).error, StaleIncarnationError)


@pytest.mark.parametrize("wrong", ["1", 1.0, None, True, b"1", [1], 2**60])
def test_numbers_of_wrong_types_are_refused(wrong: Any) -> None:
    commands: list[WriteCommand] = [
        Lease(wrong),
        NextTurn(wrong),
        Append(wrong, 3, said("x")),
        Append(1, wrong, said("x")),
        AppendMany(1, wrong, (said("x"),)),
        PutCheckpoint(wrong, checkpoint(3)),
    ]
    for command in commands:
        decision = decide(Log(STANDING), command, encode_command(command), 7)
        assert isinstance(decision.error, RefusedError), command
        assert decision.change is None


@pytest.mark.parametrize("wrong", [None, 5, "x", object()])
def test_what_is_no_event_or_checkpoint_is_refused(wrong: Any) -> None:
    for command in (Append(1, 3, wrong), AppendMany(1, 3, (wrong,)), PutCheckpoint(1, wrong)):
        decision = decide(Log(STANDING), command, encode_command(command), 7)
        assert isinstance(decision.error, RefusedError)
        assert decision.change is None


def test_queries_and_subscriptions_of_wrong_types_cannot_be_built() -> None:
    wrong: list[tuple[str, Any]] = [
        ("id", lambda: GetCheckpoint(5)),  # type: ignore[arg-type]
        ("start", lambda: Replay("a")),  # type: ignore[arg-type]
        ("stop", lambda: Replay(0, 1.5)),  # type: ignore[arg-type]
        ("subscriber", lambda: Subscribe(5)),  # type: ignore[arg-type]
    ]
    for field, build in wrong:
        with pytest.raises(MalformedCommandError) as told:
            build()
        assert field == told.value.field


def test_an_error_of_a_store_at_a_sound_command_is_not_blamed_on_the_command() -> None:
    class Broken(Log):
        def checkpoint(self, checkpoint_id: str) -> Any:
            raise TypeError(checkpoint_id)

    command = PutCheckpoint(1, checkpoint(3))
    with pytest.raises(TypeError, match="cp"):
        decide(Broken(STANDING), command, encode_command(command), 7)
