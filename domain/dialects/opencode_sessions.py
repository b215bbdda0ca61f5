"""OpenCode's own log: sessions, messages and parts as they change, in its database and its exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.base import UNPLACED, kept
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.opencode_parts import NAME, has_ended, outcome_of, stamp_at
from incarnate.domain.dialects.opencode_steps import Steps
from incarnate.domain.dialects.stamped import OpenTurn, prompted
from incarnate.domain.errors import DialectError
from incarnate.domain.events import Compaction, SessionEvent, ToolCall

if TYPE_CHECKING:
    from incarnate.domain.events import TurnOutcome

__all__ = ["SessionLog"]


class SessionLog:
    """The session and those that its agents started.

    Each method gives drafts, or None for what belongs to another session.
    """

    def __init__(self) -> None:
        self._root: str | None = None
        self._parents: dict[str, str] = {}
        self._agents: dict[str, _Agent] = {}
        self._calls: dict[str, str] = {}  # sub-agent's session: the call that started it
        self._prompts: dict[str, str] = {}  # prompt of a call that may start one: its id
        self._called: set[str] = set()
        self._waiting: dict[str, list[SessionEvent]] = {}  # what happened inside a call that is not told yet
        self._count = 0

    def session(self, info: dict[str, Any]) -> list[SessionEvent] | None:
        """A session was made or changed."""
        name, parent = optional_text(info, "id"), optional_text(info, "parentID")
        if name is None:
            return None
        if parent is None:
            self._root = self._root or name
        else:
            self._parents[name] = parent
        return [] if self._is_ours(name) else None

    def message(self, info: dict[str, Any]) -> list[SessionEvent] | None:
        """A message was made or changed."""
        agent = self._agent(info)
        if agent is None:
            return None
        call = self._call_of(info)
        return self._placed(agent.message(info, call, self._count), call)

    def part(self, part: dict[str, Any]) -> list[SessionEvent] | None:
        """A part of a message was made or changed.

        Raises:
            DialectError: a tool without its state, id or name.
        """
        if part.get("type") == "tool" and not isinstance(part.get("state"), dict):
            raise DialectError(NAME, "a tool without a state")
        agent = self._agent(part)
        if agent is None:
            return None
        self._learn(part)
        call = self._call_of(part)
        return self._placed(agent.part(part, call, self._count), call)

    def finish(self) -> list[SessionEvent]:
        """What is held when nothing more will come."""
        drafts = [draft for agent in self._agents.values() for draft in agent.finish()]
        placed = self._with_agents(drafts)
        left = [draft for waiting in self._waiting.values() for draft in waiting]
        self._waiting.clear()
        return placed + left

    def _placed(self, drafts: list[SessionEvent], call: str | UnsetType) -> list[SessionEvent]:
        """The drafts, where their call has been told; a sub-agent may be quicker than the words before its call."""
        if isinstance(call, str) and call in self._calls.values() and call not in self._called:
            self._waiting.setdefault(call, []).extend(drafts)
            return []
        placed = self._with_agents(drafts)
        self._count += len(placed)
        return placed

    def _with_agents(self, drafts: list[SessionEvent]) -> list[SessionEvent]:
        """The drafts, and behind each call what its sub-agent did before it was told."""
        placed: list[SessionEvent] = []
        for draft in drafts:
            placed.append(draft)
            if isinstance(draft, ToolCall):
                self._called.add(draft.call_id)
                prompt = draft.args.get("prompt") if isinstance(draft.args, dict) else None
                if isinstance(prompt, str):
                    self._prompts[prompt] = draft.call_id
                placed += self._with_agents(self._waiting.pop(draft.call_id, []))
        return placed

    def _agent(self, holder: dict[str, Any]) -> _Agent | None:
        name = optional_text(holder, "sessionID")
        if name is None:
            return None
        if self._root is None and name not in self._parents:
            self._root = name
        if not self._is_ours(name):
            return None
        return self._agents.setdefault(name, _Agent(is_main=name == self._root))

    def _is_ours(self, name: str) -> bool:
        for _ in range(len(self._parents) + 1):
            if name == self._root:
                return True
            if name not in self._parents:
                return False
            name = self._parents[name]
        return False

    def _learn(self, part: dict[str, Any]) -> None:
        """A tool that runs a sub-agent tells the sub-agent's session, though not before that has begun."""
        state = part.get("state")
        metadata = state.get("metadata") if isinstance(state, dict) else None
        child = optional_text(metadata, "sessionId", "sessionID") if isinstance(metadata, dict) else None
        call = optional_text(part, "callID")
        if child is not None and call is not None:
            self._calls.setdefault(child, call)

    def _call_of(self, holder: dict[str, Any]) -> str | UnsetType:
        name = str(holder.get("sessionID"))
        if name == self._root:
            return UNSET
        if name not in self._calls:
            call = self._prompts.get(optional_text(holder, "text") or "")
            if call is None:
                return f"agent:{name}"
            self._calls[name] = call
        return self._calls[name]


