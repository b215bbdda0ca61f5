"""What the supervisor does next, by what it knows."""

from msgspec.structs import replace

from incarnate.supervision.knowledge import (
    Claimed,
    Exited,
    Fact,
    Fenced,
    Known,
    LeftoversEnded,
    NotStarted,
    Outlook,
    OutputRecorded,
    Peeked,
    Policy,
    PredecessorGone,
    Reconciled,
    RecordingFailed,
    Signalled,
    Started,
    StopAsked,
    StoreFailed,
    TreeEnded,
)
from incarnate.supervision.plan import (
    AwaitPredecessor,
    Claim,
    EndLeftovers,
    EndPredecessor,
    EndTree,
    Finish,
    Launch,
    Peek,
    Reconcile,
    Signal,
    Step,
    Wait,
    decide,
    evolve,
)

POLICY = Policy(max_restarts=2, backoff=1.0, interrupt=2.0, terminate=3.0, predecessor=10.0, flush=30.0)
EMPTY = Outlook()
OPEN = Outlook(events=7, session="s", is_here=True, turn="interrupted", is_asked=True)
DONE = replace(OPEN, turn="completed", is_asked=False)


def known(*facts: Fact) -> Known:
    result = Known()
    for fact in facts:
        result = evolve(result, fact, POLICY)
    return result


def step(now: float, *facts: Fact) -> Step:
    return decide(known(*facts), POLICY, now)


BEGUN = (LeftoversEnded(0.0, predecessor=False), Claimed(1, 0.0), Reconciled(EMPTY))
ALIVE = (*BEGUN, Started(1.0, resumed=False))
GONE = (*ALIVE, Exited(-9, 2.0), TreeEnded(at=2.0))
DEAD = (*GONE, OutputRecorded(5))


def test_a_fresh_key_is_claimed_and_levelled_before_anything_starts() -> None:
    assert EndLeftovers() == step(0.0)
    assert Peek() == step(0.0, *BEGUN[:1])
    assert Claim(None) == step(0.0, *BEGUN[:1], Peeked(None))
    assert Reconcile() == step(0.0, *BEGUN[:2])
    assert Launch() == step(0.0, *BEGUN)
    assert Wait() == step(1.0, *ALIVE)


def test_a_living_predecessor_is_awaited_and_then_ended() -> None:
    claimed = (LeftoversEnded(0.0, predecessor=True), Claimed(2, 1.0))

    assert AwaitPredecessor(11.0) == step(1.0, *claimed)
    assert EndPredecessor() == step(11.0, *claimed)
    assert Reconcile() == step(1.0, *claimed, PredecessorGone())


def test_nothing_of_a_dead_harness_is_left_before_its_log_is_levelled() -> None:
    assert EndTree() == step(2.0, *ALIVE, Exited(0, 2.0))
    assert Wait() == step(2.0, *GONE)
    assert Reconcile() == step(2.0, *DEAD)


def test_output_that_is_recorded_before_the_tree_has_ended_counts() -> None:
    early = (*ALIVE, Exited(-9, 2.0), OutputRecorded(5))

    assert EndTree() == step(2.0, *early)
    assert Reconcile() == step(2.0, *early, TreeEnded(at=2.0))


def test_a_harness_that_dies_in_its_turn_is_resumed_with_the_next_incarnation() -> None:
    levelled = (*DEAD, Reconciled(OPEN))

    assert Wait(4.0) == step(2.0, *levelled)
    assert Claim(1) == step(4.0, *levelled)
    assert Launch("s", ask=False) == step(4.0, *levelled, Claimed(2, 4.0))


def test_exit_codes_say_nothing_a_turn_is_done_when_the_log_says_so() -> None:
    assert Finish(0, "done") == step(9.0, *DEAD, Reconciled(DONE))
    assert Claim(1) == step(9.0, *ALIVE, Exited(0, 2.0), TreeEnded(at=2.0), OutputRecorded(5), Reconciled(OPEN))


def test_a_turn_that_was_done_before_is_not_done_again() -> None:
    asked = replace(DONE, is_asked=True)

    assert Finish(0, "done before: the log holds the turn to its end") == step(0.0, *BEGUN[:2], Reconciled(asked))
    assert Launch("s") == step(0.0, *BEGUN[:2], Reconciled(DONE))


