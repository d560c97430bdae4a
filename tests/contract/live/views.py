"""What a client has received so far of an answer that is still streaming."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.dialects.codec_harness import frames


class Shown(NamedTuple):
    """(tool or "" for text, content) of each part in the client's order; end is the reason, error a message."""

    parts: tuple[tuple[str, str], ...]
    end: str = ""
    error: str = ""

    @property
    def text(self) -> str:
        return "".join(content for name, content in self.parts if not name)

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(name, content) for name, content in self.parts if name]


class View:
    """Collects the bytes that a client of one dialect receives."""

    def __init__(self, dialect: str) -> None:
        self._read: Callable[[str, Any], None] = getattr(self, f"_{dialect}")
        self._parts: dict[Any, list[str]] = {}
        self._end = ""
        self._error = ""

    def feed(self, wire: bytes) -> Shown:
        for name, value in frames(wire):
            if value != "[DONE]":
                self._read(name, value)
        return Shown(tuple((tool, content) for tool, content in self._parts.values()), self._end, self._error)

    def _grow(self, key: Any, text: str, tool: str = "") -> None:
        self._parts.setdefault(key, [tool, ""])[1] += text

    def _chat(self, _: str, value: Any) -> None:
        self._error = value.get("error", {}).get("message", self._error)
        for choice in value.get("choices", ()):
            delta = choice["delta"]
            assert choice["index"] == 0
            if delta.get("content"):
                self._grow("text", delta["content"])
            for call in delta.get("tool_calls") or ():
                function = call["function"]
                self._grow(call["index"], function.get("arguments") or "", function.get("name") or "")
            self._end = choice["finish_reason"] or self._end

    def _messages(self, name: str, value: Any) -> None:
        match name:
            case "content_block_start":
                self._grow(value["index"], "", value["content_block"].get("name", ""))
            case "content_block_delta":
                delta = value["delta"]
                self._grow(value["index"], delta.get("text", delta.get("partial_json", "")))
            case "message_delta":
                self._end = value["delta"]["stop_reason"]
            case "error":
                self._error = value["error"]["message"]

    def _responses(self, name: str, value: Any) -> None:
        match name:
            case "response.output_item.added" if value["item"]["type"] == "function_call":
                self._grow(value["output_index"], "", value["item"]["name"])
            case "response.output_text.delta":
                self._grow((value["output_index"], value["content_index"]), value["delta"])
            case "response.function_call_arguments.delta":
                self._grow(value["output_index"], value["delta"])
            case "response.completed":
                self._end = "tool_calls" if any(tool for tool, _ in self._parts.values()) else "stop"
            case "response.failed":
                self._error = value["response"]["error"]["message"]

    def _gemini(self, _: str, value: Any) -> None:
        self._error = value.get("error", {}).get("message", self._error)
        for candidate in value.get("candidates", ()):
            for part in candidate.get("content", {}).get("parts", ()):
                if "functionCall" in part:
                    call = part["functionCall"]
                    self._grow(len(self._parts), json.dumps(call["args"]), call["name"])
                elif part.get("text"):
                    last = next(reversed(self._parts), None)
                    is_going_on = last is not None and not self._parts[last][0]
                    self._grow(last if is_going_on else len(self._parts), part["text"])
            self._end = candidate.get("finishReason", self._end)
