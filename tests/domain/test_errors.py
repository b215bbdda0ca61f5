"""The error tree: drawn, complete, and carrying data."""

import pickle

import pytest

import incarnate
from incarnate import ActivationKey, HeadMovedError, IncarnateError, MissingExtraError, StaleIncarnationError
from incarnate.domain import errors

KEY = ActivationKey("pik", "task")


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_drawn_public_and_under_the_one_base(name: str) -> None:
    assert issubclass(getattr(errors, name), IncarnateError)
    assert f" {name} " in f" {errors.__doc__} ".replace("\n", " \n ")
    assert getattr(incarnate, name) is getattr(errors, name)


def test_a_stale_writer_is_told_who_took_over_and_what_to_do() -> None:
    error = StaleIncarnationError(key=KEY, incarnation=1, current=3)

    assert str(error) == "incarnation 1 of pik/task is stale: incarnation 3 has taken over"
    assert (KEY, 1, 3) == (error.key, error.incarnation, error.current)
    assert error.hint.startswith("stop this writer")


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    assert MissingExtraError("cli", "the command line").hint == 'pip install "incarnate[cli]"'


def test_an_error_survives_pickling_with_its_data() -> None:
    error = pickle.loads(pickle.dumps(HeadMovedError(key=KEY, expected=(0, 1), current=(1, 0))))

    assert (KEY, (0, 1), (1, 0)) == (error.key, error.expected, error.current)
    assert str(error) == "pik/task has moved: expected generation 0 at offset 1, found generation 1 at offset 0"
