"""The state of a session: what its head, its last event and its silence tell of it."""

from typing import Any

import pytest

from incarnate import AppendedEvent, SessionEvent, TurnEnd, UserMessage
from incarnate.domain.heads import Head
from incarnate.studio.rows import signs_of, state_of

LINK: dict[str, Any] = {"id": "e", "parent_id": None}
PROMPT, END = UserMessage(**LINK, text="go on"), TurnEnd(**LINK, turn=0)
INNER_END = TurnEnd(**LINK, turn=0, parent_call_id="task")
SECOND, HOUR = 1000, 3_600_000


@pytest.mark.parametrize(
    ("last", "fence", "quiet_ms", "is_supervised", "state"),
    [
        (PROMPT, 1, SECOND, False, "live"),
        (PROMPT, 1, HOUR, False, "idle"),
        (END, 1, SECOND, False, "idle"),
        (END, 1, HOUR, True, "live"),
        (END, 2, SECOND, False, "fenced"),
        (INNER_END, 1, SECOND, False, "live"),
        (None, 1, SECOND, False, "live"),
    ],
)
def test_a_session_lives_while_a_turn_of_it_does_or_a_supervisor_has_it(
    *, last: SessionEvent | None, fence: int, quiet_ms: float, is_supervised: bool, state: str
) -> None:
    appended = None if last is None else AppendedEvent(0, 1, 0, last)
    head = Head(fence, 1, 0, 1)

    assert state == state_of(head, signs_of(appended), quiet_ms=quiet_ms, is_supervised=is_supervised)


def test_a_retired_session_is_nothing_else() -> None:
    assert "retired" == state_of(Head(2, 1, 0, 1, retired=True), None, quiet_ms=0, is_supervised=True)
