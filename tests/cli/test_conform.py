import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import FIXTURES, INGEST, recording, run
from tests.support.stores import BACKENDS

pytestmark = pytest.mark.smoke

VECTORS = FIXTURES / "vectors"


# When a store syncs is nothing that a dispatcher could tell: one of the two is enough for `process`.
ROWS = [
    (backend, dispatcher)
    for backend in BACKENDS
    for dispatcher in ("calling", "thread")
    if dispatcher == "calling" or not backend.endswith("-process")
]


def transcript_log(**changed: object) -> bytes:
    """A recorded log, of which something is not as it was recorded."""
    log: dict[str, Any] = {}
    for line in (VECTORS / "transcript_logs.jsonl").read_bytes().split(b"\n"):
        log = json.loads(line)
        if log["nextTurn"] == 0:
            break
    return json.dumps({**log, **changed}).encode()


@pytest.mark.timeout(600)  # 12,000 commits: 3 seconds on a quiet machine, and ten times that on a busy one
@pytest.mark.parametrize(("backend", "dispatcher"), ROWS)
def test_the_vectors_hold_on_every_store_under_both_dispatchers(
    backend: str, dispatcher: str, swift_path: Path
) -> None:
    url = BACKENDS[backend].url(swift_path)
    result = run("conform", VECTORS, "--store", url, "--dispatcher", dispatcher, "--json")
    told = json.loads(result.stdout)
    counts = {name: tuple(count.values()) for name, count in told["files"].items()}

    assert 0 == result.exit_code
    assert (126, 0, 0) == counts["events.jsonl"]
    assert (120, 0, 0) == counts["log_traces.jsonl"]
    assert (120, 0, 0) == counts["session_traces.jsonl"]
    assert (720, 0, 0) == counts["dialects.jsonl"]
    assert (6, 0, 0) == counts["resume.jsonl"]
    assert (240, 0, 0) == counts["transcript_rows.jsonl"]
    assert (240, 0, 0) == counts["transcript_logs.jsonl"]
    assert (120, 0, 0) == counts["transcript_files.jsonl"]
    assert (8, 0, 0) == counts["file_names.jsonl"]
    assert (120, 0, 0) == counts["acp_updates.jsonl"]
    assert (0, 0) == (told["failed"], told["uncovered"])


def test_the_json_is_what_the_vectors_say(tmp_path: Path) -> None:
    (tmp_path / "later.jsonl").write_bytes(b"{}\n\n[]\n")
    (tmp_path / "README.md").write_bytes(b"no vectors\n")
    expected = {
        "files": {"later.jsonl": {"passed": 0, "failed": 0, "uncovered": 2}},
        "passed": 0,
        "failed": 0,
        "uncovered": 2,
    }

    assert expected == json.loads(run("conform", tmp_path, "--json").stdout)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("events.jsonl", b'{"input":{"type":"user","id":"e","parentId":null,"text":"a"},"error":"event-shape"}'),
        ("events.jsonl", b'{"input":{"type":"user","id":"e","parentId":null},"event":{}}'),
        ("events.jsonl", b"not json"),
        ("events.jsonl", b"[]"),
        ("log_traces.jsonl", b'{"ops":[["nextOffset"]],"results":[{"ok":1}]}'),
        ("log_traces.jsonl", b'{"ops":[["nextOffset"]],"results":[{"ok":false}]}'),
        ("log_traces.jsonl", b'{"ops":[["unknown"]],"results":[{"ok":0}]}'),
        ("session_traces.jsonl", b'{"steps":[{"op":"unknown"}],"results":[{"ok":0}]}'),
        ("session_traces.jsonl", b'{"steps":[]}'),
        ("dialects.jsonl", b'{"harness":"claude-code","records":[],"events":[{"parentId":null}]}'),
        ("dialects.jsonl", b'{"harness":"claude-code","records":[{}],"events":[]}'),
        ("resume.jsonl", b'{"harness":"claude-code","resume":{},"advertisement":{}}'),
        ("transcript_rows.jsonl", b'{"line":"{}","ok":true,"rewritten":"{}"}'),
        ("transcript_files.jsonl", b'{"base64":"","rows":[],"validBytes":0,"torn":{"line":1,"offset":0}}'),
        ("transcript_files.jsonl", b'{"base64":"a","rows":[],"validBytes":0,"torn":null}'),
        ("file_names.jsonl", b'{"sessionId":"a b","fileName":"a b.jsonl"}'),
        ("transcript_logs.jsonl", b'{"rows":["torn"]}'),
        ("transcript_logs.jsonl", transcript_log(engine=[{}])),
        ("transcript_logs.jsonl", transcript_log(studio=[{}])),
        ("transcript_logs.jsonl", transcript_log(sse=[{}])),
        ("transcript_logs.jsonl", transcript_log(analysis={})),
        ("transcript_logs.jsonl", transcript_log(nextTurn=1)),
    ],
)
def test_a_line_that_does_not_hold_fails(file: str, line: bytes, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(line + b"\n")
    result = run("conform", tmp_path)

    assert 1 == result.exit_code
    assert f"{file}, line 1: " in result.stdout


def test_what_the_store_held_stays_as_it_was(swift_path: Path) -> None:
    store = ("--store", f"sqlite:///{swift_path}/sessions.db")
    run(*INGEST, *store, recording("S1"))
    before = run("replay", "pik-1/implement-task", *store).stdout
    for _ in range(2):
        assert 0 == run("conform", VECTORS, *store).exit_code

    assert before
    assert before == run("replay", "pik-1/implement-task", *store).stdout


@pytest.mark.usefixtures("store")
def test_the_users_own_store_is_never_tried(tmp_path: Path) -> None:
    run("conform", VECTORS)

    assert not (tmp_path / "sessions.db").exists()


def test_a_folder_without_vectors_is_an_error(tmp_path: Path) -> None:
    result = run("conform", tmp_path)

    assert 1 == result.exit_code
    assert f"Error: {tmp_path} holds no vectors" in result.stderr


def test_a_folder_that_is_not_there_is_a_wrong_command_line(tmp_path: Path) -> None:
    assert 2 == run("conform", tmp_path / "missing").exit_code


@pytest.mark.parametrize("url", ["x", "sqlite:///{}", "sqlite:///{}/no/x.db"])
def test_a_store_that_cannot_be_opened_is_one_error_and_no_table(tmp_path: Path, url: str) -> None:
    result = run("conform", VECTORS, "--store", url.format(tmp_path))

    assert (1, "") == (result.exit_code, result.stdout)
    assert result.stderr.startswith("Error: ")
    assert 2 == result.stderr.count("\n")
