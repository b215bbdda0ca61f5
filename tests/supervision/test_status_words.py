"""How a process ended, in words."""

import pytest

from incarnate.supervision.status_words import status_words


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with status 0"),
        (127, "ended with status 127"),
        (-9, "was killed by SIGKILL"),
        (-15, "was killed by SIGTERM"),
        (-40, "was killed by signal 40"),
        (None, "ended with status unknown"),
    ],
)
def test_a_signal_is_named_and_a_status_is_a_number(status: int | None, words: str) -> None:
    assert words == status_words(status)
