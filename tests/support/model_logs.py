"""Random logs as crashes, several incarnations and careless harnesses leave them, and what a model may see of one.

`expected_messages` works a valid history out from a whole log at once, by sorting. It shares nothing with the
projection, which never sees more than one event.
"""

import json
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import strategies as st

from incarnate import (
    AppendedEvent,
    AssistantMessage,
    Compaction,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.domain.projections.model_messages import UNANSWERED

Event = SessionEvent | Opaque

LINK: dict[str, Any] = {"id": "e", "parent_id": None}
INSIDE: dict[str, Any] = LINK | {"parent_call_id": "a"}

links = st.sampled_from([LINK] * 7 + [INSIDE])
call_ids = st.sampled_from(["a"] * 6 + ["Bash_0"] * 3 + ["call_1|fc_2", "", "ä b", "x" * 200, "a_2"])
texts = st.sampled_from(["", " \n", "hi", "no\u2028w ", '"quoted"', "Error: boom"])
values: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 7, 10**30, "", "out", {"b": [1.5, None], "a": {"z": "é"}}, [], "{}", '{"cut']
)
thoughts = st.sampled_from(
    [{"text": "hm"}, {"text": "", "provider_continuation": "sig"}, {"provider_continuation": "x"}]
)


def _calls(link: dict[str, Any], call_id: str, value: object) -> Event:
    return ToolCall(**link, call_id=call_id, name=("run", "mcp:x.y", "")[len(call_id) % 3], args=value)


def _results(link: dict[str, Any], call_id: str, value: object, error: str | None) -> Event:
    failure = {} if error is None else {"error": error}
    return ToolResult(**link, call_id=call_id, ok=error is None, result=value, **failure)


def _compactions(link: dict[str, Any], first: int, length: int, summary: str | None) -> Event:
    text = {} if summary is None else {"summary": summary}
    return Compaction(**link, reason="auto", replaces_from=first, replaces_to=first + length, **text)


calls = st.builds(_calls, links, call_ids, values)
results = st.builds(_results, links, call_ids, values, st.sampled_from([None, None, "", "boom"]))
compactions = st.builds(
    _compactions,
    links,
    st.one_of(st.just(0), st.integers(0, 40)),
    st.integers(0, 30),
    st.sampled_from([None, "", "so far"]),
)
others = st.one_of(
    st.builds(lambda link, text: UserMessage(**link, text=text), links, texts),
    st.builds(lambda link, text: AssistantMessage(**link, text=text), links, texts),
    st.builds(lambda link, text: SystemMessage(**link, text=text), links, texts),
    st.builds(lambda link, thought: Reasoning(**link, **thought), links, thoughts),
    st.builds(lambda link: Usage(**link, input_tokens=1, output_tokens=1), links),
    st.builds(lambda link: TurnStart(**link, turn=1), links),
    st.builds(lambda link: TurnEnd(**link, turn=1), links),
    st.just(Opaque("new", "e", None, b'{"type":"new","id":"e","parentId":null}')),
)
events: st.SearchStrategy[Event] = st.one_of(calls, calls, results, results, others, others, compactions)
incarnations = st.sampled_from([1] * 9 + [2])


def appended(log: list[tuple[int, Event]]) -> list[AppendedEvent]:
    """The events of `(incarnation, event)` pairs as a log holds them."""
    return [AppendedEvent(offset, incarnation, 0, event) for offset, (incarnation, event) in enumerate(log)]


# Lists of a drawn size: left to itself hypothesis makes short ones, in which little can happen.
logs = st.integers(0, 50).flatmap(
    lambda size: st.lists(st.tuples(incarnations, events), min_size=size, max_size=size).map(appended)
)


class Said(NamedTuple):
    """One part of a history: where it stands, the group of calls that it belongs to, its messages."""

    order: tuple[int, int, int]
    group: int | None
    block: dict[str, Any]
    answer: dict[str, Any] | None


def expected_messages(log: list[AppendedEvent]) -> list[dict[str, Any]]:
    """The JSON of a valid history of `log`."""
    own = [each for each in log if isinstance(each.event, Opaque) or each.event.parent_call_id is not _inside(each)]
    answers = _answers(own)
    groups = _groups(own)
    spans = _spans(own)
    said = [part for each in own if (part := _said(each, answers, groups, spans)) is not None]
    return _joined(sorted(said, key=lambda part: part.order), [span[0] for span in spans.values()])


