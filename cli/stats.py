"""`incarnate stats`: what a log amounts to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from incarnate.actors.fields import stats_fields
from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.projections.analysis import ReplayAnalysis
from incarnate.domain.projections.usage import UsageTotals
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.analysis import Analysis, TurnIds
    from incarnate.domain.projections.usage import TokenCounts, UsageReport

__all__ = ["stats"]

_MOST_LISTED = 10


@click.command()
@key_argument
@store_option
@json_option
def stats(key: ActivationKey, store: str | None, *, as_json: bool) -> None:
    """Count what KEY holds.

    Turns and how they ended, messages, tool calls, calls without a result and results without a call, what is wrong
    with the ids of turns, and the tokens of each model. Words and turns of sub-agents are not counted, their tool
    calls and tokens are.
    """
    with open_system(store) as system:
        head = known_head(system, key)
        analysis = system.view(key, ReplayAnalysis()).get()
        usage = system.view(key, UsageTotals()).get()
    if as_json:
        write_json(stats_fields(key, head, analysis, usage))
    else:
        _print(key, head, analysis, usage)


def _print(key: ActivationKey, head: Head, analysis: Analysis, usage: UsageReport) -> None:
    fence = "-" if head.fence is None else head.fence
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in analysis.outcomes.items())
    ended = f"{analysis.turn_ends} ended" + (f": {outcomes}" if outcomes else "")
    dangling = [f"{call.name} {call.id}" for call in analysis.dangling_tool_calls]
    rows: list[tuple[str, Any]] = [
        ("activation", f"{key}, incarnation {fence}"),
        ("events", f"{head.next_offset}, rewound {counted(head.generation, 'time')}"),
        ("turns", f"{analysis.turn_starts} begun, {ended}"),
        *_audit(analysis.turn_ids),
        ("next turn", analysis.next_turn),
        ("messages", f"{analysis.user_messages} user, {analysis.assistant_messages} assistant"),
        ("thoughts", analysis.thinking_events),
        ("tool calls", f"{analysis.tool_calls}, of which {analysis.sub_calls} inside another"),
        ("results", analysis.tool_results),
        *_listed("no result", dangling),
        *_listed("no call", list(analysis.orphan_tool_results)),
        *[("tokens", f"{used.model or '(no model named)'}: {_tokens(used.tokens)}") for used in usage.by_model],
        ("tokens", f"in all: {_tokens(usage.total)}"),
    ]
    console = make_console()
    for name, told in rows:
        say(console, (f"{name:<12}", "bold"), str(told))


def _audit(ids: TurnIds) -> list[tuple[str, str]]:
    back = [f"{one.current} after {one.previous}" for one in ids.non_monotonic]
    return [
        *_listed("going back", back),
        *_listed("used again", list(ids.duplicates)),
        *_listed("no number", list(ids.malformed)),
    ]


def _listed(name: str, found: list[str]) -> list[tuple[str, str]]:
    if not found:
        return []
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    return [(name, f"{len(found)}: {', '.join(found[:_MOST_LISTED])}{more}")]


def _tokens(tokens: TokenCounts) -> str:
    return (
        f"{tokens.input_tokens} in, {tokens.output_tokens} out, {tokens.cache_read_tokens} from the cache, "
        f"{tokens.cache_write_tokens} to the cache, {tokens.reasoning_tokens} reasoning"
    )
