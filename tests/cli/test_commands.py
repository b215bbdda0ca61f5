"""What all commands share: help, documentation, `--json`, errors, the default store."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest

import incarnate.cli
from incarnate.cli.app import cli
from tests.support.commands import INGEST, KEY, command_line, recording, run

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(cli.commands)


def documented(name: str) -> str:
    """The part of docs/cli.md about one command."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    found = re.search(rf"^## `incarnate {name}`$(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/cli.md says nothing about {name}"
    return found[1]


def options_of(name: str) -> list[str]:
    parameters = cli.commands[name].params
    return [text for parameter in parameters if isinstance(parameter, click.Option) for text in parameter.opts]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_for_itself_and_each_option(name: str) -> None:
    command = cli.commands[name]
    silent = [option.name for option in command.params if isinstance(option, click.Option) and not option.help]

    assert command.help
    assert [] == silent
    assert 0 == run(name, "--help").exit_code


def test_what_each_command_does_is_listed_in_one_whole_line() -> None:
    listed = run("--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()

    assert COMMANDS == [line.split()[0] for line in listed]
    assert [] == [line for line in listed if not line.endswith(".") or line.endswith("...")]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_help_names_a_type_of_click_s(name: str) -> None:
    text = run(name, "--help").stdout

    assert [] == [word for word in ("RANGE", "INTEGER", "FLOAT", "PATH") if word in text]


NUMBERS = [
    (name, option)
    for name in COMMANDS
    for option in cli.commands[name].params
    if isinstance(option, click.Option) and isinstance(option.type, click.IntRange) and option.type.max is None
    if (name, option.name) not in {("simulate", "seeds"), ("run", "max_restarts")}  # it would do as it is told
]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("number", [str(2**31), str(2**63), "9" * 400, "9" * 5000], ids=lambda number: f"{len(number)}")
@pytest.mark.parametrize(("name", "option"), NUMBERS, ids=lambda one: getattr(one, "name", one))
def test_a_number_without_end_is_taken_or_refused_in_words(name: str, option: click.Option, number: str) -> None:
    run(*INGEST, recording("S1"))
    others = {"replay": [str(KEY)], "simulate": ["--seeds", "1", "--scenario", "take-over"]}.get(name, [])
    result = run(name, *others, option.opts[-1], number)

    assert 0 == result.exit_code or ("Error: " in result.stderr and "\nTry: " in result.stderr)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_each_of_its_options_is_documented(name: str) -> None:
    text = documented(name)
    told_above = [option for option in ["--store"] if f"[{option} URL]" in text]
    missing = [option for option in options_of(name) if f"`{option}" not in text and option not in told_above]

    assert [] == missing


def test_nothing_is_documented_that_is_no_command() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    assert COMMANDS == sorted(re.findall(r"^## `incarnate (\w+)`$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "run"])  # what it prints is the harness's own
def test_every_command_prints_json_when_asked(name: str) -> None:
    assert "--json" in options_of(name)


CHOICES = [
    (name, option)
    for name in COMMANDS
    for option in cli.commands[name].params
    if isinstance(option, click.Option) and isinstance(option.type, click.Choice)
]


@pytest.mark.parametrize(("name", "option"), CHOICES, ids=lambda one: getattr(one, "name", one))
def test_every_choice_is_asked_for_by_what_was_nearly_written(name: str, option: click.Option) -> None:
    assert isinstance(option.type, click.Choice)
    meant = option.type.choices[-1]
    result = run(name, option.opts[-1], f"{meant}s")

    assert 2 == result.exit_code
    assert f"Did you mean {meant!r}?\nTry: incarnate {name} --help\n" in result.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_no_file_of_a_command_is_longer_than_150_lines(name: str) -> None:
    file = sys.modules[str(getattr(cli.commands[name].callback, "__module__", None))].__file__
    assert file is not None

    assert len(Path(file).read_bytes().splitlines()) <= 150


def test_the_exit_codes_are_told() -> None:
    codes = ["0  done", "1  refused or failed", "2  the command line is wrong", "3  ingest took all but some lines"]
    codes.append("130  interrupted")
    text = run("--help").stdout

    assert [] == [code for code in codes if code not in text]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["check"], "plain,checkpoints\n"),
        (["export", KEY, "--format", "ht"], "plain,html\n"),
        (["show", "--fu"], "plain,--full\n"),
    ],
)
def test_a_shell_completes_what_is_begun(words: list[object], expected: str) -> None:
    typed = {"COMP_WORDS": " ".join(map(str, ["incarnate", *words])), "COMP_CWORD": str(len(words))}
    asked = {"_INCARNATE_COMPLETE": "bash_complete", **typed}
    # `run` gives the name by which the command goes, whatever it was started as.
    process = subprocess.run(command_line(), env={**os.environ, **asked}, capture_output=True, text=True, check=False)

    assert expected == process.stdout


