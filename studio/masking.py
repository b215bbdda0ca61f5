"""Secrets in what is shown, masked by their looks: API keys, passwords, cookies, private keys. No log is changed.

A pattern finds what looks like a secret; it cannot find one that looks like any other text. What it costs grows with
the length of the text and with nothing else: whoever writes to a log has no say in how long others wait for it.
"""

from __future__ import annotations

from functools import lru_cache
from operator import is_ as _is
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from incarnate.domain.codec import encode_json
from incarnate.studio.foreign_json import decoded, readable
from incarnate.studio.private_keys import private_key_spans
from incarnate.studio.secret_commands import command_spans, has_command_signs, password_arguments
from incarnate.studio.secret_forms import form_spans, has_form_signs
from incarnate.studio.secret_names import HEADERS, has_other_signs, has_signs, is_flag, is_secret_name, named_spans
from incarnate.studio.secret_shapes import has_shape_signs, shape_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MASK", "Part", "mask_json", "mask_row", "mask_start", "mask_text", "mask_value", "masked_name", "parts_of"]

MASK = "[masked]"

_SHORT = 1000  # of these, looking for signs takes a quarter of the time of looking for secrets
_LEAST = 8  # a shorter text holds no secret with anything that tells it
_LOOKED_PAST = 8192
_decode = msgspec.json.Decoder().decode
_small_letters = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def mask_text(text: str) -> str:
    """`text` with `[masked]` in place of every secret in it. JSON is masked as what it says."""
    if len(text) < _LEAST:
        return text
    lowered = _lowered(text)
    if len(text) < _SHORT and not _may_hold(text, lowered):
        return text
    if text[0] in "{[" and text[-1] in "}]" and has_signs(lowered):
        told = _masked_inside(text)
        if told is not None:
            return told
    spans = _spans(text, lowered)
    return _without(text, spans, len(text)) if spans else text


def mask_start(text: str, length: int) -> str:
    """The first `length` letters of a text, masked: a secret that goes on behind them is known for one.

    What is far behind them is not looked at, so that a long text costs no more than what is shown of it.
    """
    if len(text) <= length:
        return mask_text(text)
    seen = text[: length + _LOOKED_PAST]
    return _without(seen, _spans(seen, _lowered(seen)), length)


def _masked_inside(text: str) -> str | None:
    """JSON inside JSON, masked by its names; None: it is no JSON, or too deep to be read as such."""
    try:
        value = _decode(text)
        masked = mask_value(value)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return text if masked is value else encode_json(masked).decode()


def _spans(text: str, lowered: str) -> list[tuple[int, int]]:
    named = named_spans(text, lowered)
    return sorted([*form_spans(text), *shape_spans(text), *private_key_spans(text), *command_spans(text), *named])


def _lowered(text: str) -> str:
    lowered = text.lower()
    # Few letters become two: the places of both texts must be the same.
    return lowered if len(lowered) == len(text) else text.translate(_small_letters)


def _without(text: str, spans: list[tuple[int, int]], length: int) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        if start >= length:
            break
        if start >= done:
            pieces += text[done:start], MASK
        done = max(done, end)
    pieces.append(text[done:length])
    return "".join(pieces)


class Part(NamedTuple):
    """What an object or a list holds: its name there (None in a list), and whether its name tells that it is secret."""

    name: str | None
    value: Any
    is_secret: bool


def parts_of(value: dict[str, Any] | list[Any]) -> Iterator[Part]:
    """The parts of an object or a list, in their order.

    A header stands as `{"Cookie": X}`, `["Cookie", X]` or `{"name": "Cookie", "value": X}`, an argument as
    `["--token", X]`.
    """
    if isinstance(value, dict):
        told = "value" in value and any(_names_a_secret(value.get(name)) for name in _NAMES)
        for name, item in value.items():
            yield Part(name, item, is_secret_name(name) or (told and name == "value") or _is_login(name, item))
        return
    is_pair, before = len(value) == _PAIR, None
    passwords = password_arguments(value)
    for at, item in enumerate(value):
        yield Part(None, item, at in passwords or _announces(before, item, is_pair=is_pair))
        before = item


