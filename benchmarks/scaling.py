"""Puts into `docs/scaling.md` the tables that follow from `results/scaling.txt`, which one run printed.

The document tells the two commands; a test holds it equal to what this makes.
"""

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["DOCS", "RESULTS", "Printed", "carried", "printed", "ten_thousand", "with_tables"]

_ROOT = Path(__file__).resolve().parent.parent
DOCS = _ROOT / "docs" / "scaling.md"
RESULTS = _ROOT / "benchmarks" / "results" / "scaling.txt"

_EMIT, _REPLAY = "16 sessions, PostgreSQL", "replay of 100,000, PostgreSQL"
_CLIENT, _SERVER = "client's processor, PostgreSQL", "server's processor, PostgreSQL"
_DISK, _REWIND = "on disk, PostgreSQL", "rewind on 1,000,000, PostgreSQL"
_BY = "\N{MULTIPLICATION SIGN}"
_SUPERVISORS = 10_000
_LOG = 600  # events of a replaced agent: ten minutes of one a second


class Printed(NamedTuple):
    """A line that `benchmarks/run` printed."""

    ours: str
    rival: str
    ratio: str

    @property
    def number(self) -> float:
        """Ours, without its unit."""
        [found] = re.findall(r"^[\d.,]+", self.ours)
        return float(found.replace(",", ""))


def printed(output: str) -> dict[str, Printed]:
    """The lines by their names."""
    lines = {}
    for line in output.splitlines():
        columns = re.split(r" {2,}", line[34:].strip())
        if re.match(r"\d", columns[0]):  # no title
            lines[line[:34].strip()] = Printed(*columns[:3])
    return lines


def carried(lines: dict[str, Printed]) -> str:
    """What one node carries."""
    told = ((name, *lines[name]) for name in (_EMIT, _REPLAY, _CLIENT, _SERVER, _DISK, _REWIND))
    return _table(("line", "incarnate", "beside it", "ratio"), *told)


def ten_thousand(lines: dict[str, Printed]) -> str:
    """What ten thousand supervisors need, one event a second each."""
    of, told = ({name: getattr(line, part) for name, line in lines.items()} for part in ("number", "ours"))
    events, claims, replays = f"{_SUPERVISORS:,}/s", _SUPERVISORS / _LOG, _SUPERVISORS / of[_REPLAY]
    client, server, disk = (_SUPERVISORS * of[name] / 1e6 for name in (_CLIENT, _SERVER, _DISK))
    return _table(
        ("", "how", "comes to"),
        ("events", f"{_SUPERVISORS:,} {_BY} 1/s", events),
        ("all of it", f"{events} ÷ {told[_EMIT]}", f"{_SUPERVISORS / of[_EMIT]:.1f} times what this machine carried"),
        ("server's processors", f"{events} {_BY} {told[_SERVER]}", f"{server:.2f}"),
        ("clients' processors", f"{events} {_BY} {told[_CLIENT]}", f"{client:.2f}, over all of them"),
        ("disk", f"{events} {_BY} {told[_DISK]}", f"{disk:.1f} MB/s, {disk * 86.4:.0f} GB a day"),
        ("claims", f"{_SUPERVISORS:,} ÷ {_LOG} s", f"{claims:.0f}/s"),
        ("reading logs back", f"{claims:.0f}/s {_BY} {_LOG} ÷ {told[_REPLAY]}", f"{replays:.2f} processors"),
    )


def _table(head: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)) + "\n"


def with_tables(text: str, output: str) -> str:
    """The document with its tables; the first line of `output` tells the machine."""
    lines = printed(output)
    machine = output.partition("\n")[0]
    for name, tables in (("one node", f"{machine}:\n\n{carried(lines)}"), ("ten thousand", ten_thousand(lines))):
        begin, end = f"<!-- measured: {name} -->\n", f"<!-- end of measured: {name} -->\n"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{tables}\n{end}{rest.split(end)[1]}"
    return text


if __name__ == "__main__":
    DOCS.write_text(with_tables(DOCS.read_text("utf-8"), RESULTS.read_text("utf-8")), "utf-8")
