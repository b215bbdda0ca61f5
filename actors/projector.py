"""The projector actor: keeps one view of one activation.

It is one reducer for live events and for a rebuild (I7). Notices bring it the events that this process appends, as
long as they follow on what it has; for everything else it reads the store, from where it stands: what another process
wrote, what was lost, what was rewound. So a notice may be late, missing or doubled without a view ever being wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from incarnate.actors.contained import ContainedActor
from incarnate.actors.logs import log
from incarnate.domain.errors import IncarnateError, UnknownCommandError, ViewFailedError
from incarnate.domain.gaps import check_whole
from incarnate.domain.projections.base import Change

if TYPE_CHECKING:
    from incarnate.actors.taps import Tap
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.notices import Appended
    from incarnate.domain.projections.base import Projection
    from incarnate.storage.port import Store

__all__ = ["CatchUp", "Follow", "Follower", "GetView", "ProjectorActor", "Unfollow", "ViewState"]

_PAGE_EVENTS = 1000
_PAGE_BYTES = 8 * 1024 * 1024


class ViewState(NamedTuple):
    """A view's value, or its diagnostics where those were asked for, and the head that it is of."""

    generation: int
    next_offset: int
    value: Any


class Follower(Protocol):
    """Whoever hears of the changes of a view. Called on the projector's thread; must not block.

    Both answer whether there is still somebody to tell.
    """

    @property
    def ready(self) -> bool:
        """It was left behind, and can take the whole view now."""
        ...

    def push(self, changes: Sequence[Change], /) -> bool:
        """The view has changed so, one after the other, since the last call."""
        ...

    def reset(self, change: Change, /) -> bool:
        """Forget what came before: this one change, which keeps nothing, holds the whole view."""
        ...


class GetView(NamedTuple):
    """Replies with the `ViewState`, at `generation` and `next_offset` of the log or beyond."""

    generation: int
    next_offset: int
    attribute: Literal["value", "diagnostics"] = "value"


class CatchUp(NamedTuple):
    """Take in what has come; with `store`, what other processes wrote too."""

    store: bool = False


class Follow(NamedTuple):
    """Reset `follower` to the view as it is now, then push it every change. Following again resets again."""

    follower: Follower


class Unfollow(NamedTuple):
    """Push `follower` nothing more."""

    follower: Follower


