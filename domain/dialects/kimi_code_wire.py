"""The `wire.jsonl` of kimi-code: what changed in its context, and what it did.

Many facts stand there twice (an answer as an event of the loop and as a message, its tokens as a record and at the end
of the step); one of the two is taken. A try of a step that failed leaves its text in the context; where the next try
says the same, it is said once.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.base import UNPLACED, Normalized, kept
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_usage import Tokens, usage_draft
from incarnate.domain.dialects.fields import count, optional_text, require
from incarnate.domain.dialects.kimi_parts import NAME, Content, call_of, content_of, moment, result_of, tokens_of
from incarnate.domain.dialects.stamped import OpenTurn, called, failure
from incarnate.domain.errors import DialectError
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    SessionEvent,
    SystemMessage,
    ToolCall,
    TurnOutcome,
    UserMessage,
)

__all__ = ["KimiCodeWire"]

_TOKENS = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
_OUTCOMES: dict[str, TurnOutcome] = {"completed": "completed", "cancelled": "interrupted"}


class AgentStarts:
    """Which call started which sub-agent: the session's own records tell it, or the prompt, which is the call's."""

    def __init__(self) -> None:
        self._by_agent: dict[str, str] = {}
        self._by_prompt: dict[str, str] = {}

    def spawned(self, agent: str, call_id: str) -> None:
        """A record told it."""
        self._by_agent[agent] = call_id

    def asked(self, prompt: str, call_id: str) -> None:
        """A call hands this prompt on."""
        self._by_prompt[prompt] = call_id

    def call_of(self, agent: str, prompt: str | None) -> str:
        """The call that started the agent; the agent's name stands in for one that is not known."""
        call = self._by_agent.get(agent) or (None if prompt is None else self._by_prompt.get(prompt))
        return f"agent:{agent}" if call is None else call


