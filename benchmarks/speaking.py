"""A harness that does nothing but print, in Claude's form: `python -I -S speaking.py MEGABYTES MEGABYTES_A_SECOND`.

Each line says when it was written. At 0 megabytes a second it prints as fast as it is read.
"""

import json
import os
import sys
import time
from collections.abc import Mapping

_PIECE_SECONDS = 0.01
_OUTPUT = "src/parser.py:112:    def advance(self) -> Token: a line of what a tool has printed, as tools do\n" * 48


def main(megabytes: float, rate: float) -> None:
    """Print them, and end the turn."""
    _say({"type": "system", "subtype": "init", "cwd": "/", "tools": [], "model": "m"})
    began, total, number = time.monotonic(), 0, 0
    while total < megabytes * 1e6:
        piece: list[bytes] = []
        size = 0
        while size < (rate or 10) * 1e6 * _PIECE_SECONDS:
            number += 1
            for line in _step(number):
                piece.append(line)
                size += len(line)
        _write(b"".join(piece))
        total += size
        if rate:
            time.sleep(max(0.0, began + total / (rate * 1e6) - time.monotonic()))
    usage = {"input_tokens": 1, "output_tokens": 1}
    _say({"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "", "usage": usage})


def _step(number: int) -> tuple[bytes, bytes, bytes]:
    """A text, a call and its result: some 6 KB."""
    text = {"type": "text", "text": f"{time.time()} step {number}: {_OUTPUT[:400]}"}
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": "pytest -q"}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"{time.time()} {_OUTPUT}"}
    user = {"type": "user", "message": {"role": "user", "content": [result]}}
    return _line(_assistant(number * 2, text)), _line(_assistant(number * 2 + 1, call)), _line(user)


def _assistant(number: int, block: Mapping[str, object]) -> dict[str, object]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [block], "usage": usage}
    return {"type": "assistant", "message": {**message, "model": "m", "stop_reason": None}}


def _line(record: Mapping[str, object]) -> bytes:
    return json.dumps({**record, "parent_tool_use_id": None, "session_id": "s"}).encode() + b"\n"


def _say(record: Mapping[str, object]) -> None:
    _write(_line(record))


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
