"""The signs of a timeline: what stands for a prompt, an answer, a checkpoint or a rewind."""

from __future__ import annotations

from incarnate.studio.svg import element
from incarnate.studio.timeline_palette import PAINTS

__all__ = ["glyph"]

_OPACITIES = {"assistant": "0.75", "reasoning": "0.4", "system": "0.6"}


def glyph(part: str, x: float, y: float) -> str:
    """The sign of a part around a point; filled, so that a pointer hits it."""
    look = {"fill": PAINTS[part], "fill_opacity": _OPACITIES.get(part)}
    match part:
        case "user":
            return element("path", {"d": f"M{x:.1f} {y - 5.5:.1f}l5 5.5l-5 5.5l-5 -5.5z", **look})
        case "compaction":
            return element("path", {"d": f"M{x - 4.5:.1f} {y - 5:.1f}h9l-4 5l4 5h-9l4 -5z", **look})
        case "checkpoint":
            return element("path", {"d": f"M{x - 0.7:.1f} {y - 7:.1f}h9l-2.5 3.5l2.5 3.5h-7.5v7h-1.5z", **look})
        case "rewind":
            return element(
                "path", {"d": f"M{x - 1:.1f} {y:.1f}l6.5 -5.5v11zM{x - 7.5:.1f} {y:.1f}l6.5 -5.5v11z", **look}
            )
        case "assistant":
            return _box(x, y, 3.0, 10.0, look)
        case "reasoning":
            return _box(x, y, 2.0, 6.0, look)
        case _:
            return _box(x, y, 5.0, 5.0, look)


def _box(x: float, y: float, width: float, height: float, look: dict[str, str | None]) -> str:
    box: dict[str, str | float | None] = {"x": x - width / 2, "y": y - height / 2, "width": width, "height": height}
    return element("rect", {**box, "rx": 1, **look})
