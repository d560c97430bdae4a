"""OpenAI Responses: requests in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import JsonObject, Message, Output, Request, Sampling, Source, State, Text, Thinking, Tool, ToolChoice
from ...wire.fields import (
    count_or_none,
    flag_or_none,
    list_or_none,
    missing,
    need_list,
    need_name,
    need_object,
    need_text,
    number_or_none,
    object_or_none,
    rest,
    text_or_none,
    wrong,
)
from ..opening import body_object
from .items_in import is_reference, message_in
from .shapes import NAME

_KNOWN = frozenset(
    [
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_logprobs",
        "reasoning",
        "text",
        "stream",
        "user",
        "metadata",
    ]
)
_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    top = body_object(body)
    include = list_or_none(top, "include") or []
    return Request(
        model=need_name(top, "model", ""),
        messages=(*_instructions(top), *_input(top)),
        tools=tuple(_tool(item, f"tools[{index}]") for index, item in enumerate(list_or_none(top, "tools") or ())),
        tool_choice=_tool_choice(top.get("tool_choice")),
        parallel_calls=flag_or_none(top, "parallel_tool_calls"),
        max_tokens=count_or_none(top, "max_output_tokens", least=1),
        sampling=Sampling(
            temperature=number_or_none(top, "temperature"),
            top_p=number_or_none(top, "top_p"),
            logprobs="message.output_text.logprobs" in include,
            top_logprobs=count_or_none(top, "top_logprobs"),
        ),
        thinking=_thinking(top),
        output=_output(top),
        stream=flag_or_none(top, "stream") or False,
        stream_usage=True,
        user=text_or_none(top, "user"),
        metadata=object_or_none(top, "metadata"),
        state=_state(top),
        extra=rest(top, _KNOWN, NAME),
        origin=NAME,
        source=top,
        wire=body,
        headers=dict(headers),
    )


def _instructions(top: JsonObject) -> tuple[Message, ...]:
    given = top.get("instructions")
    if given is None or given == "":
        return ()
    if isinstance(given, str):
        return (Message(role="system", parts=(Text(text=given),), is_head=True, source=Source(NAME, given)),)
    items = need_list(top, "instructions", "")
    messages = [message_in(item, f"instructions[{index}]") for index, item in enumerate(items)]
    return tuple(replace(message, is_head=True) for message in messages)


def _input(top: JsonObject) -> tuple[Message, ...]:
    given = top.get("input")
    if isinstance(given, str):
        return (Message(role="user", parts=(Text(text=given),), source=None),)
    if given is None:
        raise missing("input", "a string or an array of items")
    if not isinstance(given, list):
        raise wrong("input", given, "a string or an array of items")
    if not given and not top.get("previous_response_id"):
        raise BadRequest("it is empty; expected at least one item.", where="input")
    return tuple(message_in(item, f"input[{index}]") for index, item in enumerate(given))


def _state(top: JsonObject) -> State | None:
    """Members that ask for what an earlier request left on the server."""
    for field in ("previous_response_id", "conversation", "prompt"):
        if top.get(field):
            return State(field=field, why="this back end keeps no earlier responses; send the whole input")
    if top.get("background"):
        return State(field="background", why="this back end does not run requests in the background")
    given = top.get("input")
    for index, item in enumerate(given if isinstance(given, list) else ()):
        if is_reference(item):
            return State(field=f"input[{index}]", why="this back end keeps no earlier items; send the item itself")
    return None


def _tool(item: Any, where: str) -> Tool:
    need_object(item, where)
    kind, source = need_text(item, "type", where), Source(NAME, item)
    if kind == "function":
        return Tool(
            name=need_name(item, "name", where),
            description=text_or_none(item, "description", where),
            schema=object_or_none(item, "parameters", where),
            strict=flag_or_none(item, "strict", where),
            extra=rest(item, _FUNCTION, NAME),
            source=source,
        )
    if kind == "custom":
        name, description = need_name(item, "name", where), text_or_none(item, "description", where)
        return Tool(name=name, description=description, kind="custom", source=source)
    if kind == "namespace":
        return Tool(name=need_name(item, "name", where), kind="namespace", source=source)
    return Tool(name=kind, kind="hosted", source=source)


def _tool_choice(value: Any) -> ToolChoice | None:
    source = Source(NAME, value)
    match value:
        case None:
            return None
        case "auto" | "none" | "required":
            return ToolChoice(mode=value, source=source)
        case {"type": "function" | "custom", "name": str(name)}:
            return ToolChoice(mode="named", names=(name,), source=source)
        case {"type": "function", "function": {"name": str(name)}}:
            return ToolChoice(mode="named", names=(name,), source=source)
        case {"type": "allowed_tools"}:
            names = []
            for index, tool in enumerate(need_list(value, "tools", "tool_choice")):
                need_object(tool, f"tool_choice.tools[{index}]")
                names.append(str(tool.get("name") or tool.get("type") or ""))
            is_required = value.get("mode") == "required"
            return ToolChoice(mode="allowed", names=tuple(names), is_required=is_required, source=source)
        case {"type": str()}:
            return ToolChoice(mode="hosted", source=source)
    raise wrong("tool_choice", value, '"auto", "none", "required", or an object that names a tool')


def _thinking(top: JsonObject) -> Thinking | None:
    given = object_or_none(top, "reasoning")
    if not given:
        return None
    effort = text_or_none(given, "effort", "reasoning")
    summary = text_or_none(given, "summary", "reasoning")
    return Thinking(effort=effort, summary=summary, mode="off" if effort == "none" else "")


def _output(top: JsonObject) -> Output:
    given = object_or_none(top, "text") or {}
    verbosity = text_or_none(given, "verbosity", "text")
    form = object_or_none(given, "format", "text")
    match form:
        case None | {"type": "text"}:
            return Output(verbosity=verbosity)
        case {"type": "json_object"}:
            return Output(format="json", verbosity=verbosity)
        case {"type": "json_schema"}:
            return Output(
                format="schema",
                name=text_or_none(form, "name", "text.format") or "answer",
                description=text_or_none(form, "description", "text.format"),
                schema=object_or_none(form, "schema", "text.format"),
                strict=flag_or_none(form, "strict", "text.format"),
                verbosity=verbosity,
            )
        case _:
            raise wrong("text.format.type", form.get("type"), "text, json_object or json_schema")
