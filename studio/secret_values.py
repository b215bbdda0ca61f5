"""What stands behind a secret's name in a text, and whether it could be a secret by its looks."""

from __future__ import annotations

import re

__all__ = ["bare_span", "quoted_span"]

_LONGEST = 4096
_open = re.compile(r"(\\{0,8}+)([\"'`])")
_stop = re.compile(r"\\*+[\"'`\n]")
_MOST_STOPS = 64
_LEAST_QUOTED = 4
_LEAST_WEAK = 8
_SURE_LENGTH = 20
_VOCABULARY = frozenset(
    [
        *("string", "str", "text", "boolean", "bool", "number", "int", "integer", "object", "array", "any", "null"),
        *("none", "true", "false", "undefined", "unknown", "required", "optional", "default", "empty", "example"),
        *("password", "passwd", "token", "secret", "redacted", "masked", "changeme", "hidden"),
    ]
)
_PLACEHOLDERS = ("$", "{", "<", "%(", "%s", "...", "***", "your", "[masked", "x:", "os.", "process.", "env.", "self.")
_ELSEWHERE = ("config.", "settings.", "args.", "getenv", "import.", "http:", "https:")
_bare = re.compile(r"[^\s\"'\\,;&<>(){}\[\]`|]{4,4096}+")
_dotted = re.compile(r"[A-Za-z_]\w{0,19}(?:\.[A-Za-z_]\w{0,19}){1,9}+[.:]?")
_path = re.compile(r"(?:~|\.{0,2})/[\w-]{1,99}+[/.]")
_telling = re.compile(r"[0-9!@#$^*+=%]")
_LEAST_CONSTANT = 6
_LEAST_STRONG = 6


def quoted_span(text: str, at: int, *, is_strong: bool) -> tuple[int, int] | None:
    """The span of the secret in the quotes that open at `at`, empty if it is none; None: no quotes open there.

    In JSON inside JSON a quote has backslashes before it, and one inside the value has more of them.
    """
    opened = _open.match(text, at)
    if opened is None:
        return None
    start = opened.end()
    end = _closed(text, start, len(opened[1]), opened[2])
    return (start, end if _is_quoted_secret(text[start:end], is_strong=is_strong) else start)


def _closed(text: str, start: int, depth: int, quote: str) -> int:
    most = min(len(text), start + _LONGEST)
    at = start
    for _ in range(_MOST_STOPS):
        found = _stop.search(text, at, most)
        if found is None:
            return most
        sign = found[0]
        if sign[-1] == "\n" or (sign[-1] == quote and len(sign) - 1 <= depth):
            return found.start()
        at = found.end()
    return at


def _is_quoted_secret(value: str, *, is_strong: bool) -> bool:
    lowered = value.lower()
    if len(value) < _LEAST_QUOTED or lowered in _VOCABULARY or lowered.startswith(_PLACEHOLDERS):
        return False
    if value[0] in " ),;:]}=+\t":  # it is not the opening quote but a closing one
        return False
    if is_strong:
        return True
    return len(value) >= _LEAST_WEAK and (len(value) >= _SURE_LENGTH or _telling.search(value) is not None)


def bare_span(text: str, at: int, *, is_strong: bool, is_constant: bool = False) -> tuple[int, int] | None:
    """The span of the secret that stands at `at` without quotes; None: there is none.

    `is_constant`: its name is one of an environment, and what is assigned to it is no code.
    """
    found = _bare.match(text, at)
    if found is None:
        return None
    value = found[0]
    lowered = value[:_SURE_LENGTH].lower()
    if lowered.startswith((*_PLACEHOLDERS, *_ELSEWHERE)) or lowered in _VOCABULARY:
        return None
    if is_constant and len(value) >= _LEAST_CONSTANT:
        return found.span()
    if text[found.end() : found.end() + 1] in ("(", "[") or _dotted.fullmatch(value) or _path.match(value):
        return None
    least = _LEAST_STRONG if is_strong else _LEAST_WEAK
    return found.span() if len(value) >= least and _telling.search(value) else None
