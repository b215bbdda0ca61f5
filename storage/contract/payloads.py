"""I9: what is accepted reads back equal."""

from __future__ import annotations

from typing import Any

from incarnate.domain.events import Opaque, ToolCall, UserMessage
from incarnate.domain.keys import ActivationKey
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import Log, checkpoint, note

__all__ = ["Payloads"]

NASTY = "NUL \0, U+2028 \u2028, U+FEFF \ufeff, U+FFFF \uffff, emoji \U0001f9e0, e\u0301, quote ' \" %, \r\n"
OPAQUE = b'{ "type":"hologram" ,"parentId":null,\n"id":"h", "big":1' + b"0" * 40 + b',"x":"\\u0000\xe2\x80\xa8"}'

IDS: dict[str, Any] = {"id": "", "parent_id": None}


class Payloads(Contract):
    """Bytes, keys and ids come back as they were given."""

    def test_i9_payloads_read_back_equal(self, log: Log) -> None:
        args: dict[str, list[object]] = {
            NASTY: [2**64, -(10**40), 1e300, 5e-324, -0.0, True, None, NASTY, [], {}, {"": ""}]
        }
        events = (
            ToolCall(id=NASTY, parent_id=NASTY, call_id=NASTY, name="", args=args),
            UserMessage(**IDS, text=NASTY),
        )
        log.append(0, events)

        assert events == tuple(appended.event for appended in log.events)
        assert repr(events) == repr(tuple(appended.event for appended in log.events))

    def test_i9_an_unknown_checkpoint_id_is_none_whatever_it_holds(self, log: Log) -> None:
        log.put(checkpoint("cp", 0))

        assert [log.checkpoint(name) for name in ("", "CP", "cp\0", "\ud800")] == [None] * 4

    def test_i9_an_unknown_event_type_comes_back_byte_for_byte(self, log: Log) -> None:
        event = Opaque("hologram", "h", None, OPAQUE)
        log.append(0, [note("a"), event, note("b")])

        assert event == log.events[1].event

    def test_i9_nothing_that_a_caller_mutates_later_changes_the_log(self, log: Log) -> None:
        args = {"list": [1]}
        (appended,) = log.append(0, [ToolCall(**IDS, call_id="c", name="n", args=args)])
        args["list"].append(2)

        assert {"list": [1]} == log.events[0].event.args == appended.event.args  # type: ignore[union-attr]

    def test_i9_keys_and_checkpoint_ids_come_back_as_they_were_given(self, log: Log) -> None:
        name = NASTY.replace("\0", "")
        named = Log(log.store, ActivationKey(name, f"/%2F{name}"))
        for checkpoint_id in (NASTY, "", "\0", "a", "a\0"):
            named.put(checkpoint(checkpoint_id, 0, detail={NASTY: NASTY}))

        assert [named.key] == [info.key for info in log.store.activations()]
        assert ["\0", "a", "a\0"] == [kept.id for one in ("\0", "a", "a\0") if (kept := named.checkpoint(one))]
        assert checkpoint(NASTY, 0, detail={NASTY: NASTY}) == named.checkpoint(NASTY)
