"""Passwords among the arguments of commands that take them behind a single letter: `mysql -pPASSWORD`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["command_spans", "has_command_signs", "password_arguments"]


class _Command(NamedTuple):
    """A command whose name begins with `sign`, its option, and whether the password may stand behind a space."""

    sign: str
    names: re.Pattern[str]
    option: str
    is_apart: bool


def _command(sign: str, rest: str, option: str, *, is_apart: bool) -> _Command:
    return _Command(sign, re.compile(sign + rest + r"(?=[\s\"'\\,])"), option, is_apart)


_COMMANDS = (
    _command("mysql", r"(?:dump|admin|import|check|show|pump|sh)?", "-p", is_apart=False),
    _command("mariadb", r"(?:-[a-z]{1,12}+)?", "-p", is_apart=False),
    _command("sshpass", "", "-p", is_apart=True),
    _command("redis-cli", "", "-a", is_apart=True),
    _command("mongo", r"(?:sh|dump|restore|export|import)", "-p", is_apart=True),
    _command("ldap", r"(?:search|modify|add|delete|whoami|passwd)", "-w", is_apart=True),
    _command("docker login", "", "-p", is_apart=True),
)
_SHARED = "-p"
_OTHERS = tuple(command for command in _COMMANDS if command.option != _SHARED)
_MOST_LETTERS = 1000
_line = re.compile(rf"[^\n;|&]{{0,{_MOST_LETTERS}}}+")
_quoted = re.compile(r"\\{0,8}+(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[^\n]){1,200}+)(?P=quote)")
_bare = re.compile(r"(?P<value>[^\s\"'\\,;|&<>(){}\[\]`$%/-][^\s\"'\\,;|&<>(){}\[\]`]{2,200}+)")
_placeholders = ("$", "...", "***", "your", "[masked", "<", "{")
_port = re.compile(r"\d{2,5}:\d{2,5}")
_PROSE = frozenset(["and", "argument", "flag", "for", "the", "option", "parameter", "password", "switch", "with"])
_options = {
    (command.option, command.is_apart): re.compile(
        rf"(?<=[\s\"',]){command.option}" + ("[ \t]{0,4}+" if command.is_apart else "")
    )
    for command in _COMMANDS
}


def has_command_signs(text: str) -> bool:
    """Whether such a command may stand in a text."""
    return next(_present(text), None) is not None


def command_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where passwords of commands stand, begin and end."""
    for command in _present(text):
        yield from _spans(text, command)


def _present(text: str) -> Iterator[_Command]:
    # Each look takes half a nanosecond a letter, and most of these commands have the same option.
    commands = _COMMANDS if _SHARED in text else _OTHERS
    return (command for command in commands if command.sign in text)


def _spans(text: str, command: _Command) -> Iterator[tuple[int, int]]:
    option, done = _options[command.option, command.is_apart], 0
    for found in command.names.finditer(text):
        line = _line.match(text, found.end()) if found.start() >= done else None
        if line is None or not _begins(text, found.start()):
            continue
        done = line.end()  # what stands on a line is looked at once, however often it names the command
        for told in option.finditer(text, found.end(), done):
            value = _quoted.match(text, told.end()) or _bare.match(text, told.end())
            if value is not None and _may_be_password(value["value"]):
                yield value.span("value")
                break  # what follows may be another command, with options of its own


def _may_be_password(value: str) -> bool:
    return not value.startswith(_placeholders) and value not in _PROSE and _port.fullmatch(value) is None


def _begins(text: str, at: int) -> bool:
    return not at or not (text[at - 1].isalnum() or text[at - 1] in "_-.") or text[at - 2 : at] in ("\\n", "\\t")


def password_arguments(words: Sequence[object]) -> frozenset[int]:
    """Which of a command's words are passwords, or hold one: of `["mysql", "-pPASSWORD"]` the second."""
    name = words[0] if words else None
    if not isinstance(name, str) or len(name) > _MOST_LETTERS:
        return frozenset()
    name = name.rpartition("/")[2]
    command = next((one for one in _COMMANDS if one.names.match(f"{name} ") and len(words) > 1), None)
    if command is None:
        return frozenset()
    return frozenset(at for at in range(1, len(words)) if _is_password(words[at - 1], words[at], command))


def _is_password(before: object, word: object, command: _Command) -> bool:
    if not isinstance(word, str):
        return False
    return (word.startswith(command.option) and len(word) > len(command.option)) or (
        command.is_apart and before == command.option
    )
