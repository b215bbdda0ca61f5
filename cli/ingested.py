"""What `incarnate ingest` says about what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.cli.text import make_console, say
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.actors.ingest_report import IngestReport, NotedLine, RefusedLine

__all__ = ["NOTHING_HINT", "miscounted", "nothing_ingested", "print_report"]

NOTHING_HINT = "check --harness and the file; if both are right, run it again once the harness has written more"

_MOST_KINDS = 5
_MOST_LISTED = 5


def nothing_ingested(report: IngestReport, source: str) -> str:
    """Why nothing was taken from `source`."""
    if not report.lines:
        return f"{source} is empty"
    lines = "its only line is no" if report.lines == 1 else f"none of the {report.lines} lines is a"
    return f"{lines} record of {report.harness} that makes an event ({_found(report)})"


def _found(report: IngestReport) -> str:
    kinds = sorted(report.ignored.items(), key=lambda kind: -kind[1])
    found = [f"{count} {kind}" for kind, count in kinds[:_MOST_KINDS]]
    if len(kinds) > _MOST_KINDS:
        found.append("...")
    damaged = [*report.refused_lines[:1], *([] if report.torn is None else [report.torn])]
    found += [f"line {line.line}: {line.reason}" for line in damaged]
    return ", ".join(found) or "blank"


def miscounted(report: IngestReport) -> str:
    """What is wrong with the number of prompts; empty where they are as many as the turns."""
    if report.unused_prompts:
        return f"{counted(report.unused_prompts, 'prompt')} more than there are turns: the last given stand nowhere"
    if report.unprompted_turns:
        return f"{counted(report.unprompted_turns, 'turn')} more than there are prompts: the last ones got none"
    return ""


def print_report(report: IngestReport) -> None:
    """Print the report for a person."""
    console = make_console()
    rows: list[tuple[str, Any]] = [
        ("activation", f"{report.key}, incarnation {report.incarnation}, next offset {report.next_offset}"),
        ("session", f"{report.harness} {report.session_id or '(no record names it)'}"),
        ("lines", report.lines),
        ("mapped", report.mapped),
        ("appended", counted(report.appended, "event")),
        ("skipped", f"{counted(report.skipped, 'event')} that the log already held"),
        *_told(report),
        ("checkpoints", report.checkpoints),
        ("mended", counted(report.mended, "damaged place")),
        *_listed(report.mended_lines),
        ("ignored", sum(report.ignored.values())),
        *[("", f"{count:>7} {kind}") for kind, count in sorted(report.ignored.items())],
        *_listed(report.text_lines),
        ("refused", counted(report.refused, "line")),
        *[("", f"{_place(line)}: {line.reason}") for line in report.refused_lines],
    ]
    if report.refused > len(report.refused_lines):
        rows.append(("", f"and {report.refused - len(report.refused_lines)} more"))
    if report.torn is not None:
        rows.append(("torn", f"the stream ends inside the record of {_place(report.torn)}: {report.torn.reason}"))
    for name, told in rows:
        say(console, (f"{name:<13}", "bold"), str(told))


def _told(report: IngestReport) -> list[tuple[str, str]]:
    """What is told only where there is any."""
    beyond = f"{counted(report.beyond, 'event')} that the log holds after the last one here"
    held = f"{counted(report.held, 'event')} that a later record may complete; add --ended if the harness is dead"
    kept = f"{counted(report.kept, 'record')} raw, as they map to nothing, or not wholly"
    rows = [(report.beyond, "beyond", beyond), (report.held, "held", held), (report.kept, "kept", kept)]
    return [(name, text) for count, name, text in rows if count]


def _listed(lines: list[NotedLine]) -> list[tuple[str, str]]:
    shown = [("", f"{_place(line)}: {line.note}") for line in lines[:_MOST_LISTED]]
    left = len(lines) - len(shown)
    return [*shown, ("", f"and {left} more")] if left else shown


def _place(line: NotedLine | RefusedLine) -> str:
    return f"line {line.line}" if line.file is None else f"line {line.line} of {line.file}"
