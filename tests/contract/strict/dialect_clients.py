"""A client of each dialect that sends every answer back as its official library does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Body = dict[str, Any]
Ask = Callable[[str, Body], Body]  # a path and a body: the answer


class Called(NamedTuple):
    id: str
    name: str


class ChatClient:
    """Has no place for reasoning."""

    def __init__(self, model: str, ask: Ask, tools: dict[str, Body], **members: Any) -> None:
        self._ask = ask
        self._more = members
        functions = [{"name": name, "description": name, "parameters": schema} for name, schema in tools.items()]
        self.tools = [{"type": "function", "function": function} for function in functions]
        self._model = model
        self.history: list[Body] = [{"role": "system", "content": "Be brief."}]

    def say(self, text: str, **members: Any) -> list[Called]:
        self.history.append({"role": "user", "content": text})
        return self._turn(members)

    def give(self, results: dict[str, str], **members: Any) -> list[Called]:
        self.history += [{"role": "tool", "tool_call_id": key, "content": value} for key, value in results.items()]
        return self._turn(members)

    def _turn(self, members: Body) -> list[Called]:
        body = {"model": self._model, "messages": self.history, "tools": self.tools, **self._more, **members}
        message = self._ask("/v1/chat/completions", body)["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        self.history.append(
            {"role": "assistant", "content": message.get("content"), **({"tool_calls": calls} if calls else {})}
        )
        return [Called(call["id"], call["function"]["name"]) for call in calls]


class ResponsesClient:
    def __init__(self, model: str, ask: Ask, tools: dict[str, Body], **members: Any) -> None:
        self._ask = ask
        self._more = members
        self.tools = [
            {"type": "function", "name": name, "description": name, "parameters": schema, "strict": False}
            for name, schema in tools.items()
        ]
        self._model = model
        self.history: list[Body] = []

    def say(self, text: str, **members: Any) -> list[Called]:
        self.history.append({"role": "user", "content": text})
        return self._turn(members)

    def give(self, results: dict[str, str], **members: Any) -> list[Called]:
        self.history += [
            {"type": "function_call_output", "call_id": key, "output": value} for key, value in results.items()
        ]
        return self._turn(members)

    def _turn(self, members: Body) -> list[Called]:
        body = {
            "model": self._model,
            "input": self.history,
            "instructions": "Be brief.",
            "tools": self.tools,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        output = self._ask("/v1/responses", {**body, **self._more, **members})["output"]
        self.history += output
        return [Called(item["call_id"], item["name"]) for item in output if item["type"] == "function_call"]


class MessagesClient:
    def __init__(self, model: str, ask: Ask, tools: dict[str, Body], **members: Any) -> None:
        self._ask = ask
        self._more = members
        self.tools = [{"name": name, "description": name, "input_schema": schema} for name, schema in tools.items()]
        self._model = model
        self.history: list[Body] = []

    def say(self, text: str, **members: Any) -> list[Called]:
        self.history.append({"role": "user", "content": text})
        return self._turn(members)

    def give(self, results: dict[str, str], **members: Any) -> list[Called]:
        blocks = [{"type": "tool_result", "tool_use_id": key, "content": value} for key, value in results.items()]
        self.history.append({"role": "user", "content": blocks})
        return self._turn(members)

    def _turn(self, members: Body) -> list[Called]:
        body = {"model": self._model, "max_tokens": 4096, "system": "Be brief.", "messages": self.history}
        content = self._ask("/v1/messages", {**body, "tools": self.tools, **self._more, **members})["content"]
        self.history.append({"role": "assistant", "content": content})
        return [Called(block["id"], block["name"]) for block in content if block["type"] == "tool_use"]


class GeminiClient:
    def __init__(self, model: str, ask: Ask, tools: dict[str, Body], **members: Any) -> None:
        self._ask = ask
        self._more = members
        declared = [
            {"name": name, "description": name, "parametersJsonSchema": schema} for name, schema in tools.items()
        ]
        self.tools = [{"functionDeclarations": declared}]
        self._model = model
        self._names: dict[str, str] = {}
        self.history: list[Body] = []

    def say(self, text: str, **members: Any) -> list[Called]:
        self.history.append({"role": "user", "parts": [{"text": text}]})
        return self._turn(members)

    def give(self, results: dict[str, str], **members: Any) -> list[Called]:
        parts = [
            {"functionResponse": {"id": key, "name": self._names[key], "response": {"output": value}}}
            for key, value in results.items()
        ]
        self.history.append({"role": "user", "parts": parts})
        return self._turn(members)

    def _turn(self, members: Body) -> list[Called]:
        body = {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": self.history,
            "tools": self.tools,
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        }
        path = f"/v1beta/models/{self._model}:generateContent"
        content = self._ask(path, {**body, **self._more, **members})["candidates"][0]["content"]
        self.history.append(content)
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        self._names |= {call["id"]: call["name"] for call in calls}
        return [Called(call["id"], call["name"]) for call in calls]


CLIENTS = {"chat": ChatClient, "responses": ResponsesClient, "messages": MessagesClient, "gemini": GeminiClient}


def read(body: bytes) -> Body:
    value: Body = json.loads(body)
    return value
