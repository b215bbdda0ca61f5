from incarnate.domain.projections.usage import TokenCounts
from tests.recordings.recorded import Harness, Told

ACP_OPENCODE = Harness(
    dialect="acp",
    folder="acp/opencode",
    call=TokenCounts(300, 900, 0, 42, 12),
    wire="openai_chat",
    disk=(),
    has_prompts=True,
    runs={"S5": ("S4",), "S8b": ("S8a",)},
    told={
        "S1": Told(5, "completed", 0, 0, 1),
        "S4": Told(5, "open", 1, 1, 0, "tokens come with the answer to a prompt, which a killed agent does not give"),
        "S4c": Told(8, "cancelled", 1, 0, 0, "the client cancelled the turn, of which the agent tells no tokens"),
        "S5": Told(
            15,
            "interrupted completed",
            2,
            1,
            1,
            "the load replays the turn that was cut; tokens are those of the last answer alone",
        ),
        "S6e": Told(3, "failed", 0, 0, 0),
        "S8a": Told(10, "completed", 1, 0, 1, "tokens are those of the last answer alone"),
        "S8b": Told(
            19,
            "completed completed",
            3,
            0,
            1,
            "the load replays the turn before; tokens are those of the last answer alone",
        ),
    },
    history={
        "S5": (
            '- call1: bash {"command": "echo start > side-effect.txt; sleep 30; echo end >> side-effect.…',
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            '+ call1: bash {"command": "echo start > side-effect.txt; sleep 30; echo end >> side-effect.…',
            "+ result1: [Tool execution was interrupted]",
        ),
        "S8b": (
            '- call1: bash {"command": "echo hello-from-tool; ls", "cwd": "/demo/project", "description"…',
            '- result1: {"metadata":{"exit":0,"output":"hello-from-tool\\nREADME.md\\n","truncated":false}…',
            '+ call1: bash {"command": "echo hello-from-tool; ls", "description": "stub command"}',
            "+ result1: hello-from-tool\\nREADME.md\\n",
        ),
    },
)
