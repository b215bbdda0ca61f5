"""Whose records these are: every recording tells it by itself."""

from pathlib import Path

import pytest

from incarnate.domain.dialects.records import Found, RecordStream
from incarnate.domain.dialects.registry import DIALECTS
from incarnate.domain.dialects.sniffing import Sniffer
from incarnate.domain.errors import DialectError

RECORDINGS = Path(__file__).parents[3] / "fixtures" / "recordings"
OF_FOLDER = {
    "claude": "claude-code",
    "copilot": "@github/copilot",
    "gemini": "gemini-cli",
    "kimicode": "kimi",
    "qwen": "qwen-code",
}
NOT_THE_HARNESS = {"requests.jsonl", "session_index.jsonl", "stdin.jsonl"}
FILES = sorted(path for path in RECORDINGS.rglob("*.jsonl") if path.name not in NOT_THE_HARNESS and path.stat().st_size)
ONLY_WORDS = {RECORDINGS / "kimi" / name / "stdout.jsonl" for name in ("S6e", "S6o")}


def sniffed(path: Path) -> Sniffer:
    sniffer, stream = Sniffer(DIALECTS.values()), RecordStream(lambda _: 0, 1 << 27)
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        for piece in stream.feed(number, 0, line + b"\n"):
            if isinstance(piece, Found):
                sniffer.hear(piece.value)
    return sniffer


@pytest.mark.parametrize(
    "path", [path for path in FILES if path not in ONLY_WORDS], ids=lambda path: str(path.relative_to(RECORDINGS))
)
def test_a_recording_is_known_by_its_records(path: Path) -> None:
    folder = path.relative_to(RECORDINGS).parts[0]

    assert OF_FOLDER.get(folder, folder) == sniffed(path).verdict().name


def test_words_alone_are_nobodys() -> None:
    for path in ONLY_WORDS & set(FILES):
        with pytest.raises(DialectError, match="no record of any known harness") as refused:
            sniffed(path).verdict()
        assert refused.value.hint.startswith("check what it is")


def test_what_two_harnesses_may_have_written_is_told_to_be_so() -> None:
    sniffer = Sniffer(DIALECTS.values())
    sniffer.hear({"type": "reasoning", "text": "hm"})

    with pytest.raises(DialectError, match="they may be those of @github/copilot, codex") as refused:
        sniffer.verdict()
    assert "give the dialect of that harness alone" == refused.value.hint


def test_the_likeliest_is_it_where_nobody_is_sure() -> None:
    sniffer = Sniffer(DIALECTS.values())
    sniffer.hear({"kind": "tool", "id": "t", "name": "f"})

    assert sniffer.sure is None
    assert "deepseek" == sniffer.verdict().name
