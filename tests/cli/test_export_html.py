"""`incarnate export --format html|svg`: what a session looks like, in a file."""

import json
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from incarnate import ActivationKey, SessionSystem, UserMessage
from incarnate.domain.commands import AppendMany
from tests.support.commands import INGEST, KEY, command_line, recording, run, start

pytestmark = pytest.mark.smoke

# The command in a process that cannot import what only the server needs.
WITHOUT_SERVER = """
import sys
for name in ("starlette", "uvicorn", "anyio"):
    sys.modules[name] = None
from incarnate.cli import main
main()
"""


@pytest.fixture(autouse=True)
def ingested(store: str) -> str:
    run(*INGEST, "--checkpoint-every", "turn", recording("S7"))
    return store


def said(store: str, text: str, times: int) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit_many([UserMessage(id="e", parent_id=None, text=text) for _ in range(times)])


def test_the_page_goes_to_standard_output_or_into_a_file(tmp_path: Path) -> None:
    printed = run("export", KEY, "--format", "html")
    told = run("export", KEY, "--format", "html", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert printed.stdout.startswith("<!doctype html>")
    assert f"<title>{KEY} · incarnate</title>" in page
    assert f"{tmp_path}/page.html: {len(page.encode())} bytes\n" == told.stdout
    assert 0o600 == stat.S_IMODE((tmp_path / "page.html").stat().st_mode)


def test_the_report_is_json_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "timeline.svg"
    told = json.loads(run("export", KEY, "--format", "svg", "-o", file, "--json").stdout)

    assert {
        "key": str(KEY),
        "format": "svg",
        "file": str(file),
        "bytes": file.stat().st_size,
        "leftOut": {},
    } == told


def test_a_superseded_tail_that_lost_a_row_leaves_the_rest_of_the_page(store: str, tmp_path: Path) -> None:
    with SessionSystem.open(store) as system:
        system.activation(KEY).ask(AppendMany(1, 3, (UserMessage(id="e", parent_id=None, text="again"),)))
    with closing(sqlite3.connect(store.removeprefix("sqlite:///"))) as db, db:
        db.execute("DELETE FROM superseded WHERE offset = 5")
    told = json.loads(run("export", KEY, "--format", "html", "-o", tmp_path / "page.html", "--json").stdout)

    assert {"damaged superseded tail": 1} == told["leftOut"]


@pytest.mark.parametrize(("options", "width"), [((), "1200"), (("--width", "640"), "640")])
def test_the_picture_is_as_wide_as_was_asked(options: tuple[str, ...], width: str) -> None:
    drawn = ET.fromstring(run("export", KEY, "--format", "svg", *options).stdout)

    assert width == drawn.attrib["width"]


def test_neither_needs_what_only_the_server_does() -> None:
    for form in ("html", "svg"):
        command = [sys.executable, "-c", WITHOUT_SERVER, "export", str(KEY), "--format", form]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)

        assert (0, "") == (answer.returncode, answer.stderr)
        assert answer.stdout.startswith("<!doctype html>" if form == "html" else "<svg ")


@pytest.mark.parametrize("form", ["html", "svg"])
def test_secrets_are_masked_unless_asked_otherwise(store: str, form: str) -> None:
    key, secret = ActivationKey("order", "task"), "sk-" + "a1" * 20
    with SessionSystem.open(store) as system:
        session = system.claim(key)
        session.emit(UserMessage(id="e", parent_id=None, text=secret))
        session.checkpoint(secret)
    texts = [run("export", key, "--format", form, *option).stdout for option in ((), ("--mask",), ("--no-mask",))]

    assert [False, False, True] == [secret[:7] in text for text in texts]  # all that a drawing shows of a commit


@pytest.mark.parametrize(
    ("form", "option", "told"),
    [
        ("canonical", "--no-mask", "--format canonical has no --no-mask"),
        ("openai", "--mask", "--format openai has no --mask"),
        ("svg", "--max-size=3", "--format svg has no --max-size"),
        ("html", "--width=400", "--format html has no --width"),
    ],
)
def test_an_option_that_would_say_nothing_is_refused(form: str, option: str, told: str) -> None:
    answer = run("export", KEY, "--format", form, option)

    assert 2 == answer.exit_code
    assert told in answer.stderr


def test_a_session_too_large_is_told_and_leaves_the_file_as_it_was(store: str, tmp_path: Path) -> None:
    said(store, "x" * 3000, 600)
    file = tmp_path / "page.html"
    file.write_text("as it was")
    answer = run("export", KEY, "--format", "html", "--max-size", 1, "-o", file)

    assert 1 == answer.exit_code
    assert "takes more than 1048576 bytes as a page" in answer.stderr
    assert "incarnate studio" in answer.stderr
    assert "as it was" == file.read_text()
    assert [file.name] == [one.name for one in tmp_path.iterdir() if one.suffix == ".html" or "page" in one.name]


def test_what_was_cut_is_counted(store: str, tmp_path: Path) -> None:
    said(store, "x" * 300_000, 3)
    answer = run("export", KEY, "--format", "html", "-o", tmp_path / "page.html")

    assert "left out: 6 long text" in answer.stdout


def test_an_unknown_session_is_told() -> None:
    answer = run("export", "no/body", "--format", "html")

    assert 1 == answer.exit_code
    assert "holds no activation no/body" in answer.stderr


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    process = start(command_line("export", KEY, "--format", "html"))
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    complaint = process.stderr.read()
    process.stderr.close()

    assert (1, b"") == (process.wait(), complaint)
