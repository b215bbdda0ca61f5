"""SVG as text: elements with escaped attributes and texts, and nothing that could run or fetch."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["element", "number", "safe_text"]

# What XML cannot hold in any way, and what would turn the direction of the writing around it.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)


def safe_text(text: str) -> str:
    """`text` as character data or the value of an attribute; what XML cannot hold is shown as its escape."""
    return escape(_UNWRITABLE.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def number(value: float) -> str:
    """A length in pixels, to a tenth."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def element(name: str, attributes: dict[str, str | float | None], content: Iterable[str] = ()) -> str:
    """One element; an attribute that is None is left out, `_` in its name is `-`; `content` is markup already."""
    told = "".join(
        [
            f' {key.replace("_", "-")}="{safe_text(value) if isinstance(value, str) else number(value)}"'
            for key, value in attributes.items()
            if value is not None
        ]
    )
    inside = "".join(content)
    return f"<{name}{told}>{inside}</{name}>" if inside else f"<{name}{told}/>"
