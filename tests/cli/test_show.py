import io
import json
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.actors.system import SessionSystem
from incarnate.cli import text
from incarnate.cli.text import printable
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Opaque,
    Reasoning,
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
from tests.support.commands import INGEST, KEY, recording, run

pytestmark = pytest.mark.usefixtures("store")

FIELDS: dict[str, Any] = {"id": "e", "parent_id": None}


def show(store: str, events: Iterable[SessionEvent | Opaque], *options: str) -> str:
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit_many(events)
    return run("show", KEY, *options).stdout


def test_each_kind_of_event_reads_as_a_line(store: str) -> None:
    shown = show(
        store,
        [
            TurnStart(**FIELDS, turn=0, label="t-a"),
            SystemMessage(**FIELDS, text="be brief"),
            UserMessage(**FIELDS, text="fix it"),
            Reasoning(**FIELDS, text="hm"),
            Reasoning(**FIELDS, provider_continuation="blob"),
            AssistantMessage(**FIELDS, text="on it\nnow"),
            ToolCall(**FIELDS, call_id="c", name="Bash", args={"command": "ls"}),
            ToolResult(**FIELDS, call_id="c", ok=True, result=[{"type": "text", "text": "README.md"}]),
            ToolResult(**FIELDS, call_id="c", ok=False, result=None, error="exit 1"),
            ToolResult(**FIELDS, call_id="d", ok=True, result={"n": 1}),
            Compaction(**FIELDS, reason="manual", replaces_from=0, replaces_to=3, summary="so far"),
            Usage(**FIELDS, input_tokens=3, output_tokens=4, model="m", reasoning_tokens=2),
            TurnEnd(**FIELDS, turn=0, outcome=FailedOutcome(TurnError("api", "overloaded"))),
            TurnEnd(**FIELDS, turn=1, outcome="completed"),
            TurnEnd(**FIELDS, turn=2, outcome=UNSET),
            Opaque("future", "e", None, b'{"type":"future","id":"e","parentId":null,"new":1}'),
        ],
    )
    expected = """\
turn      0 (t-a)
system    be brief
user      fix it
thinking  hm
thinking  (kept by the provider, not readable)
assistant on it
          now
call      Bash {"command":"ls"}
result    Bash README.md
result    Bash failed: exit 1
result    d {"n":1}
compacted manual: events 0 up to 3
          so far
usage     3 in, 4 out, 2 reasoning (m)
end       of turn 0: api: overloaded
end       of turn 1: completed
end       of turn 2
future    {"type":"future","id":"e","parentId":null,"new":1}
"""

    assert expected == shown


def test_what_a_sub_agent_did_stands_inside_its_call(store: str) -> None:
    shown = show(
        store,
        [
            ToolCall(**FIELDS, call_id="c1", name="Agent"),
            ToolCall(**FIELDS, parent_call_id="c1", call_id="c2", name="Agent"),
            AssistantMessage(**FIELDS, parent_call_id="c2", text="deep"),
            AssistantMessage(**FIELDS, parent_call_id="unknown", text="whose?"),
        ],
    )

    assert "call      Agent null\n  call      Agent null\n    assistant deep\n  assistant whose?\n" == shown


def test_control_characters_of_a_log_never_reach_the_terminal(store: str) -> None:
    evil = "\x1b]0;title\x07\x1b[2J\r\x08\x9b31m\u202egnp\u2028\x00"
    result = ToolResult(**FIELDS, call_id=evil, ok=False, error=evil)
    shown = show(store, [AssistantMessage(**FIELDS, text=evil), ToolCall(**FIELDS, call_id="c", name=evil), result])

    assert set() == {character for character in shown if not character.isprintable()} - {"\n"}
    assert "\\u001b]0;title\\u0007\\u001b[2J\\u000d\\u0008\\u009b31m\\u202egnp\\u2028\\u0000" in shown


def test_markup_in_a_log_is_shown_as_it_is(store: str) -> None:
    markup = "[bold red]x[/] [link=http://e.org]y[/link] :smile: [/nothing]"

    assert f"assistant {markup}\n" == show(store, [AssistantMessage(**FIELDS, text=markup)])


def test_long_lines_are_not_broken_where_nobody_reads(store: str) -> None:
    assert f"assistant {'word ' * 100}\n" == show(store, [AssistantMessage(**FIELDS, text="word " * 100)])


def test_what_tools_answered_is_cut_unless_asked_for(store: str) -> None:
    event = ToolResult(**FIELDS, call_id="c", ok=True, result="line\n" * 100)

    assert "more characters: --full]" in show(store, [event])
    assert 100 == run("show", KEY, "--full").stdout.count("line\n")


def test_json_is_an_array_of_the_events() -> None:
    run(*INGEST, recording("S7"))
    shown = json.loads(run("show", KEY, "--json").stdout)

    assert [json.loads(line) for line in run("replay", KEY).stdout.splitlines()] == shown
    assert list(range(21)) == [event["offset"] for event in shown]


def test_json_on_a_terminal_is_the_same_json_without_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", Terminal(written))
    text.write_json({"text": "\x1b\x9b\u202e\u2028é"})

    assert b'{"text":"\\u001b\\u009b\\u202e\\u2028\xc3\xa9"}\n' == written.getvalue()
    assert {"text": "\x1b\x9b\u202e\u2028é"} == json.loads(written.getvalue())


def test_letters_of_every_script_stay_as_they_are() -> None:
    assert "naïve 多行 עברית 👋🏽\tx" == printable("naïve 多行 עברית 👋🏽\tx")
