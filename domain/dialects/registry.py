"""The dialects by name: an explicit table, so that a name on the command line means what is written here."""

from __future__ import annotations

from incarnate.domain.dialects.acp import Acp
from incarnate.domain.dialects.base import Dialect
from incarnate.domain.dialects.claude_code import ClaudeCode
from incarnate.domain.dialects.codex import Codex
from incarnate.domain.dialects.copilot import Copilot
from incarnate.domain.dialects.deepseek import DeepSeek
from incarnate.domain.dialects.gemini_cli import GeminiCli
from incarnate.domain.dialects.kimi import Kimi
from incarnate.domain.dialects.opencode import OpenCode
from incarnate.domain.dialects.pi import Pi
from incarnate.domain.dialects.qwen_code import QwenCode
from incarnate.domain.errors import DialectError

__all__ = ["DIALECTS", "find_dialect"]

DIALECTS: dict[str, Dialect] = {
    "@github/copilot": Copilot(),
    "acp": Acp(),
    "claude-code": ClaudeCode(),
    "codex": Codex(),
    "deepseek": DeepSeek(),
    "gemini-cli": GeminiCli(),
    "kimi": Kimi(),
    "opencode": OpenCode(),
    "pi": Pi(),
    "qwen-code": QwenCode(),
}
"""Every dialect, by its harness's name."""


def find_dialect(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        DialectError: there is none; its message lists the known ones.
    """
    dialect = DIALECTS.get(name)
    if dialect is None:
        raise DialectError(name, f"no such dialect; known are {', '.join(sorted(DIALECTS))}", hint="name one of those")
    return dialect
