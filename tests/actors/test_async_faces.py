"""The two faces of a system, a session and a view: whatever one can do, the other can, under the same name."""

import inspect
import re
from typing import Any

import pytest

from incarnate import AsyncSession, AsyncSessionSystem, AsyncView, Session, SessionSystem, View

FACES = [
    pytest.param(SessionSystem, AsyncSessionSystem, id="system"),
    pytest.param(Session, AsyncSession, id="session"),
    pytest.param(View, AsyncView, id="view"),
]

BLOCKING_ONLY = {
    # A mirror has threads of its own and waits for them; an activation takes messages, not calls.
    "SessionSystem": {"activation", "mirror"},
    "Session": {"begin_emit", "emits_together", "end_emit", "trim"},  # an emit in two halves, for `emit_together`
    # What a system asks of its views.
    "View": {"attach", "backs_off", "behind", "catch_up", "check_open", "close", "follow", "has_ready_follower",
             "is_followed", "is_live", "put_off", "queued", "rest", "state", "unfollow"},
}  # fmt: skip
ASYNCHRONOUS_ONLY = {"AsyncSessionSystem": {"over"}, "AsyncSession": set[str](), "AsyncView": set[str]()}

FACE_OF = [
    (r"^Session$", "AsyncSession"),
    (r"^View\[V\]$", "AsyncView[V]"),
    (r"^Iterator\[(.*)\]$", r"Iterator[\1]"),
    (r"^Future\[(.*)\]$", r"asyncio.Future[\1]"),
    (r"^ChangeStream$", "AsyncGenerator[Change]"),
    (r"^Self$", "AbstractAsyncContextManager[AsyncSessionSystem]"),
]


def public(cls: type) -> dict[str, Any]:
    return {name: member for name, member in vars(cls).items() if not name.startswith("_")}


def taken(member: Any) -> list[tuple[str, Any, Any, Any]]:
    parameters = inspect.signature(member).parameters.values()
    return [(one.name, one.kind, one.default, one.annotation) for one in parameters]


def given(member: Any) -> str:
    return str(inspect.signature(member).return_annotation)


def on_the_other_face(given: str) -> str:
    for pattern, replacement in FACE_OF:
        if re.match(pattern, given):
            return re.sub(pattern, replacement, given)
    return given


def methods(core: type, face: type) -> list[tuple[Any, Any]]:
    shared = sorted(public(core).keys() & public(face).keys())
    return [
        (getattr(core, name), getattr(face, name))
        for name in shared
        if not isinstance(inspect.getattr_static(core, name), property)
    ]


@pytest.mark.parametrize(("core", "face"), FACES)
def test_both_have_the_same_names(core: type, face: type) -> None:
    attributes = {"key", "name", "tap"} if core is View else set()
    ours = set(public(core)) - BLOCKING_ONLY[core.__name__]

    assert ours | (attributes - {"tap"}) == set(public(face)) - ASYNCHRONOUS_ONLY[face.__name__]


@pytest.mark.parametrize(("core", "face"), FACES)
def test_the_names_that_only_one_has_are_still_there(core: type, face: type) -> None:
    assert set() == BLOCKING_ONLY[core.__name__] - set(public(core))
    assert set() == ASYNCHRONOUS_ONLY[face.__name__] - set(public(face))


@pytest.mark.parametrize(("core", "face"), FACES)
def test_both_take_the_same(core: type, face: type) -> None:
    assert [taken(blocking) for blocking, _ in methods(core, face)] == [
        taken(awaited) for _, awaited in methods(core, face)
    ]


@pytest.mark.parametrize(("core", "face"), FACES)
def test_both_give_the_same_each_in_its_way(core: type, face: type) -> None:
    pairs = methods(core, face)
    expected = {blocking.__name__: on_the_other_face(given(blocking)) for blocking, _ in pairs}
    written = {blocking.__name__: given(awaited) for blocking, awaited in pairs}
    opened = (
        {"open": "AbstractAsyncContextManager[AsyncSessionSystem]"} if core is SessionSystem else {}
    )  # shows the core's own

    assert expected == written | opened


@pytest.mark.parametrize(("core", "face"), FACES)
def test_every_call_is_awaited_or_iterated(core: type, face: type) -> None:
    blocking = [
        awaited.__qualname__
        for _, awaited in methods(core, face)
        if not (inspect.iscoroutinefunction(awaited) or inspect.isasyncgenfunction(awaited))
    ]

    assert (["AsyncSessionSystem.open"] if core is SessionSystem else []) == blocking


@pytest.mark.parametrize(("core", "face"), FACES)
def test_every_call_says_what_it_does(core: type, face: type) -> None:
    assert [] == [awaited.__qualname__ for _, awaited in methods(core, face) if not awaited.__doc__]
