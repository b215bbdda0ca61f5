from pathlib import Path

import pytest

from incarnate.domain.dialects.layouts import FILES_OF_ONE, AgentFile, Layout, SessionFiles
from incarnate.domain.dialects.moments import moment
from incarnate.domain.dialects.registry import DIALECTS, find_dialect

RECORDINGS = Path(__file__).parents[3] / "fixtures" / "recordings"
ID = "7047a2a0-9a1f-4d1d-9bce-b68d33358904"


def paths(folder: str) -> list[str]:
    return [path.as_posix() for path in sorted((RECORDINGS / folder / "disk").rglob("*.jsonl"))]


@pytest.mark.parametrize(
    ("harness", "folder", "session", "agents"),
    [
        ("claude-code", "claude/S7", ID, ["a1b6ee8edabd8df20"]),
        ("claude-code", "claude/S2", "55795609-1a44-47b2-84b2-e741b701a333", []),
        ("codex", "codex/S2", "01a22de0-6df2-78f2-9d99-a5bb7f6866dc", []),
        ("pi", "pi/S2", "01a22ddd-b393-73d7-9167-382ae5b5d5f7", []),
        ("@github/copilot", "copilot/S2", "1dfe3c1c-eab8-4d36-b852-cf395a7fbcc6", []),
    ],
)
def test_the_files_of_a_harness_tell_its_sessions(harness: str, folder: str, session: str, agents: list[str]) -> None:
    layout = find_dialect(harness).layout
    [found] = layout.sessions(paths(folder))

    assert (session, agents) == (found.session, [file.agent for file in found.agents])
    assert session == layout.session_of(found.path)


@pytest.mark.parametrize(("harness", "folder"), [("qwen-code", "qwen/S7"), ("kimi", "kimicode/S7")])
def test_sub_agents_are_found_where_the_harness_keeps_them(harness: str, folder: str) -> None:
    [found] = find_dialect(harness).layout.sessions(paths(folder))

    assert 1 == len(found.agents)


def test_a_shortened_session_keeps_its_sub_agents() -> None:
    layout = Layout(main=r"/session-(?P<session>\w+)\.json", agents=r"/(?P<session>[\w-]+)/(?P<agent>\w+)\.json$")

    assert [SessionFiles("d86f", "/c/session-d86f.json", (AgentFile("/c/d86f-2d17/x.json", "x"),))] == layout.sessions(
        ["/c/session-d86f.json", "/c/d86f-2d17/x.json", "/c/other/y.json", "/c/notes.txt"]
    )


def test_files_that_tell_one_session_are_its_parts_where_the_harness_splits_it() -> None:
    layout = find_dialect("gemini-cli").layout
    [found, other] = layout.sessions(
        [f"/{one}.jsonl" for one in ("a/chats/session-2-x", "a/chats/session-1-x", "b/chats/session-1-x")]
    )

    assert ("x", "/a/chats/session-1-x.jsonl", ("/a/chats/session-2-x.jsonl",)) == (
        found.session,
        found.path,
        found.more,
    )
    assert ("x", ()) == (other.session, other.more)
    assert 2 == len(FILES_OF_ONE.sessions(["/a/x.jsonl", "/b/x.jsonl"]))


def test_a_name_that_any_file_could_have_names_no_session() -> None:
    assert FILES_OF_ONE.session_of("/x/stdout.jsonl") is None
    assert ["stdout"] == [one.session for one in FILES_OF_ONE.sessions(["/x/stdout.jsonl"])]


def test_every_dialect_says_where_its_sessions_lie() -> None:
    assert all(dialect.layout.main for dialect in DIALECTS.values())


@pytest.mark.parametrize(
    ("record", "seconds"),
    [
        ({"timestamp": "1970-01-01T00:01:40Z"}, 100.0),
        ({"timestamp": "1970-01-01T00:01:40.500"}, 100.5),
        ({"timestamp": 1796066149.25}, 1796066149.25),
        ({"time": 1796066149250}, 1796066149.25),
        ({"timestamp": "noon", "created_at": 5}, 5.0),
        ({"timestamp": True}, None),
        ({"timestamp": []}, None),
        ([], None),
    ],
)
def test_the_time_of_a_record_is_read_in_whatever_way_it_is_told(record: object, seconds: float | None) -> None:
    assert seconds == moment(record)
