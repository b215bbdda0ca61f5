"""Our answers to the recorded vectors of transcripts, in the vectors' own shape; they hold byte for byte."""

from __future__ import annotations

import binascii
from typing import Any

from incarnate.domain.errors import EventShapeError
from incarnate.domain.transcripts.names import legacy_file_name
from incarnate.domain.transcripts.prefix import replay
from incarnate.domain.transcripts.rows import decode_row, encode_row

__all__ = ["file_answer", "file_name_answer", "row_answer"]


def row_answer(vector: dict[str, Any]) -> dict[str, Any]:
    """What a line of `transcript_rows.jsonl` must be equal to."""
    line: str = vector["line"]
    try:
        row = decode_row(line.encode("utf-8", "surrogatepass"))
    except EventShapeError:
        return {"line": line, "ok": False}
    return {"line": line, "ok": True, "rewritten": encode_row(row).decode()}


def file_answer(vector: dict[str, Any]) -> dict[str, Any]:
    """What a line of `transcript_files.jsonl` must be equal to.

    Raises:
        EventShapeError: its `base64` is none.
    """
    encoded: str = vector["base64"]
    try:
        rows, valid_bytes, torn = replay(binascii.a2b_base64(encoded))
    except ValueError as error:
        raise EventShapeError(f"no base64: {error}") from error
    return {
        "base64": encoded,
        "rows": [encode_row(row).decode() for row in rows],
        "validBytes": valid_bytes,
        "torn": None if torn is None else {"line": torn.line, "offset": torn.offset},
    }


def file_name_answer(vector: dict[str, Any]) -> dict[str, Any]:
    """What a line of `file_names.jsonl` must be equal to."""
    return {"sessionId": vector["sessionId"], "fileName": legacy_file_name(vector["sessionId"])}
