"""The calls of a timeline: bars in as few rows as keep parallel ones apart, those of sub-agents in bands below."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from incarnate.studio.timeline_parts import Bar, shortened
from incarnate.studio.timeline_rows import Run, packed, thinned
from incarnate.studio.timeline_told import told_agents, told_calls, tool_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from incarnate.studio.timeline import Call, Timeline

__all__ = ["ROW", "Band", "Ended", "agent_rows", "call_bars", "ends_of_calls", "tones_of"]

ROW = 17.0
_BAR = 13.0
_MOST_ROWS = 6
_BARS_A_ROW = 200

_NAMED_TONES = 6
_SMALL_ROW = 10.0
_SMALL_BAR = 7.0
_SMALL_ROWS = 2
_LABEL = 14.0
_MOST_BANDS = 5
_BANDS_A_ROW = 60
_LEAST_BAND = 16.0  # pixels: in a narrower one its calls would not be seen
_PIXELS_A_SMALL_BAR = 14


class Ended(NamedTuple):
    """Where a call is drawn to end, and how: `done`, `failed`, `open` (it may still run) or `lost`."""

    stop: int
    state: str


def tones_of(calls: Sequence[Call]) -> dict[str, str]:
    """A tone for each of the tools that are used most; the others share one."""
    counts = Counter(call.name or "" for call in calls if call.name is not None)
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: f"tool{rank}" for rank, name in enumerate(ranked[:_NAMED_TONES])}


def ends_of_calls(timeline: Timeline) -> list[Ended]:
    """How each call ended.

    One without a result is drawn up to what ended its life: a mark of a turn, or the next incarnation.
    """
    boundaries = _boundaries(timeline)
    head = len(timeline.moments)
    ends: list[Ended] = []
    for call in timeline.calls:
        if call.stop is not None:
            ends.append(Ended(call.stop, "done" if call.ok else "failed"))
            continue
        marks = boundaries[call.lane]
        after = bisect_right(marks, call.start)
        ends.append(Ended(marks[after], "lost") if after < len(marks) else Ended(head, "open"))
    return ends


def _boundaries(timeline: Timeline) -> list[list[int]]:
    writers = [writer.offset for writer in timeline.writers]
    marks: list[list[int]] = [[*writers] for _ in timeline.lanes]
    for turn in timeline.turns:
        marks[turn.lane].append(turn.start)
        if turn.stop is not None:
            marks[turn.lane].append(turn.stop)
    return [sorted(found) for found in marks]


def call_bars(
    timeline: Timeline, ends: Sequence[Ended], tones: Mapping[str, str], xs: Sequence[float]
) -> list[list[Bar]]:
    """The session's own calls, row by row from the top at 0."""
    own = [index for index, call in enumerate(timeline.calls) if call.lane == 0]
    rows = packed(_runs(own, timeline, ends, xs), _MOST_ROWS)
    shape = _Shape(timeline, ends, tones, _BAR)
    return [
        [shape.bar(run, row * ROW, labelled=True) for run in thinned(runs, _BARS_A_ROW)]
        for row, runs in enumerate(rows)
    ]


def _runs(indexes: Sequence[int], timeline: Timeline, ends: Sequence[Ended], xs: Sequence[float]) -> list[Run[int]]:
    calls = timeline.calls
    return [Run(xs[calls[index].start], xs[ends[index].stop], [index]) for index in indexes]


class _Shape(NamedTuple):
    """How bars of calls look."""

    timeline: Timeline
    ends: Sequence[Ended]
    tones: Mapping[str, str]
    height: float

    def bar(self, run: Run[int], top: float, *, labelled: bool) -> Bar:
        calls = [self.timeline.calls[index] for index in run.members]
        tools = Counter(tool_of(call) for call in calls)
        [(tool, _)] = tools.most_common(1)
        states = [self.ends[index].state for index in run.members]
        label = tool if run.is_single else f"{len(calls)}x" if len(tools) > 1 else f"{len(calls)}x {tool}"
        return Bar(
            left=run.left,
            right=run.right,
            top=top,
            height=self.height,
            part="call",
            tone=self.tones.get(tool, "other"),
            state=states[0] if run.is_single else "done",
            many=len(calls),
            failed=states.count("failed") / len(states),
            offset=calls[0].start,
            title=told_calls(calls, self.timeline),
            label=shortened(label, run.right - run.left - 8) if labelled else "",
        )


