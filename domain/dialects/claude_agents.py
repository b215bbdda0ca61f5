"""Which call of the main conversation a sub-agent's record of a transcript belongs to."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.claude_blocks import NAME
from incarnate.domain.dialects.claude_recent import MOST_RECORDS, Recent
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.events import SessionEvent, ToolCall, ToolResult

__all__ = ["AgentCalls"]

_MOST_AGENTS = 1024  # that may still write, or begin: Claude Code runs a few of them at once


class AgentCalls:
    """What the records of one session told about its sub-agents.

    The stream names the call in `parent_tool_use_id`. A transcript names only the sub-agent: its call is known from
    the call's result, which tells the `agentId`, or from the sub-agent's first prompt, which is the call's. Where a
    sub-agent's own file is read alone nothing tells it, and `agent:<agentId>` stands in.
    """

    def __init__(self) -> None:
        self._by_agent: Recent[str] = Recent(_MOST_AGENTS)
        self._by_prompt: Recent[str] = Recent(_MOST_AGENTS)
        self._by_record: Recent[str] = Recent(MOST_RECORDS)

    def call_of(self, record: dict[str, Any]) -> str | UnsetType:
        """The call inside which the record was written; UNSET for the main conversation."""
        named = record.get("parent_tool_use_id")
        if isinstance(named, str) and named:
            return named
        if record.get("isSidechain") is not True:
            return UNSET
        agent = optional_text(record, "agentId", "agent_id")
        call = self._by_agent.get(agent or "") or self._by_parent(record) or self._by_first_prompt(record)
        return call or f"agent:{agent or NAME}"

    def learn(self, record: dict[str, Any], call: str | UnsetType, drafts: list[SessionEvent]) -> None:
        """Remember what the record, mapped to `drafts` inside `call`, tells about others."""
        for draft in drafts:
            if type(draft) is ToolCall:
                prompt = draft.args.get("prompt") if isinstance(draft.args, dict) else None
                if isinstance(prompt, str):
                    self._by_prompt.keep(prompt, draft.call_id)
            elif type(draft) is ToolResult:
                told = record.get("toolUseResult")
                agent = optional_text(told, "agentId") if isinstance(told, dict) else None
                if agent is not None:
                    self._by_agent.keep(agent, draft.call_id)
        if record.get("isSidechain") is not True or not isinstance(call, str):
            return
        uuid = optional_text(record, "uuid")
        if uuid is not None:
            self._by_record.keep(uuid, call)
            agent = optional_text(record, "agentId")
            if agent is not None and agent not in self._by_agent and not call.startswith("agent:"):
                self._by_agent.keep(agent, call)

    def _by_parent(self, record: dict[str, Any]) -> str | None:
        parent = optional_text(record, "parentUuid")
        return None if parent is None else self._by_record.get(parent)

    def _by_first_prompt(self, record: dict[str, Any]) -> str | None:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        return self._by_prompt.get(content) if isinstance(content, str) else None
