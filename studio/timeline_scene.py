"""The scene of a timeline: every bar, mark and label with its place in pixels, their number bounded."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

import msgspec

from incarnate.studio.timeline_axis import Axis, make_axis
from incarnate.studio.timeline_calls import ROW, agent_rows, call_bars, ends_of_calls, tones_of
from incarnate.studio.timeline_parts import Bar, Column, Label, Mark, Rule, shortened
from incarnate.studio.timeline_rows import Run, thinned
from incarnate.studio.timeline_told import (
    told_checkpoints,
    told_rewinds,
    told_spent,
    told_turns,
    told_words,
    told_writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.rewinds import Rewind
    from incarnate.studio.timeline import Spent, Timeline, Turn

__all__ = ["Scene", "make_scene"]

T = TypeVar("T")

_GUTTER = 92.0
_GUTTER_FROM = 560  # narrower drawings have the names of their lanes above them
_EDGE = 10.0
_HEADING = 34.0
_AXIS = 36.0
_LANE_GAP = 9.0
_BAND_GAP = 3.0
_NAME_ABOVE = 15.0
_WRITER, _TURN, _WORDS, _MARKS = 15.0, 19.0, 21.0, 16.0
_UP, _DOWN = 38.0, 16.0
_COLUMN = 6.0
_WRITERS_DRAWN, _TURNS_DRAWN, _WORDS_DRAWN, _MARKS_DRAWN, _RULES_DRAWN = 120, 250, 100, 100, 60
_RULE_ROOM = 2.5
_WORD_ROOM, _JOINT_ROOM = 6.0, 13.0  # the number beside a joint needs some
_WORD_KINDS = ("system", "reasoning", "assistant", "compaction", "user")  # what matters most is drawn last


class Scene(msgspec.Struct):
    """All that is drawn, and how large it is; `tones` names the tool of each tone that occurs."""

    width: float
    height: float
    heading: float
    top: float  # of the lanes
    bottom: float
    axis: Axis
    bars: list[Bar]
    marks: list[Mark]
    columns: list[Column]
    labels: list[Label]
    rules: list[Rule]
    tones: dict[str, str]


def make_scene(
    timeline: Timeline,
    width: float,
    checkpoints: Sequence[Checkpoint],
    rewinds: Sequence[Rewind],
    *,
    fence: int | None = None,
    headed: bool,
) -> Scene:
    """The scene of a timeline in `width` pixels; `headed` leaves room for a heading above it.

    An incarnation that took over (`fence`) and has written nothing yet is a line at the end.
    """
    gutter = _GUTTER if width >= _GUTTER_FROM else 0.0
    axis = make_axis(timeline.moments, gutter + _EDGE, width - _EDGE)
    return _Sheet(timeline, axis, width, gutter, _HEADING if headed else 4.0).scene(checkpoints, rewinds, fence)


class _Sheet:
    """A scene on its way: lanes are laid one below the other."""

    def __init__(self, timeline: Timeline, axis: Axis, width: float, gutter: float, heading: float) -> None:
        self._timeline = timeline
        self._xs = axis.xs
        self._gutter = gutter
        self._y = heading + _AXIS
        self._scene = Scene(width, 0, heading, self._y, 0, axis, [], [], [], [], [], {})

    def scene(self, checkpoints: Sequence[Checkpoint], rewinds: Sequence[Rewind], fence: int | None) -> Scene:
        scene, writers = self._scene, self._timeline.writers
        if fence is not None and writers and fence > writers[-1].incarnation:
            scene.rules.append(Rule(self._xs[-1], "takeover"))
        self._writers()
        self._turns()
        self._words()
        self._calls()
        self._tokens()
        self._joints(checkpoints, rewinds)
        scene.bottom = self._y - _LANE_GAP / 2
        scene.height = self._y
        return scene

    def _lane(self, name: str, height: float, second: str = "") -> float:
        """The top of a new lane of that height."""
        labels = self._scene.labels
        if self._gutter:
            room = self._gutter - _EDGE
            labels.append(Label(_EDGE, self._y + min(height, 16.0) / 2 + 4, shortened(name, room)))
            if second:
                labels.append(Label(_EDGE, self._y + min(height, 16.0) / 2 + 18, shortened(second, room)))
        else:
            told = f"{name} · {second}" if second else name
            labels.append(Label(_EDGE, self._y + 10, shortened(told, self._scene.width - 2 * _EDGE)))
            self._y += _NAME_ABOVE
        top = self._y
        self._y += height + _LANE_GAP
        return top

    def _writers(self) -> None:
        writers, head = self._timeline.writers, len(self._timeline.moments)
        if not writers:
            return
        stops = [*[writer.offset for writer in writers[1:]], head]
        runs = [
            Run(self._xs[writer.offset], self._xs[stop], [(writer, stop)])
            for writer, stop in zip(writers, stops, strict=True)
        ]
        top = self._lane("incarnation", _WRITER)
        for run in thinned(runs, _WRITERS_DRAWN):
            first, last = run.members[0], run.members[-1]
            number = f"{first[0].incarnation}" if run.is_single else f"{len(run.members)}x"
            told = told_writer(
                [writer.incarnation for writer, _ in run.members], first[0].offset, last[1], self._timeline
            )
            bar = self._bar(run, (top, _WRITER), ("writer", "writer", "done"), first[0].offset, told, number)
            self._scene.bars.append(bar)
        if len(writers) - 1 <= _RULES_DRAWN:
            self._scene.rules += [Rule(self._xs[writer.offset], "takeover") for writer in writers[1:]]

    def _turns(self) -> None:
        turns = self._timeline.turns
        own = [turn for turn in turns if turn.lane == 0]
        if not own:
            return
        top = self._lane("turns", _TURN)
        for run in thinned(self._turn_runs(own), _TURNS_DRAWN):
            tones = Counter(turn.outcome or "unfinished" for turn in run.members)
            [(tone, _)] = tones.most_common(1)
            state = "open" if run.is_single and tone == "unfinished" else "done"
            told = told_turns(run.members, self._timeline)
            label = _turn_label(run.members[0]) if run.is_single else f"{len(run.members)} turns"
            bar = self._bar(run, (top, _TURN), ("turn", tone, state), run.members[0].start, told, label)
            self._scene.bars.append(bar._replace(failed=tones["error"] / len(run.members)))

    def _turn_runs(self, turns: Sequence[Turn]) -> list[Run[Turn]]:
        """A turn whose end is missing is drawn up to the next one."""
        head = len(self._timeline.moments)
        starts = [*[turn.start for turn in turns[1:]], head]
        return [
            Run(self._xs[turn.start], self._xs[following if turn.stop is None else turn.stop], [turn])
            for turn, following in zip(turns, starts, strict=True)
        ]

    def _words(self) -> None:
        own = [word for word in self._timeline.words if word.lane == 0]
        if not own:
            return
        top = self._lane("messages", _WORDS)
        for kind in _WORD_KINDS:
            words = [word for word in own if word.kind == kind]
            # Two lines: what the model said would hide what it was asked.
            place = (top + 10, 10.0) if kind in {"assistant", "reasoning"} else (top, 10.0)
            for run in _gathered(words, lambda word: self._xs[word.offset], _WORD_ROOM, _WORDS_DRAWN):
                told = told_words(run.members, self._timeline)
                self._mark(run, place, kind, run.members[0].offset, told)

    def _calls(self) -> None:
        timeline, xs, scene = self._timeline, self._xs, self._scene
        ends, tones = ends_of_calls(timeline), tones_of(timeline.calls)
        scene.tones = {tone: tool for tool, tone in tones.items()}
        rows = call_bars(timeline, ends, tones, xs)
        if rows:
            top = self._lane("tool calls", len(rows) * ROW - 4.0)
            scene.bars += [bar._replace(top=bar.top + top) for row in rows for bar in row]
        bands = agent_rows(timeline, ends, tones, xs)
        if bands:
            top = self._lane("sub-agents", sum(band.height + _BAND_GAP for band in bands) - _BAND_GAP)
            for band in bands:
                scene.bars += [bar._replace(top=bar.top + top) for bar in band.bars]
                top += band.height + _BAND_GAP

    def _tokens(self) -> None:
        spent = _single(self._timeline.tokens)
        if not any(one.fresh or one.cached or one.output for one in spent):
            return
        stretches: dict[int, list[Spent]] = {}
        left = self._xs[0]
        for one in spent:
            stretches.setdefault(int((self._xs[one.offset] - left) / _COLUMN), []).append(one)
        most_in = max(sum(one.fresh + one.cached for one in found) for found in stretches.values())
        most_out = max(sum(one.output for one in found) for found in stretches.values())
        top = self._lane("tokens in", _UP + _DOWN, f"up to {compact(most_in)}")
        line = top + _UP
        if self._gutter:
            self._scene.labels.append(Label(_EDGE, line + _DOWN - 1, f"out, up to {compact(most_out)}"))
        up, down = _UP / max(1, most_in), _DOWN / max(1, most_out)
        for number, found in sorted(stretches.items()):
            cached, fresh = sum(one.cached for one in found) * up, sum(one.fresh for one in found) * up
            output = sum(one.output for one in found) * down
            x = left + number * _COLUMN
            told = told_spent(found, self._timeline)
            self._scene.columns.append(Column(x, _COLUMN - 1, line, cached, fresh, output, found[0].offset, told))

    def _joints(self, checkpoints: Sequence[Checkpoint], rewinds: Sequence[Rewind]) -> None:
        """Checkpoints, and rewinds where what they cut off began, each in a row of its own."""
        head = len(self._timeline.moments)
        placed = [one for one in checkpoints if one.offset <= head]
        if placed:
            top = self._lane("checkpoints", _MARKS)
            for run in _gathered(placed, lambda one: self._xs[one.offset], _JOINT_ROOM, _MARKS_DRAWN):
                offset = max(0, run.members[0].offset - 1)
                self._mark(run, (top, _MARKS), "checkpoint", offset, told_checkpoints(run.members))
        if rewinds:
            self._rewinds(sorted(zip(_cuts(rewinds, head), rewinds, strict=True), key=itemgetter(0)), max(0, head - 1))

    def _rewinds(self, cuts: Sequence[tuple[int, Rewind]], last: int) -> None:
        top = self._lane("rewinds", _MARKS)
        runs = _gathered(cuts, lambda cut: self._xs[cut[0]], _JOINT_ROOM, _MARKS_DRAWN)
        for run in runs:
            told = told_rewinds([rewind for _, rewind in run.members])
            self._mark(run, (top, _MARKS), "rewind", min(run.members[0][0], last), told)
        if len(runs) <= _RULES_DRAWN:
            takeovers = [rule.x for rule in self._scene.rules if rule.part == "takeover"]
            for run in runs:  # who takes over rewinds at once: beside its line, not below it
                is_hidden = any(abs(x - run.left) < _RULE_ROOM for x in takeovers)
                self._scene.rules.append(Rule(run.left - _RULE_ROOM if is_hidden else run.left, "rewind"))

    def _bar(
        self,
        run: Run[T],
        place: tuple[float, float],
        look: tuple[str, str, str],
        offset: int,
        title: str,
        label: str,
    ) -> Bar:
        shown = shortened(label, run.right - run.left - 8)
        return Bar(run.left, run.right, *place, *look, len(run.members), 0.0, offset, title, shown)

    def _mark(self, run: Run[T], place: tuple[float, float], part: str, offset: int, title: str) -> None:
        top, height = place
        x = (run.left + run.right) / 2
        self._scene.marks.append(Mark(x, top, height, part, len(run.members), offset, title))


def _turn_label(turn: Turn) -> str:
    outcome = "" if turn.outcome == "completed" else (turn.outcome or "no end").replace("_", " ")
    return f"{turn.name} · {outcome}" if outcome else turn.name


def _gathered(things: Iterable[T], x: Callable[[T], float], room: float, most: int) -> list[Run[T]]:
    """Things without a length, those that would lie on each other as one."""
    runs: list[Run[T]] = []
    for thing in things:
        at = x(thing)
        if runs and at - runs[-1].left < room:
            runs[-1].right = max(runs[-1].right, at)
            runs[-1].members.append(thing)
        else:
            runs.append(Run(at, at, [thing]))
    return thinned(runs, most) if len(runs) > most else runs


def _single(tokens: Sequence[Spent]) -> list[Spent]:
    """What single steps spent; where only running totals are known, by how much they grew."""
    single = [one for one in tokens if not one.is_running]
    if single:
        return single
    grown: list[Spent] = []
    before = (0, 0, 0)
    for one in tokens:
        now = (one.fresh, one.cached, one.output)
        if any(new < old for new, old in zip(now, before, strict=True)):
            before = (0, 0, 0)  # the harness began to count anew
        fresh, cached, output = (new - old for new, old in zip(now, before, strict=True))
        grown.append(one._replace(fresh=fresh, cached=cached, output=output))
        before = now
    return grown


def _cuts(rewinds: Sequence[Rewind], head: int) -> list[int]:
    """Where in the log of today each rewind cut: what a later one cut off below it is no more."""
    cuts: list[int] = []
    lowest = head
    for rewind in reversed(rewinds):
        lowest = min(lowest, rewind.cut)
        cuts.append(lowest)
    return cuts[::-1]


def compact(number: int) -> str:
    """A number in few letters: `950`, `12.3k`, `4.5M`."""
    for unit, name in ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return str(number)
