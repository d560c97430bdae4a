"""The form of an answer, asked for in an instruction: for back ends that have no member for it."""

from __future__ import annotations

from ...types import Output
from ...wire.exact_json import encode


def form_instruction(output: Output, *, has_tools: bool) -> str:
    """ "" where the answer is free text."""
    what = "An answer that calls no tool" if has_tools else "Your answer"
    if output.format == "schema":
        schema = encode(output.schema or {}).decode()
        return f"{what} must be JSON, and nothing else, by this schema: {schema}"
    return f"{what} must be one JSON object, and nothing else." if output.format == "json" else ""
