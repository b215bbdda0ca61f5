"""A view of one activation, kept by a projector actor."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

import pykka

from incarnate.actors.changes import ChangeStream, Listener
from incarnate.actors.projector import CatchUp, Follow, GetView, ProjectorActor, Unfollow, ViewState
from incarnate.actors.references import Reference
from incarnate.actors.taps import Tap
from incarnate.domain.commands import Subscribe
from incarnate.domain.errors import (
    BackingOffError,
    ClosedError,
    ForkedError,
    MailboxFullError,
    MalformedCommandError,
    ReentrantCallError,
    ViewBehindError,
    ViewFailedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.actors.directory import ActivationRef, Directory
    from incarnate.actors.projector import Follower
    from incarnate.actors.watch import StoreWatch
    from incarnate.domain.projections.base import Change, Projection

__all__ = ["View", "Woken"]

V = TypeVar("V")


class View(Generic[V]):
    """What a projection makes of an activation's log, kept level with it. Any thread may use it.

    `SessionSystem.view` gives it: one a key and projection, however often it is asked for.
    """

    def __init__(self, home: Directory, watch: StoreWatch, ref: ActivationRef, projection: Projection[V]) -> None:
        """Use `SessionSystem.view`."""
        self.key = ref.key
        self.name = projection.name
        self.tap = Tap(_waker(watch, weakref.ref(self)))
        self._tapped = False  # whether the activation tells it
        self._ref = ref
        self._home = home
        self._store = home.services.store
        self._watch = watch
        self._runtime = home.services.runtime
        self._followers: list[Follower] = []
        self._projector = _Projector(home, self, projection, self._followers)
        self._put_off = False
        self._closed = False

    def __repr__(self) -> str:
        return f"<View {self.name} of {self.key}>"

    def get(self, at_least: tuple[int, int] | None = None, timeout: float | None = None) -> V:
        """The value, which includes everything acknowledged before the call, by this process or another.

        Args:
            at_least: `(generation, next_offset)`: wait until the log and the view have come that far.
            timeout: seconds to wait for `at_least`; None waits for ever.

        Raises:
            ViewBehindError: they have not come that far in time.
            ViewFailedError: the projection raised.
            StoreBusyError, LogCorruptionError, ClosedError, ForkedError: from reading the log.
        """
        state = self.state()
        if at_least is not None and (state.generation, state.next_offset) < tuple(at_least):
            state = self._wait(at_least, timeout)
        return cast("V", state.value)

    def diagnostics(self) -> Any:
        """What the projection tells of itself beside its value, as level with the log as `get`.

        For a `ModelHistory` how much it had to leave out; None for a projection without `diagnostics`.

        Raises:
            ViewFailedError, StoreBusyError, LogCorruptionError, ClosedError, ForkedError: as `get`.
        """
        return self.state("diagnostics").value

    def changes(self) -> ChangeStream:
        """Iterate the changes from now on. The first holds the view as it is; see `ChangeStream`."""
        return ChangeStream(self.follow, self.unfollow, self._runtime.condition())

    def subscribe(self, actor_ref: pykka.ActorRef[Any]) -> None:
        """Tell an actor `ViewReset` with the view as it is, then `ViewChanged` for every change; see `Listener`.

        Raises:
            MalformedCommandError: it is no reference to an actor, such as its proxy.
        """
        if not isinstance(actor_ref, pykka.ActorRef):  # pyright: ignore[reportUnnecessaryIsInstance] - not all check
            raise MalformedCommandError("subscribe", "actor_ref", f"must be a pykka.ActorRef, not {actor_ref!r:.100}")
        self.follow(Listener(actor_ref, self.key, self.name))

    def unsubscribe(self, actor_ref: pykka.ActorRef[Any]) -> None:
        """Tell the actor nothing more."""
        for follower in tuple(self._followers):
            if isinstance(follower, Listener) and follower.ref.actor_urn == actor_ref.actor_urn:
                self.unfollow(follower)

    def catch_up(self, *, store: bool) -> None:
        """Have the projector take in what has come, with `store` also from the store; does not wait."""
        self._put_off = False
        try:
            self._projector.tell(CatchUp(store))
        except (BackingOffError, MailboxFullError, ViewFailedError):
            self._put_off = True
        except ClosedError:
            pass

    @property
    def has_ready_follower(self) -> bool:
        """Whether one that was left behind can take the whole view now, or all wait for what could not be read."""
        return self._put_off or self.tap.behind or any(follower.ready for follower in tuple(self._followers))

    @property
    def is_followed(self) -> bool:
        """Whether anybody is told of its changes."""
        return bool(self._followers)

    @property
    def is_live(self) -> bool:
        """Whether its projector lives: else it is built from the log when it is next asked for."""
        return self._projector.is_live

    @property
    def queued(self) -> int:
        """How many messages wait for its projector."""
        return self._projector.queued

    @property
    def backs_off(self) -> bool:
        """Whether its projector failed again and again, and is not started for a while."""
        return self._projector.backs_off

    def attach(self) -> None:
        """Have the activation tell of its changes, and keep this view while its actor lives."""
        if not self._tapped:
            self._ref.ask(Subscribe(self.tap))
            self._tapped = True
        self._home.keep(self._ref, self)

    def put_off(self) -> None:
        """Have the watch catch up again, where somebody follows."""
        self._put_off = True

    def rest(self) -> None:
        """Stop the projector and let go of the value, once what was sent before is handled."""
        self._projector.stop(block=False)

    def close(self) -> None:
        """End every iteration and every wait, and stop the projector."""
        self._closed = True  # whoever follows from here on, or waits for more, finds it himself
        for follower in tuple(self._followers):
            if isinstance(follower, ChangeStream):
                follower.close()
            elif isinstance(follower, Woken):
                follower.wake()
        self._projector.stop()

    def state(self, attribute: Literal["value", "diagnostics"] = "value") -> ViewState:
        """The value, or what it tells beside it, and where it stands: level with the log as it is stored now."""
        self.attach()
        self._ref.use()
        head = self._store.head(self.key)
        state: ViewState = self._ask(GetView(head.generation, head.next_offset, attribute))
        return state

    def _ask(self, message: Any) -> Any:
        """What the projector answers. Waits for room: what takes it may be what the system itself told."""
        try:
            return self._projector.ask(message)
        except MailboxFullError:
            return self._projector.ask(message, wait=self._home.ask_timeout)

    def _wait(self, at_least: tuple[int, int], timeout: float | None) -> ViewState:
        clock = self._runtime.monotonic
        deadline = None if timeout is None else clock() + timeout
        changed = self._runtime.event()
        woken = Woken(changed.set)
        self.follow(woken)
        try:
            while True:
                changed.clear()
                self.check_open()
                state = self.state()
                if (state.generation, state.next_offset) >= tuple(at_least):
                    return state
                left = None if deadline is None else deadline - clock()
                if left is not None and left <= 0:
                    raise self.behind(state, at_least, timeout)
                changed.wait(left)
        finally:
            self.unfollow(woken)

    def behind(self, state: ViewState, at_least: tuple[int, int], timeout: float | None) -> ViewBehindError:
        """What to raise where `state` is all that there was within `timeout`."""
        waited = "" if timeout is None else f" after {timeout:g} seconds"
        return ViewBehindError(f"{self!r} stands at {state[:2]}{waited}; {tuple(at_least)} was asked for")

    def follow(self, follower: Follower) -> None:
        """Reset `follower` to the view as it is now, then push it every change; see `Follower`."""
        self._ask(Follow(follower))
        self._watch.follow(self)
        try:
            self.check_open()
        except ClosedError:
            self.unfollow(follower)
            raise

    def check_open(self) -> None:
        """Raise `ClosedError` where the view was closed: nothing more will come."""
        if self._closed:
            raise ClosedError("the system is closed")

    def unfollow(self, follower: Follower) -> None:
        """Push `follower` nothing more."""
        try:
            self._ask(Unfollow(follower))
        except (ClosedError, ForkedError):
            return
        except ReentrantCallError:
            raise
        except Exception:  # noqa: BLE001 - its projector cannot be had, and who leaves is not to blame
            with suppress(ValueError):
                self._followers.remove(follower)
        if not self._followers:
            self._watch.unfollow(self)
            self._home.unfollowed(self._ref)


def _waker(watch: StoreWatch, view: weakref.ref[View[Any]]) -> Callable[[], bool]:
    """Wakes the view as long as somebody holds it: its tap must not be what does."""

    def wake() -> bool:
        held = view()
        if held is not None:
            watch.wake(held)
        return held is not None

    return wake


class Woken:
    """A follower that only wants to know that something happened: `wake` is called then."""

    ready = False

    def __init__(self, wake: Callable[[], object]) -> None:
        self.wake = wake

    def push(self, _changes: Sequence[Change]) -> bool:
        """Something has changed."""
        self.wake()
        return True

    def reset(self, _change: Change) -> bool:
        """Likewise."""
        self.wake()
        return True


class _Projector(Reference):
    """The stable reference to a view's projector."""

    __slots__ = ("_directory", "_followers", "_projection", "_view")

    def __init__(
        self, directory: Directory, view: View[Any], projection: Projection[Any], followers: list[Follower]
    ) -> None:
        super().__init__(directory)
        self._directory = directory
        self._view = view
        self._projection = projection
        self._followers = followers

    def __repr__(self) -> str:
        return repr(self._view)

    def _start(self) -> pykka.ActorRef[Any]:
        services, view = self._directory.services, self._view
        # What fails at a tell has no caller who would try again, and its followers are owed what it had to say.
        return services.runtime.start(
            ProjectorActor, view.key, self._projection, services.store, view.tap, self._followers, self._put_off
        )

    def _undelivered(self, message: Any) -> None:
        if self._followers:  # else it was put to rest, and shall not be built again for nobody
            super()._undelivered(message)

    def _put_off(self, error: BaseException) -> None:
        self._failed(error)
        self._view.put_off()
