"""The colours of a timeline: each stands out by three to one on white and on a dark page alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incarnate.studio.timeline_parts import Bar

__all__ = ["PAINTS", "paint_of"]

PAINTS = {
    "tool0": "#3b82c4",
    "tool1": "#1f9e89",
    "tool2": "#8b6fc9",
    "tool3": "#b7791f",
    "tool4": "#c2578f",
    "tool5": "#7a8f2a",
    "other": "#7d8590",
    "completed": "#2f9e58",
    "error": "#d1443c",
    "interrupted": "#c77700",
    "cancelled": "#8b6fc9",
    "step_limit": "#a8810f",
    "unfinished": "#7d8590",
    "writer": "#5d7a99",
    "agent": "#7d8590",
    "takeover": "#c77700",
    "rewind": "#c2578f",
    "checkpoint": "#2f9e58",
    "user": "currentColor",
    "assistant": "currentColor",
    "reasoning": "currentColor",
    "system": "currentColor",
    "compaction": "#c2578f",
    "cached": "#7d9cc0",
    "fresh": "#3b82c4",
    "output": "#1f9e89",
}

_FAILED, _LOST = PAINTS["error"], PAINTS["interrupted"]


def paint_of(bar: Bar, *, is_narrow: bool) -> dict[str, str | float | None]:
    """How a bar is filled and outlined: one that failed is red, one that was never answered dashed."""
    paint = PAINTS.get(bar.tone, PAINTS["other"])
    if bar.part == "agent":
        return {"rx": 3, "fill": paint, "fill_opacity": "0.12", "stroke": paint, "stroke_opacity": "0.45"}
    if bar.part == "call" and bar.state in {"failed", "lost"}:
        paint = _FAILED if bar.state == "failed" else _LOST
    if is_narrow:
        return {"fill": paint, "fill_opacity": "0.9"}
    if bar.state in {"lost", "open"}:
        outline: dict[str, str | float | None] = {"stroke": paint, "stroke_dasharray": "3 2"}
        return {"rx": 2, "fill": paint, "fill_opacity": "0.14", **outline}
    opacity = "0.55" if bar.many > 1 else "0.28"
    return {"rx": 2, "fill": paint, "fill_opacity": opacity, "stroke": paint}
