"""The error tree: drawn, complete, and carrying data."""

import pickle
import subprocess
import sys
import traceback

import pytest

import incarnate
from incarnate import (
    ActivationKey,
    DialectError,
    HeadMovedError,
    IncarnateError,
    MailboxFullError,
    MissingExtraError,
    StaleIncarnationError,
)
from incarnate.domain import errors
from incarnate.domain.wording import counted

KEY = ActivationKey("pik", "task")


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_drawn_public_and_under_the_one_base(name: str) -> None:
    assert issubclass(getattr(errors, name), IncarnateError)
    assert f" {name} " in f" {errors.__doc__} ".replace("\n", " \n ")
    assert getattr(incarnate, name) is getattr(errors, name)


KINDS = {"IncarnateError", "RefusedError", "CorruptError", "UnavailableError"}
"""What others are told under, and nobody raises."""

MADE_OF = {
    "MissingExtraError": ("cli", "the command line"),
    "SimulationFailedError": ("nothing can go on",),
    "StoreFileError": ("/path", "is a directory"),
    "StoreServerError": ("postgresql://host", "is not there"),
}
"""Those whose next step depends on what they are made of."""


@pytest.mark.parametrize("name", sorted(set(errors.__all__) - KINDS))
def test_every_error_that_is_raised_has_a_next_step(name: str) -> None:
    error = getattr(errors, name)

    assert (error(*MADE_OF[name]) if name in MADE_OF else error).hint


def test_a_next_step_of_the_raisers_own_goes_before_that_of_the_kind() -> None:
    error = DialectError("nobody", "no such dialect", hint="name one of those")
    copied = pickle.loads(pickle.dumps(error))

    assert ["name one of those"] * 2 == [error.hint, copied.hint]
    assert "name one of those" != DialectError("codex", "a record has a type").hint


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


def test_a_traceback_shows_the_hint_once_and_the_message_stays_as_it_was() -> None:
    error = StaleIncarnationError(key=KEY, incarnation=1, current=3)
    copied = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(error))))

    for one in (error, copied):
        *_, message, hint = "".join(traceback.format_exception(one)).splitlines()
        assert "Try: stop this writer; a newer incarnation owns" in hint
        assert message.endswith(
            "StaleIncarnationError: incarnation 1 of pik/task is stale: incarnation 3 has taken over"
        )
        assert "Try" not in str(one)


def test_an_uncaught_error_ends_with_its_hint() -> None:
    program = "import incarnate; incarnate.SessionSystem.open('ftp://x')"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert answer.stderr.splitlines()[-1].startswith("Try: use memory://")


def test_a_note_of_the_callers_own_is_kept_below_the_hint() -> None:
    error = MissingExtraError("cli", "the command line")
    error.add_note("mine")

    assert ['Try: pip install "incarnate[cli]"', "mine"] == pickle.loads(pickle.dumps(error)).__notes__


def test_an_error_without_a_hint_has_no_note() -> None:
    assert [] == IncarnateError("x").__notes__


@pytest.mark.parametrize(("limit", "waiting"), [(1, "1 message waits"), (2, "2 messages wait")])
def test_a_full_mailbox_says_how_many_wait(limit: int, waiting: str) -> None:
    assert str(MailboxFullError("it", limit)).endswith(f"is full: {waiting} there")


def test_counts_agree_with_their_noun() -> None:
    assert ["0 events", "1 event", "2 events", "0.5 events", "1000000 events"] == [
        counted(count, "event") for count in (0, 1, 2, 0.5, 1_000_000)
    ]
