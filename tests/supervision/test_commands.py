"""Command lines of harnesses."""

import subprocess

import pytest

from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import UnclearPromptError
from incarnate.supervision.commands import Command, carry_prompt, cut_transcript, go_on_prompt, is_go_on, legible

LINES = [
    ("claude-code", "claude -p P --verbose", "claude --resume=ID -p GO --verbose"),
    ("codex", "codex exec --json P", "codex exec --json resume ID GO"),
    ("gemini-cli", "gemini -o stream-json -p P", "gemini -o stream-json --resume ID -p GO"),
    ("qwen-code", "qwen --yolo -p P", "qwen --yolo --resume ID -p GO"),
    ("pi", "pi --mode json P", "pi --mode json --session ID GO"),
    ("kimi", "kimi --print -p P", "kimi --print --session ID -p GO"),
    ("@github/copilot", "copilot -p P --allow-all-tools", "copilot --resume=ID -p GO --allow-all-tools"),
    ("opencode", "opencode run --format json P", "opencode run --format json --session ID GO"),
    ("codex", "codex exec --json P -m gpt-5.5", "codex exec --json -m gpt-5.5 resume ID GO"),
    ("codex", "codex exec P --json", "codex exec --json resume ID GO"),
    ("codex", "codex exec -p work --json -- P", "codex exec -p work --json resume ID -- GO"),
    ("codex", "npx -y @openai/codex@0.171.0 exec --json P", "npx -y @openai/codex@0.171.0 exec --json resume ID GO"),
    ("gemini-cli", "gemini --prompt=P -o stream-json", "gemini --resume ID --prompt=GO -o stream-json"),
    ("gemini-cli", "gemini -o stream-json P --new 7", "gemini -o stream-json --resume ID GO --new 7"),
    ("claude-code", "claude -p --verbose P --tools A B", "claude -p --verbose --resume=ID GO --tools A B"),
    ("claude-code", "claude -p --model opus P", "claude -p --model opus --resume=ID GO"),
    ("@github/copilot", "copilot --new x -p P", "copilot --new x --resume=ID -p GO"),
    ("pi", "pi -p P --mode json", "pi --session ID -p GO --mode json"),
    ("opencode", "opencode run P -m a/b", "opencode run --session ID GO -m a/b"),
    ("claude-code", "/x/bin/claude.exe -p P --model opus", "/x/bin/claude.exe --resume=ID -p GO --model opus"),
    (
        "pi",
        "node /node_modules/pi/dist/cli.js --mode json P",
        "node /node_modules/pi/dist/cli.js --mode json --session ID GO",
    ),
    ("kimi", "kimi --print -c P", "kimi --print --session ID -c GO"),
]


@pytest.mark.parametrize(("harness", "line", "resumed"), LINES, ids=[line[1] for line in LINES])
def test_the_users_line_goes_on_with_a_session_as_the_real_program_takes_it(
    harness: str, line: str, resumed: str
) -> None:
    command = Command.parse(line.split())

    assert "P" == command.prompt
    assert tuple(line.split()) == command.asking("P")
    assert tuple(resumed.split()) == command.resuming(find_dialect(harness), "ID", "GO")


def test_a_prompt_that_is_named_is_found_or_put_at_the_end() -> None:
    assert ("agent", "{prompt}", "--json") == Command.parse(["agent", "do it", "--json"], "do it").argv
    assert ("agent", "--json", "{prompt}") == Command.parse(["agent", "--json"], "do it").argv
    assert ("agent", "--say={prompt}") == Command.parse(["agent", "--say={prompt}"], "do it").argv


@pytest.mark.parametrize(
    "line",
    [
        "codex exec --new P",
        "codex exec --json resume ID",
        "codex exec a b",
        "codex exec -",
        "claude -p --resume P",
        "gemini -p",
        "gemini -o stream-json -p --yolo",
        "gemini -p a --prompt=b",
        "copilot P",
        "kimi --print P",
        "pi @notes.md",
        "agent --model gpt P",
        "agent -p P --model gpt",
    ],
)
def test_a_prompt_that_is_not_certain_is_not_guessed(line: str) -> None:
    with pytest.raises(UnclearPromptError) as raised:
        Command.parse(line.split())

    assert "{prompt}" in raised.value.hint


