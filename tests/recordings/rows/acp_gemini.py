from incarnate.domain.projections.usage import TokenCounts
from tests.recordings.recorded import Harness, Told

ACP_GEMINI = Harness(
    dialect="acp",
    folder="acp/gemini",
    call=TokenCounts(1200, 0, 0, 42),
    wire="gemini",
    disk=(),
    has_prompts=True,
    runs={},
    told={
        "S1": Told(5, "completed", 0, 0, 1),
        "S3": Told(13, "completed", 2, 0, 3),
        "S4": Told(5, "open", 1, 1, 0, "tokens come with the answer to a prompt, which a killed agent does not give"),
        "S4c": Told(7, "cancelled", 1, 0, 0, "the client cancelled the turn, of which the agent tells no tokens"),
        "S6e": Told(3, "failed", 0, 0, 0),
    },
    history={},
)
