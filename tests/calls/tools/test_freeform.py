"""Free text in and out of a function's arguments."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.tools.freeform import FIELD, description_of, schema_of, unwrapped, wrapped
from toolwire.types import Tool

PATCH = '*** Begin Patch\n*** Add File: OUT.md\n+é中😀 "q" \\ tab\tend\n*** End Patch\n'
texts = st.text(st.characters(codec="utf-8"))


@given(texts, st.booleans())
def test_what_is_wrapped_comes_back_to_the_letter(text: str, has_grammar: bool) -> None:
    if not has_grammar or (text.lstrip()[:1] not in ("`", "~") and "<<" not in text):
        assert unwrapped(wrapped(text), has_grammar=has_grammar) == text


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps({"input": PATCH}),
        json.dumps({"patch": PATCH}),
        json.dumps({"command": ["apply_patch", PATCH]}),
        json.dumps({"cmd": f"apply_patch <<'EOF'\n{PATCH}EOF"}),
        json.dumps({"input": f"apply_patch <<EOF\n{PATCH}EOF\n"}),
        json.dumps({"command": ["bash", "-lc", f"apply_patch <<'PATCH'\n{PATCH}PATCH\n"]}),
        json.dumps({"input": f"```diff\n{PATCH}```"}),
        json.dumps({"input": PATCH, "reason": "because"}),
        json.dumps(PATCH),
        f"```\n{PATCH}```\n",
        PATCH,
    ],
)
def test_H104_the_wrappings_models_invent_are_taken_off(raw: str) -> None:
    assert unwrapped(raw, has_grammar=True) == PATCH


def test_without_a_grammar_a_fence_is_part_of_the_text() -> None:
    text = "```python\nprint(1)\n```"
    assert unwrapped(wrapped(text), has_grammar=False) == text


@pytest.mark.parametrize("text", ["```\na\n```\nthen\n```\nb\n```", "```js\nx", "a << b\nc", "``` x ```", "```", ""])
def test_what_is_not_one_fence_around_all_stays(text: str) -> None:
    assert unwrapped(wrapped(text), has_grammar=True) == text


@pytest.mark.parametrize("raw", ['{"a": 1, "b": "x"}', "[1]", '{"a": {"b": "x"}}', '{"a": []}', '"half', ""])
def test_what_is_no_wrapping_is_the_text_itself(raw: str) -> None:
    assert unwrapped(raw, has_grammar=True) == raw


def test_long_lines_of_brackets_take_no_time() -> None:
    text = "<<a" * 100_000 + "\n" + "x\n" * 100_000
    assert unwrapped(wrapped(text), has_grammar=True) == text


def test_the_function_says_what_the_grammar_asks_for() -> None:
    tool = Tool(name="edit", description="Edits.", kind="custom", grammar="(lark) start: /x/")
    assert description_of(tool).startswith("Edits.\n\n")
    assert "start: /x/" in description_of(tool)
    assert schema_of(tool)["required"] == [FIELD]
    assert description_of(Tool(name="edit", kind="custom")) == ""


def test_an_object_without_members_is_no_text() -> None:
    assert unwrapped("{}", has_grammar=False) == ""


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('{"patch": "P", "workdir": "/x"}', "P"),
        ('{"command": ["apply_patch", "P"], "timeout": 5}', "P"),
        ('{"patch": "P", "content": "Q"}', '{"patch": "P", "content": "Q"}'),
    ],
)
def test_H104_the_text_among_members_that_models_invent(raw: str, text: str) -> None:
    assert unwrapped(raw, has_grammar=False) == text


def test_an_object_in_the_object_is_taken_off_where_a_grammar_has_none() -> None:
    raw = json.dumps({"input": json.dumps({"input": "P"})})
    assert unwrapped(raw, has_grammar=True) == "P"
    assert unwrapped(raw, has_grammar=False) == '{"input": "P"}'
