"""The vector does what a list does, and no version ever changes."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.projections.vector import Vector

SIZES = st.one_of(st.integers(0, 70), st.sampled_from([1023, 1024, 1025, 1056, 1057, 32800, 32801, 33000]))
STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "extend", "set", "take"]), st.floats(0, 1), st.integers(0, 70)), max_size=30
)


@given(SIZES, STEPS)
def test_every_change_gives_what_it_gives_on_a_list(size: int, steps: list[tuple[str, float, int]]) -> None:
    vector, model = Vector(range(size)), list(range(size))
    for name, where, number in steps:
        at = int(where * len(model))
        match name:
            case "append":
                vector = vector.append(number)
                model.append(number)
            case "extend":
                vector = vector.extend(range(number))
                model.extend(range(number))
            case "set" if at < len(model):
                vector = vector.set(at, number)
                model[at] = number
            case _:
                vector = vector.take(at)
                del model[at:]

        assert (len(model), model[-3:]) == (len(vector), list(vector[-3:]))
    assert model == list(vector)
    assert model == [vector[index] for index in range(len(vector))]
    assert Vector(model) == vector


@given(SIZES, st.tuples(*[st.none() | st.integers(-80, 80)] * 3))
def test_a_slice_is_the_tuple_that_a_list_would_give(
    size: int, bounds: tuple[int | None, int | None, int | None]
) -> None:
    where = slice(bounds[0], bounds[1], bounds[2] or None)

    assert tuple(range(size))[where] == Vector(range(size))[where]


def test_a_slice_in_the_middle_begins_in_the_middle_of_a_leaf() -> None:
    assert tuple(range(1000, 1100)) == Vector(range(5000))[1000:1100]


def test_older_versions_stay_as_they_were() -> None:
    versions = [Vector[int]()]
    for number in range(1100):
        versions.append(versions[-1].append(number))
    versions[-1].set(0, -1).set(1099, -1).take(500).append(-1)

    assert [list(range(size)) for size in range(1101)] == [list(version) for version in versions]


@pytest.mark.parametrize("index", [-4, 3, 100])
def test_an_index_outside_is_refused(index: int) -> None:
    vector = Vector("abc")

    with pytest.raises(IndexError, match=f"no index {index} in a vector of 3 items"):
        vector[index]
    with pytest.raises(IndexError, match="no index"):
        vector.set(index, "d")


def test_negative_indices_count_from_the_end() -> None:
    vector = Vector(range(100))

    assert (99, 0) == (vector[-1], vector[-100])
    assert Vector([*range(99), -1]) == vector.set(-1, -1)


def test_vectors_are_equal_by_their_items_and_to_nothing_else() -> None:
    assert Vector([1, 2]) == Vector((1, 2))
    assert Vector([1, 2]) != Vector([2, 1])
    assert Vector([1, 2]) != Vector([1])
    assert Vector([1]) != [1]


def test_a_vector_shows_its_items() -> None:
    assert "Vector([1, 'a'])" == repr(Vector([1, "a"]))


def test_an_append_leaves_all_but_the_end_shared() -> None:
    before = Vector(range(40_001))
    after = before.append(1)

    assert before._root is after._root  # noqa: SLF001


@pytest.mark.parametrize("change", [lambda v: v.set(5, None), lambda v: v.take(33_333), lambda v: v.extend([1] * 33)])
def test_a_change_anywhere_makes_no_more_than_the_nodes_of_one_path_and_two_leaves(
    change: Callable[[Vector[Any]], Vector[Any]],
) -> None:
    before = Vector(range(40_000))
    known = nodes(before)

    assert len(nodes(change(before)) - known) <= 5


def nodes(vector: Vector[Any]) -> set[int]:
    found, pending = set[int](), [vector._root, vector._tail]  # noqa: SLF001
    while pending:
        node = pending.pop()
        found.add(id(node))
        pending.extend(child for child in node if isinstance(child, tuple))
    return found


def test_an_item_costs_little_more_than_in_a_list() -> None:
    vector = Vector([None] * 40_000)
    size, pending = 0, [vector._root, vector._tail]  # noqa: SLF001
    while pending:
        node = pending.pop()
        size += sys.getsizeof(node)
        pending.extend(child for child in node if isinstance(child, tuple))

    assert size < 1.3 * sys.getsizeof([None] * 40_000)
