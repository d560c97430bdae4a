"""The response object: every member there, what was asked for echoed, what the back end says on top."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response

from tests.contract.judge.official import Report, walk
from tests.dialects.answers import JSON
from tests.dialects.codec_harness import NOW, make_request, numbered_ids
from tests.thorough import examples
from toolwire.dialects import responses
from toolwire.dialects.base import AnswerContext
from toolwire.dialects.responses.resource import (
    call_item,
    choice_echo,
    failed,
    is_plain_thought,
    logprobs_out,
    metadata_echo,
    reasoning_item,
    resource,
    text_part,
    tools_echo,
)
from toolwire.dialects.shared.sealed_reasoning import unseal
from toolwire.errors import BadRequest, GatewayError, UpstreamError
from toolwire.events import Started
from toolwire.types import Citation, JsonObject, Reasoning, Refusal, Text, ToolCall
from toolwire.wire.exact_json import encode


def made(started: Started, **members: Any) -> JsonObject:
    return resource(AnswerContext(request=make_request("responses", **members), mint=numbered_ids(), now=NOW), started)


def test_the_request_is_echoed() -> None:
    tools = [{"type": "function", "name": "f"}, {"type": "web_search"}]
    value = made(
        Started(id="x", model="up"),
        temperature=0.5,
        tools=tools,
        text={"verbosity": "low"},
        reasoning={"effort": "high"},
        user="u",
        metadata=None,
    )
    assert float(value["temperature"]) == 0.5
    assert value["tools"] == [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None},
        {"type": "web_search"},
    ]
    assert value["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    assert value["reasoning"] == {"effort": "high", "summary": None}
    assert (value["user"], value["metadata"], value["status"]) == ("u", {}, "in_progress")
    assert value["id"].startswith("resp_")
    assert (value["model"], value["created_at"]) == ("m", NOW)


def test_an_own_back_end_speaks_for_itself() -> None:
    value = made(
        Started(
            id="resp_9", model="real", created=5, extra={"responses": {"service_tier": "flex", "x": 1, "user": None}}
        )
    )
    assert (value["id"], value["model"], value["created_at"], value["service_tier"], value["x"]) == (
        "resp_9",
        "real",
        5,
        "flex",
        1,
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UpstreamError("x", status=400, code="context_length_exceeded"), "context_length_exceeded"),
        (UpstreamError("x", status=400, details={"code": "context_length_exceeded"}), "context_length_exceeded"),
        (UpstreamError("x", status=429), "rate_limit_exceeded"),
        (UpstreamError("x", status=500, details={"code": ["odd"]}), "server_error"),
        (UpstreamError("x"), "server_error"),
        (BadRequest("x"), "invalid_prompt"),
    ],
)
def test_H146_codes_that_clients_know(error: GatewayError, code: str) -> None:
    assert failed(error) == {"code": code, "message": "x"}


def test_items() -> None:
    assert call_item(ToolCall(id="c", name="f", raw="{}", extra={"responses": {"x": 1}}), "fc_1", "completed")["x"] == 1
    own = Reasoning(text="raw", extra={"responses": {}})
    assert is_plain_thought(own)
    assert not is_plain_thought(Reasoning(text="foreign"))
    assert reasoning_item("rs", [own, Reasoning(text="told", encrypted="e")]) == {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "told"}],
        "content": [{"type": "reasoning_text", "text": "raw"}],
        "encrypted_content": "e",
    }


def test_parts_of_a_message() -> None:
    assert text_part(Refusal(text="no")) == {"type": "refusal", "refusal": "no"}
    value = text_part(Text(text="a", citations=(Citation(url="https://a"), Citation(title="no address"))))
    assert len(value["annotations"]) == 1
    assert logprobs_out(({"token": "a"}, 5)) == [{"bytes": [], "top_logprobs": [], "token": "a"}]


def test_H074_a_proof_of_another_dialect_is_sealed() -> None:
    own = reasoning_item("rs_1", [Reasoning(text="hm", encrypted="ZW5j", extra={"responses": {}})])
    assert own["encrypted_content"] == "ZW5j"
    foreign = Reasoning(text="hm", encrypted="ZW5j", extra={"gemini": {}})
    sealed = reasoning_item("rs_1", [foreign])["encrypted_content"]
    assert unseal(sealed, ["hm"]) == [foreign]


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
    value = resource(AnswerContext(request=request, mint=numbered_ids(), now=NOW), Started(id="", model=""))
    report = Report()
    walk(Response, json.loads(encode(value)), "response", report)
    return report.errors


@examples(300)
@given(st.sampled_from(sorted(MEMBERS)).flatmap(lambda name: st.fixed_dictionaries({name: MEMBERS[name]})))
def test_the_object_is_valid_for_any_request(body: dict[str, Any]) -> None:
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
