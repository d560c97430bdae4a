"""The request for nothing but the arguments of invalid calls, for a server that constrains its output to a schema.

No tools are offered. The history ends with the model's own calls and their errors, as in every correction, and the errors ask for
the arguments. One invalid call has its schema as the root; several are members of one object. If the tool of a call is unknown, the
model also chooses the tool.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..types import Json, JsonObject, OutputFormat, Request, Tool, ToolCall
from ..wire.exact_json import BadJson, decode, encode
from .schemas.output import arguments_schema, call_schema, calls_schema
from .validation import without_span

_NAME = "arguments"


class ArgumentRequest:
    """candidates: for each invalid call, the tools that it may name."""

    def __init__(self, candidates: Sequence[Sequence[Tool]]) -> None:
        self._members = {f"call_{index + 1}": tools for index, tools in enumerate(candidates)}
        self._is_single = len(candidates) == 1

    def hint(self, index: int) -> JsonObject:
        """For the error of this call: what to answer, and the schemas that the model no longer sees as tools."""
        tools = list(self._members.values())[index]
        what = "its arguments" if len(tools) == 1 else 'the call, as {"name": ..., "arguments": {...}}'
        where = "nothing but" if self._is_single else f"an object that has as {encode(_member(index)).decode()}"
        described = [{"name": tool.name, "parameters": arguments_schema(tool)} for tool in tools]
        return {"hint": f"The call was not made. Answer with {where} {what}, in JSON.", "tools": described}

    def request(self, request: Request) -> Request:
        """request: the history, with the errors at its end."""
        tools = list(self._members.values())
        schema = call_schema(tools[0]) if self._is_single else calls_schema(self._members)
        is_strict = self._is_single and len(tools[0]) == 1 and tools[0][0].strict is True
        return replace(
            request,
            tools=(),
            tool_choice=None,
            parallel_calls=None,
            sampling=replace(request.sampling, stop=(), logprobs=False, top_logprobs=None),
            output=OutputFormat(format="schema", name=_NAME, schema=schema, strict=True if is_strict else None),
            has_new_tools=True,
            source={},
            wire=b"",
        )

    def calls(self, text: str, before: Sequence[ToolCall]) -> list[ToolCall] | None:
        """The calls with the arguments of this answer, and with the ids that they had; None for an answer that is not in the form."""
        try:
            value = decode(text)
        except BadJson:
            return None
        if not isinstance(value, dict):
            return None
        values = [value] if self._is_single else [value.get(name) for name in self._members]
        made = [
            _corrected(call, tools, found)
            for call, tools, found in zip(before, self._members.values(), values, strict=True)
        ]
        return None if None in made else [call for call in made if call is not None]


def _member(index: int) -> str:
    return f"call_{index + 1}"


def _corrected(call: ToolCall, tools: Sequence[Tool], value: Json) -> ToolCall | None:
    name: Json = tools[0].name
    if len(tools) > 1 and isinstance(value, dict):
        name, value = value.get("name"), value.get("arguments")
    if not isinstance(name, str) or not isinstance(value, dict):
        return None
    return without_span(replace(call, name=name, raw=encode(value).decode(), args=value))
