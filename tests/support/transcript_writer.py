"""A process that writes transcript files and comes to harm: `transcript_writer.py HARM FOLDER`; prints JSON lines."""

import json
import os
import random
import resource
import signal
import sys
from typing import Any

from incarnate.domain.transcripts.rows import Row, UserMessageRow, encode_row
from incarnate.storage.transcripts import TranscriptFile

ROUNDS = 50
SESSION = "crash"
real_write = os.write


def numbered(number: int) -> Row:
    return UserMessageRow(f"{number} " + "é\u2028" * (number % 7))


def texts(rows: list[Row]) -> list[str]:
    return [row.text for row in rows if isinstance(row, UserMessageRow)]


def say(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def killed_at_random_bytes(folder: str) -> None:
    """Fifty writers of one file, each killed inside a write; says what each had synced and what was found then."""
    chance = random.Random(7)
    number = 0
    for _ in range(ROUNDS):
        budget = chance.randrange(5 * len(encode_row(numbered(number))))
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            write_until_killed(folder, number, budget, writer)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as acknowledged:
            acks = len(acknowledged.read())
        with TranscriptFile.open(folder, SESSION) as transcript:
            found = texts(transcript.events())
            torn = transcript.torn is not None
        synced = texts([numbered(number + index) for index in range(acks)])
        say(signal=os.WTERMSIG(status), synced=synced, found=found, torn=torn)
        number = len(found)


def write_until_killed(folder: str, number: int, budget: int, acknowledge: int) -> None:
    left = budget

    def write(descriptor: int, data: Any) -> int:
        nonlocal left
        if left < len(data):
            real_write(descriptor, data[:left])
            os.kill(os.getpid(), signal.SIGKILL)
        left -= len(data)
        return real_write(descriptor, data)

    transcript = TranscriptFile.open(folder, SESSION, sync="each")
    os.write = write
    while True:
        if transcript.append(numbered(number)):
            real_write(acknowledge, b".")
        number += 1


def full_disk(folder: str) -> None:
    """A file that may not grow over 500 bytes, until it may."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    with TranscriptFile.open(folder, SESSION, sync="each") as transcript:
        transcript.append(numbered(0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, most))
        said = [transcript.append(numbered(number)) for number in range(1, 20)]
        on_disk = transcript.path.read_bytes().decode()
        say(said=said, errors=transcript.write_errors, on_disk=on_disk, events=texts(transcript.events()))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        said = [transcript.append(numbered(20))]
        on_disk = transcript.path.read_bytes().decode()
        say(said=said, errors=transcript.write_errors, on_disk=on_disk, events=texts(transcript.events()))


def endless(folder: str) -> None:
    """Says each row's number when it is on the disk, until it is killed."""
    with TranscriptFile.open(folder, SESSION, sync="each") as transcript:
        for number in range(1_000_000):
            transcript.append(numbered(number))
            say(number=number)


def holding(folder: str) -> None:
    """Holds the file until its input ends."""
    with TranscriptFile.open(folder, SESSION):
        say(held=True)
        sys.stdin.read()


if __name__ == "__main__":
    harms = {harm.__name__: harm for harm in (killed_at_random_bytes, full_disk, endless, holding)}
    harms[sys.argv[1]](sys.argv[2])
