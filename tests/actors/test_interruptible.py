"""What threads wait for, and signal handlers may interrupt at any moment."""

import dis
import sys
import threading
from types import FrameType
from typing import Any

import pytest

from incarnate.actors import interruptible
from incarnate.actors.interruptible import Condition, Flag


def test_a_flag_lets_all_who_wait_go_on_and_stays_up() -> None:
    flag = Flag()
    threads = [threading.Thread(target=flag.wait, args=(10,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    flag.set()
    flag.set()
    for thread in threads:
        thread.join(5)

    assert [False] * 8 == [thread.is_alive() for thread in threads]
    assert (True, True) == (flag.is_set(), flag.wait(0))


def test_a_flag_that_was_taken_down_is_waited_for_again() -> None:
    flag = Flag()
    flag.set()
    flag.clear()

    assert (False, False) == (flag.is_set(), flag.wait(0.001))
    flag.set()
    assert flag.wait()


def interrupted_at(moment: int, work: Any) -> bool:
    """Raise KeyboardInterrupt after the `moment`-th instruction that a signal handler may follow."""
    left = [moment]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename in {interruptible.__file__, threading.__file__}:
            frame.f_trace_opcodes = True
            before = dis.opname[frame.f_code.co_code[max(0, frame.f_lasti - 2)]]
            if event == "opcode" and before.startswith(("CALL", "RESUME", "CACHE", "JUMP_BACKWARD")):
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def free(lock: Any) -> bool:
    """Whether another thread can have it."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(lock.acquire(timeout=1) and (lock.release() or True)))
    thread.start()
    thread.join()
    return found[0]


def test_an_interrupt_while_a_flag_is_put_up_leaves_it_usable() -> None:
    moment = 1
    while True:
        flag = Flag()
        if not interrupted_at(moment, flag.set):
            break
        flag.set()

        assert flag.wait(1)
        moment += 1
    assert moment > 1


def enter_with_interrupts(made: type[threading.Condition]) -> None:
    """Interrupt the entering of a condition at every moment; it fails where that leaves it locked."""
    moment = 1
    while True:
        condition = made()

        def enter(condition: threading.Condition = condition) -> None:
            with condition:
                condition.notify_all()

        if not interrupted_at(moment, enter):
            break
        assert free(condition), f"interrupted at {moment}"
        moment += 1
    assert moment > 1


def test_an_interrupt_while_a_condition_is_entered_does_not_leave_it_locked() -> None:
    enter_with_interrupts(Condition)


def test_the_conditions_of_python_itself_may_be_left_locked() -> None:
    """What the class is for. Where this fails, Python has mended it, and the class can go."""
    with pytest.raises(AssertionError, match="interrupted at"):
        enter_with_interrupts(threading.Condition)


def test_a_condition_waits_and_is_notified() -> None:
    condition, seen = Condition(), list[str]()

    def wait() -> None:
        with condition:
            if condition.wait_for(lambda: "go" in seen, 10):
                seen.append("went")

    thread = threading.Thread(target=wait)
    thread.start()
    with condition:
        seen.append("go")
        condition.notify_all()
    thread.join(5)

    assert ["go", "went"] == seen
