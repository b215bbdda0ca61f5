from incarnate.domain.projections.usage import TokenCounts
from tests.recordings.recorded import Harness, Told

OPENCODE = Harness(
    dialect="opencode",
    folder="opencode",
    call=TokenCounts(300, 900, 0, 42, 12),
    wire="openai_chat",
    disk=("opencode.db.rows.jsonl",),
    runs={"S5": ("S4",), "S5i": ("S4i",), "S5t": ("S4t",)},
    told={},
    history={},
)
