"""The chats that Gemini CLI saves: messages that fill up, and snapshots of the whole history.

A message is appended again under its id as it fills up: what it has more than before is drafted. A result stands in
its call and once more as a message of the user: it is drafted once. A snapshot (`$set.messages`) replaces the whole
history, and some stand for a moment only, while a session is loaded; so it is compared with what is known at the next
message. Nothing marks the end of a turn: the next prompt tells that there was one, and after a restart not even how it
ended, as a call that was running is not saved.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.base import UNPLACED, Normalized, kept
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_usage import Tokens, usage_draft
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.gemini_messages import Answer, Call, ChatMessage, chat_message
from incarnate.domain.dialects.gemini_stream import NAME
from incarnate.domain.dialects.stamped import OpenTurn, answered, called, failure, prompted, said, thought
from incarnate.domain.errors import DialectError
from incarnate.domain.events import Compaction, SessionEvent, TurnOutcome

__all__ = ["GeminiChats", "session_id_of"]

_CANCELLED = "Request cancelled."


class _Known:
    """A message that was drafted, as far as it had come."""

    def __init__(self, begins: int) -> None:
        self.begins = begins
        self.text = ""
        self.thoughts = 0
        self.calls: set[str] = set()
        self.tokens = Tokens()


class GeminiChats:
    """The records of one chat, or of one sub-agent's, whose events then stand inside its call."""

    def __init__(self, inside: str | UnsetType = UNSET) -> None:
        self._inside = inside
        self._turn = OpenTurn()
        self._known: dict[str, _Known] = {}  # what the history holds, in its order
        self._answered: set[str] = set()
        self._drafted = 0
        self._snapshot: list[ChatMessage] | None = None
        self._loading = True
        self._finished = False
        self._restarted = False
        self._failed: TurnOutcome | None = None
        self._prompt: str | None = None

    def feed(self, record: dict[str, Any]) -> Normalized:
        """What a record means.

        Raises:
            DialectError: it is none of a chat's records, or lacks what its kind must have.
        """
        drafts, ignored = self._fed(record)
        self._drafted += len(drafts)
        return Normalized(tuple(drafts), ignored if ignored is not None or drafts else "empty")

    def _fed(self, record: dict[str, Any]) -> tuple[list[SessionEvent], str | None]:
        if isinstance(record.get("$rewindTo"), str):
            drafts = self._rewound_to(record["$rewindTo"])
            return drafts, None if drafts else "$rewindTo"
        if isinstance(record.get("$set"), dict):
            return self._set(record["$set"])
        if isinstance(record.get("id"), str):
            message = chat_message(record)
            return self._message(message)
        if isinstance(record.get("sessionId"), str):
            return self._session(record)
        raise DialectError(NAME, "a record without a type, and no line of a saved chat")

    def _session(self, record: dict[str, Any]) -> tuple[list[SessionEvent], str | None]:
        """The first line of a process; old versions wrote all messages into it."""
        listed = record.get("messages")
        messages = [chat_message(one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        self._restart()
        if record.get("kind") == "subagent" and self._inside is UNSET:
            self._inside = f"agent:{record['sessionId']}"
        return self._messages(messages), "session"

    def _restart(self) -> None:
        """A process begins: what it writes before its first message is how it loads the session."""
        self._loading, self._restarted = True, self._turn.is_open

    def _messages(self, messages: list[ChatMessage]) -> list[SessionEvent]:
        drafts: list[SessionEvent] = []
        for message in messages:
            drafts += self._drafts(message, self._drafted + len(drafts))
        return drafts

    # messages

    def _message(self, message: ChatMessage) -> tuple[list[SessionEvent], str | None]:
        early = self._settled()
        self._loading = False
        if message.kind == "error":
            self._failed = failure("error", message.text)
        elif message.kind == "info" and message.text == _CANCELLED:
            self._failed = "interrupted"
        drafts = self._drafts(message, self._drafted + len(early))
        seen = f"{message.kind}/{'session_context' if message.setting else 'seen' if message.text else 'empty'}"
        return early + drafts, message.ignored if drafts else message.ignored or seen

    def _drafts(self, message: ChatMessage, begins: int) -> list[SessionEvent]:
        """What the message has more than before."""
        if message.kind not in ("user", "gemini") or message.setting:
            return []
        is_new = message.message_id not in self._known
        known = self._known.setdefault(message.message_id, _Known(begins))
        stamp = Stamp(self._inside, message.at or UNSET)
        turn = self._asked(message, stamp) if is_new and message.kind == "user" else []
        if message.kind == "gemini":
            self._finished, self._restarted, self._failed = not message.calls, False, None
        words = self._words(message, known, stamp)
        calls, answers = self._calls(message.calls, known, stamp)
        answers += self._answers(message.answers)
        return turn + words + calls + self._usage(message, known, stamp) + answers

    def _asked(self, message: ChatMessage, stamp: Stamp) -> list[SessionEvent]:
        """A prompt begins a turn; results of tools, which also come as the user's, do not."""
        if not message.text or self._inside is not UNSET:
            return []
        outcome: TurnOutcome | UnsetType = self._failed or ("completed" if self._finished else "interrupted")
        if self._restarted and self._finished and self._failed is None:
            outcome = UNSET
        self._finished, self._restarted, self._failed, self._prompt = False, False, None, message.message_id
        return self._turn.begin(stamp, outcome)

    def _words(self, message: ChatMessage, known: _Known, stamp: Stamp) -> list[SessionEvent]:
        thoughts = [thought(text, blob, stamp) for text, blob in message.thoughts[known.thoughts :]]
        known.thoughts = max(known.thoughts, len(message.thoughts))
        more = message.text.removeprefix(known.text)
        if not more or message.text == known.text:
            return thoughts
        known.text = message.text
        return [*thoughts, prompted(more, stamp) if message.kind == "user" else said(more, stamp)]

    def _calls(
        self, calls: tuple[Call, ...], known: _Known, stamp: Stamp
    ) -> tuple[list[SessionEvent], list[SessionEvent]]:
        new = [call for call in calls if call.call_id not in known.calls]
        known.calls |= {call.call_id for call in new}
        self._answered -= {call.call_id for call in new}  # an id that is used again waits again
        drafts = [called(call.call_id, call.name, call.args, stamp) for call in new]
        return drafts, self._answers(tuple([call.answer for call in calls if call.answer is not None]))

    def _answers(self, answers: tuple[Answer, ...]) -> list[SessionEvent]:
        new = [answer for answer in answers if answer.call_id not in self._answered]
        self._answered |= {answer.call_id for answer in new}
        return [
            answered(one.call_id, one.result, Stamp(self._inside, one.at or UNSET), ok=one.ok, error=one.error)
            for one in new
        ]

    def _usage(self, message: ChatMessage, known: _Known, stamp: Stamp) -> list[SessionEvent]:
        more, known.tokens = message.tokens.beyond(known.tokens), known.tokens.plus(message.tokens.beyond(known.tokens))
        return [usage_draft(more, message.model, stamp)] if more.total else []

    # histories that were replaced

    def _set(self, patch: dict[str, Any]) -> tuple[list[SessionEvent], str | None]:
        listed = patch.get("messages")
        if (
            "sessionId" in patch
        ):  # all that a resume leaves here where it is not in the minute in which the file was made
            self._restart()
        if not isinstance(listed, list):
            return [], "$set"
        snapshot = [chat_message(one) for one in listed if isinstance(one, dict)]
        if self._loading and all(message.setting for message in snapshot):
            return [], "$set/messages"  # a process that has not read its session yet
        self._snapshot = snapshot
        ids = {message.message_id for message in self._snapshot}
        taken_back = self._prompt is not None and self._prompt in self._known and self._prompt not in ids
        if self._loading or not taken_back or any(not self._is_old(message) for message in self._snapshot):
            return [], "$set/messages"
        outcome = self._failed or failure("taken_back", "the harness took the turn out of its history")
        ended = self._turn.end(outcome, Stamp())
        return ended, None if ended else "$set/messages"

    def _is_old(self, message: ChatMessage) -> bool:
        return message.setting or message.message_id in self._known

    def _settled(self) -> list[SessionEvent]:
        """What the last snapshot changed."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is None:
            return []
        ids = {message.message_id for message in snapshot}
        gone = [name for name in self._known if name not in ids]
        new = [message for message in snapshot if not self._is_old(message)]
        if not gone:
            return self._messages(new)
        return [self._compacted(gone, new)] if new else self._taken_out(gone)

    def _compacted(self, gone: list[str], new: list[ChatMessage]) -> SessionEvent:
        """New messages stand for old ones: the user's words are the summary, the model's word to them is not kept."""
        summary = "\n".join([message.text for message in new if message.kind == "user" and message.text])
        begins = self._place_behind(gone)
        for name in gone:
            del self._known[name]
        for message in new:
            known = self._known.setdefault(message.message_id, _Known(self._drafted))
            known.text, known.thoughts, known.tokens = message.text, len(message.thoughts), message.tokens
            known.calls = {call.call_id for call in message.calls}
        return Compaction(
            **Stamp(self._inside).fields(),
            reason="compression",
            replaces_from=UNPLACED,
            replaces_to=kept(self._drafted - begins),
            summary=summary or UNSET,
        )

    def _rewound_to(self, message_id: str) -> list[SessionEvent]:
        """That message and all behind it are gone; all, where it is unknown."""
        names = list(self._known)
        return self._taken_out(names[names.index(message_id) :] if message_id in self._known else names)

    def _taken_out(self, gone: list[str]) -> list[SessionEvent]:
        """Messages were taken out of the history, and nothing stands for them."""
        begins = self._known[gone[0]].begins if gone else self._drafted
        ends = self._place_behind(gone) if gone else self._drafted
        for name in gone:
            del self._known[name]
        if begins >= self._drafted:
            return []
        first, last = kept(self._drafted - begins), kept(self._drafted - ends)
        return [Compaction(**Stamp(self._inside).fields(), reason="rewind", replaces_from=first, replaces_to=last)]

    def _place_behind(self, gone: list[str]) -> int:
        """Where the first message begins that was kept behind those that are gone; the end where none was."""
        names = list(self._known)
        behind = names[names.index(gone[-1]) + 1 :]
        return self._known[behind[0]].begins if behind else self._drafted


def session_id_of(record: dict[str, Any]) -> str | None:
    """The session that a line of a chat names."""
    patch = record.get("$set")
    return optional_text(record, "sessionId") or (
        optional_text(patch, "sessionId") if isinstance(patch, dict) else None
    )
