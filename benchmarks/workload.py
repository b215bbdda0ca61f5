"""The events that every line writes and reads: turns of an agent at work, of about the sizes that real ones have."""

from collections.abc import Iterator
from itertools import count

from incarnate import (
    ActivationKey,
    AssistantMessage,
    Reasoning,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)

__all__ = ["KEY", "mixed_events"]

KEY = ActivationKey("benchmark", "agent")

_STEPS_A_TURN = 12
_PROSE = (
    "The failing test builds the parser without a tokenizer, so the first token is read from an empty buffer. "
    "I will look at how the fixture is made, change it to pass the tokenizer of the module, and run the suite again. "
    'Nothing else reads that buffer: "grep -rn buffer src" finds three places, all of them in the parser itself.\n'
) * 8
_OUTPUT = (
    "src/parser.py:112:    def advance(self) -> Token:\n"
    "src/parser.py:118:        if not self.buffer:\n"
    "src/parser.py:119:            raise EndOfInput(self.position)\n"
    "============================== 214 passed, 1 failed in 3.82s ==============================\n"
) * 12


def _text(source: str, number: int, size: float) -> str:
    """About `size` characters, different from one event to the next."""
    start = number * 7 % 300
    return source[start : start + int(size) + number % 61 - 30]


def mixed_events(size: float = 1.0) -> Iterator[SessionEvent]:
    """Events without end, with texts `size` times as long as usual."""
    numbers = count()
    for turn in count():
        yield TurnStart(id=f"event-{next(numbers):08d}", parent_id=None, turn=turn)
        number = next(numbers)
        yield UserMessage(id=f"event-{number:08d}", parent_id=None, text=_text(_PROSE, number, 120 * size))
        for _ in range(_STEPS_A_TURN):
            yield from _step(next(numbers), numbers, size)
        yield TurnEnd(id=f"event-{next(numbers):08d}", parent_id=None, turn=turn, outcome="completed")


def _step(number: int, numbers: Iterator[int], size: float) -> Iterator[SessionEvent]:
    """The model thinks every third time, speaks, calls a tool and pays for it."""
    call_id = f"toolu_{number:016x}"
    parent_id = f"event-{number - 1:08d}"
    if number % 3 == 0:
        yield Reasoning(id=f"event-{number:08d}", parent_id=parent_id, text=_text(_PROSE, number, 250 * size))
        number = next(numbers)
    yield AssistantMessage(id=f"event-{number:08d}", parent_id=parent_id, text=_text(_PROSE, number, 300 * size))
    args = {"file_path": f"/home/user/project/src/parser_{number % 97}.py", "offset": number % 400, "limit": 120}
    yield ToolCall(id=f"event-{next(numbers):08d}", parent_id=parent_id, call_id=call_id, name="Read", args=args)
    result = {"stdout": _text(_OUTPUT, number, 380 * size), "stderr": "", "interrupted": False}
    yield ToolResult(id=f"event-{next(numbers):08d}", parent_id=parent_id, call_id=call_id, ok=True, result=result)
    yield Usage(
        id=f"event-{next(numbers):08d}",
        parent_id=parent_id,
        input_tokens=number % 9000,
        output_tokens=number % 700,
        model="claude-sonnet-4-5",
        cache_read_tokens=number % 90_000,
    )
