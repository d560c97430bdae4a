"""OpenAI's Python SDK: Chat Completions and Responses, whole and streamed, with state on the server, with its tool runner."""

from __future__ import annotations

import time
from typing import Any

from cases import ADDRESS, KEY, MODEL, SCHEMAS, TOOLS, call, case, main
from openai import AsyncOpenAI, OpenAI
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner

SETTINGS: dict[str, Any] = {"base_url": f"{ADDRESS}/v1", "api_key": KEY, "max_retries": 0, "timeout": 20}
FLAT: list[Any] = [
    {"type": "function", "name": name, "description": tool.__doc__, "parameters": SCHEMAS[name], "strict": True}
    for name, tool in TOOLS.items()
]
NESTED: list[Any] = [
    {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}} for tool in FLAT
]
client = OpenAI(**SETTINGS)


class Chat:
    """A conversation whose history this side keeps."""

    def __init__(self, prompt: str) -> None:
        self.messages: list[Any] = [{"role": "user", "content": prompt}]
        self.request: dict[str, Any] = {"model": MODEL, "tools": NESTED, "messages": self.messages}

    def take(self, message: Any) -> bool:
        """Runs the calls of an answer; whether there were any."""
        calls = message.tool_calls or []
        plain = [
            {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in calls
        ]
        self.messages.append({"role": "assistant", "content": message.content, "tool_calls": plain})
        for c in calls:
            content = call(c.function.name, c.function.arguments)
            self.messages.append({"role": "tool", "tool_call_id": c.id, "content": content})
        return bool(calls)


@case("chat")
def chat(prompt: str) -> str:
    talk = Chat(prompt)
    while talk.take(message := client.chat.completions.create(**talk.request).choices[0].message):
        pass
    return message.content or ""


@case("chat-raw-stream")
def chat_raw_stream(prompt: str) -> str:
    talk = Chat(prompt)
    while True:
        text, calls = "", dict[int, dict[str, Any]]()
        for chunk in client.chat.completions.create(**talk.request, stream=True):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or []:
                    one = calls.setdefault(piece.index, {"id": piece.id, "name": "", "arguments": ""})
                    assert piece.function is not None
                    one["name"] += piece.function.name or ""
                    one["arguments"] += piece.function.arguments or ""
        if not calls:
            return text
        plain = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
            for one in calls.values()
        ]
        talk.messages.append({"role": "assistant", "content": text, "tool_calls": plain})
        for one in calls.values():
            content = call(one["name"], one["arguments"])
            talk.messages.append({"role": "tool", "tool_call_id": one["id"], "content": content})


@case("chat-stream-helper")
def chat_stream_helper(prompt: str) -> str:
    talk = Chat(prompt)
    while True:
        with client.chat.completions.stream(**talk.request) as stream:
            message = stream.get_final_completion().choices[0].message
        if not talk.take(message):
            return message.content or ""


@case("chat-asynchronous")
async def chat_asynchronous(prompt: str) -> str:
    talk = Chat(prompt)
    async with AsyncOpenAI(**SETTINGS) as opened:
        while talk.take(message := (await opened.chat.completions.create(**talk.request)).choices[0].message):
            pass
    return message.content or ""


def outputs(response: Any) -> list[Any]:
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": call(item.name, item.arguments)}
        for item in response.output
        if item.type == "function_call"
    ]


def plain_items(response: Any) -> list[Any]:
    kept = [item.to_dict(exclude_none=True) for item in response.output]
    for item in kept:
        item.pop("parsed_arguments", None)
        for part in item.get("content") or []:
            part.pop("parsed", None)
    return kept


@case("responses")
def responses(prompt: str) -> str:
    items: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        response = client.responses.create(model=MODEL, tools=FLAT, input=items, store=False)
        results = outputs(response)
        if not results:
            return response.output_text
        items += [*plain_items(response), *results]


@case("responses-stream-helper")
def responses_stream_helper(prompt: str) -> str:
    items: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        with client.responses.stream(model=MODEL, tools=FLAT, input=items, store=False) as stream:
            response: Any = stream.get_final_response()
        results = outputs(response)
        if not results:
            return str(response.output_text)
        items += [*plain_items(response), *results]


@case("responses-stateful")
def responses_stateful(prompt: str) -> str:
    response = client.responses.create(model=MODEL, tools=FLAT, input=prompt)
    while results := outputs(response):
        response = client.responses.create(model=MODEL, tools=FLAT, input=results, previous_response_id=response.id)
    return response.output_text


@case("responses-stateful-stream")
def responses_stateful_stream(prompt: str) -> str:
    turn: dict[str, Any] = {"input": prompt}
    while True:
        with client.responses.stream(model=MODEL, tools=FLAT, **turn) as stream:
            response: Any = stream.get_final_response()
        results = outputs(response)
        if not results:
            return str(response.output_text)
        turn = {"input": results, "previous_response_id": response.id}


@case("responses-asynchronous")
async def responses_asynchronous(prompt: str) -> str:
    async with AsyncOpenAI(**SETTINGS) as opened:
        response = await opened.responses.create(model=MODEL, tools=FLAT, input=prompt)
        while results := outputs(response):
            response = await opened.responses.create(
                model=MODEL, tools=FLAT, input=results, previous_response_id=response.id
            )
    return response.output_text


@case("responses-kept")
def responses_kept(prompt: str) -> str:
    """What is stored can be read again, item by item, and be deleted."""
    first = client.responses.create(model=MODEL, tools=FLAT, input=prompt)
    assert client.responses.retrieve(first.id).output == first.output
    inputs = list(client.responses.input_items.list(first.id))
    assert [item.type for item in inputs] == ["message"], inputs
    second = client.responses.create(model=MODEL, tools=FLAT, input=outputs(first), previous_response_id=first.id)
    third = client.responses.create(model=MODEL, tools=FLAT, input=outputs(second), previous_response_id=second.id)
    client.responses.delete(first.id)
    return third.output_text


@case("responses-in-background")
def responses_in_background(prompt: str) -> str:
    turn: dict[str, Any] = {"input": prompt}
    while True:
        response = client.responses.create(model=MODEL, tools=FLAT, background=True, **turn)
        while response.status in ("queued", "in_progress"):
            time.sleep(0.05)
            response = client.responses.retrieve(response.id)
        assert response.status == "completed", response
        results = outputs(response)
        if not results:
            return response.output_text
        turn = {"input": results, "previous_response_id": response.id}


@case("conversation")
def conversation(prompt: str) -> str:
    kept = client.conversations.create()
    response = client.responses.create(model=MODEL, tools=FLAT, input=prompt, conversation=kept.id)
    while results := outputs(response):
        response = client.responses.create(model=MODEL, tools=FLAT, input=results, conversation=kept.id)
    return response.output_text


def run_tools(prompt: str, *, stream: bool) -> str:
    functions = [
        RegisteredFunction(tool, lambda arguments, name=tool["name"]: call(name, arguments))  # type: ignore[misc]
        for tool in FLAT
    ]
    runner = ResponsesToolRunner(functions=functions)
    request: Any = {"model": MODEL, "input": [{"role": "user", "content": prompt}]}
    return runner.run(client, request, stream=stream).output_text


@case("tool-runner")
def tool_runner(prompt: str) -> str:
    return run_tools(prompt, stream=False)


@case("tool-runner-stream")
def tool_runner_stream(prompt: str) -> str:
    return run_tools(prompt, stream=True)


if __name__ == "__main__":
    main()
