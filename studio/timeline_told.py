"""What a timeline says of what it shows: the titles that a pointer and a screen reader find."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from incarnate.domain.events import timestamp
from incarnate.domain.wording import counted
from incarnate.studio.timeline_axis import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.rewinds import Rewind
    from incarnate.studio.timeline import Call, Spent, Timeline, Turn, Word

__all__ = [
    "told_agents",
    "told_calls",
    "told_checkpoints",
    "told_rewinds",
    "told_spent",
    "told_turns",
    "told_words",
    "told_writer",
    "tool_of",
]

_MOST_NAMED = 6
NO_CALL = "result without a call"


def tool_of(call: Call) -> str:
    """The tool's name, or what stands for one."""
    return NO_CALL if call.name is None else call.name or "(no name)"


def told_calls(calls: Sequence[Call], timeline: Timeline) -> str:
    """One call with how long it took and what became of it, or several by their tools."""
    if len(calls) == 1:
        [call] = calls
        about = f"{tool_of(call)}: {call.hint}" if call.hint else tool_of(call)
        return f"{about} · {_became(call, timeline)} · {_place(timeline, call.start, call.stop)}"
    starts = [call.start for call in calls]
    failed = sum(call.ok is False for call in calls)
    unanswered = sum(call.stop is None for call in calls)
    tools = _tally(tool_of(call) for call in calls)
    problems = (f"{failed} failed" if failed else "", f"{unanswered} without a result" if unanswered else "")
    parts = [counted(len(calls), "tool call"), tools, *filter(None, problems)]
    return f"{' · '.join(parts)} · {_place(timeline, min(starts), max(starts))}"


def _became(call: Call, timeline: Timeline) -> str:
    if call.stop is None:
        return "no result"
    took = _took(timeline, call.start, call.stop)
    if call.ok:
        return took
    return f"failed after {took}: {call.error}" if call.error else f"failed after {took}"


def told_agents(agents: int, name: str, offset: int, calls: Sequence[Call], timeline: Timeline) -> str:
    """What happened inside one call, or inside several."""
    who = f"inside {name}" if agents == 1 else f"{agents} sub-agents"
    if not calls:
        return f"{who} · no calls · {_place(timeline, offset, offset)}"
    return f"{who} · {told_calls(calls, timeline)}" if len(calls) > 1 else f"{who} · 1 tool call, {tool_of(calls[0])}"


def told_turns(turns: Sequence[Turn], timeline: Timeline) -> str:
    """One turn with its outcome, or several by theirs."""
    if len(turns) == 1:
        [turn] = turns
        outcome = (turn.outcome or "no end").replace("_", " ")
        if turn.error:
            outcome += f" ({turn.error})"
        if not turn.has_start:
            outcome += ", no start"
        took = [] if turn.stop is None or not turn.has_start else [_took(timeline, turn.start, turn.stop)]
        return " · ".join([f"turn {turn.name}", outcome, *took, _place(timeline, turn.start, turn.stop)])
    outcomes = _tally((turn.outcome or "no end").replace("_", " ") for turn in turns)
    return f"{counted(len(turns), 'turn')} · {outcomes} · {_place(timeline, turns[0].start, turns[-1].start)}"


_WORDS = {
    "user": "prompt",
    "assistant": "answer",
    "reasoning": "thought",
    "system": "system message",
    "compaction": "compaction",
}


def told_words(words: Sequence[Word], timeline: Timeline) -> str:
    """Where something of one kind was said."""
    name = _WORDS[words[0].kind]
    told = name if len(words) == 1 else counted(len(words), name)
    return f"{told} · {_place(timeline, words[0].offset, words[-1].offset)}"


def told_spent(spent: Sequence[Spent], timeline: Timeline) -> str:
    """The tokens of one step or of several."""
    fresh, cached, output = (sum(column) for column in ([s[i] for s in spent] for i in (1, 2, 3)))
    tokens = f"{fresh:,} input, {cached:,} from the cache, {output:,} output"
    return f"tokens: {tokens} · {_place(timeline, spent[0].offset, spent[-1].offset)}"


def told_writer(incarnations: Sequence[int], start: int, stop: int, timeline: Timeline) -> str:
    """One incarnation and what it wrote, or several."""
    first, last = incarnations[0], incarnations[-1]
    who = f"incarnation {first}" if len(incarnations) == 1 else f"{len(incarnations)} incarnations, {first} to {last}"
    return f"{who} · {counted(stop - start, 'event')} · {_place(timeline, start, stop - 1)}"


def told_checkpoints(checkpoints: Sequence[Checkpoint]) -> str:
    """One checkpoint, or several."""
    if len(checkpoints) > 1:
        return f"{len(checkpoints)} checkpoints · {_span(checkpoints[0].offset, checkpoints[-1].offset)}"
    [one] = checkpoints
    effects = f" · {counted(len(one.effect_ledger), 'effect')}" if one.effect_ledger else ""
    return f"checkpoint at {one.offset} · {one.commit_sha[:60]}{effects} · incarnation {one.incarnation} · {one.at}"


def told_rewinds(rewinds: Sequence[Rewind]) -> str:
    """One rewind, or several."""
    events = counted(sum(one.head - one.cut for one in rewinds), "event")
    if len(rewinds) > 1:
        return f"{len(rewinds)} rewinds that superseded {events}"
    [one] = rewinds
    swept = ", swept since" if one.swept else ""
    return f"rewind to {one.cut} by incarnation {one.incarnation} · superseded {events}{swept} · {timestamp(one.at_ms)}"


def _tally(names: Iterable[str]) -> str:
    counts = Counter(names).most_common()
    told = [f"{count} {name[:40]}" for name, count in counts[:_MOST_NAMED]]
    more = sum(count for _, count in counts[_MOST_NAMED:])
    return ", ".join([*told, f"{more} more"] if more else told)


def _took(timeline: Timeline, start: int, stop: int) -> str:
    return duration(max(0, timeline.moments[stop] - timeline.moments[start]))


def _place(timeline: Timeline, start: int, stop: int | None) -> str:
    return f"{_span(start, start if stop is None else stop)} · {timestamp(timeline.moments[start])}"


def _span(start: int, stop: int) -> str:
    return f"offset {start}" if stop <= start else f"offsets {start} to {stop}"
