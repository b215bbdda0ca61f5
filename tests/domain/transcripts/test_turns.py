import json
from pathlib import Path

import pytest

from incarnate.domain.transcripts.rows import TurnStartRow, decode_row
from incarnate.domain.transcripts.turns import next_turn_after_rows

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"


@pytest.mark.smoke
def test_the_next_turn_of_every_recorded_log_is_the_references() -> None:
    lines = (VECTORS / "transcript_logs.jsonl").read_bytes().split(b"\n")
    logs = [json.loads(line) for line in lines if line]
    rows = [[decode_row(row.encode()) for row in log["rows"]] for log in logs]

    assert 240 == len(logs)
    assert [log["nextTurn"] for log in logs] == [next_turn_after_rows(one, 0) for one in rows]


def test_a_number_is_never_lowered() -> None:
    assert 5 == next_turn_after_rows([TurnStartRow("turn-2")], 5)
