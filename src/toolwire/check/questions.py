"""The conversations and tools of a check: requests in the canonical form, which every dialect encodes."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..types import Json, JsonObject, Message, Request, Text, Tool, ToolCall, ToolChoice, ToolResult
from ..wire.exact_json import encode


def _tool(name: str, description: str, properties: dict[str, Json], required: tuple[str, ...] | None = None) -> Tool:
    schema: JsonObject = {"type": "object", "properties": properties}
    schema["required"] = list(properties if required is None else required)
    return Tool(name=name, description=description, schema=schema | {"additionalProperties": False})


_CITY: JsonObject = {"type": "string", "description": "Name of the city"}
WEATHER = _tool("get_weather", "Get the current weather of a city.", {"city": _CITY})
TIME = _tool("get_time", "Get the current local time of a city.", {"city": _CITY})
MAIL = _tool(
    "send_mail",
    "Send an e-mail.",
    {
        "to": {"type": "string", "description": "E-mail address"},
        "subject": {"type": "string"},
        "body": {"type": "string"},
    },
)
WRITE = _tool("write_file", "Write a text file.", {"path": {"type": "string"}, "content": {"type": "string"}})
NO_ARGUMENTS = _tool("list_files", "List the files of the current folder.", {}, ())
TOOLS = (WEATHER, TIME, MAIL, WRITE)
RESULT = "It is 7 degrees with sleet, code ZX-4417."
RESULT_MARK = "4417"


class LabelledQuestion(Struct, frozen=True):
    """needs_call: whether a good model calls a tool."""

    text: str
    needs_call: bool


LABELLED = (
    LabelledQuestion("What is the weather in Paris right now? Use a tool.", True),
    LabelledQuestion("What is two plus two? Answer with the number only.", False),
    LabelledQuestion("Which time is it in Tokyo? Use a tool.", True),
    LabelledQuestion("Say hello in French.", False),
    LabelledQuestion("Send an e-mail to ann@example.com with the subject Lunch and the body See you at noon.", True),
    LabelledQuestion("Name three primary colours.", False),
    LabelledQuestion("Write the word ready into the file status.txt.", True),
    LabelledQuestion("Explain in one sentence what a compiler does.", False),
    LabelledQuestion("Do I need an umbrella in Oslo today? Look it up.", True),
    LabelledQuestion("Translate the word tree into German.", False),
    LabelledQuestion("Is it already evening in Sydney? Look it up.", True),
    LabelledQuestion("Which is larger, 9.11 or 9.9?", False),
    LabelledQuestion("Mail bob@example.com that the build is green, subject Build.", True),
    LabelledQuestion("Write a haiku about rain.", False),
    LabelledQuestion("How warm is it in Madrid? Use a tool.", True),
    LabelledQuestion("What does HTTP stand for?", False),
    LabelledQuestion("Create the file notes.md with the text First note.", True),
    LabelledQuestion("Give me a synonym of quick.", False),
    LabelledQuestion("What time is it in New York? Use a tool.", True),
    LabelledQuestion("Thank you, that is all.", False),
)


def ask(
    model: str,
    text: str,
    tools: tuple[Tool, ...] = (),
    choice: ToolChoice | None = None,
    *,
    stream: bool = False,
    max_tokens: int = 400,
    **more: Any,
) -> Request:
    return Request(
        model=model,
        messages=(Message(role="user", parts=(Text(text=text),)),),
        tools=tools,
        tool_choice=choice,
        stream=stream,
        stream_usage=stream,
        max_tokens=max_tokens,
        **more,
    )


def named(tool: Tool) -> ToolChoice:
    return ToolChoice(mode="named", names=(tool.name,))


def with_results(request: Request, calls: tuple[tuple[str, JsonObject, str], ...], follow_up: str = "") -> Request:
    """The request as it continues after these calls: name, arguments and result of each."""
    made = tuple(
        ToolCall(id=f"call_check{number:04d}", name=name, raw=encode(arguments).decode(), args=arguments)
        for number, (name, arguments, _) in enumerate(calls)
    )
    results = tuple(
        ToolResult(call_id=call.id, name=call.name, parts=(Text(text=result),))
        for call, (_, _, result) in zip(made, calls, strict=True)
    )
    messages = [*request.messages, Message(role="assistant", parts=made), Message(role="user", parts=results)]
    if follow_up:
        messages.append(Message(role="assistant", parts=(Text(text="Done."),)))
        messages.append(Message(role="user", parts=(Text(text=follow_up),)))
    return Request(
        model=request.model,
        messages=tuple(messages),
        tools=request.tools,
        tool_choice=request.tool_choice,
        stream=request.stream,
        stream_usage=request.stream,
        max_tokens=request.max_tokens,
    )
