"""The command line as tests use it: in this process, or in one of its own that can be killed."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner, Result

from incarnate.actors.system import SessionSystem
from incarnate.cli.app import cli
from incarnate.domain.codec import encode_event
from incarnate.domain.keys import ActivationKey

FIXTURES = Path(__file__).parents[2] / "fixtures"
RECORDINGS = FIXTURES / "recordings" / "claude"
KEY = ActivationKey("pik-1", "implement-task")
INGEST = ("ingest", "--harness", "claude-code", "--key", str(KEY))


def recording(scenario: str) -> Path:
    return RECORDINGS / scenario / "stdout.jsonl"


def run(*arguments: object, stdin: bytes | None = None) -> Result:
    """In this process; what a command raises beside its own errors is raised here."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=stdin, prog_name="incarnate")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def command_line(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "incarnate", *map(str, arguments)]


def start(
    command: Sequence[str], *, stdin: int = subprocess.DEVNULL, store: str | None = None
) -> "subprocess.Popen[bytes]":
    environment = os.environ if store is None else {**os.environ, "INCARNATE_STORE": store}
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def payloads(store: str, key: ActivationKey = KEY) -> list[bytes]:
    """The stored bytes of a log: what was said, whoever wrote it and when."""
    with SessionSystem.open(store) as system:
        return [encode_event(appended.event).payload for appended in system.replay(key)]
