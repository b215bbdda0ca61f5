"""All harnesses with recordings. A harness joins by its file in `rows/` and one line here."""

from tests.recordings.recorded import Harness
from tests.recordings.rows.acp_copilot import ACP_COPILOT
from tests.recordings.rows.acp_gemini import ACP_GEMINI
from tests.recordings.rows.acp_opencode import ACP_OPENCODE
from tests.recordings.rows.claude import CLAUDE
from tests.recordings.rows.codex import CODEX
from tests.recordings.rows.copilot import COPILOT
from tests.recordings.rows.gemini import GEMINI
from tests.recordings.rows.kimi import KIMI
from tests.recordings.rows.kimicode import KIMICODE
from tests.recordings.rows.opencode import OPENCODE
from tests.recordings.rows.pi import PI
from tests.recordings.rows.qwen import QWEN

HARNESSES: tuple[Harness, ...] = (
    ACP_COPILOT,
    ACP_GEMINI,
    ACP_OPENCODE,
    CLAUDE,
    CODEX,
    COPILOT,
    GEMINI,
    KIMI,
    KIMICODE,
    OPENCODE,
    PI,
    QWEN,
)

BY_FOLDER = {harness.folder: harness for harness in HARNESSES}
