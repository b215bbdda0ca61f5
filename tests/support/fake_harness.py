"""A harness for tests, of the standard library alone: it speaks, keeps sessions and leaves tools alive as real ones do.

fake_harness.py replay FOLDER FRESH RESUMED [options] -p PROMPT [--resume=ID | --session ID | resume ID]
    prints what the real one printed, in its own time, and leaves its session files; a recording that ended by SIGKILL
    ends in a tool that runs on, in its own session.
fake_harness.py steps COUNT [options] -p PROMPT [--resume=ID]
    a session in Claude's form of COUNT tools; resumed, it goes on with the step that its own file has no result of.

Options: --speed N (default 1), --wrapped (what is started is a wrapper, whose child holds the output open), --stubborn
(SIGTERM is ignored by it and by its tools), --die N (SIGKILL to itself after N pieces), --tool MILLISECONDS, --until
NAME (it goes on until there is such a file in its home folder).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

INTERRUPTED = "[Tool call interrupted: the session ended before this call's result was recorded.]"


class Options:
    def __init__(self, words: Sequence[str]) -> None:
        self.speed = float(self._value(words, "--speed") or 1)
        self.tool = int(self._value(words, "--tool") or 20)
        self.die = int(self._value(words, "--die") or -1)
        self.prompt = self._value(words, "-p") or ""
        self.until = self._value(words, "--until")
        self.wrapped = "--wrapped" in words
        self.stubborn = "--stubborn" in words
        self.session = self._session(words)
        self.pieces = 0

    def _value(self, words: Sequence[str], name: str) -> str | None:
        return words[words.index(name) + 1] if name in words else None

    def _session(self, words: Sequence[str]) -> str | None:
        for word in words:
            if word.startswith("--resume="):
                return word.partition("=")[2]
        return self._value(words, "--resume") or self._value(words, "--session") or self._value(words, "resume")

    def say(self, data: bytes) -> None:
        """All of it, or die on the way."""
        if self.pieces == self.die and self.session is None:
            os.write(1, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self.pieces += 1
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def main(words: list[str]) -> None:
    options = Options(words)
    if options.wrapped:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
    if options.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # and so for what it starts
    with Path(home() / "lives").open("a", encoding="utf-8") as lives:
        lives.write(f"{os.environ.get('INCARNATE_RUN_ID', '')} {os.getpid()}\n")
    if words[0] == "replay":
        replay(Path(words[1]), words[3] if options.session else words[2], options)
    else:
        Steps(options).run(int(words[1]))


def home() -> Path:
    return Path(os.environ["HOME"])


def start_tool(command: str) -> "subprocess.Popen[bytes]":
    """In a session of its own, with an output of its own."""
    return subprocess.Popen(["sh", "-c", command], start_new_session=True, stdout=subprocess.DEVNULL)


def replay(folder: Path, scenario: str, options: Options) -> None:
    recording = folder / scenario
    data = (recording / "stdout.jsonl").read_bytes()
    timing = json.loads((recording / "stdout.timing.json").read_bytes())
    run = json.loads((recording / "run.json").read_bytes())
    is_killed = bool(run["kill"]) and run["kill"]["signal"] == "SIGKILL"
    began = time.monotonic()
    for at, (seconds, offset, length) in enumerate(timing):
        time.sleep(max(0.0, began + seconds / options.speed - time.monotonic()))
        if at == len(timing) - 1:
            shutil.copytree(recording / "disk", home(), copy_function=shutil.copy, dirs_exist_ok=True)
        options.say(data[offset : offset + length])
    if is_killed:
        start_tool("echo start > side-effect.txt; sleep 30; echo end >> side-effect.txt")
    while is_killed:
        time.sleep(60)
    sys.exit(run["exit_code"])


class Steps:
    """The scripted session. What it saves and what it prints come in turns, so that either knows more at a kill."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._session = options.session or str(uuid.uuid4())
        folder = home() / ".claude" / "projects" / "-demo-project"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{self._session}.jsonl"
        self._last: str | None = None
        self._calls = self._done = 0
        self._open: list[str] = []

    def run(self, count: int) -> None:
        if self._options.session is not None:
            self._load()
        self._print({"type": "system", "subtype": "init", "cwd": "/demo/project", "tools": [], "model": "fake"})
        self._save({"type": "user", "message": {"role": "user", "content": self._options.prompt}})
        while self._done < count or not self._may_end():
            self._step()
        self._assistant({"type": "text", "text": "All is done."}, "end_turn")
        self._print(
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "duration_ms": 1,
                "num_turns": 1,
                "result": "All is done.",
                "total_cost_usd": 0.0,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        )

    def _may_end(self) -> bool:
        return self._options.until is None or (home() / self._options.until).exists()

    def _step(self) -> None:
        self._calls += 1
        # Not counted: after a kill between the print and the save of a call the next one would have its id.
        call = f"toolu_{uuid.uuid4().hex[:12]}"
        self._assistant({"type": "text", "text": f"Now step {self._done}."})
        command = f"sleep {self._options.tool / 1000}; echo {self._done} >> side-effects.txt"
        self._assistant({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}})
        start_tool(command).wait()
        self._result(call, f"did {self._done}", is_error=False)
        self._done += 1

    def _result(self, call: str, content: str, *, is_error: bool, is_told: bool = True) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": is_error}
        self._tell({"type": "user", "message": {"role": "user", "content": [block]}}, is_told=is_told)

    def _assistant(self, block: dict[str, Any], stop: str | None = None) -> None:
        message = {
            "id": f"msg_{uuid.uuid4().hex[:12]}",
            "type": "message",
            "role": "assistant",
            "model": "fake",
            "content": [block],
            "stop_reason": stop,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        self._tell({"type": "assistant", "message": message})

    def _tell(self, record: dict[str, Any], *, is_told: bool = True) -> None:
        record["uuid"] = str(uuid.uuid4())
        saves_first = self._calls % 2
        if saves_first:
            self._save(record)
        if is_told:
            self._print({**record, "parent_tool_use_id": None})
        if not saves_first:
            self._save(record)

    def _print(self, record: dict[str, Any]) -> None:
        line = {"uuid": str(uuid.uuid4()), **record, "session_id": self._session}
        self._options.say(json.dumps(line).encode() + b"\n")

    def _save(self, record: dict[str, Any]) -> None:
        line = {
            "parentUuid": self._last,
            "isSidechain": False,
            "uuid": str(uuid.uuid4()),
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
            "cwd": "/demo/project",
            "sessionId": self._session,
            "version": "2.1.332",
            **record,
        }
        self._last = str(line["uuid"])
        with self._file.open("ab") as stream:
            stream.write(json.dumps(line).encode() + b"\n")

    def _load(self) -> None:
        """What the file holds; a call without a result is closed in it, as the real one does."""
        if not self._file.exists():
            sys.exit(f"No conversation found with session ID: {self._session}")
        data = self._file.read_bytes()
        for line in data[: data.rfind(b"\n") + 1].splitlines():
            self._take(json.loads(line))
        with self._file.open("ab") as stream:
            stream.write(b"" if data.endswith(b"\n") or not data else b"\n")
        for call in self._open:
            self._result(call, INTERRUPTED, is_error=True, is_told=False)

    def _take(self, record: dict[str, Any]) -> None:
        self._last = record["uuid"]
        content = record["message"]["content"]
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                self._calls += 1
                self._open.append(block["id"])
            elif block["type"] == "tool_result":
                self._open.remove(block["tool_use_id"])
                self._done += not block["is_error"]


if __name__ == "__main__":
    main(sys.argv[1:])
