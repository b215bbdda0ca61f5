from incarnate.domain.projections.usage import TokenCounts
from tests.recordings.recorded import Harness, Told

ACP_COPILOT = Harness(
    dialect="acp",
    folder="acp/copilot",
    call=TokenCounts(300, 900, 0, 42, 12),
    wire="openai_chat",
    disk=(),
    has_prompts=True,
    runs={"S5": ("S4",), "S8b": ("S8a",)},
    told={
        "S1": Told(5, "completed", 0, 0, 1),
        "S4": Told(5, "open", 1, 1, 0, "tokens come with the answer to a prompt, which a killed agent does not give"),
        "S4c": Told(7, "cancelled", 1, 1, 1, "the client cancelled the turn, and nothing tells how its call ended"),
        "S5": Told(
            16, "completed completed", 2, 0, 2, "the load replays the turn that was cut and the resume answers its call"
        ),
        "S6e": Told(4, "completed", 0, 0, 0, "the agent tells a refused request in words of its own, as an answer"),
        "S8a": Told(10, "completed", 1, 0, 2),
        "S8b": Told(17, "completed completed", 3, 0, 2, "the load replays the turn before"),
    },
    history={
        "S5": (
            "- user: STUBPROMPT S4: please do the scripted task.",
            "+ user: <current_datetime>2026-12-01T00:28:33.970+00:00</current_datetime>\\n\\nSTUBPROMPT S4…",
            '- call1: stub_command {"command": "echo start > side-effect.txt; sleep 30; echo end >> side…',
            "- result1: Error: no result was recorded for this tool call; whether it ran, or how far, is…",
            "- user: STUBPROMPT S5: continue after the interruption.",
            '+ call1: bash {"command": "echo start > side-effect.txt; sleep 30; echo end >> side-effect.…',
            "+ result1: Tool execution was interrupted before a result was recorded. Its effects may be …",
            "+ user: <current_datetime>2026-12-01T00:28:38.603+00:00</current_datetime>\\n\\nSTUBPROMPT S5…",
        ),
        "S8b": (
            "- user: STUBPROMPT S8a: please do the scripted task.",
            "+ user: <current_datetime>2026-12-01T00:28:21.723+00:00</current_datetime>\\n\\nSTUBPROMPT S8…",
            '- call1: stub_command {"command": "echo hello-from-tool; ls", "description": "stub command"…',
            '- result1: {"content":"hello-from-tool\\nREADME.md\\n<shellId: 0 completed with exit code 0>"…',
            '+ call1: bash {"command": "echo hello-from-tool; ls", "description": "stub command", "initi…',
            "+ result1: hello-from-tool\\nREADME.md\\n<shellId: 0 completed with exit code 0>",
            "- user: STUBPROMPT S8b: please do the scripted task.",
            "+ user: <current_datetime>2026-12-01T00:28:27.171+00:00</current_datetime>\\n\\nSTUBPROMPT S8…",
        ),
    },
)