class KimiCodeWire:
    """The records of one agent: the session's own, or with a `name` those of a sub-agent.

    Attributes:
        starts: what the agents of the session know about each other.
    """

    def __init__(self, starts: AgentStarts | None = None, name: str | None = None) -> None:
        self.starts = starts or AgentStarts()
        self._name, self._is_named = name, name is not None
        self._turn = OpenTurn()
        self._messages: list[int] = []  # where the drafts of each message of the context begin
        self._asked: list[int] = []  # of them the prompts
        self._drafted = 0
        self._held: list[SessionEvent] = []  # words of the step, until it is known to stand
        self._lost: list[SessionEvent] = []  # words of a try that failed
        self._counted: Tokens | None = None  # of the step

    def feed(self, kind: str, record: dict[str, Any]) -> Normalized:
        """What a record of this kind means.

        Raises:
            DialectError: it is a call or a result without its id or name.
        """
        before = self._name
        if not self._is_named:
            self._name = _agent_of(record, before)
        inside = UNSET if self._name is None else self.starts.call_of(self._name, _prompt_of(record))
        stamp = Stamp(inside, moment(record.get("time"), seconds=False))
        try:
            drafts, ignored = self._take(kind, record, stamp)
        except DialectError:
            self._name = before
            raise
        if self._name is not None and isinstance(inside, str) and not inside.startswith("agent:"):
            self.starts.spawned(self._name, inside)
        self._drafted += len(drafts)
        return Normalized(tuple(drafts), ignored)

    def finish(self) -> list[SessionEvent]:
        """Words of a step that the process did not end."""
        return self._said()

    # records

    def _take(self, kind: str, record: dict[str, Any], stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        event, message = record.get("event"), record.get("message")
        match kind:
            case "turn.prompt" if self._name is None:
                return self._said() + self._turn.begin(stamp), None
            case "turn.ended" if self._name is None:
                ended = self._said() + self._turn.end(_outcome(record), stamp)
                return ended, None if ended else kind
            case "context.append_message" if isinstance(message, dict):
                return self._message(message, stamp)
            case "context.append_loop_event" if isinstance(event, dict):
                return self._loop(event, stamp)
            case "usage.record":
                return self._usage(record.get("usage"), optional_text(record, "model"), kind, stamp)
            case "context.apply_compaction" | "context.clear" | "context.undo":
                return self._compacted(kind, record, stamp), None
            case "subagent.spawned":
                agent, call = optional_text(record, "subagentId"), optional_text(record, "parentToolCallId")
                if agent is not None and call is not None:
                    self.starts.spawned(agent, call)
                return [], kind
            case _:
                return [], kind

    def _message(self, message: dict[str, Any], stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        role, origin = optional_text(message, "role") or "unknown", message.get("origin")
        listed = message.get("toolCalls")
        calls = (
            [call_of(call, stamp)[0] for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
        )
        if role == "tool":
            call_id = require(NAME, message, "toolCallId", "tool")
            drafts = [result_of(call_id, message.get("content"), stamp, ok=message.get("isError") is not True)]
            content = Content(drafts, None)
        else:
            content = content_of(role, message.get("content"), stamp)
        injected = role == "user" and isinstance(origin, dict) and origin.get("kind") == "injection"
        drafts = [_injected(draft) for draft in content.drafts] if injected else content.drafts
        early = self._said()
        self._messages.append(self._drafted + len(early))
        if role == "user" and not injected:
            self._asked.append(self._messages[-1])
        return early + drafts + calls, None if drafts or calls else content.ignored

    def _loop(self, event: dict[str, Any], stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        kind = optional_text(event, "type") or "unknown"
        name = f"loop/{kind}"
        match kind:
            case "step.begin":
                self._counted = None
                drafts, self._held = self._held, []  # what a failed try said waits for this one
                self._messages.append(self._drafted + len(drafts))
                return drafts, None if drafts else name
            case "content.part":
                content = content_of("assistant", [event.get("part")], stamp)
                return self._hold(content.drafts), content.ignored
            case "tool.call":
                call = self._called(event, stamp)
                return [*self._said(), call], None
            case "tool.result":
                result = self._result(event, stamp)
                early = self._said()
                self._messages.append(self._drafted + len(early))
                return [*early, result], None
            case "step.end":
                return self._step_ended(event, name, stamp)
            case _:
                return [], name

    def _called(self, event: dict[str, Any], stamp: Stamp) -> SessionEvent:
        args, call_id = event.get("args"), require(NAME, event, "toolCallId", "tool.call")
        call = called(call_id, require(NAME, event, "name", "tool.call"), args, stamp)
        prompt = args.get("prompt") if isinstance(args, dict) else None
        if isinstance(prompt, str):
            self.starts.asked(prompt, call_id)
        assert isinstance(call, ToolCall)
        return call

    def _result(self, event: dict[str, Any], stamp: Stamp) -> SessionEvent:
        call_id, result = require(NAME, event, "toolCallId", "tool.result"), event.get("result")
        if not isinstance(result, dict):
            return result_of(call_id, result, stamp, ok=True)
        return result_of(call_id, result.get("output"), stamp, ok=result.get("isError") is not True)

    # words that may be said again

    def _hold(self, drafts: list[SessionEvent]) -> list[SessionEvent]:
        """Words of the step; those of the try before are out if these begin with them."""
        lost = [draft for draft in self._lost if not any(_repeats(draft, new) for new in drafts)]
        out = lost if len(lost) == len(self._lost) and any(isinstance(new, AssistantMessage) for new in drafts) else []
        self._lost = [] if out else lost
        self._held += drafts
        return out

    def _said(self) -> list[SessionEvent]:
        said, self._lost, self._held = self._lost + self._held, [], []
        return said

    def _step_ended(self, event: dict[str, Any], name: str, stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        if event.get("finishReason") == "error":
            self._lost, self._held = self._lost + self._held, []
            return [], name
        counted, _ = self._usage(event.get("usage"), None, name, stamp)
        drafts = self._said() + counted
        return drafts, None if drafts else name

    def _usage(
        self, usage: object, model: str | None, name: str, stamp: Stamp
    ) -> tuple[list[SessionEvent], str | None]:
        """A call's tokens, which the record and the end of the step both tell, in either order."""
        tokens = tokens_of(usage, *_TOKENS)
        if tokens is None or not tokens.total or tokens == self._counted:
            return [], name
        self._counted = tokens
        return [usage_draft(tokens, model, stamp)], None

    # the context

    def _compacted(self, kind: str, record: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        early = self._said()
        end = self._drafted + len(early)
        reason, begins, ends, summary = "compaction", UNPLACED, end, optional_text(record, "summary", "contextSummary")
        if kind == "context.undo":
            number = count(record.get("count")) or 1
            first = self._asked[-number] if number <= len(self._asked) else 0
            reason, begins = "undo", kept(end - first) if first < end else UNPLACED
            self._asked = self._asked[:-number]
            self._messages = [place for place in self._messages if place < first]
        elif kind == "context.clear":
            reason, self._messages, self._asked = "clear", [], []
        else:
            gone = count(record.get("compactedCount")) or len(self._messages)
            stay = self._messages[gone:]
            ends = stay[0] if stay else end
            self._messages = [end, *stay]
        compaction = Compaction(
            **stamp.fields(),
            reason=reason,
            replaces_from=begins,
            replaces_to=kept(end - ends),
            summary=summary if summary is not None else UNSET,
        )
        return [*early, compaction]


def _agent_of(record: dict[str, Any], before: str | None) -> str | None:
    """The sub-agent that wrote a record, of which not all name it: a file that is read alone tells that it is one's."""
    agent, origin = optional_text(record, "agentId"), record.get("origin")
    if agent is not None:
        return None if agent == "main" else agent
    return before or ("subagent" if isinstance(origin, dict) and origin.get("name") == "subagent" else None)


def _prompt_of(record: dict[str, Any]) -> str | None:
    """The user's words in a record, if it holds some."""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    drafts = content_of("user", content, Stamp()).drafts
    return drafts[0].text if drafts and isinstance(drafts[0], UserMessage) else None


def _injected(draft: SessionEvent) -> SessionEvent:
    """Words that the harness put before the model in the user's name."""
    if not isinstance(draft, UserMessage):
        return draft
    stamp = Stamp(draft.parent_call_id, draft.occurred_at)
    return SystemMessage(**stamp.fields(), text=draft.text)


def _repeats(old: SessionEvent, new: SessionEvent) -> bool:
    """The new words begin with the old ones."""
    if type(old) is not type(new):
        return False
    before, after = [getattr(draft, "text", UNSET) for draft in (old, new)]
    return isinstance(before, str) and isinstance(after, str) and after.startswith(before)


def _outcome(record: dict[str, Any]) -> TurnOutcome | UnsetType:
    reason, error = optional_text(record, "reason") or "unknown", record.get("error")
    known = _OUTCOMES.get(reason)
    if known is not None:
        return known
    detail = error if isinstance(error, dict) else {}
    return failure(optional_text(detail, "code", "name") or reason, optional_text(detail, "message") or reason)
