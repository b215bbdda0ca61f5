"""Secrets that are known by what stands before them: `NAME=VALUE`, headers, the userinfo of a URL.

What stands behind a name is often no secret but code, a type or a word. So in a text it is masked where it could be a
secret by its looks; in an object, where a name is a name, it is masked whatever it is (see `is_secret_name`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from incarnate.studio.secret_values import bare_span, quoted_span

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HEADERS", "has_other_signs", "has_signs", "is_flag", "is_secret_name", "named_spans"]

HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"})
"""Of a request or an answer, in small letters: what follows on one in a list is its value."""

_KINDS = (
    *("api", "access", "secret", "private", "auth", "account", "signing", "encryption", "subscription"),
    *("master", "shared", "service"),
)
_LONGEST_NAME = 200
_secret_name = re.compile(
    rf"(?:.*[^a-z0-9])?(?:(?:{'|'.join(_KINDS)})[ _-]?key|(?:proxy-)?authorization|(?:set-)?cookies?)"
    r"|.*[_.-](?:pass|pat|auth)"
    r"|.*(?:pass(?:word|wd|phrase)|pwd|secret|token|apikey|secretkey|accesskey|privatekey|accountkey|credentials?)",
    re.DOTALL,
)
_flag = re.compile(r"--?[a-z0-9][a-z0-9_-]{1,60}")

# Every quantifier is possessive or bounded: whatever a text holds, each name in it costs no more than some letters.
# And each pattern begins with fixed letters: those are looked for at 1 GB/s and more, any of several at 30 MB/s.
_ASSIGNED = r"\\{0,8}+[\"'`]?+[ \t]{0,16}+(?:=>|:=|%3d|:(?![:=])|=(?![=>~]))[ \t]{0,16}+\[?+(?:[bfru]{1,2}(?=[\"']))?+"
_LISTED = r"\\{0,8}+[\"'][ \t\n]{0,16}+,[ \t\n]{0,16}+(?=\\{0,8}+[\"'])"
_BETWEEN = rf"(?P<between>{_ASSIGNED}|{_LISTED})"


class _Word(NamedTuple):
    """How the name of a secret ends: what may stand before it, if not anything, and whether it is one beyond doubt."""

    sign: str
    pattern: re.Pattern[str]
    before: tuple[str, ...] = ()
    is_strong: bool = True


def _word(sign: str, *before: str, rest: str = "", is_strong: bool = True) -> _Word:
    return _Word(sign, re.compile(sign + rest + _BETWEEN), before, is_strong)


_WORDS = (
    _word("token"),
    _word("secret"),
    _word("pwd"),
    _word("pat", "_", "-"),
    _word("key", *(kind + between for kind in _KINDS for between in ("", "_", "-", " ")), "?", "&", is_strong=False),
    _word("sig", "?", "&", "x-amz-", rest="(?:nature)?", is_strong=False),
)
_LONGEST_BEFORE = 16
_OF_PASS = _word("pass", rest="(?:w(?:or)?d|phrase|(?<=[_-]pass))")
_OF_AUTH = _word("auth", is_strong=False)
_SIGNS = ("key", "token", "secret", "pass", "pwd", "auth", "_pat", "-pat", '"pat', "cookie", "credential")
_OTHER_SIGNS = ("bearer", "basic", "sig=", "signature", "curl", "login")
_MOST_LETTERS = 60
_name_letters = re.compile(r"[A-Za-z0-9_-]{0,60}+\Z")
_constant = re.compile(r"[A-Z][A-Z0-9_]*+")
_flagged = re.compile(r"--(?P<name>[a-z0-9][a-z0-9_-]{1,60}+)[ \t]{1,4}+(?![-=:])")

_authorization = re.compile(rf"authorization(?:{_ASSIGNED}|{_LISTED})\\{{0,8}}+[\"']?+")
_SCHEME = r"(?P<scheme>bearer|basic|token|apikey|api-key|key|negotiate|digest|oauth|hawk|aws4-[a-z0-9-]{1,32})"
_credentials = re.compile(
    rf"(?i:{_SCHEME}(?:[ \t]{{1,8}}+|%20))?(?P<value>[^\s\"'\\,;<>(){{}}\[\]`$]{{6,4096}}+)(?!\()"
)
_IN_PARTS = ("digest", "oauth", "hawk", "aws4")
_rest_of_line = re.compile(r"[^\r\n\\]{0,4096}+")
_cookie = re.compile(rf"cookie(?:{_ASSIGNED}|{_LISTED})\\{{0,8}}+[\"']?+")
_crumbs = re.compile(r"[\w!#$%&*+.^|~-]{1,64}+=[^\s;,\"'\\]{3,4096}+(?:;[ \t]{0,2}+[^;\r\n\"'\\]{1,4096}+){0,200}+")
_bearer = re.compile(r"bearer(?:[ \t]{1,8}+|%20)")
_basic = re.compile(r"basic(?:[ \t]{1,8}+|%20)")
_letters = re.compile(r"[A-Za-z0-9._~+/=-]{12,8192}+")
_prose = re.compile(r"[A-Za-z]?[a-z]*+[0-9]{0,4}+(?:[./-][A-Za-z]?[a-z]*+[0-9]{0,4}+){0,9}+")
_encoded = re.compile(r"(?:[A-Za-z0-9+/]{4}){2,}+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")

_userinfo = re.compile(r"://((?:[^\s/?#\"'\\<>@`|{}$]{0,256}+@){1,8}+)(?=[\w\[])")
_curl = re.compile(r" -(?:u|-user)[ =]?[\"']?+[^\s:\"'$]{1,64}+:(?=[^\s\"'$])")
_netrc = re.compile(r"login[ \t]+\S{1,64}+\s{1,8}+password[ \t]{1,8}+(?=\S)")
_run = re.compile(r"[^\s\"'\\&;<>`]{1,4096}+")


def has_signs(lowered: str) -> bool:
    """Whether a name of a secret may stand in a text of small letters."""
    return any(map(lowered.__contains__, _SIGNS))


def has_other_signs(lowered: str) -> bool:
    """Whether there may be anything else that `named_spans` finds, but for a URL's userinfo."""
    return any(map(lowered.__contains__, _OTHER_SIGNS))


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Whether what stands below this name in an object is a secret."""
    return len(name) <= _LONGEST_NAME and _secret_name.fullmatch(name.lower()) is not None


def is_flag(text: str) -> bool:
    """Whether what follows on this argument of a command is a secret."""
    return text[:1] == "-" and _flag.fullmatch(text.lower()) is not None and is_secret_name(text.lstrip("-"))


def named_spans(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where secrets stand that are known by what is before them; `lowered` is the text in small letters."""
    for word in _WORDS:
        if word.sign in lowered:  # each pattern takes a microsecond to find nothing, which is much for a short text
            yield from _named(text, lowered, word)
    if "pass" in lowered:
        yield from _named(text, lowered, _OF_PASS)
        yield from _behind(_netrc, _run, text, lowered)
    if "auth" in lowered:
        yield from _named(text, lowered, _OF_AUTH)
        yield from _authorizations(text, lowered)
    if "--" in text:
        yield from _flags(text, lowered)
    if "cookie" in lowered:
        yield from _behind(_cookie, _crumbs, text, lowered)
    if "bearer" in lowered or "basic" in lowered:
        yield from _bearers(text, lowered)
    if "://" in text:
        yield from _userinfos(text)
    if "curl" in lowered:
        yield from _behind(_curl, _run, text, lowered)


