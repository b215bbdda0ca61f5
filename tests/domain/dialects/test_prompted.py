from collections.abc import Iterable

from incarnate.domain.dialects.base import UNNUMBERED, Normalized
from incarnate.domain.dialects.prompted import Prompted
from incarnate.domain.events import AssistantMessage, SessionEvent, SystemMessage, TurnStart, UserMessage

START = TurnStart(id="", parent_id=None, turn=UNNUMBERED)
SYSTEM = SystemMessage(id="", parent_id=None, text="rules")
ANSWER = AssistantMessage(id="", parent_id=None, text="yes")


def asked(text: str = "go", *, inside: str | None = None) -> UserMessage:
    if inside is not None:
        return UserMessage(id="", parent_id=None, text=text, parent_call_id=inside)
    return UserMessage(id="", parent_id=None, text=text)


class Scripted:
    """A normalizer whose records are what they become."""

    def feed(self, value: object) -> Normalized:
        assert isinstance(value, tuple)
        return Normalized(value, None if value else "nothing")


def told(*records: tuple[SessionEvent, ...]) -> list[Normalized]:
    normalizer = Prompted(Scripted(), ["go", "", "on"])
    return [normalizer.feed(record) for record in records]


def drafts(found: Iterable[Normalized]) -> list[SessionEvent]:
    return [draft for one in found for draft in one.drafts]


def test_each_prompt_stands_behind_its_turn_start() -> None:
    found = told((), (START,), (ANSWER,), (START, ANSWER), (START,), (START,))
    assert [START, asked(), ANSWER, START, ANSWER, START, asked("on"), START] == drafts(found)
    assert "nothing" == found[0].ignored


def test_without_a_turn_start_the_prompt_comes_first() -> None:
    assert [asked(), ANSWER] == drafts(told((ANSWER,)))
    assert [asked()] == drafts(told((asked(),)))


def test_an_echo_in_the_same_record_or_a_later_one_is_no_second_prompt() -> None:
    assert [START, asked(), ANSWER] == drafts(told((START, asked()), (ANSWER,)))
    later = told((START,), (SYSTEM,), (asked(),), (ANSWER,))
    assert [START, asked(), SYSTEM, ANSWER] == drafts(later)
    assert "prompt/echo" == later[2].ignored


def test_the_same_words_after_an_answer_are_a_new_prompt() -> None:
    assert [START, asked(), ANSWER, asked()] == drafts(told((START,), (ANSWER,), (asked(),)))


def test_other_words_and_those_of_a_sub_agent_are_no_echo() -> None:
    assert [START, asked(), asked("stop"), asked()] == drafts(told((START,), (asked("stop"),), (asked(),)))
    assert [START, asked(), asked(inside="t")] == drafts(told((START,), (asked(inside="t"),), (asked(),)))


def test_prompts_and_turns_that_are_not_as_many_are_counted() -> None:
    def counted(*records: tuple[SessionEvent, ...]) -> tuple[int, int]:
        normalizer = Prompted(Scripted(), ["go", ""])
        for record in records:
            normalizer.feed(record)
        return normalizer.unused, normalizer.unprompted

    assert (2, 0) == counted()
    assert (1, 0) == counted((ANSWER,), (ANSWER,))
    assert (0, 0) == counted((START, ANSWER), (START,))
    assert (0, 2) == counted((START,), (START,), (START,), (ANSWER,), (START,))