class ProjectorActor(ContainedActor):
    """Keeps `projection` level with the log. `tap` and `followers` outlive it: a fresh actor goes on with them."""

    failure = ViewFailedError

    def __init__(
        self,
        key: ActivationKey,
        projection: Projection[Any],
        store: Store,
        tap: Tap,
        followers: list[Follower],
        report_failure: Callable[[BaseException], None],
    ) -> None:
        super().__init__()
        self.report_failure = report_failure
        self._key = key
        self._name = projection.name  # not the fresh one's: that may be anything, and this is told of a failure
        self._projection = _fresh(projection, key)
        self._store = store
        self._tap = tap
        self._followers = followers
        self._stale = bool(followers)  # they followed an actor that failed: what they have may be anything

    def __str__(self) -> str:
        return f"view {self._name} of {self._key}"

    def handle(self, message: Any) -> Any:
        """Answer one of this module's messages."""
        if isinstance(message, GetView):
            return self._get(message)
        if isinstance(message, CatchUp):
            self._catch_up(read=message.store)
        elif isinstance(message, Follow):
            self._follow(message.follower)
        elif isinstance(message, Unfollow):
            self._unfollow(message.follower)
        else:
            raise UnknownCommandError(message)
        return None

    def _get(self, message: GetView) -> ViewState:
        projection = self._projection
        self._catch_up(read=False)
        if (projection.generation, projection.next_offset) < message[:2]:
            self._read()
        found = projection.value if message.attribute == "value" else getattr(projection, "diagnostics", None)
        return ViewState(projection.generation, projection.next_offset, found)

    def _follow(self, follower: Follower) -> None:
        self._tap.prompt = True
        self._catch_up(read=True)
        if follower not in self._followers:
            self._followers.append(follower)
        self._reset(follower)

    def _unfollow(self, follower: Follower) -> None:
        if follower in self._followers:
            self._followers.remove(follower)
        self._tap.prompt = bool(self._followers)

    def _catch_up(self, *, read: bool) -> None:
        notices, overflowed = self._tap.drain()
        behind = read or overflowed or self._stale or self._tap.behind
        if behind or (notices and not self._took_all(notices)):
            self._read_for_followers()
        stale, self._stale = self._stale, False
        for follower in tuple(self._followers):
            if stale or follower.ready:
                self._reset(follower)

    def _read_for_followers(self) -> None:
        """Come level with the store, later if it is busy: what woke this will not come again."""
        try:
            self._read()
        except IncarnateError:
            self._tap.behind = True
            raise
        self._tap.behind = False

    def _took_all(self, notices: Sequence[Appended]) -> bool:
        """Take notices in up to the first that does not follow on what is there; False where there is one."""
        changes: list[Change | None] = []
        try:
            return all(self._took(notice, changes) for notice in notices)
        finally:  # also where the projection refused an event: its followers are owed what came before
            self._push(changes)

    def _took(self, notice: Appended, changes: list[Change | None]) -> bool:
        """Take a notice in and add what it changed; False where it does not follow on what is there."""
        projection, head, cut, events = self._projection, notice.head, notice.cut, notice.events
        generation, next_offset = projection.generation, projection.next_offset
        if head.next_offset <= next_offset if head.generation == generation else head.generation < generation:
            return True  # read from the store already
        before = head.generation if cut is None else head.generation - 1
        if before != generation or events[0].offset > next_offset:
            return False
        if cut is not None:
            changes.append(self._cut(cut))
        elif events[0].offset < next_offset:
            return False
        self._apply(events, changes)
        return True

    def _read(self) -> None:
        """Come level with the store."""
        projection = self._projection
        while True:
            with self._store.snapshot(self._key) as log:
                head = log.head
                if head.generation != projection.generation:
                    self._rewind(log.lowest_cut(projection.generation), head.generation)
                stop = min(projection.next_offset + _PAGE_EVENTS, head.next_offset)
                page = log.page(projection.next_offset, stop, _PAGE_BYTES)
            if projection.next_offset < stop:
                check_whole(self._key, page, projection.next_offset, projection.next_offset + 1)
            changes: list[Change | None] = []
            try:
                self._apply(page, changes)
            finally:
                self._push(changes)
            if projection.next_offset >= head.next_offset:
                return

    def _apply(self, events: Sequence[AppendedEvent], changes: list[Change | None]) -> None:
        apply, add = self._projection.apply, changes.append
        for event in events:  # no `map`: what is given one takes a StopIteration of the projection for its end
            add(apply(event))  # where one is refused, those before it are in `changes`
        if events:
            self._check_place(events[-1].offset + 1, "apply")

    def _cut(self, cut: int) -> Change | None:
        change = self._projection.rewind(cut)
        self._check_place(cut, "rewind")
        return change

    def _check_place(self, offset: int, after: str) -> None:
        """One that forgets to move would be given the same events for ever, or events on top of what was rewound."""
        place = self._projection.next_offset
        if place != offset:
            raise RuntimeError(f"{after} left next_offset at {place} where it must be {offset}")

    def _rewind(self, cut: int | None, generation: int) -> None:
        projection = self._projection
        if cut is not None and cut < projection.next_offset:
            projection.generation = generation - 1  # several rewinds, of which the lowest cut counts, are one here
            self._push([self._cut(cut)])
        projection.generation = generation

    def _push(self, changes: Sequence[Change | None]) -> None:
        """Tell the followers all at once: a call for each change was an eighth of what a followed view costs."""
        if not (self._followers and changes):
            return
        told = [change for change in changes if change is not None]
        if len(told) < len(changes):
            told = [self._whole()]
        for follower in tuple(self._followers):
            self._tell(follower, follower.push, told)

    def _reset(self, follower: Follower) -> None:
        whole = self._whole()  # what this raises is the projection's, and fails the view
        self._tell(follower, follower.reset, whole)

    def _tell(self, follower: Follower, how: Callable[[Any], bool], what: object) -> None:
        """Tell a follower, and let go of one that is no more or raises: it would fail the view for all others too."""
        try:
            listens = how(what)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the actor's whose reference it is
            log(logging.ERROR, "untold", "%s could not tell %r", self, follower, error=error)
            listens = False
        if not listens:
            self._unfollow(follower)

    def _whole(self) -> Change:
        """The view as one change that keeps nothing. A view that is no list is a list of one."""
        value = self._projection.value
        items = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else (value,)
        return Change(self._projection.generation, 0, items)


def _fresh(projection: Projection[Any], key: ActivationKey) -> Projection[Any]:
    try:
        return projection.fresh()
    except Exception as error:
        raise ViewFailedError(f"view {projection.name} of {key} could not be made: {error!r}") from error
