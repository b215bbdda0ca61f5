"""Readers of bytes that anybody may have harmed: whatever they are given, they answer or raise an IncarnateError."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incarnate.actors.lines import read_lines
from incarnate.domain.codec import StoredEvent, decode_checkpoint, decode_event, decode_stored, encode_event
from incarnate.domain.dialects.reader import read_record
from incarnate.domain.errors import IncarnateError
from incarnate.domain.journal import checkpoint_payload, parse, read_events, rows_of, store_version
from incarnate.domain.keys import ActivationKey
from incarnate.domain.transcripts.prefix import replay, sift
from incarnate.domain.transcripts.rows import decode_row
from incarnate.storage.locate import open_store
from tests.support.stores import note

SECONDS = 5.0
"""The most that one example may take, on a busy machine."""

EVENT = encode_event(note("e", "text")).payload
LINE = b'{"offset":0,"incarnation":1,"at":0,"event":%b,"crc":"00000000"}\n' % EVENT
CHECKPOINT = (
    b'{"id":"cp","offset":1,"commitSha":"sha","effectLedger":[{"id":"x","kind":"k","detail":null}],"incarnation":1,'
    b'"at":"1970-01-01T00:00:00.000Z"}'
)
ROW = b'{"type":"user_message","text":"hello","turnId":"turn-1"}\n'

READERS: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "event": (decode_event, EVENT),
    "stored payload": (lambda data: decode_stored([StoredEvent(0, 1, 0, data)], "here"), EVENT),
    "checkpoint": (lambda data: decode_checkpoint(data, "here"), CHECKPOINT),
    "journal lines": (lambda data: (parse(data), checkpoint_payload(data)), LINE * 3),
    "journal events": (lambda data: (read_events(data, "here"), rows_of(data, "here")), LINE * 3),
    "store mark": (store_version, b'{"store":"incarnate-jsonl","version":1}\n'),
    "transcript": (lambda data: (replay(data), sift(data)), ROW * 3),
    "transcript row": (decode_row, ROW),
    "record": (read_record, EVENT),
    "lines": (lambda data: list(read_lines(BytesIO(data), 100)), EVENT * 3 + b"\n" + ROW),
}
NASTY = [b"\0", b"\xff", b"\n", b"[" * 3000, b'{"a":' * 3000, b"1e999", b"9" * 5000, b"\\ud800", b'"', b"\xe2\x80\xa8"]


def mutated(data: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(changed))
        stop = min(len(changed), start + chance.choice([0, 1, 1, 4, 40]))
        changed[start:stop] = chance.choice([b"", chance.randbytes(1), changed[:stop], chance.choice(NASTY)])
    return bytes(changed)


def within_bounds(read: Callable[[], object]) -> None:
    began = time.thread_time()
    with suppress(IncarnateError):
        read()
    assert time.thread_time() - began < SECONDS


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), noise=st.binary(max_size=200))
def test_a_reader_answers_or_raises_an_error_of_ours(name: str, seed: int, noise: bytes) -> None:
    read, valid = READERS[name]
    for data in (noise, mutated(valid, seed)):
        within_bounds(partial(read, data))


@settings(max_examples=300)
@given(text=st.text(max_size=60), head=st.sampled_from(["", "memory://", "sqlite://", "jsonl://", "x://"]))
def test_any_url_is_opened_read_only_or_refused(text: str, head: str) -> None:
    def opened() -> None:
        open_store(head + text, read_only=True).close()

    within_bounds(opened)


@settings(max_examples=300)
@given(st.text(max_size=60) | st.lists(st.sampled_from(["/", "%", "%2F", "%25", "a", "\0", "\ud800"])).map("".join))
def test_any_text_is_a_key_that_comes_back_or_refused(text: str) -> None:
    with suppress(IncarnateError):
        assert text == str(ActivationKey.parse(text))
