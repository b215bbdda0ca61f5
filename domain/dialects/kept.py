"""Records that no dialect maps yet, as they are kept beside the log: a line of JSON each."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from incarnate.domain.dialects.records import Piece

__all__ = ["KeptRecord", "decode_kept", "encode_kept", "kept_record"]


class KeptRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record as the harness wrote it, why it was kept, and where it stood.

    `kind` is the one under which the ingest report counts it. `raw` are its bytes, base64 in JSON; `text` is the same
    where the bytes are UTF-8, and `raw` is then left out. `hash` is of the bytes.
    """

    harness: str
    kind: str
    line: int
    byte: int
    hash: str
    file: str | None = None
    text: str | None = None
    raw: bytes | None = None

    @property
    def data(self) -> bytes:
        """The bytes that the harness wrote."""
        return (self.raw or b"") if self.text is None else self.text.encode()

    @property
    def identity(self) -> tuple[str | None, int, int, str]:
        """What two copies of one record share."""
        return self.file, self.line, self.byte, self.hash


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(KeptRecord).decode


def kept_record(harness: str, piece: Piece, kind: str, file: str | None) -> KeptRecord:
    """The piece, to be kept."""
    data = piece.data.rstrip(b"\r\n")
    digest = hashlib.blake2b(data, digest_size=12).hexdigest()
    try:
        return KeptRecord(harness, kind, piece.line, piece.byte, digest, file, text=data.decode())
    except UnicodeDecodeError:
        return KeptRecord(harness, kind, piece.line, piece.byte, digest, file, raw=data)


def encode_kept(record: KeptRecord) -> bytes:
    """The record as a line, line feed included."""
    return _encode(record) + b"\n"


def decode_kept(line: bytes) -> KeptRecord | None:
    """The record of a line; None for one that is none, such as the torn end of a file."""
    try:
        return _decode(line)
    except msgspec.MsgspecError:
        return None
