"""Where the prompt stands in a harness's command line, as its own parser has it; nothing uncertain is guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.errors import UnclearPromptError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["PromptPlace", "prompt_place"]


class PromptPlace(NamedTuple):
    """The word that holds the prompt, None in a line without one, and how much of that word is the option's name.

    `free` is where a prompt that is not in the line may be put, behind the words `lead`.
    """

    at: int | None
    name: str = ""
    free: int = 0
    lead: tuple[str, ...] = ()


class _Grammar(NamedTuple):
    """What a program takes. An option that is not named here makes what follows it uncertain.

    `prompts`: options whose value is the prompt; `values`: whose value is something else; `several`: that take all
    words up to the next option; `switches`: that take none. `subcommands` may stand before the prompt, `others` are
    those whose words mean something else. `takes_words`: whether a word of its own is a prompt.
    """

    prompts: frozenset[str]
    values: frozenset[str]
    several: frozenset[str]
    switches: frozenset[str]
    subcommands: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    takes_words: bool = True


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_CLAUDE = _Grammar(
    prompts=frozenset(),
    values=_set(
        "--output-format --input-format --model --fallback-model --permission-mode --permission-prompt-tool "
        "--append-system-prompt --append-system-prompt-file --system-prompt --system-prompt-file --session-id "
        "--max-turns --max-budget-usd --settings --setting-sources --agent --agents --json-schema --effort"
    ),
    several=_set("--add-dir --allowedTools --allowed-tools --disallowedTools --disallowed-tools --tools --mcp-config"),
    switches=_set(
        "-p --print --verbose --include-partial-messages --replay-user-messages --dangerously-skip-permissions "
        "--allow-dangerously-skip-permissions --strict-mcp-config --ide --fork-session -c --continue "
        "--no-session-persistence --disable-slash-commands"
    ),
)
_CODEX = _Grammar(
    prompts=frozenset(),
    values=_set(
        "-m --model -c --config -p --profile -s --sandbox -C --cd --color -o --output-last-message --output-schema "
        "--local-provider --enable --disable --add-dir -a --ask-for-approval"
    ),
    several=_set("-i --image"),
    switches=_set(
        "--json --experimental-json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --yolo "
        "--full-auto --oss --ephemeral --search"
    ),
    subcommands=_set("exec e"),
    others=_set("resume review fork help apply login mcp"),
)
_GEMINI = _Grammar(
    prompts=_set("-p --prompt"),
    values=_set("-m --model -o --output-format --approval-mode"),
    several=frozenset(),
    switches=_set("-y --yolo -d --debug -s --sandbox --screen-reader --skip-trust"),
    others=_set("mcp extensions skills hooks"),
)
_QWEN = _GEMINI._replace(
    values=_GEMINI.values
    | _set("--auth-type --input-format --max-session-turns --openai-api-key --openai-base-url --channel"),
    switches=_GEMINI.switches | _set("--include-partial-messages"),
)
_COPILOT = _Grammar(
    prompts=_set("-p --prompt"),
    values=_set("--model --output-format --log-level --log-dir --agent --add-dir"),
    several=frozenset(),
    switches=_set("--allow-all-tools --allow-all-paths --allow-all --yolo --no-auto-update --no-color --banner"),
    takes_words=False,
)
_KIMI = _Grammar(
    prompts=_set("-p --prompt -c --command"),
    values=_set("-m --model --output-format --input-format -w --work-dir -S --session --agent --agent-file"),
    several=frozenset(),
    switches=_set("--print --yolo -y --verbose --debug --quiet --thinking --no-thinking -C --continue"),
    takes_words=False,
)
_OPENCODE = _Grammar(
    prompts=frozenset(),
    values=_set("-m --model --format --agent -s --session --title --variant --log-level --dir --attach"),
    several=frozenset(),
    switches=_set("--thinking --share -c --continue --fork --print-logs"),
    subcommands=_set("run"),
    others=_set("serve web auth agent upgrade session export import models stats mcp acp"),
)
_PI = _Grammar(
    prompts=frozenset(),
    values=_set(
        "--mode --provider --model --api-key --system-prompt --append-system-prompt --session --session-dir --models "
        "--tools -t --thinking --extension -e --skill --theme --prompt-template"
    ),
    several=frozenset(),
    switches=_set("-p --print --no-session -c --continue --no-tools -nt --no-extensions -ne --no-skills -ns --verbose"),
)

_PROGRAMS: dict[str, _Grammar] = {
    "claude": _CLAUDE,
    "claude-code": _CLAUDE,
    "codex": _CODEX,
    "copilot": _COPILOT,
    "gemini": _GEMINI,
    "gemini-cli": _GEMINI,
    "kimi": _KIMI,
    "kimi-cli": _KIMI,
    "kimi-code": _KIMI,
    "opencode": _OPENCODE,
    "opencode-ai": _OPENCODE,
    "pi": _PI,
    "pi-coding-agent": _PI,
    "qwen": _QWEN,
    "qwen-code": _QWEN,
}
"""By what the program, or its package, is called."""

_STARTERS = frozenset({"bun", "bunx", "env", "node", "npm", "npx", "pnpm", "uv", "uvx", "yarn"})
_STARTING = frozenset({"dlx", "exec", "run", "tool", "x"})

_USUAL = ("-p", "--prompt")
_PROFILES = frozenset({"codex", "opencode"})
"""Harnesses whose `-p` is no prompt, whatever the program that stands for them is called."""


class _Words(NamedTuple):
    """Places in a line: what options say is the prompt, words that stand alone, and those that may be values."""

    named: list[PromptPlace]
    alone: list[int]
    perhaps: list[int]
    end: int  # where a further word would stand alone


def prompt_place(words: Sequence[str], harness: str | None = None) -> PromptPlace:
    """Where the prompt stands. A program that is not known may be one that stands for `harness`.

    Raises:
        UnclearPromptError: it may stand at several places, or may be the value of an option that is not known.
    """
    at = _program(words)
    grammar = _grammar(words[at])
    return _unknown(words, harness) if grammar is None else _known(words, at + 1, grammar)


def _program(words: Sequence[str]) -> int:
    """Where the program stands: behind what only starts another one. No other word is looked at for its name."""
    if words[0].rpartition("/")[2] not in _STARTERS:
        return 0
    for at, word in enumerate(words[1:], 1):
        if not word.startswith("-") and "=" not in word and word not in _STARTING:
            return at
    return 0


def _grammar(word: str) -> _Grammar | None:
    """That of `/usr/bin/codex`, `@openai/codex@1`, `claude.exe`, or a script of a package below `node_modules`."""
    path, _, file = word.rpartition("/")
    name = file.partition("@")[0]
    for suffix in (".exe", ".cmd", ".js"):
        name = name.removesuffix(suffix)
    _, inside, package = path.rpartition("node_modules/")
    names = [name, *(package.split("/") if inside and name != file else ())]
    return next((_PROGRAMS[one] for one in names if one in _PROGRAMS), None)


def _known(words: Sequence[str], begin: int, grammar: _Grammar) -> PromptPlace:
    found = _read(words, begin, grammar)
    alone = found.alone
    if alone and words[alone[0]] in grammar.subcommands:
        begin, alone = alone[0] + 1, alone[1:]
    if len(found.named) == 1:
        return found.named[0]
    is_other = bool(alone) and words[alone[0]] in grammar.others
    if found.named or is_other or (not grammar.takes_words and (alone or found.perhaps)):
        raise _unclear(words, [*[place.at for place in found.named], *alone, *found.perhaps])
    if len(alone) == 1:
        return PromptPlace(alone[0])
    if alone or found.perhaps:
        raise _unclear(words, [*alone, *found.perhaps])
    if grammar.prompts:
        return PromptPlace(None, free=len(words), lead=("-p",))
    return PromptPlace(None, free=max(begin, found.end))


def _read(words: Sequence[str], begin: int, grammar: _Grammar) -> _Words:
    found = _Words([], [], [], len(words))
    at = begin
    while at < len(words):
        word = words[at]
        name, equals, _ = word.partition("=")
        if word == "--":
            found.alone.extend(range(at + 1, len(words)))
            break
        if not word.startswith("-") or word == "-":
            (found.perhaps if word.startswith(("@", "-")) else found.alone).append(at)
        elif equals:
            found.named.extend([PromptPlace(at, f"{name}=")] if name in grammar.prompts else [])
        elif word in grammar.prompts:
            at += 1
            found.named.append(PromptPlace(at))
            _expect_value(words, at)
        elif word in grammar.values:
            at += 1
        elif word not in grammar.switches:
            first, at = at, _last_value(words, at)
            if word not in grammar.several:
                found.perhaps.extend(range(first + 1, at + 1))
            elif at == len(words) - 1:
                found = found._replace(end=begin)  # at the end a word would be one more value
        at += 1
    return found


def _last_value(words: Sequence[str], at: int) -> int:
    """The last word in a row behind the option at `at` that is none."""
    while at + 1 < len(words) and not words[at + 1].startswith("-"):
        at += 1
    return at


def _expect_value(words: Sequence[str], at: int) -> None:
    if at >= len(words) or words[at].startswith("-"):
        raise _unclear(words, [at])


def _unknown(words: Sequence[str], harness: str | None) -> PromptPlace:
    """Of a program that nobody here knows, only what can hardly be anything else.

    That is the value of `-p` or `--prompt` at the end, or the last word of a line without options.
    """
    options = _USUAL if harness not in _PROFILES else ()
    rest = range(1, len(words))
    joined = [PromptPlace(at, "--prompt=") for at in rest if words[at].startswith("--prompt=")]
    named = [*joined, *[PromptPlace(at) for at in rest if words[at - 1] in options and at > 1]]
    alone = [at for at in rest if not words[at].startswith("-")]
    last = len(words) - 1
    if len(named) == 1:
        [place] = named
        if place.name or (place.at == max(alone, default=-1)):
            return place
    if not named and not alone:
        return PromptPlace(None, free=len(words))
    if not named and len(alone) == last:
        return PromptPlace(last)
    raise _unclear(words, alone)


def _unclear(words: Sequence[str], places: Iterable[int | None]) -> UnclearPromptError:
    return UnclearPromptError(words[0], tuple([words[at] for at in places if at is not None and at < len(words)]))