class Band(NamedTuple):
    """A row of sub-agents with what happened inside them, from its top at 0."""

    height: float
    bars: list[Bar]


def agent_rows(timeline: Timeline, ends: Sequence[Ended], tones: Mapping[str, str], xs: Sequence[float]) -> list[Band]:
    """The bands of sub-agents with the calls inside them, row by row.

    Those that are too narrow for that are drawn as one, which counts their calls.
    """
    inside: list[list[int]] = [[] for _ in timeline.lanes]
    for index, call in enumerate(timeline.calls):
        inside[call.lane].append(index)
    extents = _extents(timeline, ends)
    runs = [Run(xs[first], xs[last], [lane]) for lane, (first, last) in enumerate(extents) if lane]
    bands = _Bands(timeline, inside, _parents(timeline), _Shape(timeline, ends, tones, _SMALL_BAR), xs)
    return [bands.row(thinned(row, _BANDS_A_ROW)) for row in packed(runs, _MOST_BANDS)]


def _extents(timeline: Timeline, ends: Sequence[Ended]) -> list[tuple[int, int]]:
    last = [lane.offset for lane in timeline.lanes]
    for call, end in zip(timeline.calls, ends, strict=True):
        last[call.lane] = max(last[call.lane], end.stop)
    for word in timeline.words:
        last[word.lane] = max(last[word.lane], word.offset)
    return [(lane.offset, stop) for lane, stop in zip(timeline.lanes, last, strict=True)]


class _Bands(NamedTuple):
    timeline: Timeline
    inside: Sequence[Sequence[int]]  # the calls of each lane
    parents: Sequence[Call | None]
    shape: _Shape
    xs: Sequence[float]

    def row(self, runs: Sequence[Run[int]]) -> Band:
        """A row as high as the calls inside it need: where none has the room to show them, it is slim."""
        calls = [self._calls(run) for run in runs]
        height = _LABEL + _SMALL_ROW * max(map(len, calls), default=0)
        bars: list[Bar] = []
        for run, rows in zip(runs, calls, strict=True):
            band = self._band(run)._replace(height=height)
            bars.append(band._replace(many=0) if rows else band)
            bars += [
                self.shape.bar(call, _LABEL - 1 + number * _SMALL_ROW, labelled=False)
                for number, row in enumerate(rows)
                for call in row
            ]
        return Band(height, bars)

    def _calls(self, run: Run[int]) -> list[list[Run[int]]]:
        """The rows of calls inside one sub-agent that has the room for them."""
        if not run.is_single or run.right - run.left < _LEAST_BAND:
            return []
        runs = _runs(self.inside[run.members[0]], self.timeline, self.shape.ends, self.xs)
        most = max(4, int((run.right - run.left) / _PIXELS_A_SMALL_BAR))
        return [thinned(row, most) for row in packed(runs, _SMALL_ROWS)]

    def _band(self, run: Run[int]) -> Bar:
        lanes = [self.timeline.lanes[lane] for lane in run.members]
        calls = [self.timeline.calls[index] for lane in run.members for index in self.inside[lane]]
        parent = self.parents[run.members[0]]
        name = "a call" if parent is None else f"{tool_of(parent)} {parent.hint}".rstrip()
        label = f"{len(lanes)} sub-agents"
        if run.is_single:
            label = name if parent is None else parent.hint or tool_of(parent)
        return Bar(
            left=run.left,
            right=run.right,
            top=0.0,
            height=_LABEL,
            part="agent",
            tone="agent",
            state="done",
            many=len(calls),
            failed=0.0,
            offset=lanes[0].offset,
            title=told_agents(len(lanes), name, lanes[0].offset, calls, self.timeline),
            label=shortened(label, run.right - run.left - 8),
        )


def _parents(timeline: Timeline) -> list[Call | None]:
    """For each lane the latest call of its id that began before anything happened inside it."""
    wanted = {lane.call_id for lane in timeline.lanes}
    found: dict[str, list[Call]] = {}
    for call in timeline.calls:
        if call.id in wanted and call.name is not None:
            found.setdefault(call.id, []).append(call)
    parents: list[Call | None] = []
    for lane in timeline.lanes:
        calls = found.get(lane.call_id or "", []) if lane.call_id is not None else []
        before = bisect_left(calls, lane.offset, key=_start)
        parents.append(calls[before - 1] if before else None)
    return parents


def _start(call: Call) -> int:
    return call.start