def _bearers(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    for told in _matches(_bearer, _letters, text, lowered):
        if any(map(str.isdigit, told[0])) and _prose.fullmatch(told[0]) is None:
            yield told.span()
    for told in _matches(_basic, _letters, text, lowered):
        if _encoded.fullmatch(told[0]) is not None and _prose.fullmatch(told[0]) is None:
            yield told.span()


def _named(text: str, lowered: str, word: _Word) -> Iterator[tuple[int, int]]:
    done = 0
    for found in word.pattern.finditer(lowered):
        at, start = found.span()
        if at < done or (word.before and not lowered.endswith(word.before, max(0, at - _LONGEST_BEFORE), at)):
            continue
        span = quoted_span(text, start, is_strong=word.is_strong)
        if span is None:
            constant = found["between"] == "=" and _is_constant(text, at, start - 1)
            span = bare_span(text, start, is_strong=word.is_strong, is_constant=constant)
        if span is not None and span[0] < span[1]:
            yield span
            done = span[1]


def _is_constant(text: str, at: int, stop: int) -> bool:
    """Whether it is a name of an environment: `DB_PASSWORD=X`."""
    before = _name_letters.search(text, max(0, at - _MOST_LETTERS), at)
    return _constant.fullmatch(text, at if before is None else before.start(), stop) is not None


def _flags(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """What follows on arguments of a command: `--api-token X`."""
    for found in _flagged.finditer(lowered):
        if is_secret_name(found["name"]):
            start = found.end()
            span = quoted_span(text, start, is_strong=True) or bare_span(text, start, is_strong=True)
            if span is not None and span[0] < span[1]:
                yield span


def _authorizations(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    done = 0
    for told in _matches(_authorization, _credentials, text, lowered):
        scheme, value = (told["scheme"] or "").lower(), told["value"]
        if told.start() < done or (value.isalpha() and (value.islower() or value.istitle())):
            continue
        rest = _rest_of_line.match(text, told.end()) if scheme.startswith(_IN_PARTS) else None
        done = told.end() if rest is None else rest.end()
        yield told.start("value"), done


def _userinfos(text: str) -> Iterator[tuple[int, int]]:
    for found in _userinfo.finditer(text):
        start, end = found.start(1), found.end(1) - 1
        user, colon, password = text[start:end].partition(":")
        if password and not password.startswith("%s"):
            yield end - len(password), end
        elif not colon and bare_span(user, 0, is_strong=True) is not None:
            yield start, end


def _behind(sign: re.Pattern[str], value: re.Pattern[str], text: str, lowered: str) -> Iterator[tuple[int, int]]:
    for told in _matches(sign, value, text, lowered):
        yield told.span()


def _matches(sign: re.Pattern[str], value: re.Pattern[str], text: str, lowered: str) -> Iterator[re.Match[str]]:
    """What stands behind a sign, no part of it twice: a value may hold the sign many times."""
    done = 0
    for found in sign.finditer(lowered):
        told = value.match(text, found.end()) if found.start() >= done else None
        if told is not None:
            yield told
            done = told.end()
