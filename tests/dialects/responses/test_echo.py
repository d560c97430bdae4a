"""What a response repeats of its request is what the schema of a response allows, whatever the request was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response

from tests.contract.judge.official import Report, walk
from tests.dialects.answers import JSON
from tests.dialects.playing import NOW, minting
from toolwire.dialects import responses
from toolwire.dialects.base import Context
from toolwire.dialects.responses.echo import choice_echo, metadata_echo, tools_echo
from toolwire.dialects.responses.resource import resource
from toolwire.errors import BadRequest
from toolwire.events import Started
from toolwire.wire.exact_json import encode


def names(listed: str) -> list[str]:
    return listed.split()


def each(listed: str) -> dict[str, st.SearchStrategy[Any]]:
    return dict.fromkeys(names(listed), ODD)


WORDS = st.sampled_from(
    names("auto low none required function custom mcp web_search file_search json_schema grammar lark x \ud800")
)
TYPES = st.sampled_from(
    names(
        "function custom namespace web_search file_search mcp code_interpreter computer_use_preview image_generation "
        "local_shell shell tool_search apply_patch allowed_tools text json_object json_schema unheard_of \ud800"
    )
)
ODD = st.one_of(WORDS, JSON, st.dictionaries(st.sampled_from(names("type name effort format mode x")), WORDS))
TOOL = st.fixed_dictionaries(
    {"type": TYPES, "name": st.just("f")},
    optional=each(
        "parameters tools format container server_label authorization headers filters vector_store_ids environment "
        "search_context_size allowed_callers display_width display_height execution"
    ),
)
CHOICE = st.one_of(WORDS, st.fixed_dictionaries({"type": TYPES}, optional=each("name function mode tools")))
FORMAT = st.fixed_dictionaries({"type": TYPES}, optional=each("name schema strict description"))
MEMBERS = {
    "tools": st.lists(TOOL, max_size=3),
    "tool_choice": CHOICE,
    "text": st.fixed_dictionaries({}, optional={"format": FORMAT, **each("verbosity x")}),
    "reasoning": st.fixed_dictionaries({}, optional=each("effort summary context mode x")),
    "metadata": st.dictionaries(st.text(max_size=3), ODD, max_size=3),
    "instructions": st.one_of(ODD, st.lists(st.fixed_dictionaries({"role": WORDS, "content": ODD}), max_size=2)),
    **each(
        "service_tier truncation prompt_cache_key safety_identifier user max_tool_calls max_output_tokens top_logprobs "
        "temperature top_p background store parallel_tool_calls"
    ),
}


def faults(body: dict[str, Any]) -> list[Any]:
    """What the vendor's own types find wrong in the object; [] for a request that is refused."""
    try:
        request = responses.decode_request(encode({"model": "m", "input": "hi", **body}), {})
    except BadRequest:
        return []
    value = resource(Context(request=request, mint=minting(), now=NOW), Started(id="", model=""))
    report = Report()
    walk(Response, json.loads(encode(value)), "response", report)
    return report.errors


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(MEMBERS)).flatmap(lambda name: st.fixed_dictionaries({name: MEMBERS[name]})))
def test_whatever_was_asked_for_the_object_is_valid(body: dict[str, Any]) -> None:
    assert faults(body) == []


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"a": {"b": 1}, "c": 5, "d": None, "e": "text"}},
        {"tools": [{"type": "\ud800"}]},
        {"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "peg", "definition": "x"}}]},
        {"tools": [{"type": "custom", "name": "c", "format": {"type": True, "syntax": "lark", "definition": "x"}}]},
        {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}, {"type": "x"}]}]},
        {"tools": [{"type": "mcp"}, {"type": "file_search"}, {"type": "code_interpreter", "container": {"type": "x"}}]},
        {"service_tier": "best", "truncation": 5, "prompt_cache_key": {}, "max_tool_calls": "3"},
        {"service_tier": "\ud800", "truncation": "\ud800", "text": {"verbosity": "\ud800"}},
        {"max_output_tokens": 50.0, "top_logprobs": 2.0},
        {"reasoning": {"effort": "ultra", "summary": "long"}},
        {"text": {"verbosity": "loud", "format": {"type": "json_schema", "schema": {}}}},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"tool_choice": {"type": "unheard_of"}},
        {"instructions": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x"}}]}]},
    ],
)
def test_members_that_the_schema_does_not_allow(body: dict[str, Any]) -> None:
    assert faults(body) == []


def test_metadata_is_text() -> None:
    assert metadata_echo({"a": {"b": 1}, "c": "text"}) == {"a": '{"b":1}', "c": "text"}
    assert metadata_echo(None) == {}


def test_tools_are_repeated_without_what_is_wrong_in_them() -> None:
    assert tools_echo([{"type": "function", "name": "f", "strict": "yes", "x": 1}, {"type": "\ud800"}, "odd"]) == [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None, "x": 1}
    ]
    assert tools_echo([{"type": "web_search", "search_context_size": "low", "filters": {"x": 1}}]) == [
        {"type": "web_search", "search_context_size": "low"}
    ]


def test_keys_of_a_tool_that_a_provider_runs_are_not_repeated() -> None:
    secret = {"type": "mcp", "server_label": "s", "authorization": "sk-secret", "headers": {"x-key": "sk-secret"}}
    assert tools_echo([secret]) == [{"type": "mcp", "server_label": "s"}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("required", "required"),
        (None, "auto"),
        ({"type": "function", "name": "f"}, {"type": "function", "name": "f"}),
        ({"type": "function", "function": {"name": "f"}}, {"type": "function", "name": "f"}),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
         {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}),
        ({"type": "allowed_tools", "tools": []}, "auto"),
        ({"type": "web_search"}, "auto"),
    ],
)  # fmt: skip
def test_choices(given: Any, expected: Any) -> None:
    assert choice_echo(given) == expected
