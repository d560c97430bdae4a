"""Three clients with one interface, one for each dialect: the vendors' own SDKs, and plain requests for the judge."""

from __future__ import annotations

import http.client
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import anthropic
import openai

from tests.contract.judge.validate import check
from tests.programs.codex_backend.stage import Stage

KEY = "sk-of-a-client"
SECONDS = 60


class Call(NamedTuple):
    id: str
    name: str
    raw: str

    @property
    def arguments(self) -> Any:
        return json.loads(self.raw)


class Answer(NamedTuple):
    """order: the kinds of parts in order, if the dialect shows it."""

    text: str
    calls: list[Call]
    reason: str
    tokens: tuple[int, int]
    order: list[str]


class Bare(NamedTuple):
    status: int
    kind: str
    body: bytes


class Client(ABC):
    """A conversation, with the answers in the form in which the client sends them back."""

    dialect: str
    path: str
    called: str  # the finish reason of an answer with calls
    ended: str

    def __init__(
        self, stage: Stage, backend: str, *, is_streamed: bool, tools: list[dict[str, Any]] | None = None
    ) -> None:
        self._address = stage.address
        self._host = ("127.0.0.1", stage.port)
        self.model = stage.model(backend)
        self.is_streamed = is_streamed
        self.history: list[dict[str, Any]] = []
        self.tools = [self._tool(tool) for tool in tools or ()]
        self.cache_key = ""  # Messages has no such member

    @abstractmethod
    def body(self) -> dict[str, Any]: ...

    @abstractmethod
    def ask(self) -> Answer:
        """With the SDK; raises what the SDK raises."""

    @abstractmethod
    def give(self, results: Mapping[str, str]) -> None:
        """The results of calls, by their ids."""

    @abstractmethod
    def _tool(self, tool: dict[str, Any]) -> dict[str, Any]: ...

    def say(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def bare(self) -> Bare:
        """The same request without an SDK."""
        connection = http.client.HTTPConnection(*self._host, timeout=SECONDS)
        try:
            connection.request("POST", self.path, self._bytes(), self._headers())
            answer = connection.getresponse()
            return Bare(answer.status, answer.headers.get("content-type", ""), answer.read())
        finally:
            connection.close()

    def begin(self) -> http.client.HTTPConnection:
        """Sends the request without reading the answer; closing it is a disconnect."""
        connection = http.client.HTTPConnection(*self._host, timeout=SECONDS)
        connection.request("POST", self.path, self._bytes(), self._headers())
        return connection

    def judged(self) -> Bare:
        """The plain answer, which must pass the judge."""
        answer = self.bare()
        request = json.loads(self._bytes())
        report = check(self.dialect, answer.body, answer.status, answer.kind, request)
        assert not report.errors, f"{report.text()}\n{answer.body.decode('utf-8', 'replace')[-3000:]}"
        return answer

    def _sdk(self, kind: Any, http_client: Any, path: str = "") -> Any:
        """Without certificates, which take longer to load than a turn."""
        settings = {"base_url": f"{self._address}{path}", "api_key": KEY, "max_retries": 0, "timeout": SECONDS}
        return kind(**settings, http_client=http_client(verify=False))

    def _key(self) -> dict[str, str]:
        return {"prompt_cache_key": self.cache_key} if self.cache_key else {}

    def _bytes(self) -> bytes:
        return json.dumps(self.body() | ({"stream": True} if self.is_streamed else {})).encode()

    def _headers(self) -> dict[str, str]:
        return {"content-type": "application/json", "authorization": f"Bearer {KEY}"}


class Chat(Client):
    dialect, path, called, ended = "chat", "/v1/chat/completions", "tool_calls", "stop"

    def body(self) -> dict[str, Any]:
        usage = {"stream_options": {"include_usage": True}} if self.is_streamed else {}
        tools = {"tools": self.tools} if self.tools else {}
        return {"model": self.model, "messages": self.history, **tools, **usage, **self._key()}

    def ask(self) -> Answer:
        with self._sdk(openai.OpenAI, openai.DefaultHttpxClient, "/v1") as client:
            if self.is_streamed:
                with client.chat.completions.stream(**self.body()) as stream:
                    whole: Any = stream.get_final_completion()
            else:
                whole = client.chat.completions.create(**self.body())
        message, reason = whole.choices[0].message, whole.choices[0].finish_reason
        calls = [Call(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
        told = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}
            for call in calls
        ]
        self.history.append({"role": "assistant", "content": message.content, **({"tool_calls": told} if told else {})})
        usage = whole.usage
        return Answer(message.content or "", calls, reason, (usage.prompt_tokens, usage.completion_tokens), [])

    def give(self, results: Mapping[str, str]) -> None:
        self.history += [{"role": "tool", "tool_call_id": id, "content": text} for id, text in results.items()]

    def _tool(self, tool: dict[str, Any]) -> dict[str, Any]:
        return {"type": "function", "function": tool}


class Responses(Client):
    dialect, path, called, ended = "responses", "/v1/responses", "completed", "completed"

    def body(self) -> dict[str, Any]:
        tools = {"tools": self.tools} if self.tools else {}
        return {"model": self.model, "input": self.history, **tools, **self._key()}

    def ask(self) -> Answer:
        with self._sdk(openai.OpenAI, openai.DefaultHttpxClient, "/v1") as client:
            if self.is_streamed:
                with client.responses.stream(**self.body()) as stream:
                    whole: Any = stream.get_final_response()
            else:
                whole = client.responses.create(**self.body())
        items = [item.model_dump(mode="json", exclude_none=True) for item in whole.output]
        self.history += [{key: value for key, value in item.items() if key != "parsed_arguments"} for item in items]
        calls = [
            Call(item["call_id"], item["name"], item["arguments"]) for item in items if item["type"] == "function_call"
        ]
        usage = whole.usage
        order = [item["type"] for item in items]
        return Answer(whole.output_text, calls, whole.status, (usage.input_tokens, usage.output_tokens), order)

    def give(self, results: Mapping[str, str]) -> None:
        self.history += [
            {"type": "function_call_output", "call_id": id, "output": text} for id, text in results.items()
        ]

    def _tool(self, tool: dict[str, Any]) -> dict[str, Any]:
        return {"type": "function", "strict": False, **tool}


class Messages(Client):
    dialect, path, called, ended = "messages", "/v1/messages", "tool_use", "end_turn"

    def body(self) -> dict[str, Any]:
        tools = {"tools": self.tools} if self.tools else {}
        return {"model": self.model, "max_tokens": 4000, "messages": self.history, **tools}

    def ask(self) -> Answer:
        with self._sdk(anthropic.Anthropic, anthropic.DefaultHttpxClient) as client:
            if self.is_streamed:
                with client.messages.stream(**self.body()) as stream:
                    whole: Any = stream.get_final_message()
            else:
                whole = client.messages.create(**self.body())
        blocks = [block.model_dump(mode="json", exclude_none=True) for block in whole.content]
        self.history.append({"role": "assistant", "content": blocks})
        calls = [
            Call(block["id"], block["name"], json.dumps(block["input"]))
            for block in blocks
            if block["type"] == "tool_use"
        ]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        usage = whole.usage
        asked = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        order = [block["type"] for block in blocks]
        return Answer(text, calls, whole.stop_reason, (asked, usage.output_tokens), order)

    def give(self, results: Mapping[str, str]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in results.items()]
        self.history.append({"role": "user", "content": blocks})

    def _tool(self, tool: dict[str, Any]) -> dict[str, Any]:
        return {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}

    def _headers(self) -> dict[str, str]:
        return {"content-type": "application/json", "x-api-key": KEY, "anthropic-version": "2023-06-01"}


CLIENTS: dict[str, type[Client]] = {"chat": Chat, "responses": Responses, "messages": Messages}
