"""The timeline of a session as one SVG: presentation attributes alone, so that any policy and any viewer takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from incarnate.domain.wording import counted
from incarnate.studio.limits import LEAST_WIDTH, MOST_WIDTH, WIDTH
from incarnate.studio.svg import element, safe_text
from incarnate.studio.timeline_axis import duration
from incarnate.studio.timeline_glyphs import glyph
from incarnate.studio.timeline_legend import LINE, chips
from incarnate.studio.timeline_palette import PAINTS, paint_of
from incarnate.studio.timeline_parts import shortened, text_width
from incarnate.studio.timeline_scene import Scene, make_scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.rewinds import Rewind
    from incarnate.studio.timeline import Timeline
    from incarnate.studio.timeline_parts import Bar, Column, Mark

__all__ = ["draw_timeline"]

_TAB_STOPS = 300  # a keyboard reaches as many; more would be a trap
_ALONE_WIDTH = 3.5  # narrower bars are filled, wider ones have an outline
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_INK, _PAPER = "#1f2328", "#ffffff"


def draw_timeline(
    timeline: Timeline,
    *,
    width: int = WIDTH,
    checkpoints: Sequence[Checkpoint] = (),
    rewinds: Sequence[Rewind] = (),
    fence: int | None = None,
    heading: str | None = None,
    mask: Callable[[str], str] = str,
) -> str:
    """The drawing of a timeline, `width` pixels wide, within 320 and 2400.

    What leads to an event has its offset as `data-offset`, its role is a link, and its title tells what it is. With
    a `heading` it is a picture of its own, on paper of its own; without one it takes the colour of the text around
    it. `fence` is the highest incarnation admitted, which may have written nothing yet. `mask` takes secrets out of
    what checkpoints say; the timeline has its own.
    """
    width = max(LEAST_WIDTH, min(MOST_WIDTH, width))
    checkpoints = [msgspec.structs.replace(one, commit_sha=mask(one.commit_sha)) for one in checkpoints]
    scene = make_scene(timeline, width, checkpoints, rewinds, fence=fence, headed=heading is not None)
    about = _about(timeline, fence)
    legend = list(chips(scene))
    height = scene.height + (LINE * (1 + max(chip.line for chip in legend)) + 4 if legend else 0)
    pen = _Pen(scene, height)
    parts = [
        element("title", {}, [safe_text(heading or "Timeline")]),
        element("desc", {}, [safe_text(about)]),
        *(pen.paper(heading, about) if heading is not None else ()),
        *pen.axis(),
        *pen.rules(),
        *pen.labels(),
        *pen.columns(),
        *[pen.bar(bar) for bar in scene.bars],
        *[pen.mark(mark) for mark in scene.marks],
        *[chip.drawn(scene.height + 4) for chip in legend],
    ]
    root: dict[str, str | float | None] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "tl",
        "role": "group",
        "aria_label": f"{heading or 'Timeline'}: {about}",
        "viewBox": f"0 0 {width} {height:.0f}",
        "width": width,
        "height": round(height),
        "font_family": _FONT,
        "font_size": 11,
        "fill": "currentColor",
        "color": None if heading is None else _INK,
    }
    return element("svg", root, parts)


def _about(timeline: Timeline, fence: int | None) -> str:
    """The whole log in one line."""
    moments = timeline.moments
    told = [
        counted(len(moments), "event"),
        counted(sum(turn.lane == 0 for turn in timeline.turns), "turn"),
        counted(sum(call.name is not None for call in timeline.calls), "tool call"),
    ]
    if fence is not None:
        told.append(f"incarnation {fence}")
    if moments:
        told.append(duration(max(0, max(moments) - min(moments))))
    return ", ".join(told)


class _Pen:
    """Draws the parts of a scene; it counts what a keyboard can reach."""

    def __init__(self, scene: Scene, height: float) -> None:
        self._scene = scene
        self._height = height
        self._left_to_reach = _TAB_STOPS

    def paper(self, heading: str, about: str) -> Iterator[str]:
        width = self._scene.width
        yield element("rect", {"class": "tl-paper", "width": width, "height": round(self._height), "fill": _PAPER})
        title = shortened(heading, (width - 20) / 1.35)
        yield element("text", {"x": 10, "y": 17, "font_size": 14, "font_weight": "600"}, [safe_text(title)])
        told = shortened(about, width - 20)
        yield element("text", {"x": 10, "y": 32, "fill_opacity": "0.7"}, [safe_text(told)])

    def axis(self) -> Iterator[str]:
        scene = self._scene
        day_line, time_line = scene.heading + 14, scene.heading + 28
        taken = 0.0
        for tick in scene.axis.ticks:
            line: dict[str, str | float | None] = {"x1": tick.x, "x2": tick.x, "y1": scene.top - 6, "y2": scene.bottom}
            yield element("line", {"class": "tl-tick", **line, "stroke": "currentColor", "stroke_opacity": "0.12"})
            at: dict[str, str | float | None] = {"class": "tl-time", "x": tick.x - 1, "fill_opacity": "0.75"}
            if tick.x + text_width(tick.time) > scene.width:
                at["text_anchor"] = "end"
            yield element("text", {**at, "y": time_line}, [tick.time])
            if tick.day and tick.x >= taken:
                yield element("text", {**at, "y": day_line, "font_weight": "600"}, [tick.day])
                taken = tick.x + text_width(tick.day) + 8
        yield from self._breaks(day_line)

    def _breaks(self, day_line: float) -> Iterator[str]:
        scene = self._scene
        days = [(tick.x - 4, tick.x + text_width(tick.day) + 4) for tick in scene.axis.ticks if tick.day]
        taken = 0.0
        for one in scene.axis.breaks:
            told = duration(one.ms)
            inside = [element("title", {}, [f"nothing for {told}, before offset {one.offset}"])]
            size: dict[str, str | float | None] = {"x": one.left + 3, "width": one.right - one.left - 6}
            area: dict[str, str | float | None] = {**size, "y": scene.top - 6, "height": scene.bottom - scene.top + 6}
            inside.append(element("rect", {**area, "fill_opacity": "0.06"}))
            inside += [_zigzag(x, scene.top - 6, scene.bottom) for x in (one.left + 3, one.right - 3)]
            half, middle = text_width(told) / 2, (one.left + one.right) / 2
            is_free = all(middle + half < left or middle - half > right for left, right in days)
            if is_free and middle - half > taken and middle + half < scene.width:
                at: dict[str, str | float | None] = {"x": middle, "y": day_line, "text_anchor": "middle"}
                inside.append(element("text", {**at, "fill_opacity": "0.75", "font_style": "italic"}, [told]))
                taken = middle + half + 6
            yield element("g", {"class": "tl-break"}, inside)

    def rules(self) -> Iterator[str]:
        scene = self._scene
        for rule in scene.rules:
            paint = PAINTS[rule.part]
            at: dict[str, str | float | None] = {"x1": rule.x, "x2": rule.x, "y1": scene.top - 2, "y2": scene.bottom}
            dashes = "5 3" if rule.part == "takeover" else "1 3"
            look = {"stroke": paint, "stroke_width": "1.3", "stroke_dasharray": dashes}
            yield element("line", {"class": f"tl-{rule.part}-line", **at, **look})

    def labels(self) -> Iterator[str]:
        for label in self._scene.labels:
            at: dict[str, str | float | None] = {"class": "tl-lane", "x": label.x, "y": label.y}
            yield element("text", {**at, "fill_opacity": "0.75"}, [safe_text(label.text)])

    def columns(self) -> Iterator[str]:
        lines = [column.line for column in self._scene.columns[:1]]
        for y in lines:
            right = self._scene.width - 10
            at: dict[str, str | float | None] = {"x1": self._scene.axis.xs[0], "x2": right, "y1": y, "y2": y}
            yield element("line", {**at, "stroke": "currentColor", "stroke_opacity": "0.3"})
        for column in self._scene.columns:
            yield self._column(column)

    def _column(self, column: Column) -> str:
        x, line, width = column.left, column.line, column.width
        heights = (
            ("cached", line - column.cached, column.cached),
            ("fresh", line - column.cached - column.fresh, column.fresh),
            ("output", line, column.output),
        )
        bars = [
            element("rect", {"x": x, "y": y, "width": width, "height": max(height, 0.6), "fill": PAINTS[name]})
            for name, y, height in heights
            if height > 0
        ]
        return element("g", self._link("tokens", column.offset), [_title(column.title), *bars])

    def bar(self, bar: Bar) -> str:
        width = max(2.0, bar.right - bar.left)
        box: dict[str, str | float | None] = {"x": bar.left, "y": bar.top, "width": width, "height": bar.height}
        look = paint_of(bar, is_narrow=width < _ALONE_WIDTH)
        link, title = self._link(bar.part, bar.offset), _title(bar.title)
        has_strip = bar.many > 1 and bar.failed > 0
        if not bar.label and not has_strip:
            return element("rect", {**link, **box, **look}, [title])
        inside = [title, element("rect", {**box, **look})]
        if has_strip:
            strip = max(2.0, bar.failed * bar.height)
            place: dict[str, str | float | None] = {**box, "y": bar.top + bar.height - strip, "height": strip}
            inside.append(element("rect", {**place, "fill": PAINTS["error"]}))
        if bar.label:
            at: dict[str, str | float | None] = {"x": bar.left + 4, "y": bar.top + _baseline(bar)}
            inside.append(element("text", at, [safe_text(bar.label)]))
        return element("g", link, inside)

    def mark(self, mark: Mark) -> str:
        inside = [_title(mark.title), glyph(mark.part, mark.x, mark.top + mark.height / 2)]
        if mark.many > 1 and mark.part in {"checkpoint", "rewind"}:
            at: dict[str, str | float | None] = {"x": mark.x + 2, "y": mark.top + mark.height - 1, "font_size": 9}
            inside.append(element("text", at, [str(mark.many)]))
        return element("g", self._link(mark.part, mark.offset), inside)

    def _link(self, part: str, offset: int) -> dict[str, str | float | None]:
        self._left_to_reach -= 1
        reached = "0" if self._left_to_reach >= 0 else "-1"
        return {"class": f"tl-{part}", "role": "link", "tabindex": reached, "data_offset": str(offset)}


def _baseline(bar: Bar) -> float:
    return 10.5 if bar.part == "agent" else bar.height / 2 + 4


def _title(text: str) -> str:
    return element("title", {}, [safe_text(text)])


def _zigzag(x: float, top: float, bottom: float) -> str:
    steps = max(1, int((bottom - top) / 8))
    points = " ".join(f"L{x + (2 if step % 2 else -2):.1f} {top + step * 8:.1f}" for step in range(1, steps + 1))
    path = f"M{x:.1f} {top:.1f} {points}"
    return element("path", {"d": path, "fill": "none", "stroke": "currentColor", "stroke_opacity": "0.35"})
