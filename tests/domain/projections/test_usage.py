"""Tokens spent: each counted once, whoever told them and however often."""

import json
from typing import Any

import msgspec
from hypothesis import given

from incarnate import Opaque, SessionEvent, Usage
from incarnate.domain.projections.usage import ModelUsage, TokenCounts, UsageReport, UsageTotals
from tests.support.projections import STEPS, fold, hold_against_replay

SESSION: Any = {"scope": "session"}


def usage(input_tokens: int, output_tokens: int = 0, **more: Any) -> Usage:
    return Usage(id="e", parent_id=None, input_tokens=input_tokens, output_tokens=output_tokens, **more)


def report(*events: SessionEvent | Opaque) -> UsageReport:
    return fold(UsageTotals(), events)


def inputs(*events: SessionEvent) -> dict[str | None, int]:
    found = report(*events)

    assert found.total.input_tokens == sum(each.tokens.input_tokens for each in found.by_model)
    return {each.model: each.tokens.input_tokens for each in found.by_model}


@given(STEPS)
def test_i7_the_totals_equal_the_fold_of_a_fresh_replay(steps: list[SessionEvent | Opaque | float]) -> None:
    hold_against_replay(UsageTotals(), steps)


def test_every_kind_of_token_is_summed_by_model_and_in_all() -> None:
    counts = {"cache_read_tokens": 3, "cache_write_tokens": 5, "reasoning_tokens": 7}

    assert UsageReport(
        TokenCounts(6, 3, 5, 6, 7),
        (ModelUsage("haiku", TokenCounts(3, 0, 0, 4, 0)), ModelUsage("opus", TokenCounts(3, 3, 5, 2, 7))),
    ) == report(usage(1, 2, model="opus", **counts), usage(3, 4, model="haiku"), usage(2, model="opus"))


def test_the_json_names_every_kind() -> None:
    none = {"cacheReadTokens": 0, "cacheWriteTokens": 0, "reasoningTokens": 0}
    tokens = {"inputTokens": 1, "outputTokens": 2, **none}

    found = json.loads(msgspec.json.encode(report(usage(1, 2))))

    assert {"total": tokens, "byModel": [{"model": None, "tokens": tokens}]} == found


def test_a_sub_agents_tokens_are_counted_too() -> None:
    assert {"opus": 3} == inputs(usage(1, model="opus"), usage(2, model="opus", parent_call_id="c0"))


def test_the_latest_running_total_counts() -> None:
    assert {"opus": 5} == inputs(usage(2, model="opus", **SESSION), usage(5, model="opus", **SESSION))


def test_a_running_total_that_falls_begins_a_new_run() -> None:
    totals = [usage(tokens, model="opus", **SESSION) for tokens in (2, 5, 1, 4)]

    assert {"opus": 9} == inputs(*totals)


def test_a_running_total_is_skipped_where_there_is_finer_usage_of_its_model() -> None:
    finer, total = usage(1, model="opus"), usage(9, model="opus", **SESSION)

    assert {"opus": 1} == inputs(finer, total)
    assert {"opus": 1} == inputs(total, finer)


def test_a_model_that_only_running_totals_know_is_not_lost() -> None:
    assert {"haiku": 9, "opus": 1} == inputs(usage(1, model="opus"), usage(9, model="haiku", **SESSION))


def test_a_running_total_is_skipped_where_finer_usage_names_no_model() -> None:
    assert {None: 1} == inputs(usage(1), usage(9, model="opus", **SESSION))


def test_a_running_total_without_a_model_is_skipped_where_anything_else_is_known() -> None:
    assert {"opus": 1} == inputs(usage(1, model="opus"), usage(9, **SESSION))
    assert {"opus": 8} == inputs(usage(9, **SESSION), usage(8, model="opus", **SESSION))
    assert {None: 9} == inputs(usage(9, **SESSION))


def test_a_sub_agents_running_total_is_its_own() -> None:
    assert {"opus": 10} == inputs(usage(1, model="opus"), usage(9, model="opus", parent_call_id="c0", **SESSION))


def test_other_events_cost_nothing() -> None:
    assert UsageReport(TokenCounts(), ()) == report(Opaque("novel", "e", None, b"{}"))
