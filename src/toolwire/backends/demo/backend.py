"""The demo model: no account, no network, no intelligence. It picks tools by the words of the prompt.

It is for the first minute with toolwire and for testing a client: its calls are valid by the schemas of the tools.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from itertools import chain

from msgspec.structs import replace

from ...calls.schemas.examples import NoExample, example_of
from ...config.values import BackendConfig
from ...events import Event, Finished, Started
from ...ids import new_id
from ...types import (
    Choice,
    JsonObject,
    Message,
    Part,
    Reasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ..base import Backend, EventReply, Model
from ..synthesis import batches, choice_events, estimated_usage, requested_choices, results_of, split_words, text_of
from .arguments import PromptArguments
from .prompt_match import PromptHints, has_path_for, hints_of, named_tools, score
from .prompt_paths import request_in, workspace_in

_MODEL = "echo-tools"
_SELF = "I am toolwire's built-in demo model"
_SHOWN = 200
_RESULT_SHOWN = 500
_MOST_RESULTS = 20
_MOST_CALLS = 8
_GOOD_SCORE = 2
_THOUGHT = "The demo model picks a tool by words."


class Demo(Backend):
    """The same request gets the same answer, except for the ids of answers."""

    def __init__(self, config: BackendConfig | None = None) -> None:
        self.name = "demo" if config is None else config.name

    async def models(self) -> list[Model]:
        return [Model(id=_MODEL, owner="toolwire", title="toolwire demo")]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        count = requested_choices(request)
        # In a thread, because a hostile schema may take long.
        first = await asyncio.to_thread(_parts, request)
        # Other choices have other ids of calls.
        others = [
            [replace(part, id=_call_id(f"{part.id} {index}")) if isinstance(part, ToolCall) else part for part in first]
            for index in range(1, count)
        ]
        return EventReply(events=_events_of(request, [first, *others]))


async def _events_of(request: Request, choices: Sequence[Sequence[Part]]) -> AsyncIterator[list[Event]]:
    start = Started(id=new_id("gen_"), model=request.model)
    ends = tuple(
        Choice(reason="tool_calls" if isinstance(parts[-1], ToolCall) else "stop", index=index)
        for index, parts in enumerate(choices)
    )
    last = Finished(choices=ends, usage=estimated_usage(request, choices))
    for batch in batches(chain([start], choice_events(choices, split_words), [last])):
        yield batch


def _parts(request: Request) -> list[Part]:
    thought: list[Part] = [Reasoning(text=_THOUGHT)] if _is_thinking(request.thinking) else []
    if said := _results_text(request.messages):
        return [*thought, Text(text=said)]
    prompt = _prompt(request.messages)
    tools = _picked(request, prompt)
    if not tools:
        return [*thought, Text(text=_words(request, prompt))]
    return [*thought, *(_call(request, tool, prompt, place) for place, tool in enumerate(tools))]


def _is_thinking(thinking: Thinking | None) -> bool:
    if thinking is None or thinking.mode == "off" or thinking.effort == "none":
        return False
    return thinking.mode == "on" or thinking.effort is not None


def _prompt(messages: Sequence[Message]) -> str:
    """The last text of the last user message that has one: clients put their own notes before the text of the user."""
    for message in reversed(messages):
        if message.role == "user":
            for part in reversed(message.parts):
                if isinstance(part, Text) and part.text.strip():
                    return request_in(part.text)
    return ""


def _results_text(messages: Sequence[Message]) -> str:
    """The results since the last answer as text; "" if there are none."""
    names = {part.id: part.name for message in messages for part in message.parts if isinstance(part, ToolCall)}
    last = max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)
    results = results_of(messages[last + 1 :])
    said = [_result_text(result, names) for result in results[:_MOST_RESULTS]]
    left = len(results) - len(said)
    return " ".join([*said, f"({left} more results came.)"] if left else said)


def _result_text(result: ToolResult, names: dict[str, str]) -> str:
    text = text_of(result).strip()
    shown = text[:_RESULT_SHOWN] + "..." if len(text) > _RESULT_SHOWN else text or "nothing"
    verb = "failed" if result.is_error else "said"
    name = result.name or names.get(result.call_id) or "The tool"
    if "\n" in shown:
        return f"{name} {verb}:\n{shown}\n"
    return f"{name} {verb}: {shown}" + ("" if shown[-1] in ".!?" else ".")


def _picked(request: Request, prompt: str) -> list[Tool]:
    """The tools to call: by tool_choice, else those that the prompt names, else the best match."""
    choice = request.tool_choice or ToolChoice(mode="auto")
    tools = [tool for tool in request.tools if tool.kind == "function"]
    if choice.mode in ("named", "allowed"):
        tools = [tool for tool in tools if tool.name in choice.names]
    if choice.mode == "none" or not tools:
        return []
    named = named_tools(tools, prompt)
    if named and (
        not named[0].name.isalpha() or has_path_for(named[0], prompt)
    ):  # "write a poem" does not name `write`
        return named[: 1 if request.parallel_calls is False else _MOST_CALLS]
    best = max(tools, key=lambda tool: score(tool, prompt))
    is_forced = choice.mode in ("named", "required") or (choice.mode == "allowed" and choice.is_required)
    is_fit = score(best, prompt) >= _GOOD_SCORE and has_path_for(best, prompt)
    return [best] if is_forced or is_fit else []


def _call(request: Request, tool: Tool, prompt: str, place: int) -> ToolCall:
    """Its id is a hash of the call and its place, so it is unique in the conversation."""
    # User messages first: system prompts contain example paths.
    ordered = sorted(request.messages, key=lambda message: message.role != "user")
    workspace = workspace_in(part.text for message in ordered for part in message.parts if isinstance(part, Text))
    hints = hints_of(prompt, workspace, [tool.name for tool in request.tools])
    arguments = _arguments(tool, hints)
    raw = json.dumps(arguments, ensure_ascii=False, default=float)
    call_id = _call_id(json.dumps([len(request.messages), place, tool.name, raw]))
    return ToolCall(id=call_id, name=tool.name, raw=raw, args=json.loads(raw))


def _call_id(seed: str) -> str:
    return "call_" + hashlib.sha256(seed.encode()).hexdigest()[:24]


def _arguments(tool: Tool, hints: PromptHints) -> JsonObject:
    """An empty object if no example is found: the error of the tool says what is missing."""
    schema = {"type": "object"} if tool.schema is None else {"type": "object", **tool.schema}
    for tried in (hints, PromptHints()):
        try:
            value = example_of(schema, PromptArguments(tried))
        except NoExample:
            continue
        if isinstance(value, dict):
            return value
    return {}


def _words(request: Request, prompt: str) -> str:
    """Free text, or JSON if the request wants it."""
    shown = prompt[:_SHOWN] + "..." if len(prompt) > _SHOWN else prompt
    said = f'{_SELF}: I know nothing, but I can call your tools. You said: "{shown}"{_advice(request)}'
    if request.output.format == "text":
        return said
    if request.output.format == "json":
        return json.dumps({"message": said}, ensure_ascii=False)
    try:
        value = example_of(request.output.schema or {}, PromptArguments(hints_of(prompt)))
    except NoExample:
        value = {}
    return json.dumps(value, ensure_ascii=False, default=float)


def _advice(request: Request) -> str:
    """What to type for a call, so that a first chat does not end here."""
    names = [tool.name for tool in request.tools if tool.kind == "function"]
    if not names:
        return "\n\nThis request has no tools. `toolwire chat --workspace .` has tools for files; then type: read README.md"
    shown = ", ".join(names[:_MOST_CALLS]) + (", ..." if len(names) > _MOST_CALLS else "")
    return f"\n\nThat matches none of the tools ({shown}). Name one of them and its arguments, such as: {names[0]} a=b"
