"""What the transcript file of a session is called.

The reference's names (`fixtures/vectors/file_names.jsonl`) put two sessions into one file: `a/b` and `a_b` are both
`a_b.jsonl`. Ours are the same where the id can be a name as it stands, and otherwise carry a hash of the id behind a
`~`, which no such id can hold.
"""

from __future__ import annotations

import base64
import hashlib
import re

__all__ = ["file_name", "legacy_file_name"]

_ENDING = ".jsonl"
_MOST_BYTES = 255  # of a name, on every common file system
_MOST_OF_ID = 100  # characters of an id before its hash
_HASH_BYTES = 16  # nobody finds two ids with the same hash, not even on purpose

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_PLAIN = re.compile(r"[a-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE | re.DOTALL)


def legacy_file_name(session_id: str) -> str:
    """The reference's file name: each character that is not safe in one becomes `_`, no id at all is `session`."""
    return (_UNSAFE.sub("_", session_id) or "session") + _ENDING


def file_name(session_id: str) -> str:
    """Our file name: one of its own for each id, on every common file system.

    An id needs a hash where it is empty, too long, a device of Windows, or holds anything but `a-z0-9._-`: capital
    letters too, since on macOS and Windows `A.jsonl` and `a.jsonl` are one file.
    """
    if _PLAIN.fullmatch(session_id) and len(session_id) + len(_ENDING) <= _MOST_BYTES and not _is_device(session_id):
        return session_id + _ENDING
    stem = legacy_file_name(session_id).removesuffix(_ENDING)[:_MOST_OF_ID]
    if _is_device(stem):  # NUL.txt is the device too, so that the hash must come before any dot
        stem = stem.replace(".", "_")
    # A lone surrogate, as Python makes of bytes that are no UTF-8, tells two ids apart as well.
    digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).digest()[:_HASH_BYTES]
    return f"{stem}~{base64.b32encode(digest).decode().rstrip('=').lower()}{_ENDING}"


def _is_device(name: str) -> bool:
    return _RESERVED.fullmatch(name) is not None
