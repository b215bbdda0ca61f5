"""The command line of a harness: where its prompt stands, and how the same line goes on with a session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from incarnate.domain.errors import UnclearPromptError
from incarnate.supervision.prompt_places import prompt_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.domain.dialects.base import Dialect
    from incarnate.supervision.prompt_places import PromptPlace

__all__ = ["PROMPT", "Command", "carried_tail", "carry_prompt", "cut_transcript", "go_on_prompt", "is_go_on", "legible"]

PROMPT = "{prompt}"
"""Stands for the prompt in a command line."""

_RESUME: dict[str, tuple[str, ...]] = {
    "@github/copilot": ("--resume={session}",),
    "claude-code": ("--resume={session}",),
    "codex": ("resume", "{session}"),
    "gemini-cli": ("--resume", "{session}"),
    "kimi": ("--session", "{session}"),
    "opencode": ("--session", "{session}"),
    "pi": ("--session", "{session}"),
    "qwen-code": ("--resume", "{session}"),
}
"""What goes before the prompt, as it worked with the real programs; a subcommand may stand nowhere else."""

_BEFORE_PROMPTS = ("-p", "--prompt", "--print", "-c", "--command", "--")

_PREFACE = (
    "This session takes the place of an earlier one of yours, whose process and files are gone. What was said and "
    "done in it stands between the marks.\n<earlier-session>"
)
_CARRIED_END = "</earlier-session>\n\n"

_GO_ON = re.compile(r" \(incarnation [0-9]+\)$")

# Bytes, not characters: Linux takes no argument longer than 128 KiB; the prompt and `--prompt=` are in it too.
_MOST_CARRIED = 96_000
_MOST_TOLD = 124_000
_HEAD_CARRIED = 16_000
_MARK = 100  # what the mark of a cut may take


class Command(msgspec.Struct, frozen=True):
    """A command line with `{prompt}` in the prompt's place, and the prompt; without one it only goes on with a session.

    Raises:
        UnclearPromptError: there is no such place. A harness is told there that it was interrupted, and nowhere else.
    """

    argv: tuple[str, ...]
    prompt: str | None = None

    def __post_init__(self) -> None:
        """See that something can be told."""
        if not any(PROMPT in word for word in self.argv[1:]):
            raise UnclearPromptError("".join(self.argv[:1]), (), "is no place for a prompt")

    @classmethod
    def parse(
        cls, argv: Sequence[str], prompt: str | None = None, harness: str | None = None, *, goes_on: bool = False
    ) -> Command:
        """Find the prompt: `{prompt}`, else the word that `prompt` equals, else where the program's own parser has it.

        Where `prompt` is given and the line has none, it is put where the program takes it. `harness` is whose line it
        is, for programs with a name that tells nothing. `goes_on`: nothing need be asked, since a session goes on.

        Raises:
            UnclearPromptError: what the prompt is cannot be told, nothing is asked, or the line has another one than
                `prompt`.
        """
        command = cls._found(list(argv), prompt, harness)
        if command.prompt is None and not goes_on:
            raise command.asks_nothing()
        return command

    @classmethod
    def _found(cls, words: list[str], prompt: str | None, harness: str | None) -> Command:
        if any(PROMPT in word for word in words[1:]):
            return cls(tuple(words), prompt)
        if prompt in words[1:]:
            words[words.index(prompt, 1)] = PROMPT
            return cls(tuple(words), prompt)
        try:
            place = prompt_place(words, harness)
        except UnclearPromptError:
            if prompt is None:
                raise
            return cls((*words, PROMPT), prompt)
        return _with_prompt(words, place, prompt)

    def asks_nothing(self) -> UnclearPromptError:
        """The refusal of a line without a prompt where there is no session to go on with."""
        return UnclearPromptError(self.argv[0], (), "nothing is asked")

    def asking(self, prompt: str | None) -> tuple[str, ...]:
        """The line that starts a new session."""
        return tuple([word.replace(PROMPT, prompt or "") for word in self.argv])

    def resuming(self, dialect: Dialect, session: str, prompt: str | None) -> tuple[str, ...]:
        """The line that goes on with `session`."""
        words = list(self.argv)
        last = next((place for place, word in enumerate(words) if PROMPT in word), len(words))
        at = last
        if 0 < at < len(words) and words[at - 1] in _BEFORE_PROMPTS:
            at -= 1
        known = _RESUME.get(dialect.name)
        ways = dialect.resume(session).args if known is None else [way.replace("{session}", session) for way in known]
        if ways and not ways[0].startswith("-"):
            # Options behind a subcommand would be the subcommand's, which does not take all of them.
            words[at:] = [*words[last + 1 :], *words[at : last + 1]]
            at += len(self.argv) - last - 1 if last < len(self.argv) else 0
        words[at:at] = ways
        return tuple([word.replace(PROMPT, prompt or "") for word in words])


def _with_prompt(words: list[str], place: PromptPlace, prompt: str | None) -> Command:
    at = place.at
    if at is None:
        return Command((*words[: place.free], *place.lead, PROMPT, *words[place.free :]), prompt)
    found = words[at][len(place.name) :]
    if prompt is not None and prompt != found:
        raise UnclearPromptError(words[0], (found,), "there is another prompt than the one that is given")
    words[at] = f"{place.name}{PROMPT}"
    return Command(tuple(words), found)


def legible(text: str) -> str:
    """An argument as a log and a record can hold it: read as UTF-8 whatever the locale, what is none replaced."""
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # of a program, not of a command line
        data = text.encode("utf-8", "replace")
    return data.decode("utf-8", "replace")


def go_on_prompt(prompt: str | None, incarnation: int) -> str:
    """What a session is told when it goes on; with its incarnation, so that no two of them are alike."""
    told = prompt or (
        "You were interrupted: the process that ran you ended in the middle of its work. The outcome of a tool call "
        "that has no result is unknown. Look at what is done already, then go on until the task is finished."
    )
    return f"{told} (incarnation {incarnation})"


def is_go_on(text: str) -> bool:
    """Whether this is what `go_on_prompt` made, and no task of the user's."""
    return _GO_ON.search(text.rstrip("\"' \n")) is not None  # OpenCode quotes what it is asked


def carry_prompt(transcript: str, prompt: str) -> str:
    """What a new session is told that takes the place of one whose files are gone; it fits into one argument."""
    return f"{_PREFACE}\n{cut_transcript(transcript, prompt)}\n{_CARRIED_END}{prompt}"


def cut_transcript(transcript: str, prompt: str) -> str:
    """As much of it as can be handed over beside `prompt`: its begin and its end, and how much was left out between.

    What was cut once is not cut again. No argument holds a NUL: one in what a tool printed is replaced.
    """
    data = transcript.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    taken = len(_bytes(_PREFACE)) + len(_bytes(_CARRIED_END)) + len(_bytes(prompt))
    most = max(_MARK, min(_MOST_CARRIED, _MOST_TOLD - taken))
    if len(data) <= most:
        return data.decode()
    head = min(_HEAD_CARRIED, (most - _MARK) // 2)
    tail = most - _MARK - head
    begin, end = data[:head].decode("utf-8", "ignore"), data[len(data) - tail :].decode("utf-8", "ignore")
    left_out = len(data) - len(_bytes(begin)) - len(_bytes(end))
    return f"{begin}\n[... {left_out} bytes of this text are left out here: it was too long to hand over ...]\n{end}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def carried_tail(text: str) -> str:
    """The prompt in what `carry_prompt` made; any other text as it is."""
    return text.rpartition(_CARRIED_END)[2] if text.startswith(_PREFACE) else text
