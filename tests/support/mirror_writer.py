"""A process that mirrors what it writes until it is killed: `mirror_writer.py HARM STORE FOLDER SEED`."""

import os
import random
import signal
import sys
from itertools import count
from typing import Any
from unittest.mock import patch

from incarnate import ActivationKey, AssistantMessage, SessionSystem
from incarnate.storage.transcripts import TranscriptFile

KEY = ActivationKey("pik-1", "implement-task")


def random_session(store: str, folder: str, seed: int) -> None:
    """Appends, makes checkpoints and goes back to them; says a line for each thing done."""
    chance = random.Random(seed)
    with SessionSystem.open(store) as system, system.mirror(KEY, folder):
        session = system.claim(KEY)
        for number in count():
            match chance.randrange(8):
                case 0:
                    session.checkpoint("sha")
                case 1:
                    session.restore(rewind=True)
                case _:
                    name = f"{seed}.{number}"
                    text = name + "é\u2028" * chance.randrange(60)
                    session.emit(AssistantMessage(id=name, parent_id=None, text=text))
            sys.stdout.write(".\n")
            sys.stdout.flush()


def between_cut_and_append() -> None:
    """Dies when the file was cut and what takes the place of the rest is not written yet."""
    keep = TranscriptFile.keep

    def cut_and_die(self: TranscriptFile, kept: int, **options: Any) -> Any:
        rows = self.rows
        saved = keep(self, kept, **options)
        if self.rows < rows:
            os.kill(os.getpid(), signal.SIGKILL)
        return saved

    patch.object(TranscriptFile, "keep", cut_and_die).start()


def in_a_write() -> None:
    """Dies when part of a row is written."""
    write, chance = os.write, random.Random(int(sys.argv[4]))

    def write_and_die(descriptor: int, data: Any) -> int:
        if chance.randrange(10) == 0:
            write(descriptor, data[: chance.randrange(len(data))])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(descriptor, data)

    os.write = write_and_die


if __name__ == "__main__":
    for harm in (between_cut_and_append, in_a_write):
        if harm.__name__ == sys.argv[1]:
            harm()
    random_session(sys.argv[2], sys.argv[3], int(sys.argv[4]))