def test_the_version_is_that_of_the_package() -> None:
    assert re.fullmatch(r"incarnate \d+\.\d+\.\d+\n", run("--version").stdout)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("name", ["show", "replay", "resume", "stats"])
def test_a_key_that_is_none_is_a_wrong_command_line(name: str) -> None:
    result = run(name, "no-key")

    assert 2 == result.exit_code
    assert "Error: 'no-key' is no activation key" in result.stderr
    assert "Try: write PROCESS_INSTANCE_KEY/ELEMENT_ID" in result.stderr


@pytest.mark.parametrize("name", ["show", "replay", "resume", "stats"])
def test_an_activation_that_the_store_does_not_hold_is_an_error(name: str, store: str) -> None:
    run(*INGEST, recording("S1"))
    result = run(name, "pik-1/unknown")

    assert 1 == result.exit_code
    assert f"Error: {store} holds no activation pik-1/unknown\nTry: incarnate ls lists what it holds\n" == result.stderr
    assert "pik-1/unknown" not in run("ls").stdout


@pytest.mark.parametrize("arguments", [("ls",), ("show", KEY), ("replay", KEY), ("resume", KEY), ("stats", KEY)])
def test_reading_makes_no_store(arguments: tuple[object, ...], data_folder: Path) -> None:
    result = run(*arguments)

    assert 1 == result.exit_code
    assert f"Error: there is no store yet at {data_folder}/incarnate/sessions.db" in result.stderr
    assert not data_folder.exists()


def test_an_unknown_store_is_an_error_with_a_hint() -> None:
    result = run("ls", "--store", "ftp://somewhere")

    assert 1 == result.exit_code
    assert "Error: 'ftp://somewhere' names no store" in result.stderr
    assert "Try: use memory://" in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep data elsewhere")
def test_the_default_store_is_readable_by_its_owner_alone(data_folder: Path) -> None:
    run(*INGEST, recording("S1"))
    file = data_folder / "incarnate" / "sessions.db"

    assert 0o700 == stat.S_IMODE(file.parent.stat().st_mode)
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    assert str(KEY) in run("ls").stdout


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep data elsewhere")
def test_a_relative_data_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    run(*INGEST, recording("S1"))

    assert (tmp_path / "home" / ".local" / "share" / "incarnate" / "sessions.db").is_file()


def test_a_data_folder_may_hold_characters_that_mean_something_in_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "a?b%20c#d é"))
    run(*INGEST, recording("S1"))

    assert str(KEY) in run("ls").stdout
    assert (tmp_path / "a?b%20c#d é" / "incarnate" / "sessions.db").is_file()


def test_without_the_extra_it_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "incarnate.cli.app")
    monkeypatch.setitem(sys.modules, "click", None)
    for name in [name for name in sys.modules if name.startswith("incarnate.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as caught:
        incarnate.cli.main()

    assert 1 == caught.value.code
    assert (
        "Error: the command line needs the extra 'cli', which is not installed\n"
        'Try: pip install "incarnate[cli]"\n' == capsys.readouterr().err
    )


@pytest.mark.usefixtures("store")
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(b'{"type":"assistant","message":{"content":"%s"}}\n' % (b"x" * 1000) * 500)
    run(*INGEST, file)
    for command in (("replay", KEY), ("show", KEY), ("ls",)):
        process = subprocess.Popen(command_line(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()

        assert b"" == process.stderr.read()
        process.stderr.close()
        process.wait()
