"""The search for an order of calls, on histories made by hand."""

from typing import Any

from incarnate.domain.commands import Append, Claim, GetHead, Lease
from incarnate.domain.errors import OutcomeUnknownError, StaleIncarnationError, StoreBusyError
from incarnate.domain.events import AppendedEvent, AssistantMessage
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.keys import ActivationKey
from incarnate.simulation import ActivationHistory, Call, History, Stored, linearizable
from incarnate.simulation.linearizability import order_of

KEY = ActivationKey("p", "e")


def event(name: str) -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text="")


def appended(offset: int, name: str, incarnation: int = 1) -> AppendedEvent:
    return AppendedEvent(offset, incarnation, 0, event(name))


class Story:
    """Calls that begin and end in the order in which it is told."""

    def __init__(self) -> None:
        self.history = History()
        self.activation: ActivationHistory = self.history.of(KEY)

    def begin(self, command: Any) -> Call:
        call = self.activation.add(Call(self.history, "a", command))
        call.acted = self.history.tick()
        return call

    def does(self, command: Any, reply: Any = None, error: BaseException | None = None) -> None:
        self.begin(command).answered(reply, error)

    def ends(self, head: Head, *events: AppendedEvent) -> bool:
        """Whether there is an order that ends so."""
        self.activation.stored = Stored(head, list(events), [])
        found = list(linearizable(self.activation))
        assert (order_of(self.activation) is None) == (not found)
        return not found


def test_calls_one_after_the_other_have_their_own_order() -> None:
    story = Story()
    story.does(Claim(), Head(1, 0, 0, 0))
    story.does(Append(1, 0, event("a"), (0, 0)), appended(0, "a"))
    story.does(GetHead(), Head(1, 1, 0, 0))

    assert story.ends(Head(1, 1, 0, 0), appended(0, "a"))


def test_a_read_that_misses_what_was_acknowledged_before_it_began_has_none() -> None:
    story = Story()
    story.does(Claim(), Head(1, 0, 0, 0))
    story.does(GetHead(), EMPTY_HEAD)

    assert not story.ends(Head(1, 0, 0, 0))


def test_a_read_beside_a_write_may_see_it_or_not() -> None:
    for seen in (EMPTY_HEAD, Head(1, 0, 0, 0)):
        story = Story()
        claim = story.begin(Claim())
        story.does(GetHead(), seen)
        claim.answered(Head(1, 0, 0, 0), None)

        assert story.ends(Head(1, 0, 0, 0))


def test_two_claims_may_not_get_the_same_incarnation() -> None:
    story = Story()
    one, other = story.begin(Claim()), story.begin(Claim())
    one.answered(Head(1, 0, 0, 0), None)
    other.answered(Head(1, 0, 0, 0), None)

    assert not story.ends(Head(1, 0, 0, 0))


def test_a_call_without_an_answer_may_have_been_done_or_not() -> None:
    for head, events in ((Head(1, 1, 0, 0), [appended(0, "a")]), (Head(1, 0, 0, 0), [])):
        story = Story()
        story.does(Lease(1), Head(1, 0, 0, 0))
        story.does(Append(1, 0, event("a"), (0, 0)), error=OutcomeUnknownError("lost"))

        assert story.ends(head, *events)


def test_a_call_without_an_answer_may_be_done_long_after() -> None:
    story = Story()
    story.does(Lease(1), Head(1, 0, 0, 0))
    story.begin(Append(1, 0, event("a"), (0, 0)))
    story.does(GetHead(), Head(1, 0, 0, 0))
    story.does(GetHead(), Head(1, 1, 0, 0))

    assert story.ends(Head(1, 1, 0, 0), appended(0, "a"))


def test_it_is_not_done_twice() -> None:
    story = Story()
    story.does(Lease(1), Head(1, 0, 0, 0))
    story.does(Append(1, 0, event("a"), (0, 0)), error=OutcomeUnknownError("lost"))

    assert not story.ends(Head(1, 2, 0, 0), appended(0, "a"), appended(1, "a"))


def test_a_call_that_wrote_nothing_is_no_part_of_it() -> None:
    story = Story()
    story.does(Lease(1), Head(1, 0, 0, 0))
    story.does(Append(1, 0, event("a"), (0, 0)), error=StoreBusyError("busy"))

    assert story.ends(Head(1, 0, 0, 0))
    assert not story.ends(Head(1, 1, 0, 0), appended(0, "a"))


def test_a_refusal_must_be_the_one_that_the_model_gives() -> None:
    story = Story()
    story.does(Lease(2), Head(2, 0, 0, 0))
    story.does(Lease(1), error=StaleIncarnationError(key=KEY, incarnation=1, current=2))
    assert story.ends(Head(2, 0, 0, 0))

    story.does(Lease(1), error=StaleIncarnationError(key=KEY, incarnation=1, current=3))
    assert not story.ends(Head(2, 0, 0, 0))


def test_what_is_stored_must_be_what_the_calls_lead_to() -> None:
    story = Story()
    story.does(Lease(1), Head(1, 0, 0, 0))
    story.does(Append(1, 0, event("a"), (0, 0)), appended(0, "a"))

    assert not story.ends(Head(1, 1, 0, 0), appended(0, "b"))


def test_many_calls_at_once_are_placed_though_the_store_acted_in_another_order_than_they_came() -> None:
    story = Story()
    story.does(Lease(1), Head(1, 0, 0, 0))
    calls = [story.begin(Append(1, 0, event(str(number)), None)) for number in range(6)]
    for number, call in enumerate(calls):
        call.answered(appended(0, str(number)), None)

    assert story.ends(Head(1, 1, 5, 0), appended(0, "3"))
