"""Prints what a row's `told` and `history` are now, to be read and judged before it is pasted:

python -m tests.recordings.report claude          the row's tables
python -m tests.recordings.report claude --docs   the table of its section in docs/dialects.md, written there
"""

import sys
from pathlib import Path

import msgspec

from incarnate.domain.projections.usage import TokenCounts
from tests.recordings.histories import parting, resumed
from tests.recordings.recorded import FIXTURES, Harness, happened, read, times, told
from tests.recordings.table import BY_FOLDER

DOCS = Path(__file__).parents[2] / "docs" / "dialects.md"


def names(harness: Harness) -> list[str]:
    """The recordings of a harness in both forms, as the table names them."""
    scenarios = sorted(folder.name for folder in (FIXTURES / harness.folder).iterdir() if folder.is_dir())
    return [
        *[name for name in scenarios if (harness.path(name) / "stdout.jsonl").exists()],
        *[f"{name}/disk" for name in scenarios if harness.left(name)],
    ]


def markdown(harness: Harness) -> str:
    """The table of a harness in `docs/dialects.md`."""
    lines = [
        "| recording | events | turns | calls | unmatched | input | cache read | cache write | output |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in harness.told.items():
        tokens = times(row.tokens, harness.call) if isinstance(row.tokens, int) else row.tokens
        counts = (tokens.input_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens, tokens.output_tokens)
        cells = [name, row.events, row.turns or "none", row.calls, row.unmatched, *(f"{count:,}" for count in counts)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "What is not as it happened:", ""]
    lines += [f"- {name}: {row.but}." for name, row in harness.told.items() if row.but] or ["- nothing."]
    return "\n".join(lines) + "\n"


def marks(harness: Harness) -> tuple[str, str]:
    """The lines between which the table stands."""
    return f"<!-- recordings: {harness.folder} -->\n", f"<!-- end of recordings: {harness.folder} -->\n"


def write_docs(harness: Harness) -> None:
    begin, end = marks(harness)
    before, rest = DOCS.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    DOCS.write_text(f"{before}{begin}\n{markdown(harness)}\n{end}{after}", encoding="utf-8")


def rows(harness: Harness) -> str:
    """The source of `told` and `history`."""
    lines = ["    told={"]
    for name in names(harness):
        found = told(read(harness.dialect, *harness.recording(name)), harness.call)
        but = harness.told[name].but if name in harness.told else ""
        note = f", {but!r}" if but else ""
        same = (found.turns, found.calls, found.unmatched, found.tokens) == happened(harness, name)
        hint = "" if same else f"  # but: {happened(harness, name)}"
        lines.append(f"        {name!r}: Told({', '.join(map(_source, found[:5]))}{note}),{hint}")
    lines += ["    },", "    history={"]
    for name in resumed(harness):
        lines += [f"        {name!r}: (", *[f"            {line!r}," for line in parting(harness, name)], "        ),"]
    return "\n".join([*lines, "    },", ""])


def _source(value: object) -> str:
    if not isinstance(value, TokenCounts):
        return repr(value)
    counts = msgspec.structs.astuple(value)
    return f"TokenCounts({', '.join(map(str, counts if counts[-1] else counts[:-1]))})"


if __name__ == "__main__":
    chosen = BY_FOLDER[sys.argv[1]]
    if "--docs" in sys.argv:
        write_docs(chosen)
    else:
        sys.stdout.write(rows(chosen))
