"""Answers of the gateway as a client of Ollama reads them, for `connect --check`: lines of JSON, or one object."""

from __future__ import annotations

import json
from typing import Any

from ...dialects.base import cut, excerpt, garbage
from ...errors import UpstreamError
from ...events import Event, Failed, Finished, PartEnded, PartStarted, Started, emptied
from ...types import Choice, Part, Text, ToolCall
from ...wire.exact_json import BadJson, decode, encode


class OllamaAnswerReader:
    """Gives all events at the end."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> list[Event]:
        self._received += data
        return []

    def close(self) -> list[Event]:
        try:
            parts = _parts_of([decode(line) for line in bytes(self._received).splitlines() if line.strip()])
        except UpstreamError as error:
            return [Failed(error=error)]
        except (BadJson, AttributeError, KeyError, TypeError):
            return [Failed(error=garbage(f"found {excerpt(bytes(self._received))}; expected lines of JSON."))]
        events: list[Event] = [Started(id="", model="")]
        for index, part in enumerate(parts):
            events += [PartStarted(index=index, part=emptied(part)), PartEnded(index=index, part=part)]
        return [*events, Finished(choices=(Choice(reason="stop"),))]


def body_with_results(body: bytes, parts: tuple[Part, ...], result: str) -> bytes:
    """The next request: the answer, and a result for each of its calls, without ids as most clients write it."""
    request = json.loads(body)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    text = "".join(part.text for part in parts if isinstance(part, Text))
    made = [{"function": {"name": call.name, "arguments": json.loads(call.raw)}} for call in calls]
    request["messages"] += [
        {"role": "assistant", "content": text, "tool_calls": made},
        *({"role": "tool", "tool_name": call.name, "content": result} for call in calls),
    ]
    return json.dumps(request).encode()


def _parts_of(lines: list[Any]) -> list[Part]:
    if not lines or not lines[-1].get("done"):
        raise UpstreamError(lines[-1]["error"]) if lines and "error" in lines[-1] else cut("the answer has no end.")
    messages = [line["message"] for line in lines]
    text = "".join(message["content"] for message in messages)
    parts: list[Part] = [Text(text=text)] if text else []
    for call in [call for message in messages for call in message.get("tool_calls", ())]:
        raw = encode(call["function"]["arguments"]).decode("utf-8")
        parts.append(ToolCall(id=call["id"], name=call["function"]["name"], raw=raw))
    return parts
