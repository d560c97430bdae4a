"""The form of an answer in an instruction."""

from __future__ import annotations

from toolwire.dialects.shared.output_format import form_instruction
from toolwire.types import Output


def test_free_text_needs_no_instruction() -> None:
    assert form_instruction(Output(), has_tools=True) == ""


def test_json_is_asked_for_with_its_schema() -> None:
    assert (
        form_instruction(Output(format="json"), has_tools=False)
        == "Your answer must be one JSON object, and nothing else."
    )
    said = form_instruction(Output(format="schema", schema={"type": "object"}), has_tools=True)
    assert said == 'An answer that calls no tool must be JSON, and nothing else, by this schema: {"type":"object"}'
