"""Random logs with times, writers, rewinds and strings that somebody meant harm with, for what draws and exports."""

from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec import UNSET

from incarnate import (
    AppendedEvent,
    AssistantMessage,
    Checkpoint,
    Compaction,
    FailedOutcome,
    Opaque,
    Reasoning,
    Rewind,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    TurnStart,
    Usage,
    UserMessage,
)

HOSTILE = (
    "<script>window.hurt = 1</script>",
    "</script><script>window.hurt = 1</script>",
    "<!-- <script>",
    '"><img src=x onerror="window.hurt = 1">',
    "]]><svg onload='window.hurt = 1'/>",
    "javascript:window.hurt=1",
    "[x](javascript:window.hurt=1)",
    "![x](https://hurt.example/pixel.png)",
    "https://hurt.example/",
    "\x1b[31mred\x1b[0m \x00\x07\x9b",
    "\u202eevil\u2066 \u200f \ufeff\ufffe\uffff\u2028\u2029",
    "&amp;&#60;b&#62;",
    "é世界🙂" * 40,
    "a" * 5000,
)

TEXTS = st.sampled_from(["", "hi", "make test", *HOSTILE]) | st.text(max_size=12)
_LINK: dict[str, Any] = {
    "id": st.just("e"),
    "parent_id": st.none(),
    "parent_call_id": st.sampled_from([UNSET] * 4 + ["c0", "c1", "nowhere"]),
    "occurred_at": st.sampled_from(
        [UNSET] * 6 + ["2026-11-30T19:09:10.616Z", "2026-11-30T19:09:12Z", "2027-01-01", "9999-12-31T23:59:59Z", "then"]
    ),
}
_COUNTS = st.sampled_from([0, 1, 1200, 2**53 - 1])
_IDS = st.sampled_from(["c0", "c1", "c2", "<c>"])

EVENTS: st.SearchStrategy[SessionEvent | Opaque] = st.one_of(
    st.builds(UserMessage, **_LINK, text=TEXTS),
    st.builds(AssistantMessage, **_LINK, text=TEXTS),
    st.builds(SystemMessage, **_LINK, text=TEXTS),
    st.builds(Reasoning, **_LINK, text=TEXTS),
    st.builds(ToolCall, **_LINK, call_id=_IDS, name=TEXTS, args=st.none() | st.fixed_dictionaries({"command": TEXTS})),
    st.builds(ToolCall, **_LINK, call_id=_IDS, name=st.just("Bash"), args=st.just({"command": 7})),
    st.builds(ToolResult, **_LINK, call_id=_IDS, ok=st.booleans(), result=TEXTS, error=st.just(UNSET) | TEXTS),
    st.builds(TurnStart, **_LINK, turn=st.integers(0, 2), label=st.just(UNSET) | TEXTS),
    st.builds(
        TurnEnd,
        **_LINK,
        turn=st.integers(0, 2),
        label=st.just(UNSET) | TEXTS,
        outcome=st.sampled_from([UNSET, "completed", "cancelled", "step_limit", "interrupted"])
        | TEXTS.map(lambda text: FailedOutcome(TurnError("stream", text))),
    ),
    st.builds(Compaction, **_LINK, reason=TEXTS, replaces_from=st.just(0), replaces_to=_COUNTS, summary=TEXTS),
    st.builds(
        Usage,
        **_LINK,
        input_tokens=_COUNTS,
        output_tokens=_COUNTS,
        cache_read_tokens=st.just(UNSET) | _COUNTS,
        scope=st.sampled_from([UNSET, "session"]),
    ),
    st.just(Opaque("novel", "e", None, b'{"type":"novel","id":"e","parentId":null}')),
)

_PAUSES = st.sampled_from([0, 0, 1, 40, 900, 30_000, 3_600_000, 200_000_000, -5_000, 2**62])


class Told(NamedTuple):
    """A log with its checkpoints and rewinds."""

    events: list[AppendedEvent]
    checkpoints: list[Checkpoint]
    rewinds: list[Rewind]


def _told(
    steps: list[tuple[SessionEvent | Opaque, int, bool]], offsets: list[int], cuts: list[tuple[int, int]], sha: str
) -> Told:
    events: list[AppendedEvent] = []
    at, writer = 1_780_000_000_000, 1
    for event, pause, taken_over in steps:
        at, writer = at + pause, writer + taken_over
        events.append(AppendedEvent(len(events), writer, at, event))
    checkpoints = [
        Checkpoint(
            id="k", offset=offset, commit_sha=sha, effect_ledger=(), incarnation=1, at="2026-12-01T00:00:00.000Z"
        )
        for offset in sorted(offsets)
        if offset <= len(events)
    ]
    rewinds = [
        Rewind(number, cut, cut + length, writer, at, swept=length % 2 == 0)
        for number, (cut, length) in enumerate(cuts, 1)
    ]
    return Told(events, checkpoints, rewinds)


TOLD = st.builds(
    _told,
    st.integers(0, 60).flatmap(
        lambda size: st.lists(st.tuples(EVENTS, _PAUSES, st.booleans()), min_size=size, max_size=size)
    ),
    st.lists(st.integers(0, 60), max_size=4),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=4),
    TEXTS,
)
