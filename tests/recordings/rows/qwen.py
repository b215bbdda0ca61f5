from incarnate.domain.projections.usage import TokenCounts
from tests.recordings.recorded import Harness, Told

QWEN = Harness(
    dialect="qwen-code",
    folder="qwen",
    call=TokenCounts(300, 900, 0, 42, 12),
    wire="openai_chat",
    disk=(".qwen/projects/*/chats/*.jsonl", ".qwen/projects/*/subagents/*/*.jsonl"),
    runs={"S5": ("S4",), "S5i": ("S4i",), "S5ig": ("S4ig",), "S5t": ("S4t",)},
    told={
        "S1": Told(
            6,
            "completed",
            0,
            0,
            1,
            "the call for its memory is in the running total of the session alone, which may hold earlier runs too",
        ),
        "S2": Told(11, "completed", 1, 0, 2),
        "S2p": Told(11, "completed", 1, 0, 2),
        "S2w": Told(9, "completed", 1, 0, 2),
        "S4": Told(6, "open", 1, 1, 1),
        "S4i": Told(6, "open", 1, 1, 1, "the interrupt ended the wrapper alone; the agent went on, unseen"),
        "S4ig": Told(8, "interrupted", 1, 0, 1),
        "S4t": Told(3, "open", 0, 0, 0),
        "S4tp": Told(4, "open", 0, 0, 0),
        "S4w": Told(6, "open", 1, 1, 1),
        "S5": Told(11, "completed", 1, 0, 2),
        "S5i": Told(11, "completed", 1, 0, 2),
        "S5ig": Told(11, "completed", 1, 0, 2),
        "S5t": Told(10, "completed", 1, 0, 2),
        "S6e": Told(3, "failed", 0, 0, 0),
        "S6o": Told(3, "failed", 0, 0, 0),
        "S6x": Told(4, "failed", 0, 0, 0),
        "S7": Told(15, "completed", 1, 0, 5, "what a background agent calls is not printed"),
        "S8a": Told(11, "completed", 1, 0, 2),
        "S1/disk": Told(6, "completed", 0, 0, 2),
        "S2/disk": Told(11, "completed", 1, 0, 2),
        "S2p/disk": Told(11, "completed", 1, 0, 2),
        "S2w/disk": Told(9, "completed", 1, 0, 2),
        "S4/disk": Told(6, "open", 1, 1, 1),
        "S4i/disk": Told(
            6, "open", 1, 1, 1, "the interrupt ended the wrapper alone; the agent went on until it was killed"
        ),
        "S4ig/disk": Told(8, "interrupted", 1, 0, 1),
        "S4t/disk": Told(2, "open", 0, 0, 0),
        "S4tp/disk": Told(2, "open", 0, 0, 0),
        "S4w/disk": Told(6, "open", 1, 1, 1),
        "S5/disk": Told(17, "interrupted completed", 2, 1, 3),
        "S5i/disk": Told(
            17, "interrupted completed", 2, 1, 3, "the agent that went on after the interrupt was killed in its call"
        ),
        "S5ig/disk": Told(18, "interrupted completed", 2, 0, 3),
        "S5t/disk": Told(13, "interrupted completed", 1, 0, 2),
        "S6e/disk": Told(3, "failed", 0, 0, 0),
        "S6o/disk": Told(3, "failed", 0, 0, 0),
        "S6x/disk": Told(3, "failed", 0, 0, 0),
        "S7/disk": Told(21, "completed", 2, 0, 5),
        "S8a/disk": Told(11, "completed", 1, 0, 2),
    },
    history={
        "S5": (
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "+ result1: Tool execution result was not recorded — likely interrupted by network failure, …",
        ),
        "S5i": (
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "+ result1: Tool execution result was not recorded — likely interrupted by network failure, …",
        ),
        "S5ig": (
            "- result1: Error: [Operation Cancelled] Reason: The tool had already completed; its output …",
            "+ result1: [Operation Cancelled] Reason: The tool had already completed; its output was dis…",
        ),
        "S5t": (),
        "S5/disk": (
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "+ result1: Tool execution result was not recorded — likely interrupted by network failure, …",
        ),
        "S5i/disk": (
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "+ result1: Tool execution result was not recorded — likely interrupted by network failure, …",
        ),
        "S5ig/disk": (
            "- result1: Error: [Operation Cancelled] Reason: The tool had already completed; its output …",
            "+ result1: [Operation Cancelled] Reason: The tool had already completed; its output was dis…",
        ),
        "S5t/disk": (),
    },
    kinds=frozenset({"main", "sub", "compact", "aux"}),
)
