"""What is read and waits to be recorded, and what of it fits the log."""

import threading

from incarnate.actors.dispatchers import make_runtime
from incarnate.supervision.recorder import Asked, Output

MANY = 8 * 1024 * 1024


def test_what_was_put_is_read_together_and_in_order() -> None:
    output = Output(make_runtime("calling"))
    output.put(b"a")
    output.put(b"b")
    output.end()

    assert [b"ab", b"", b""] == [output.read1(), output.read1(), output.read1()]


def test_whoever_reads_a_harness_waits_while_too_much_is_not_recorded() -> None:
    output = Output(make_runtime("calling"))
    output.put(b"x" * MANY)
    more = threading.Thread(target=output.put, args=(b"y",), daemon=True)
    more.start()
    more.join(0.05)
    waited = more.is_alive()
    first = output.read1()
    more.join(10)

    assert waited
    assert (MANY, b"y") == (len(first), output.read1())


def test_nobody_waits_for_a_recorder_that_has_given_up() -> None:
    output = Output(make_runtime("calling"))
    output.put(b"x" * MANY)
    output.give_up()
    output.put(b"y")

    assert b"" == output.read1()


def test_the_long_prompt_of_a_carried_session_is_an_echo_of_the_short_one() -> None:
    asked = Asked("all that was, and: go on", "go on")

    assert [True, False] == [asked.is_echo(text) for text in ("all that was, and: go on", "go on")]
    assert not Asked("go on").is_echo("go on")
