"""Ctrl-C before a command has begun."""

import subprocess
import sys

import pytest

from incarnate.cli.errors import Group
from tests.support.commands import run

INTERRUPTED_EARLY = """
import sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == "{module}":
            raise KeyboardInterrupt
from incarnate.cli import main
sys.meta_path.insert(0, Interrupts())
main()
"""


@pytest.mark.parametrize("module", ["incarnate.cli.app", "click", "rich.console", "incarnate.cli.sweep"])
def test_an_interrupt_before_the_command_has_begun_is_told_like_a_later_one(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_EARLY.format(module=module), "ls"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (130, "Error: interrupted\nTry: run it again\n") == (told.returncode, told.stderr)


def test_an_interrupt_while_the_command_line_is_parsed_is_told_like_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Group, "parse_args", interrupted)
    result = run("ls")

    assert (130, "Error: interrupted\nTry: run it again\n") == (result.exit_code, result.stderr)