_NAMES = ("name", "key", "header", "Name", "Key")
_PAIR = 2
_LEAST_LOGIN = 16


def _names_a_secret(name: object) -> bool:
    return isinstance(name, str) and is_secret_name(name)


def _is_login(name: str, item: object) -> bool:
    """Docker's settings keep a password below this name, others which way there is to log in."""
    return name == "auth" and isinstance(item, str) and len(item) >= _LEAST_LOGIN


def _announces(before: object, item: object, *, is_pair: bool) -> bool:
    """Whether what stands before an item of a list says that it is a secret."""
    if not isinstance(before, str) or len(before) > _LONGEST_SIGN:
        return False
    if is_flag(before) or before.lower() in HEADERS:
        return True
    # Two names of fields in a list are no pair.
    return is_pair and is_secret_name(before) and not (isinstance(item, str) and item.isidentifier() and item.islower())


_LONGEST_SIGN = 64
_MOST_COUNTED = 99_999  # a number below the name of a secret may say how many there are


_DEEPEST = 270
"""An event's own values have at most 256 levels; one of a newer version may have more than Python can follow."""


def mask_value(value: Any, *, is_secret: bool = False, depth: int = _DEEPEST) -> Any:
    """A JSON value without its secrets; the same object where it holds none.

    What stands below a secret's name is masked whole: each text in it, and each number that counts nothing; and so is
    what is deeper than `depth` levels, which is not looked at.
    """
    if isinstance(value, str):
        return _masked_leaf(value) if is_secret else mask_text(value)
    if isinstance(value, dict | list | tuple) and not depth:
        return MASK
    if isinstance(value, dict):
        return _masked_object(value, is_secret=is_secret, depth=depth)
    if isinstance(value, list | tuple):
        parts = parts_of(list(value))
        masked = [mask_value(part.value, is_secret=is_secret or part.is_secret, depth=depth - 1) for part in parts]
        return value if all(map(_is, masked, value)) else masked
    if is_secret and isinstance(value, int | float | msgspec.Raw):
        return MASK if isinstance(value, msgspec.Raw) or abs(value) > _MOST_COUNTED else value
    return value


def _masked_leaf(text: str) -> str:
    return MASK if text else text


def _masked_object(value: dict[str, Any], *, is_secret: bool, depth: int) -> dict[str, Any]:
    masked: dict[str, Any] = {}
    same = True
    for name, item, below in parts_of(value):
        shown = masked_name(name or "", masked, value)
        hidden = mask_value(item, is_secret=is_secret or below, depth=depth - 1)
        same = same and hidden is item and shown == name
        masked[shown] = hidden
    return value if same else masked


@lru_cache(4096)
def _shown_name(name: str) -> str:
    return mask_text(name)


def masked_name(name: str, taken: dict[str, Any], others: dict[str, Any]) -> str:
    """A name in an object without its secrets, and another one than those that are taken."""
    shown = _shown_name(name)
    if shown == name:
        return name
    number, first = 1, shown
    while shown in taken or shown in others:
        number += 1
        shown = f"{first[:-1]} {number}]" if first.endswith("]") else f"{first} {number}"
    return shown


def mask_json(data: bytes) -> bytes:
    """A JSON text with the secrets in its strings masked; as it was where there are none."""
    data = readable(data)
    # An escape may hide a letter of a sign.
    if b"\\u" not in data and not _worth_reading(data.decode()):
        return data
    value = decoded(data)
    masked = mask_value(value)
    return data if masked is value else encode_json(masked)


def mask_row(fields: dict[str, Any]) -> dict[str, Any]:
    """What is told of a session, masked but for its key: that is an address, and leads there as it is."""
    masked: dict[str, Any] = mask_value(_decode(encode_json(fields)))
    return masked | {name: fields[name] for name in ("key", "agent") if name in fields}


def _worth_reading(text: str) -> bool:
    lowered = _lowered(text)
    return has_signs(lowered) or has_other_signs(lowered) or bool(_spans(text, lowered))


def _may_hold(text: str, lowered: str) -> bool:
    if has_signs(lowered) or has_other_signs(lowered) or "://" in text or "PRIVATE KEY" in text:
        return True
    return has_form_signs(text) or has_shape_signs(text) or has_command_signs(text)