class _Agent:
    """One session; that of a sub-agent has no turns of its own."""

    def __init__(self, *, is_main: bool) -> None:
        self._is_main = is_main
        self._turn = OpenTurn()
        self._steps = Steps()
        self._outcome: TurnOutcome = "interrupted"  # of the turn, if the next prompt ended it
        self._infos: dict[str, dict[str, Any]] = {}
        self._begins: dict[str, int] = {}  # where the drafts of a message begin
        self._asked: set[str] = set()
        self._over: set[str] = set()
        self._compaction: dict[str, Any] | None = None
        self._summary: str | None = None
        self._reads: str | None = None  # the message whose step is open

    def message(self, info: dict[str, Any], call: str | UnsetType, count: int) -> list[SessionEvent]:
        name = optional_text(info, "id") or ""
        self._infos[name] = info
        self._begins.setdefault(name, count)
        if info.get("role") != "assistant" or name in self._over:
            return []
        time = info.get("time")
        completed = isinstance(time, dict) and time.get("completed") is not None
        error = info.get("error")
        if not completed and error is None:
            return []
        self._over.add(name)
        drafts = self._other(name, call) + self._steps.give_up(call)
        drafts += self._compacted(info, call, count + len(drafts))
        self._reads = None
        if error is not None:
            return drafts + self._end(outcome_of(error), time)
        return drafts + ([] if info.get("finish") == "tool-calls" else self._end("completed", time))

    def part(self, part: dict[str, Any], call: str | UnsetType, count: int) -> list[SessionEvent]:
        name = optional_text(part, "messageID") or ""
        info, kind = self._infos.get(name, {}), part.get("type")
        self._begins.setdefault(name, count)
        if info.get("role") == "user":
            return self._user(part, info, call)
        early = self._other(name, call)
        if kind == "step-start":
            self._steps.begin()
            return early
        if kind == "step-finish":
            return early + self._steps.end(part, optional_text(info, "modelID"), call)
        if kind == "text" and info.get("summary") is True:
            self._summary = optional_text(part, "text") or self._summary
            return early
        if kind in ("text", "reasoning", "tool"):
            return early + self._steps.take(part, call)
        return early

    def finish(self) -> list[SessionEvent]:
        return self._steps.give_up()

    def _other(self, name: str, call: str | UnsetType) -> list[SessionEvent]:
        """A part of another answer than the one before."""
        if name == self._reads:
            return []
        left = self._steps.give_up(call) if self._reads is not None else []
        self._reads = name
        if self._is_main and not self._turn.is_open:
            left += self._turn.begin(Stamp())
        return left

    def _user(self, part: dict[str, Any], info: dict[str, Any], call: str | UnsetType) -> list[SessionEvent]:
        kind, text, name = part.get("type"), optional_text(part, "text"), optional_text(part, "id") or ""
        if kind == "compaction":
            self._compaction = part
        if kind != "text" or text is None or part.get("ignored") is True or name in self._asked or not has_ended(part):
            return []
        self._asked.add(name)
        time = info.get("time")
        stamp = stamp_at(time.get("created") if isinstance(time, dict) else None, call)
        begun: list[SessionEvent] = []
        message = optional_text(part, "messageID") or ""
        if self._is_main and message not in self._asked:
            begun = self._steps.give_up(call) + self._turn.begin(stamp, self._outcome)
            self._outcome = "interrupted"
            self._reads = None
        self._asked.add(message)
        return [*begun, prompted(text, stamp)]

    def _end(self, outcome: TurnOutcome, time: object) -> list[SessionEvent]:
        if not self._is_main:
            return []
        return self._turn.end(outcome, stamp_at(time.get("completed") if isinstance(time, dict) else None))

    def _compacted(self, info: dict[str, Any], call: str | UnsetType, count: int) -> list[SessionEvent]:
        """An answer that is a summary: it stands for all before it, but for what the compaction keeps."""
        summary, self._summary = self._summary, None
        asked, self._compaction = self._compaction, None
        if info.get("summary") is not True or summary is None:
            return []
        asked = asked or {}
        tail = self._begins.get(optional_text(asked, "tail_start_id") or "")
        return [
            Compaction(
                **Stamp(call).fields(),
                reason="manual" if asked.get("auto") is False else "auto",
                replaces_from=UNPLACED,
                replaces_to=UNPLACED if tail is None else kept(max(0, count - tail)),
                summary=summary,
            )
        ]
