"""Anthropic's Python SDK: Messages whole and streamed, its tool runner with threads on the server and without, count_tokens."""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool
from cases import ADDRESS, KEY, MODEL, SCHEMAS, TOOLS, call, case, main, read_file, write_file

SETTINGS: dict[str, Any] = {"base_url": ADDRESS, "api_key": KEY, "max_retries": 0, "timeout": 20}
TOOL_LIST: list[Any] = [
    {"name": name, "description": tool.__doc__, "input_schema": SCHEMAS[name]} for name, tool in TOOLS.items()
]
client = Anthropic(**SETTINGS)


class Talk:
    """A conversation whose history this side keeps."""

    def __init__(self, prompt: str) -> None:
        self.messages: list[Any] = [{"role": "user", "content": prompt}]
        self.request: dict[str, Any] = {
            "model": MODEL,
            "max_tokens": 1000,
            "tools": TOOL_LIST,
            "messages": self.messages,
        }

    def take(self, message: Any) -> bool:
        """Runs the calls of an answer; whether there were any."""
        self.messages.append({"role": "assistant", "content": message.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": call(block.name, block.input)}
            for block in message.content
            if block.type == "tool_use"
        ]
        self.messages.append({"role": "user", "content": results})
        return bool(results)


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


@case("messages")
def messages(prompt: str) -> str:
    talk = Talk(prompt)
    while talk.take(message := client.messages.create(**talk.request)):
        pass
    return text_of(message)


@case("messages-stream")
def messages_stream(prompt: str) -> str:
    talk = Talk(prompt)
    while True:
        with client.messages.stream(**talk.request) as stream:
            message = stream.get_final_message()
        if not talk.take(message):
            return text_of(message)


@case("messages-asynchronous")
async def messages_asynchronous(prompt: str) -> str:
    talk = Talk(prompt)
    async with AsyncAnthropic(**SETTINGS) as opened:
        while talk.take(message := await opened.messages.create(**talk.request)):
            pass
    return text_of(message)


@case("counted")
def counted(prompt: str) -> str:
    count = client.messages.count_tokens(model=MODEL, tools=TOOL_LIST, messages=[{"role": "user", "content": prompt}])
    assert count.input_tokens > 0
    return messages(prompt)


def run_tools(prompt: str, **more: Any) -> str:
    runner: Any = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=1000,
        tools=[beta_tool(read_file), beta_tool(write_file)],
        messages=[{"role": "user", "content": prompt}],
        **more,
    )
    last: Any = None
    for turn in runner:
        last = turn.get_final_message() if more.get("stream") else turn
    return text_of(last)


@case("tool-runner")
def tool_runner(prompt: str) -> str:
    return run_tools(prompt)


@case("tool-runner-stream")
def tool_runner_stream(prompt: str) -> str:
    return run_tools(prompt, stream=True)


@case("tool-runner-without-thread")
def tool_runner_without_thread(prompt: str) -> str:
    return run_tools(prompt, thread=False)


@case("tool-runner-asynchronous")
async def tool_runner_asynchronous(prompt: str) -> str:
    async def read(path: str) -> str:
        return read_file(path)

    async def write(path: str, content: str) -> str:
        return write_file(path, content)

    tools = [
        beta_async_tool(read, name="read_file", description="Read a file."),
        beta_async_tool(write, name="write_file", description="Write a file."),
    ]
    async with AsyncAnthropic(**SETTINGS) as opened:
        runner: Any = opened.beta.messages.tool_runner(
            model=MODEL, max_tokens=1000, tools=tools, messages=[{"role": "user", "content": prompt}]
        )
        return text_of(await runner.until_done())


@case("thread")
def thread(prompt: str) -> str:
    """A thread that is not kept raises here, where the runners would go on without."""
    kept: Any = client.beta.messages.thread(model=MODEL, max_tokens=1000, tools=TOOL_LIST)
    message = kept.send({"role": "user", "content": prompt})
    while True:
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": call(block.name, block.input)}
            for block in message.content
            if block.type == "tool_use"
        ]
        if not results:
            return text_of(message)
        message = kept.send({"role": "user", "content": results})


if __name__ == "__main__":
    main()
