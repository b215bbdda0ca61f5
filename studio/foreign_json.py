"""The JSON of events of newer versions, which logs keep byte for byte: it is read, whatever is in it."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

__all__ = ["decoded", "readable"]

_MOST_DIGITS = 4000
"""Python refuses to read longer integers."""

_decode = msgspec.json.Decoder().decode


def readable(data: bytes) -> bytes:
    """JSON in UTF-8, as every answer is: a byte that is none would take the answer's other events with it."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data


def decoded(data: bytes) -> Any:
    """The value of `readable` JSON. A number that no float holds is kept as it is written."""
    try:
        return _decode(data)
    except msgspec.MsgspecError:
        return json.loads(data, parse_float=_float, parse_int=_integer)


def _float(text: str) -> float | msgspec.Raw:
    number = float(text)
    return number if math.isfinite(number) else msgspec.Raw(text.encode())


def _integer(text: str) -> int | msgspec.Raw:
    return int(text) if len(text) <= _MOST_DIGITS else msgspec.Raw(text.encode())