def test_a_folder_that_is_called_as_a_harness_is_no_program() -> None:
    line = ["python", "-I", "agent.py", "/recordings/claude", "--speed", "20", "-p", "P"]

    assert "P" == Command.parse(line, None, "claude-code").prompt


def test_a_profile_is_no_prompt_whatever_the_program_is_called() -> None:
    with pytest.raises(UnclearPromptError, match="'P', 'work'"):
        Command.parse(["my-agent", "P", "-p", "work"], None, "codex")


def test_a_line_that_asks_one_thing_is_not_asked_another() -> None:
    with pytest.raises(UnclearPromptError, match="another prompt"):
        Command.parse(["claude", "-p", "this"], "that")


@pytest.mark.parametrize(
    ("line", "asking"),
    [
        ("gemini -o stream-json", "gemini -o stream-json -p {prompt}"),
        ("codex exec --json", "codex exec --json {prompt}"),
        ("codex exec --json -i a.png b.png", "codex exec {prompt} --json -i a.png b.png"),
        ("claude -p --tools A", "claude {prompt} -p --tools A"),
    ],
)
def test_a_prompt_that_is_not_in_the_line_is_put_where_the_program_takes_it(line: str, asking: str) -> None:
    assert asking == " ".join(Command.parse(line.split(), "do it").argv)


@pytest.mark.parametrize(
    "line",
    ["codex exec --json", "gemini -o stream-json", "claude -p --verbose", "./once", "agent --json", "agent {prompt}"],
)
def test_a_line_in_which_nothing_is_asked_is_refused(line: str) -> None:
    with pytest.raises(UnclearPromptError, match="nothing is asked") as raised:
        Command.parse(line.split())

    assert "--prompt TEXT" in raised.value.hint


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("codex exec --json", "codex exec --json {prompt}"),
        ("gemini -o stream-json", "gemini -o stream-json -p {prompt}"),
        ("./once", "./once {prompt}"),
    ],
)
def test_a_line_that_only_goes_on_has_a_place_for_what_it_is_told(line: str, argv: str) -> None:
    assert Command(tuple(argv.split())) == Command.parse(line.split(), goes_on=True)


def test_no_command_is_without_a_place_for_a_prompt() -> None:
    with pytest.raises(UnclearPromptError, match="is no place for a prompt"):
        Command(("codex", "exec", "--json"), "do it")


def test_no_two_incarnations_are_told_the_same() -> None:
    assert go_on_prompt(None, 2) != go_on_prompt(None, 3)


def test_a_carried_transcript_fits_into_one_argument_and_keeps_both_ends() -> None:
    told = carry_prompt("begin" + "x" * 500_000 + "end", "go on")

    assert len(told) < 128 * 1024
    assert "begin" in told
    assert "bytes of this text are left out here" in told
    assert "end\n</earlier-session>" in told


@pytest.mark.parametrize("letter", ["é", "漢", "😀", "\0"])
@pytest.mark.parametrize("prompt", ["go on", "漢" * 30_000, "x" * 121_000])
def test_a_carried_transcript_fits_whatever_it_is_written_in(letter: str, prompt: str) -> None:
    told = carry_prompt(letter * 200_000, prompt)

    subprocess.run(["true", f"--prompt={told}"], check=True)
    assert told.endswith(prompt)


def test_what_was_cut_is_not_cut_again() -> None:
    once = cut_transcript("漢" * 500_000, "go on")

    assert once == cut_transcript(once, "go on")


def test_a_prompt_to_go_on_is_told_from_a_task_however_it_is_quoted() -> None:
    told = go_on_prompt("look again", 12)

    assert [True, True, False] == [is_go_on(text) for text in (told, f'"{told}"\n', "look again")]


@pytest.mark.parametrize(
    ("argument", "read"),
    [("n\u00e4her", "n\u00e4her"), ("n\udcc3\udca4her", "n\u00e4her"), ("\udcff", "\ufffd"), ("\ud800", "?")],
    ids=["whole", "of an ASCII locale", "no UTF-8", "no argument"],
)
def test_an_argument_of_whatever_bytes_is_legible(argument: str, read: str) -> None:
    assert read == legible(argument)
