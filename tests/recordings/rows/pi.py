from incarnate.domain.projections.usage import TokenCounts
from tests.recordings.recorded import Harness, Told

PI = Harness(
    dialect="pi",
    folder="pi",
    call=TokenCounts(300, 900, 0, 42, 12),
    wire="openai_chat",
    disk=(".pi/agent/sessions/*/*.jsonl",),
    runs={"S5": ("S4",), "S5i": ("S4i",), "S5t": ("S4t",)},
    told={
        "S1": Told(6, "completed", 0, 0, 1),
        "S2": Told(12, "completed", 1, 0, 2),
        "S2w": Told(10, "completed", 1, 0, 2),
        "S4": Told(7, "open", 1, 1, 1),
        "S4i": Told(7, "open", 1, 1, 1, "an interrupt ends pi at once, and it writes nothing any more"),
        "S4t": Told(3, "open", 0, 0, 0),
        "S5": Told(10, "completed", 1, 0, 2),
        "S5i": Told(10, "completed", 1, 0, 2),
        "S5t": Told(10, "completed", 1, 0, 2),
        "S6e": Told(4, "failed", 0, 0, 0),
        "S6o": Told(4, "failed", 0, 0, 0),
        "S6x": Told(5, "failed", 0, 0, 0),
        "S8a": Told(12, "completed", 1, 0, 2),
        "S1/disk": Told(6, "completed", 0, 0, 1),
        "S2/disk": Told(12, "completed", 1, 0, 2),
        "S2w/disk": Told(10, "completed", 1, 0, 2),
        "S4/disk": Told(7, "open", 1, 1, 1),
        "S4i/disk": Told(7, "open", 1, 1, 1, "an interrupt ends pi at once, and it writes nothing any more"),
        "S4t/disk": Told(3, "open", 0, 0, 0),
        "S5/disk": Told(18, "interrupted completed", 2, 1, 3),
        "S5i/disk": Told(18, "interrupted completed", 2, 1, 3, "the call that was interrupted never gets a result"),
        "S5t/disk": Told(14, "interrupted completed", 1, 0, 2),
        "S6e/disk": Told(
            3, "open", 0, 0, 0, "the failure waits for the record that may take it back; --ended tells it"
        ),
        "S6o/disk": Told(
            3, "open", 0, 0, 0, "the failure waits for the record that may take it back; --ended tells it"
        ),
        "S6x/disk": Told(
            3, "open", 0, 0, 0, "the failure waits for the record that may take it back; --ended tells it"
        ),
        "S8a/disk": Told(12, "completed", 1, 0, 2),
    },
    history={
        "S5": (
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "+ result1: No result provided",
        ),
        "S5i": (
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "+ result1: No result provided",
        ),
        "S5t": (),
        "S5/disk": (
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "+ result1: No result provided",
        ),
        "S5i/disk": (
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "+ result1: No result provided",
        ),
        "S5t/disk": (),
    },
)
