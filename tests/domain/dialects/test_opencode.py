"""What the recordings of OpenCode do not show: parallel tools, older databases, compactions, lost lines."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.dialects.base import Finishing
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)

Record = dict[str, Any]


def read(records: Iterable[Any], *, ended: bool = False) -> list[Any]:
    normalizer = find_dialect("opencode").normalizer()
    counts = {"id": 0, "turn": 0}

    def count(name: str) -> int:
        counts[name] += 1
        return counts[name] - 1

    linker = Linker(None, 0, lambda: f"n-{count('id')}", lambda: count("turn"))
    events = [event for record in records for event in linker.link(normalizer.feed(record).drafts)]
    if ended and isinstance(normalizer, Finishing):
        events += linker.link(normalizer.finish().drafts)
    return events


def printed(kind: str, part: Record | None = None, **fields: Any) -> Record:
    held = {} if part is None else {"part": {"messageID": "m1", **part}}
    return {"type": kind, "timestamp": 1_000, "sessionID": "ses_1", **held, **fields}


def tool(name: str, status: str = "completed", **state: Any) -> Record:
    return {
        "id": f"prt_{name}",
        "callID": name,
        "tool": "bash",
        "state": {"status": status, "input": {"c": 1}, **state},
    }


def row(kind: str, **data: Any) -> Record:
    return {"table": "event", "row": {"id": "evt", "type": f"{kind}.1", "data": json.dumps(data)}}


def message(name: str, role: str, session: str = "ses_1", **info: Any) -> Record:
    return row("message.updated", info={"id": name, "sessionID": session, "role": role, **info})


def part(of: str, kind: str, name: str, session: str = "ses_1", **fields: Any) -> Record:
    held = {"id": name, "messageID": of, "sessionID": session, "type": kind, **fields}
    return row("message.part.updated", part=held)


def asked(name: str, text: str, session: str = "ses_1") -> list[Record]:
    return [message(name, "user", session), part(name, "text", f"{name}t", session, text=text)]


def kinds(events: Iterable[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


def of(kind: type[Any], events: Iterable[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


DONE = {"start": 1, "end": 2}


def test_an_attempt_that_is_cut_and_printed_again_is_told_once() -> None:
    thought = {"id": "p1", "text": "hm", "time": DONE}
    again = {"id": "p2", "text": "hm", "time": DONE}
    records = [printed("step_start", {}), printed("reasoning", thought), printed("step_start", {})]
    events = read([*records, printed("reasoning", again), printed("step_finish", {"reason": "stop"})])

    assert ["TurnStart", "Reasoning", "TurnEnd"] == kinds(events)


def test_what_stands_before_a_tool_that_answered_is_no_attempt() -> None:
    records = [printed("step_start", {}), printed("text", {"id": "p1", "text": "so", "time": DONE})]
    events = read([*records, printed("tool_use", tool("a", output="x")), printed("step_start", {})])

    assert ["TurnStart", "AssistantMessage", "ToolCall", "ToolResult"] == kinds(events)


@pytest.mark.parametrize(
    ("state", "ok", "error"),
    [
        ({"output": "x", "metadata": {"exit": 0}}, True, UNSET),
        ({"output": "x", "metadata": {"exit": 3}}, False, UNSET),
        ({"output": "x"}, True, UNSET),
        ({"status": "error", "error": "no such file"}, False, "no such file"),
    ],
)
def test_failures_are_told_however_they_are_marked(state: Record, *, ok: bool, error: object) -> None:
    [result] = of(ToolResult, read([printed("step_start", {}), printed("tool_use", tool("a", **state))]))

    assert (ok, error) == (result.ok, result.error)
    assert result.result == (error or "x")


def test_a_process_that_was_killed_in_a_step_is_told_from_the_next() -> None:
    records = [printed("step_start", {}), printed("text", {"id": "p1", "text": "so", "time": DONE})]
    events = read([*records, printed("step_start", {"messageID": "m2"})])

    assert ["TurnStart", "AssistantMessage", "TurnEnd", "TurnStart"] == kinds(events)
    assert "interrupted" == of(TurnEnd, events)[0].outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ({"name": "MessageAbortedError", "data": {}}, "interrupted"),
        ({"name": "APIError", "data": {"message": "no"}}, ("APIError", "no")),
        ({"name": "Odd"}, ("Odd", "Odd")),
        ("words", ("error", "words")),
    ],
)
def test_an_error_ends_the_turn(error: object, outcome: object) -> None:
    [end] = of(TurnEnd, read([printed("error", error=error)]))
    told = end.outcome if isinstance(end.outcome, str) else (end.outcome.error.kind, end.outcome.error.message)

    assert outcome == told


def test_the_newest_versions_say_that_they_are_done() -> None:
    assert ["completed"] == [e.outcome for e in of(TurnEnd, read([printed("step_start", {}), printed("done")]))]


def test_the_blob_of_a_thought_and_all_that_goes_with_it_are_kept() -> None:
    metadata = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "ZW5j"}}
    thought = {"id": "p1", "text": "", "metadata": metadata, "time": DONE}
    finish = printed("step_finish", {"reason": "stop"})
    [reasoning] = of(Reasoning, read([printed("step_start", {}), printed("reasoning", thought), finish]))

    assert ("ZW5j", metadata) == (reasoning.provider_continuation, json.loads(reasoning.native))


def test_tokens_are_told_kind_by_kind() -> None:
    tokens = {"input": 3, "output": 5, "reasoning": 2, "cache": {"read": 7, "write": 11}}
    finish = part("m2", "step-finish", "p1", tokens=tokens)
    events = read([*asked("m1", "hi"), message("m2", "assistant", modelID="m"), finish])
    [spent] = of(Usage, events)

    assert (3, 7, 2, 7, 11, "m") == (
        spent.input_tokens,
        spent.output_tokens,
        spent.reasoning_tokens,
        spent.cache_read_tokens,
        spent.cache_write_tokens,
        spent.model,
    )


def test_parts_come_in_the_order_of_their_beginnings() -> None:
    events = read(
        [
            *asked("m1", "hi"),
            message("m2", "assistant"),
            part("m2", "step-start", "p0"),
            part("m2", "text", "p1", text="", time={"start": 1}),
            part("m2", "tool", "p2", **tool("a", "running")),
            part("m2", "tool", "p3", **tool("b", "running")),
            part("m2", "tool", "p3", **tool("b", output="b")),
            part("m2", "text", "p1", text="both", time=DONE),
            part("m2", "tool", "p2", **tool("a", output="a")),
            part("m2", "tool", "p2", **tool("a", output="a")),
        ]
    )

    assert ["AssistantMessage", "ToolCall", "ToolCall", "ToolResult", "ToolResult"] == kinds(events[2:])
    assert ["b", "a"] == [event.call_id for event in of(ToolResult, events)]


def test_a_tool_that_answers_after_its_step_is_paired_still() -> None:
    events = read(
        [
            *asked("m1", "hi"),
            message("m2", "assistant"),
            part("m2", "tool", "p2", **tool("a", "running")),
            part("m2", "step-finish", "p4"),
            part("m2", "tool", "p2", **tool("a", output="late")),
        ]
    )

    assert (["a"], ["late"]) == ([e.call_id for e in of(ToolCall, events)], [e.result for e in of(ToolResult, events)])


def test_calls_whose_arguments_never_came_were_none() -> None:
    cut = tool("a", "error", error="Tool execution aborted")
    cut["state"]["input"] = {}
    records = [*asked("m1", "hi"), message("m2", "assistant"), part("m2", "tool", "p2", **tool("a", "pending"))]
    events = read([*records, part("m2", "tool", "p2", **cut), message("m2", "assistant", time={"completed": 5})])

    assert ["TurnStart", "UserMessage", "TurnEnd"] == kinds(events)


def test_a_sub_agent_is_inside_its_call_however_quick_it_is() -> None:
    task = tool("t", "running")
    task["state"] |= {"input": {"prompt": "sub"}, "metadata": {"sessionId": "ses_2"}}
    events = read(
        [
            row("session.created", info={"id": "ses_1"}),
            *asked("m1", "hi"),
            message("m2", "assistant"),
            part("m2", "step-start", "p0"),
            part("m2", "text", "p1", text="", time={"start": 1}),
            row("session.created", info={"id": "ses_2", "parentID": "ses_1"}),
            part("m2", "tool", "p2", **task),
            *asked("m3", "sub", "ses_2"),
            part("m2", "text", "p1", text="go", time=DONE),
        ]
    )

    assert ["TurnStart", "UserMessage", "AssistantMessage", "ToolCall", "UserMessage"] == kinds(events)
    assert ["t"] == [event.parent_call_id for event in events if event.parent_call_id is not UNSET]


def test_a_sub_agent_whose_call_is_unknown_is_named_itself() -> None:
    created = [row("session.created", info=i) for i in ({"id": "ses_1"}, {"id": "ses_2", "parentID": "ses_1"})]

    assert ["agent:ses_2"] == [event.parent_call_id for event in read([*created, *asked("m3", "sub", "ses_2")])]


def test_another_session_of_the_database_is_left_out() -> None:
    normalizer = find_dialect("opencode").normalizer()
    told = [normalizer.feed(record) for record in [*asked("m1", "hi"), *asked("m9", "other", "ses_9")]]

    assert ["other session"] * 2 == [found.ignored for found in told[2:]]
    assert not [draft for found in told[2:] for draft in found.drafts]


def test_a_summary_stands_for_all_before_what_is_kept() -> None:
    compacted = [message("m3", "user"), part("m3", "compaction", "p3", auto=True, tail_start_id="m2")]
    summed = [
        message("m4", "assistant", summary=True),
        part("m4", "text", "p4", text="so far", time=DONE),
        message("m4", "assistant", summary=True, time={"completed": 9}, finish="stop"),
    ]
    said = [message("m2", "assistant"), part("m2", "text", "p2", text="yes", time=DONE)]
    over = message("m2", "assistant", time={"completed": 5}, finish="stop")
    events = read([*asked("m1", "hi"), *said, over, *compacted, *summed])
    [compaction] = of(Compaction, events)
    kept = events[compaction.replaces_to : events.index(compaction)]

    assert ("auto", "so far", 0) == (compaction.reason, compaction.summary, compaction.replaces_from)
    assert ["yes"] == [event.text for event in kept if isinstance(event, AssistantMessage)]


def test_a_database_without_events_is_read_by_its_messages_and_parts() -> None:
    def table(name: str, data: Record, **columns: Any) -> Record:
        return {"table": name, "row": {**columns, "session_id": "ses_1", "data": json.dumps(data)}}

    events = read(
        [
            {"table": "session", "row": {"id": "ses_1", "parent_id": None}},
            table("message", {"role": "user", "time": {"created": 1}}, id="m1"),
            table("message", {"role": "assistant", "modelID": "m", "finish": "stop"}, id="m2"),
            table("part", {"type": "text", "text": "hi"}, id="p1", message_id="m1"),
            table("part", {"type": "text", "text": "yes", "time": DONE}, id="p2", message_id="m2"),
            table("part", {"type": "step-finish", "tokens": {"input": 1}}, id="p3", message_id="m2"),
        ],
        ended=True,
    )

    assert ["TurnStart", "UserMessage", "AssistantMessage", "Usage"] == kinds(events)


def test_a_message_of_the_server_is_read_alone() -> None:
    exported = {"info": {"id": "m1", "sessionID": "ses_1", "role": "user"}, "parts": [{"type": "text", "text": "hi"}]}
    exported["parts"][0] |= {"id": "p1", "messageID": "m1", "sessionID": "ses_1"}  # type: ignore[index]

    assert ["hi"] == [event.text for event in of(UserMessage, read([exported]))]


@pytest.mark.parametrize(
    "record",
    [
        [],
        {},
        printed("text"),
        printed("tool_use", {"id": "p"}),
        printed("tool_use", {"state": {"status": "completed"}}),
        {"table": "event", "row": None},
        {"table": "event", "row": {"type": "x", "data": "{"}},
        part("m1", "tool", "p1"),
    ],
)
def test_a_record_that_lacks_what_it_must_have_is_refused(record: object) -> None:
    with pytest.raises(DialectError):
        read([record])


def test_turns_of_a_database_begin_with_the_prompt() -> None:
    events = read([*asked("m1", "one"), *asked("m2", "two")])

    assert 2 == len(of(TurnStart, events))
    assert ["interrupted"] == [event.outcome for event in of(TurnEnd, events)]
