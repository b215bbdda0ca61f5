"""All harnesses with recordings. A harness joins by its file in `rows/` and one line here."""

from tests.recordings.recorded import Harness
from tests.recordings.rows.claude import CLAUDE

HARNESSES: tuple[Harness, ...] = (CLAUDE,)

BY_FOLDER = {harness.folder: harness for harness in HARNESSES}
