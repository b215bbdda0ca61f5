"""Secrets in what is shown, masked by their patterns: API keys, bearer tokens, private keys. No log is changed.

A pattern finds what looks like a secret; it cannot find one that looks like any other text.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from incarnate.domain.codec import encode_json

__all__ = ["MASK", "mask_json", "mask_text", "mask_value"]

MASK = "[masked]"

_KEY_EDGE = r"-----{} (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_PATTERNS = {
    ("sk-", "pk-", "rk-"): r"\b[spr]k-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic and those who took their form over
    ("k_live_", "k_test_"): r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"): r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    ("github_pat_",): r"\bgithub_pat_[A-Za-z0-9_]{22,}",
    ("glpat-", "glptt-", "gldt-", "glrt-"): r"\bgl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{20,}",
    ("akia", "asia"): r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    ("aiza",): r"\bAIza[0-9A-Za-z_-]{35}",
    ("ya29.",): r"\bya29\.[0-9A-Za-z_-]{20,}",
    ("xox",): r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    ("npm_",): r"\bnpm_[A-Za-z0-9]{36}",
    ("pypi-",): r"\bpypi-[A-Za-z0-9_-]{32,}",
    ("hf_",): r"\bhf_[A-Za-z0-9]{30,}",
    ("eyj",): r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    # The end may be cut off, and in a text of JSON or of a shell the line feeds are escapes.
    ("private key",): rf"{_KEY_EDGE.format('BEGIN')}.*?(?:{_KEY_EDGE.format('END')}|\Z)",
}
_tokens = [(signs, re.compile(pattern, re.DOTALL)) for signs, pattern in _PATTERNS.items()]
# With a figure in it: "bearer authentication" is no secret.
_bearer = re.compile(r"(?i)\b(bearer|basic)([ \t]+|%20)(?=[^\s\"']*\d)([A-Za-z0-9._~+/=-]{12,})")
_KINDS = r"(?:api|access|secret|auth|private|signing|encryption|account)[_-]?(?:key|token|secret)(?:[_-]?id)?"
_OTHERS = r"(?:client|shared)[_-]?secret|(?:refresh|id|session|bearer)[_-]?token|passw(?:or)?d|passphrase"
_SEPARATOR = r"\\*[\"']?[ \t]*[:=]"
# What is read from elsewhere is code, and holds no secret.
_ELSEWHERE = r"(?!\$|os\.|process\.|env\.|self\.|config\.|settings\.|args\.|getenv|import\.)"
_VALUE = r"[^\s\"'\\,;&<>(){}\[\]]{8,}"
_may_be_named = re.compile(rf"(?:{_KINDS}|{_OTHERS}){_SEPARATOR}")  # of lowered text: a tenth of the time
_named = re.compile(rf"(?i)((?:{_KINDS}|{_OTHERS}){_SEPARATOR}[ \t]*\\*[\"']?){_ELSEWHERE}{_VALUE}")
_secret_name = re.compile(rf"(?i)(?:.*[_.-])?(?:{_KINDS}|{_OTHERS}|(?:proxy-)?authorization|(?:set-)?cookie)")
_userinfo = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"'\\]{0,64}:)([^\s/@\"'\\]{1,256})(@)")

_NAMES = ("key", "token", "secret", "passw", "passphrase")
_SIGNS = (
    *(sign for signs in _PATTERNS for sign in signs),
    *(*_NAMES, "bearer", "basic", "authorization", "cookie", "://"),
)
_SIGNS_BYTES = tuple(sign.encode() for sign in _SIGNS)
_decode = msgspec.json.Decoder().decode


def mask_text(text: str) -> str:
    """`text` with `[masked]` in place of every secret in it."""
    # Each pattern is tried only where its sign is: all of them at every letter took ten times as long.
    lowered = text.lower()
    for signs, pattern in _tokens:
        if _any_in(signs, lowered):
            text = pattern.sub(MASK, text)
    if "bearer" in lowered or "basic" in lowered:
        text = _bearer.sub(rf"\1\2{MASK}", text)
    if "://" in lowered:
        text = _userinfo.sub(rf"\1{MASK}\3", text)
    if _any_in(_NAMES, lowered) and _may_be_named.search(lowered):
        text = _named.sub(rf"\1{MASK}", text)
    return text


def _any_in(signs: tuple[str, ...], text: str) -> bool:
    return any(map(text.__contains__, signs))


def mask_value(value: Any) -> Any:
    """A JSON value with its texts masked; one that stands below a secret's name is masked whole."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, list):
        return [mask_value(item) for item in value]
    if isinstance(value, dict):
        return {mask_text(name): _field(name, item) for name, item in value.items()}
    return value


def _field(name: str, value: Any) -> Any:
    if isinstance(value, str) and value and _secret_name.fullmatch(name):
        return MASK
    return mask_value(value)


def mask_json(data: bytes) -> bytes:
    """A JSON text with the secrets in its strings masked; as it was where there are none."""
    # Looking for a few words takes a hundredth of the time of reading it; an escape may hide a letter of one.
    lowered = data.lower()
    if b"\\u" not in lowered and not any(map(lowered.__contains__, _SIGNS_BYTES)):
        return data
    value = _decode(data)
    masked = mask_value(value)
    return data if masked == value else encode_json(masked)