def test_a_log_with_nothing_left_to_do_is_not_claimed() -> None:
    seen = Peeked(replace(DONE, is_asked=True))

    assert Finish(0, "done before: the log holds the turn to its end") == step(0.0, *BEGUN[:1], seen)
    assert Claim(None) == step(0.0, *BEGUN[:1], Peeked(DONE))


def test_a_living_predecessor_is_taken_over_from_whatever_the_log_says() -> None:
    assert Claim(None) == step(0.0, LeftoversEnded(0.0, predecessor=True))


def test_another_task_is_asked_even_where_the_last_one_was_cut() -> None:
    assert Launch("s", ask=True) == step(0.0, *BEGUN[:2], Reconciled(replace(OPEN, is_asked=False)))


def test_a_session_that_is_not_here_is_carried_to_a_new_one() -> None:
    elsewhere = replace(OPEN, is_here=False)

    assert Launch(carry=True, ask=False) == step(0.0, *BEGUN[:2], Reconciled(elsewhere))


def test_a_session_that_its_harness_does_not_know_is_carried_to_a_new_one() -> None:
    resumed = (*BEGUN[:2], Reconciled(OPEN), Started(1.0, resumed=True), Exited(1, 2.0), TreeEnded(at=2.0))
    silent = (*resumed, OutputRecorded(0), Reconciled(OPEN), Claimed(2, 5.0))

    assert Launch(carry=True, ask=False) == step(9.0, *silent)
    assert Launch("s", ask=False) == step(9.0, *resumed, OutputRecorded(3), Reconciled(OPEN), Claimed(2, 5.0))


def test_restarts_are_counted_and_back_off() -> None:
    again = (Reconciled(OPEN), Claimed(2, 9.0), Started(10.0, resumed=True), Exited(-9, 11.0), TreeEnded(at=11.0))
    twice = (*DEAD, *again, OutputRecorded(1), Reconciled(OPEN))
    thrice = (*twice, *again[1:], OutputRecorded(1), Reconciled(OPEN))

    assert Wait(15.0) == step(11.0, *twice)
    assert Finish(7, "gave up after 2 restarts: it was killed by SIGKILL") == step(11.0, *thrice)


def test_a_long_life_begins_the_pauses_anew() -> None:
    lived = (*ALIVE, Exited(-9, 100.0), TreeEnded(at=100.0), OutputRecorded(9), Reconciled(OPEN))

    assert Wait(101.0) == step(100.0, *lived)


def test_a_harness_that_ends_without_finishing_is_not_asked_again() -> None:
    stopped = (*DEAD, Reconciled(replace(OPEN, turn="step_limit")))

    assert Finish(8, "the harness ended its turn without finishing it: step_limit") == step(9.0, *stopped)


def test_a_stop_climbs_from_interrupt_to_the_end_of_the_tree() -> None:
    stop = (*ALIVE, StopAsked(5.0, 143))

    assert Signal("interrupt") == step(5.0, *stop)
    assert Wait(7.0) == step(5.0, *stop, Signalled("interrupt", 5.0))
    assert Signal("terminate") == step(7.0, *stop, Signalled("interrupt", 5.0))
    assert Wait(10.0) == step(7.0, *stop, Signalled("terminate", 7.0))
    assert EndTree() == step(10.0, *stop, Signalled("terminate", 7.0))
    assert EndTree() == step(5.0, *stop, StopAsked(5.0, 143))


def test_what_a_stopped_harness_said_is_levelled_before_the_end() -> None:
    stopped = (*ALIVE, StopAsked(2.0, 143), Exited(0, 3.0), TreeEnded(at=3.0))

    assert Wait(33.0) == step(3.0, *stopped)
    assert Reconcile() == step(3.0, *stopped, OutputRecorded(4))
    assert Finish(143, "stopped") == step(3.0, *stopped, OutputRecorded(4), Reconciled(OPEN))
    assert Finish(0, "done") == step(3.0, *stopped, OutputRecorded(4), Reconciled(DONE))
    assert 9 == getattr(step(33.0, *stopped), "code", None)


