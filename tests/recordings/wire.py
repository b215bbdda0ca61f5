"""The messages of a request, the harness's own or ours, as lines that can be compared."""

import difflib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from incarnate.domain.projections.model_messages import Message
from incarnate.domain.renderings.anthropic import to_anthropic
from incarnate.domain.renderings.openai_chat import to_openai_chat
from incarnate.domain.renderings.openai_responses import to_openai_responses

Json = dict[str, Any]
Line = tuple[str, str, str]
"""A role or `call` or `result`; the call's id or nothing; a text."""

LONGEST = 90
OMITTED = "<omitted "


def _parts(content: object) -> Iterator[str]:
    """The texts of a content; what was left out of the recording is left out."""
    if isinstance(content, str):
        content = [{"text": content}]
    for part in content if isinstance(content, list) else []:
        text = part if isinstance(part, str) else part.get("text")
        if isinstance(text, str) and not text.startswith(OMITTED):
            yield text


def _result(content: object) -> str:
    omitted = isinstance(content, dict) or str(content).startswith(OMITTED)
    return OMITTED if omitted else "".join(_parts(content))


def _anthropic(body: Json) -> Iterator[Line]:
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "tool_use":
                    yield "call", block["id"], _call(block["name"], block["input"])
                case "tool_result":
                    yield "result", block["tool_use_id"], _result(block.get("content"))
                case "text":
                    yield from ((message["role"], "", text) for text in _parts([block]))
                case _:  # thoughts, which no two providers write alike
                    pass


def _chat(body: Json) -> Iterator[Line]:
    for message in body["messages"]:
        role, content = message["role"], message.get("content")
        if role == "tool":
            yield "result", message["tool_call_id"], _result(content)
        elif role not in ("system", "developer"):
            yield from ((role, "", text) for text in _parts(content))
        for call in message.get("tool_calls") or []:
            yield "call", call["id"], _call(call["function"]["name"], call["function"]["arguments"])


def _responses(body: Json) -> Iterator[Line]:
    for item in body["input"]:
        match item.get("type", "message"):
            case "function_call":
                yield "call", item["call_id"], _call(item["name"], item["arguments"])
            case "custom_tool_call":
                yield "call", item["call_id"], _call(item["name"], item["input"])
            case "function_call_output" | "custom_tool_call_output":
                yield "result", item["call_id"], _result(item["output"])
            case "message" if item["role"] not in ("system", "developer"):
                yield from ((item["role"], "", text) for text in _parts(item["content"]))
            case _:
                pass


def _gemini(body: Json) -> Iterator[Line]:
    for content in body["contents"]:
        role = "assistant" if content["role"] == "model" else "user"
        for part in content["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                yield "call", call.get("id", call["name"]), _call(call["name"], call.get("args"))
            elif "functionResponse" in part:
                answer = part["functionResponse"]
                yield "result", answer.get("id", answer["name"]), json.dumps(answer["response"], ensure_ascii=False)
            elif not part.get("thought"):
                yield from ((role, "", text) for text in _parts([part]))


def _call(name: str, args: object) -> str:
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            return f"{name} {args}"
    return f"{name} {json.dumps(args, ensure_ascii=False, sort_keys=True)}"


_WIRES: dict[str, Callable[[Json], Iterator[Line]]] = {
    "anthropic": _anthropic,
    "openai_chat": _chat,
    "openai_responses": _responses,
    "gemini": _gemini,
}


def sent(wire: str, body: Json) -> list[str]:
    """The lines of a request of the harness, without the vendor's own words."""
    return _numbered(_WIRES[wire](body))


def rendered(wire: str, messages: Iterable[Message]) -> list[str]:
    """The lines of the same request made of a history."""
    if wire == "anthropic":
        return _numbered(_anthropic(to_anthropic(messages)))
    if wire == "openai_responses":
        return _numbered(_responses({"input": to_openai_responses(messages)}))
    return _numbered(_chat({"messages": to_openai_chat(messages)}))


def _numbered(lines: Iterable[Line]) -> list[str]:
    """Calls by their number: an id of the provider is not in every form of a session."""
    numbers: dict[str, int] = {}
    return [
        f"{kind}{numbers.setdefault(call_id, len(numbers) + 1) if call_id else ''}: {text}"
        for kind, call_id, text in lines
    ]


def differences(ours: list[str], theirs: list[str]) -> tuple[str, ...]:
    """Where two requests part: `- ` in ours alone, `+ ` in theirs alone; results left out of a recording are equal."""
    unknown = [line.removesuffix(OMITTED) for line in theirs if line.endswith(f": {OMITTED}")]
    ours = [next((f"{start}{OMITTED}" for start in unknown if line.startswith(start)), line) for line in ours]
    lines = difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    found: list[str] = []
    for kind, ours_from, ours_to, from_, to in lines:
        if kind != "equal":
            found += [f"- {_short(line)}" for line in ours[ours_from:ours_to]]
            found += [f"+ {_short(line)}" for line in theirs[from_:to]]
    return tuple(found)


def _short(line: str) -> str:
    line = line.replace("\n", "\\n")
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
