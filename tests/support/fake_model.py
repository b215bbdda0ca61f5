"""A model for the OpenAI Agents SDK that says what it was told to, as the SDK's own tests have one."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

from agents import Model, ModelResponse, TResponseInputItem, Usage
from agents.items import TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary

__all__ = ["FakeModel", "calls", "says", "thinks"]

Turn = list[ResponseOutputItem] | Exception


class FakeModel(Model):
    """Answers with `turns`, one a request; `seen` holds what it was asked."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self.turns = list(turns)
        self.seen: list[list[TResponseInputItem]] = []

    def _next(self, request: tuple[Any, ...], named: dict[str, Any]) -> list[ResponseOutputItem]:
        asked = named["input"] if "input" in named else request[1]  # the SDK names its arguments, unless it streams
        self.seen.append([{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked))
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn

    async def get_response(self, *request: Any, **named: Any) -> ModelResponse:
        return ModelResponse(output=self._next(request, named), usage=Usage(), response_id=None)

    async def stream_response(self, *request: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        response = Response(
            id="response-1",
            created_at=0,
            model="fake",
            object="response",
            output=self._next(request, named),
            tool_choice="none",
            tools=[],
            parallel_tool_calls=False,
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


def says(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(id="msg_1", type="message", role="assistant", content=[part], status="completed")


def calls(name: str, arguments: str, call_id: str = "call_1") -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(id="fc_1", call_id=call_id, type="function_call", name=name, arguments=arguments)


def thinks(text: str) -> ResponseReasoningItem:
    summary = [Summary(text=text, type="summary_text")]
    return ResponseReasoningItem(id="rs_1", type="reasoning", summary=summary, encrypted_content="Z0FBQUE=")