def _inside(each: AppendedEvent) -> object:
    assert not isinstance(each.event, Opaque)
    return each.event.parent_call_id if isinstance(each.event.parent_call_id, str) else object()


def _answers(own: list[AppendedEvent]) -> dict[int, ToolResult]:
    """The result of each call by the call's offset: a result answers the latest unanswered call of its id."""
    answers: dict[int, ToolResult] = {}
    for each in own:
        if isinstance(each.event, ToolResult):
            waiting = [
                call.offset
                for call in own[: own.index(each)]
                if isinstance(call.event, ToolCall)
                and call.event.call_id == each.event.call_id
                and call.offset not in answers
            ]
            if waiting:
                answers[waiting[-1]] = each.event
    return answers


def _groups(own: list[AppendedEvent]) -> dict[int, int]:
    """The first call's offset for each call: calls of an incarnation with nothing but usage and the like between."""
    groups: dict[int, int] = {}
    first = writer = None
    for each in own:
        if isinstance(each.event, ToolCall):
            first = each.offset if first is None or writer != each.incarnation else first
            writer = each.incarnation
            groups[each.offset] = first
        elif _parts(each.event) or (writer != each.incarnation and not isinstance(each.event, Usage | Opaque)):
            first = None
    return groups


def _parts(event: Event) -> bool:
    if isinstance(event, UserMessage | AssistantMessage | SystemMessage):
        return bool(event.text.strip())
    return not isinstance(event, Usage | Opaque)


def _spans(own: list[AppendedEvent]) -> dict[int, tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for each in own:
        if isinstance(each.event, Compaction):
            first = min(each.event.replaces_from, each.offset)
            spans[each.offset] = (first, max(first, min(each.event.replaces_to, each.offset)))
    return spans


def _said(
    each: AppendedEvent, answers: dict[int, ToolResult], groups: dict[int, int], spans: dict[int, tuple[int, int]]
) -> Said | None:
    event, offset = each.event, each.offset
    later = [span for at, span in spans.items() if at > offset]
    if any(first <= offset < end for first, end in later):
        return None
    if isinstance(event, ToolCall):
        call = {"type": "tool_call", "content": {"id": event.call_id, "name": event.name, "args": event.args}}
        text = answer_text(answers[offset]) if offset in answers else UNANSWERED
        return Said((offset, 1, 0), groups[offset], call, _message("tool", text, event.call_id))
    if isinstance(event, Compaction) and isinstance(event.summary, str) and event.summary.strip():
        mine = spans[offset]
        if mine[0] < mine[1] and any(first <= mine[0] and mine[1] <= end for first, end in later):
            return None
        return Said((mine[0], 0, -offset), None, _message("user", event.summary, None), None)
    if isinstance(event, UserMessage | AssistantMessage | SystemMessage) and event.text.strip():
        role = str(type(event).__struct_config__.tag)
        return Said((offset, 1, 0), None, _message(role, event.text, None), None)
    return None


def answer_text(result: ToolResult) -> str:
    """The text of a result: its error, or its JSON with sorted keys."""
    if result.error and not result.ok:
        return f"Error: {result.error}"
    return json.dumps(result.result, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _message(role: str, text: str, call_id: str | None) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "content": text}], "tool_call_id": call_id}


def _joined(said: list[Said], starts: list[int]) -> list[dict[str, Any]]:
    """The messages of sorted parts; the calls of a group make one, up to where a compaction's range began."""
    runs: list[list[Said]] = [[part] for part in said[:1]]
    for before, part in pairwise(said):
        together = part.group is not None and part.group == before.group
        if together and not any(before.order[0] < start <= part.order[0] for start in starts):
            runs[-1].append(part)
        else:
            runs.append([part])
    messages: list[dict[str, Any]] = []
    for run in runs:
        if run[0].answer is None:
            messages.append(run[0].block)
        else:
            messages.append({"role": "assistant", "content": [part.block for part in run], "tool_call_id": None})
            messages.extend(part.answer for part in run if part.answer is not None)
    return messages
