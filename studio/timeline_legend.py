"""What the colours and signs of a timeline mean, as far as they occur in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from incarnate.studio.svg import element, safe_text
from incarnate.studio.timeline_glyphs import glyph
from incarnate.studio.timeline_palette import PAINTS
from incarnate.studio.timeline_parts import text_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from incarnate.studio.timeline_scene import Scene

__all__ = ["LINE", "Chip", "chips"]

LINE = 17.0
_EDGE, _SIGN, _GAP = 10.0, 14.0, 16.0
_MOST_LETTERS = 28


class Chip(NamedTuple):
    """A colour and what it means, in a line of the legend."""

    x: float
    line: int
    sign: str
    text: str

    def drawn(self, top: float) -> str:
        """The chip in a legend that begins at `top`."""
        y = top + self.line * LINE
        at: dict[str, str | float | None] = {"x": self.x + _SIGN, "y": y + 8.5, "fill_opacity": "0.8"}
        return element(
            "g", {"class": "tl-legend"}, [_sign(self.sign, self.x, y), element("text", at, [safe_text(self.text)])]
        )


def chips(scene: Scene) -> Iterator[Chip]:
    """The legend of a scene, in lines as wide as it."""
    x, line = _EDGE, 0
    for sign, text in _meanings(scene):
        told = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
        width = _SIGN + text_width(told)
        if x + width > scene.width - _EDGE and x > _EDGE:
            x, line = _EDGE, line + 1
        yield Chip(x, line, sign, told)
        x += width + _GAP


def _sign(sign: str, x: float, y: float) -> str:
    box: dict[str, str | float | None] = {"x": x, "y": y, "width": 10, "height": 9}
    match sign:
        case "user" | "assistant" | "reasoning" | "system" | "compaction":
            return glyph(sign, x + 5, y + 4.5)
        case "checkpoint":
            return glyph(sign, x + 1, y + 4.5)
        case "takeover" | "rewind":
            dashes = "5 3" if sign == "takeover" else "1 3"
            line: dict[str, str | float | None] = {"x1": x + 5, "x2": x + 5, "y1": y - 2, "y2": y + 11}
            return element("line", {**line, "stroke": PAINTS[sign], "stroke_width": "1.6", "stroke_dasharray": dashes})
        case "lost":
            paint = PAINTS["interrupted"]
            dashed = {"fill": paint, "fill_opacity": "0.14", "stroke": paint, "stroke_dasharray": "3 2"}
            return element("rect", {**box, "rx": 2, **dashed})
        case "many":
            paint = PAINTS["other"]
            return element("rect", {**box, "rx": 2, "fill": paint, "fill_opacity": "0.55", "stroke": paint})
        case "fresh" | "cached" | "output":
            return element("rect", {**box, "fill": PAINTS[sign]})
        case _:
            return element("rect", {**box, "rx": 2, "fill": PAINTS[sign], "fill_opacity": "0.6"})


_OUTCOMES = {
    "completed": "turn completed",
    "interrupted": "interrupted",
    "cancelled": "cancelled",
    "step_limit": "step limit",
    "unfinished": "no end",
}
_WORDS = {
    "user": "prompt",
    "assistant": "answer",
    "reasoning": "thought",
    "system": "system",
    "compaction": "compaction",
}
_TOKENS = {"fresh": "input", "cached": "input from the cache", "output": "output"}
_MERGED = "several in one, as most are"
_RULES = {"takeover": "take-over", "rewind": "rewind"}


def _meanings(scene: Scene) -> Iterator[tuple[str, str]]:
    """Each sign that occurs, and its meaning."""
    turns = {bar.tone for bar in scene.bars if bar.part == "turn"}
    calls = {(bar.tone, bar.state) for bar in scene.bars if bar.part == "call"}
    states = {state for _, state in calls}
    marks = {mark.part for mark in scene.marks}
    rules = {rule.part for rule in scene.rules}
    yield from [(tone, text) for tone, text in _OUTCOMES.items() if tone in turns]
    if "failed" in states or "error" in turns:
        yield "error", "failed"
    yield from [(tone, tool or "(no name)") for tone, tool in sorted(scene.tones.items())]
    if any(tone == "other" for tone, _ in calls):
        yield "other", "other tools"
    if "lost" in states:
        yield "lost", "never answered"
    if any(bar.many > 1 and bar.part in {"turn", "call"} for bar in scene.bars):
        yield "many", _MERGED
    yield from [(part, text) for part, text in _WORDS.items() if part in marks]
    yield from _TOKENS.items() if scene.columns else ()
    if "checkpoint" in marks:
        yield "checkpoint", "checkpoint"
    yield from [(part, text) for part, text in _RULES.items() if part in rules]
