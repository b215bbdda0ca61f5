"""What an ACP session has told before: to know a replay of it, and what took its place."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import UNSET

from incarnate.domain.dialects.acp_updates import AcpMessage, classify, text_blocks
from incarnate.domain.dialects.base import UNPLACED, kept
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.events import Compaction, SessionEvent

__all__ = ["AcpCompactions", "AcpHistory"]

_RESULT_NOTE = "[Function Response: "
"""How Gemini CLI replays the results of tools: as words of the user."""


class AcpHistory:
    """The messages that were told, and whether an agent replays them now."""

    def __init__(self) -> None:
        self._told: Counter[int] = Counter()
        self._replayed: Counter[int] | None = None
        self._all_is_replay = False

    def tell(self, role: str, text: str) -> None:
        """A message is told. Of its words only the hash is kept."""
        self._told[hash((role, text))] += 1

    def begin_replay(self) -> None:
        """The client asks for the session; where nothing was told yet, what comes is the session itself."""
        self._all_is_replay = bool(self._told)
        self._replayed = self._told.copy() if self._told else None

    def answer_load(self) -> None:
        """The load is answered, with which a replay has to be over. Some agents have not begun it."""
        self._all_is_replay = False

    def end_replay(self) -> None:
        """A prompt is answered: the replay is over for every agent."""
        self._replayed = None
        self._all_is_replay = False

    def is_replay(self, update: dict[str, Any], *, known: bool) -> bool:
        """The update tells something again; `known` for one of a call that was told before."""
        replayed = self._replayed
        if replayed is None:
            return False
        found = classify(update)
        if isinstance(found, AcpMessage):
            key = hash((found.role, found.text))
            if replayed[key] > 0:
                replayed[key] -= 1
                return True
            return self._all_is_replay or (found.role == "user" and found.text.startswith(_RESULT_NOTE))
        return self._all_is_replay or (known and update["sessionUpdate"] == "tool_call")


class AcpCompactions:
    """Compactions, which agents tell by updates of their own, or as a call that an adapter marks."""

    def __init__(self) -> None:
        self._summary: list[str] = []
        self._calls: set[str] = set()

    def concern(self, kind: str, update: dict[str, Any]) -> bool:
        """The update is of a compaction."""
        if kind.startswith("compaction_"):
            return True
        call_id, meta = optional_text(update, "toolCallId"), update.get("_meta")
        if call_id is not None and isinstance(meta, dict) and "contextCompaction" in meta:
            self._calls.add(call_id)
        return call_id in self._calls

    def take(self, update: dict[str, Any]) -> SessionEvent | None:
        """The compaction, once it is complete."""
        if update["sessionUpdate"] == "compaction_summary_chunk":
            self._summary.append(text_blocks(update.get("content")))
        if update.get("status") != "completed":
            return None
        told = update.get("summary")
        summary = told if isinstance(told, str) else text_blocks(told)
        summary = summary or "".join(self._summary)
        self._summary.clear()
        self._calls.discard(str(update.get("toolCallId")))
        return Compaction(
            id="",
            parent_id=None,
            reason="auto",
            replaces_from=UNPLACED,
            replaces_to=kept(0),
            summary=summary or UNSET,
        )
