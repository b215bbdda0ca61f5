"""The forms that services give their keys and tokens, as a table: each is known by how it begins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FORMS", "Form", "form_spans", "has_form_signs"]

_LONG = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ"
_UPPER = "Q2W3E4R5T6Y7U8I9O0PA"
_HEX = "0123456789abcdef" * 4


class Form(NamedTuple):
    """How a service's secrets look: one of `prefixes`, then `rest`, a pattern that fails within a few letters.

    `example` is a rest that is masked, and `other` one that is not: it is too short, or words.
    """

    service: str
    prefixes: tuple[str, ...]
    rest: str
    example: str
    other: str = "short"


# Words joined by hyphens are no key: somewhere in a key stand 16 letters on end that are neither a word nor a number.
_NO_WORD = r"(?>(?:[A-Za-z0-9]{0,15}+[_-]){0,4}+)(?![a-z]{16}|[A-Z]{16}|[0-9]{16})[A-Za-z0-9]{16}[A-Za-z0-9_-]*+"
# A token in parts: one whose header is longer than this is no token, and would be read again from each `eyJ` in it.
_JWT = r"[A-Za-z0-9_-]{8,512}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){0,3}+"

_DISCORD = ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/")

FORMS = (
    Form("OpenAI, Anthropic, OpenRouter, DeepSeek", ("sk-",), _NO_WORD, f"proj-{_LONG}", "learn-is-a-library-for-py3"),
    Form("Langfuse, Paddle", ("pk-", "rk-"), _NO_WORD, f"lf-{_LONG}", "2251799813685249"),
    Form("Stripe", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[A-Za-z0-9]{16,}+", _LONG),
    Form("Stripe's webhooks", ("whsec_",), r"[A-Za-z0-9+/=]{24,}+", _LONG),
    Form("GitHub", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{20,}+", _LONG),
    Form("GitHub, fine-grained", ("github_pat_",), r"[A-Za-z0-9_]{22,}+", _LONG),
    Form("GitLab", ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-"), r"[A-Za-z0-9_.-]{20,}+", _LONG),
    Form("GitLab's agents and others", ("glsoat-", "glimt-", "glagent-"), r"[A-Za-z0-9_.-]{20,}+", _LONG),
    Form("AWS", ("AKIA", "ASIA"), r"[0-9A-Z]{16}(?![a-z0-9A-Z])", _UPPER[:16], "-southeast-1"),
    Form("Google API", ("AIza",), r"[A-Za-z0-9_-]{35}", f"Sy{_LONG}a"),
    Form("Google access", ("ya29.",), r"[A-Za-z0-9_.-]{20,}+", _LONG),
    Form("Google client", ("GOCSPX-",), r"[A-Za-z0-9_-]{20,}+", _LONG),
    Form("Slack", ("xox",), r"[abceoprs](?:\.xox[abp])?-[A-Za-z0-9-]{10,}+", f"b-123-{_LONG}", "o-kisses"),
    Form("Slack's apps", ("xapp-",), r"[A-Za-z0-9-]{16,}+", f"1-A01-{_LONG}"),
    Form("Slack's hooks", ("hooks.slack.com/services/",), r"T\w{1,32}+/B\w{1,32}+/\w{8,}+", f"T0/B0/{_LONG}", "T/B/x"),
    Form("Discord's hooks", _DISCORD, r"\d{16,20}+/[\w-]{32,}+", f"12345678901234567890/{_LONG}", "guides"),
    Form("Discord, second factor", ("mfa.",), r"[A-Za-z0-9_-]{60,}+", _LONG * 2, "enabled"),
    Form("npm", ("npm_",), r"[A-Za-z0-9]{36,}+", f"{_LONG}abcd", "config_registry_of_a_long_name_here"),
    Form("PyPI", ("pypi-",), r"[A-Za-z0-9_-]{32,}+", f"AgEI{_LONG}", "simple-index-of-packages"),
    Form("Docker", ("dckr_pat_", "dckr_oat_"), r"[A-Za-z0-9_-]{20,}+", _LONG),
    Form("Hugging Face", ("hf_",), r"[A-Za-z0-9]{30,}+", _LONG, "hub_download_of_something_that_is_long"),
    Form("Groq", ("gsk_",), r"[A-Za-z0-9]{30,}+", _LONG),
    Form("xAI", ("xai-",), r"[A-Za-z0-9]{30,}+", _LONG, "org-something-of-words-that-is-long"),
    Form("Replicate", ("r8_",), r"[A-Za-z0-9]{30,}+", _LONG),
    Form("Perplexity", ("pplx-",), r"[A-Za-z0-9]{30,}+", _LONG),
    Form("SendGrid", ("SG.",), r"[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,}+", f"{_LONG}.{_LONG}", "something.else"),
    Form("Vault", ("hvs.", "hvb.", "hvr."), r"[A-Za-z0-9_-]{20,}+", _LONG),
    Form("DigitalOcean", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[a-f0-9]{32,}+", _HEX),
    Form("Shopify", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[a-fA-F0-9]{32,}+", _HEX),
    Form("Linear", ("lin_api_", "lin_oauth_"), r"[A-Za-z0-9]{20,}+", _LONG),
    Form("Doppler", ("dp.pt.", "dp.st.", "dp.ct."), r"[A-Za-z0-9_.-]{20,}+", _LONG),
    Form("RubyGems", ("rubygems_",), r"[a-f0-9]{32,}+", _HEX),
    Form("Databricks", ("dapi",), r"[a-f0-9]{32}", _HEX[:32]),
    Form("Fireworks", ("fw_",), r"[A-Za-z0-9]{20,}+", _LONG),
    Form("Google refresh", ("1//0",), r"[A-Za-z0-9_-]{24,}+", _LONG),
    Form("age", ("AGE-SECRET-KEY-",), r"[0-9A-Z]{20,}+", f"1{_UPPER * 3}"),
    Form("JSON web token", ("eyJ",), _JWT, f"hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{_LONG}", "ust-a-word.and"),
)

_LEAST = 10  # letters that every rest has
_TAIL = 3  # letters that tell prefixes apart, nearly

_rests: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
for _form in FORMS:
    for _prefix in _form.prefixes:
        _rests.setdefault(_prefix[-_TAIL:], []).append((_prefix, re.compile(_form.rest)))


def _anchors() -> Iterator[tuple[re.Pattern[str], int]]:
    """Patterns that find the ends of prefixes, and how many letters of one they take.

    A pattern that begins with fixed letters is looked for at 1 to 3 GB/s, one that begins with any of several letters
    at 30 to 100 MB/s: so prefixes that end with a hyphen are found by it, and few words have one there.
    """
    prefixes = [prefix for form in FORMS for prefix in form.prefixes]
    for joint in "-_.":
        before = "".join(sorted({prefix[-2] for prefix in prefixes if prefix[-1] == joint}))
        yield re.compile(rf"{re.escape(joint)}(?<=[{before}].)(?=[A-Za-z0-9_+/-]{{{_LEAST}}})"), 1
    yield re.compile(r"A(?=KIA|SIA|Iza)"), len("AKIA")
    for prefix in prefixes:
        if prefix[-1] not in "-_." and prefix[0] != "A":
            yield re.compile(re.escape(prefix)), len(prefix)


_ANCHORS = tuple(_anchors())

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
# In a text of JSON, of a shell or of a URL the letter before a secret may be the end of an escape.
_escape = re.compile(r"(?:\\[abefnrtv0]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|[%=][0-9a-fA-F]{2}|\[[0-9;]{0,12}m)\Z")
_LONGEST_ESCAPE = 16


def has_form_signs(text: str) -> bool:
    """Whether a secret of a known form may stand in a text."""
    return any(anchor.search(text) for anchor, _ in _ANCHORS)


def form_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where secrets of known forms stand, begin and end."""
    for anchor, length in _ANCHORS:
        done = 0
        for found in anchor.finditer(text):
            end = found.start() + length
            if end > done and (span := _span(text, end)) is not None:
                yield span
                done = span[1]


def _span(text: str, at: int) -> tuple[int, int] | None:
    """The secret whose prefix ends at `at`."""
    for prefix, rest in _rests.get(text[max(0, at - _TAIL) : at], ()):
        start = at - len(prefix)
        if start >= 0 and text.startswith(prefix, start):
            found = rest.match(text, at) if _begins(text, start) else None
            return None if found is None else (start, found.end())
    return None


def _begins(text: str, at: int) -> bool:
    """Whether a word may begin here."""
    if not at or text[at - 1] not in _LETTERS:
        return True
    return _escape.search(text, max(0, at - _LONGEST_ESCAPE), at) is not None
