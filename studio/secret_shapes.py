"""Secrets that begin like nothing in particular and are known by their whole shape: of Telegram, Discord and Twilio."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from binascii import Error as NoBase64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["has_shape_signs", "shape_spans"]

# Each begins with a fixed letter, which is looked for fast, and fails within a few letters of it.
_telegram = re.compile(r":(?<=\d:)(?=(?P<rest>[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])))")
_bot = re.compile(r"(?<!\d)\d{8,10}\Z")
_LONGEST_BOT = 11

_discord = re.compile(r"\.(?<=[A-Za-z0-9_-]\.)(?=[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}+(?![A-Za-z0-9_-]))")
_rest_of_discord = re.compile(r"[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}+")
_user = re.compile(r"(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{22,27}\Z")
_LONGEST_USER = 29

_accounts = (re.compile(r"AC(?=[0-9a-f]{32}(?![0-9A-Za-z]))"), re.compile(r"SK(?=[0-9a-f]{32}(?![0-9A-Za-z]))"))
_ACCOUNT_LETTERS = 34
_token = re.compile(r"(?<![0-9A-Za-z])[0-9A-Za-z]{32}(?![0-9A-Za-z])")
_NEARBY = 160


def has_shape_signs(text: str) -> bool:
    """Whether a secret of such a shape may stand in a text."""
    return any(sign.search(text) for sign in (_telegram, _discord, *_accounts))


def shape_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where secrets of these shapes stand, begin and end."""
    yield from _bots_of_telegram(text)
    yield from _bots_of_discord(text)
    yield from _accounts_of_twilio(text)


def _bots_of_telegram(text: str) -> Iterator[tuple[int, int]]:
    for found in _telegram.finditer(text):
        bot = _bot.search(text, max(0, found.start() - _LONGEST_BOT), found.start())
        if bot is not None and _is_random(found["rest"]):
            yield bot.start(), found.end("rest")


def _is_random(letters: str) -> bool:
    """Words, a path's name or a number are not: of 35 letters by chance some are small, some large, some figures."""
    return any(map(str.isdigit, letters)) and any(map(str.isupper, letters)) and any(map(str.islower, letters))


def _bots_of_discord(text: str) -> Iterator[tuple[int, int]]:
    for found in _discord.finditer(text):
        user = _user.search(text, max(0, found.start() - _LONGEST_USER), found.start())
        rest = _rest_of_discord.match(text, found.end())
        if user is not None and rest is not None and _is_number(user[0]):
            yield user.start(), rest.end()


def _is_number(encoded: str) -> bool:
    """Whether it is a user's number, as the first part of a token is: then it is no word that happens to be so long."""
    try:
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).isdigit()
    except NoBase64:
        return False


def _accounts_of_twilio(text: str) -> Iterator[tuple[int, int]]:
    """The names of accounts and keys, and the secret beside them, which has 32 letters as other things do."""
    for sign in _accounts:
        done = 0
        for found in sign.finditer(text):
            start, end = found.start(), found.start() + _ACCOUNT_LETTERS
            yield start, end
            near = _token.finditer(text, max(done, start - _NEARBY), end + _NEARBY)
            yield from (token.span() for token in near if _is_token(token[0]))
            done = end + _NEARBY


def _is_token(letters: str) -> bool:
    return any(map(str.isdigit, letters)) and any(map(str.isalpha, letters))