def test_a_fenced_supervisor_ends_its_harness_and_writes_nothing_more() -> None:
    fenced = (*ALIVE, Fenced(1, 2))

    assert EndTree() == step(2.0, *fenced)
    assert Finish(6, "incarnation 2 has taken over") == step(2.0, *fenced, TreeEnded(at=2.0))


def test_its_own_next_claim_fences_nobody() -> None:
    assert known(*DEAD, Reconciled(OPEN), Claimed(2, 9.0)) == known(*DEAD, Reconciled(OPEN), Claimed(2, 9.0), Fenced(1))


def test_what_cannot_be_started_or_recorded_ends_the_supervisor() -> None:
    assert Finish(127, "no such program") == step(0.0, *BEGUN, NotStarted("no such program"))
    assert Finish(9, "away") == step(0.0, *BEGUN, StoreFailed("away"))
    assert Finish(1, "retired") == step(0.0, *BEGUN, StoreFailed("retired", "fork it"))
    assert Finish(9, "retired") == step(0.0, *DEAD, StoreFailed("retired", "fork it"))
    assert EndTree() == step(0.0, *ALIVE, RecordingFailed("full"))
    assert Finish(9, "full") == step(0.0, *ALIVE, RecordingFailed("full"), TreeEnded(at=2.0))


def test_a_program_that_ran_and_is_away_for_a_while_is_tried_again() -> None:
    away = (*DEAD, Reconciled(OPEN), Claimed(2, 9.0), NotStarted("no such program", at=10.0))
    twice = (*away, Claimed(3, 14.0), NotStarted("no such program", at=14.0))

    assert [Wait(14.0), Claim(2)] == [step(now, *away) for now in (10.0, 14.0)]
    assert Launch("s", ask=False) == step(14.0, *away, Claimed(3, 14.0))
    assert Finish(127, "no such program") == step(14.0, *twice)
    assert Wait() == step(14.0, *away, Claimed(3, 14.0), Started(14.0, resumed=True))
    assert Finish(7, "no process") == step(9.0, *DEAD, NotStarted("no process", for_now=True))


def test_nothing_is_started_beside_what_outlives_sigkill() -> None:
    stuck = (*ALIVE, Exited(-9, 2.0), TreeEnded(0, (77,), 2.0), OutputRecorded(1), Reconciled(OPEN))

    assert Finish(7, "not even SIGKILL ends what the harness left: 77") == step(9.0, *stuck)


def test_what_did_its_work_in_a_form_that_nobody_reads_is_not_told_to_do_it_again() -> None:
    ended = (*ALIVE, Exited(0, 2.0), TreeEnded(at=2.0), OutputRecorded(0, unread=3), Reconciled(EMPTY))
    died = (*ALIVE, Exited(1, 2.0), TreeEnded(at=2.0), OutputRecorded(0, unread=3), Reconciled(EMPTY))
    known_session = Reconciled(replace(EMPTY, session="s"))

    told = "not started again: it ended with status 0, and nothing in the 3 lines that it printed is of this harness"
    assert Finish(7, told) == step(9.0, *ended)
    assert Claim(1) == step(9.0, *died)
    assert Claim(1) == step(9.0, *ended[:-1], known_session)


def test_a_third_stop_waits_for_no_store() -> None:
    stops = [StopAsked(3.0, 143)] * 3

    assert Wait(33.0) == step(4.0, *GONE, *stops[:2])
    assert 9 == finish_code(step(4.0, *GONE, *stops))


def test_three_stops_in_a_row_leave_a_store_that_is_well_its_moment() -> None:
    stop = StopAsked(1.5, 143)
    thrice = (*ALIVE, stop, stop, stop, TreeEnded(at=2.0))

    assert Wait(2.5) == step(2.0, *thrice)
    assert Reconcile() == step(2.1, *thrice, OutputRecorded(4))
    assert 9 == finish_code(step(2.5, *thrice))


def finish_code(step: Step) -> int:
    assert isinstance(step, Finish)
    return step.code


def test_a_harness_that_was_ended_has_the_status_that_it_ended_with() -> None:
    ended = (*ALIVE, Fenced(1, 2))

    assert -15 == known(*ended, TreeEnded(at=2.0, status=-15)).status
    assert -9 == known(*ended, TreeEnded(at=2.0)).status
    assert 3 == known(*ALIVE, Exited(3, 2.0), TreeEnded(at=2.0, status=-15)).status
