"""Probes of tool schemas: each is forced as a call, and the arguments are validated."""

from __future__ import annotations

import json

import jsonschema_rs

from ..types import Tool
from .questions import ask
from .session import CheckSession
from .tool_schemas import schema_tools
from .wire.frames import SeenCall

_CODES = {
    "invalid_json": "schema.invalid_json",
    "unknown_name": "schema.unknown_name",
    "schema_mismatch": "schema.mismatch",
}


async def run(session: CheckSession) -> None:
    count = session.report.schemas
    for number, (family, tool) in enumerate(schema_tools(is_quick=session.is_quick)):
        name = f"schema {family}"
        prompt = f"Call the tool {tool.name} with example data."
        found = await session.ask(
            ask(session.model, prompt, (tool,), session.force(tool), stream=number % 2 == 1), name
        )
        if found.refusal:
            count.refused += 1
            found.log.add("schema.refused", family, found.refusal)
            session.add(name, "schema", [found], outcome="unsupported", note=found.refusal)
            continue
        if found.answer is None or not found.answer.calls:
            count.no_call += 1
            if not found.has_faults:
                found.log.add("schema.no_call", family, found.answer.text[:120] if found.answer else "no answer")
            session.add(name, "schema", [found])
            continue
        bucket, detail = judge_call(found.answer.calls[0], tool)
        setattr(count, bucket, getattr(count, bucket) + 1)
        if bucket in _CODES and not found.has_faults:
            found.log.add(_CODES[bucket], family, detail)
        session.add(name, "schema", [found])


def judge_call(call: SeenCall, tool: Tool) -> tuple[str, str]:
    """The bucket of the call, and why."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError as error:
        return "invalid_json", f"{error}: {call.arguments[:80]}"
    if call.name != tool.name:
        return "unknown_name", f"found {call.name[:60]}, expected {tool.name}"
    try:
        jsonschema_rs.validate(tool.schema or {}, arguments, validate_formats=True)
    except jsonschema_rs.ValidationError as error:
        return "schema_mismatch", f"{error.message[:160]} in {call.arguments[:80]}"
    return "valid", ""
