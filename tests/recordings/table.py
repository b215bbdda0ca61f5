"""All harnesses with recordings. A harness joins by its file in `rows/` and one line here."""

from tests.recordings.recorded import Harness
from tests.recordings.rows.claude import CLAUDE
from tests.recordings.rows.codex import CODEX
from tests.recordings.rows.copilot import COPILOT
from tests.recordings.rows.pi import PI

HARNESSES: tuple[Harness, ...] = (
    CLAUDE,
    CODEX,
    COPILOT,
    PI,
)

BY_FOLDER = {harness.folder: harness for harness in HARNESSES}
