"""Schemas as a back end takes them, all the way to the bytes that leave; and nothing else of a tool lost on the way."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from toolwire.calls.schemas import Schemas, ToolSets
from toolwire.calls.tools.adapter import Fitted, Fitter, with_history_tools
from toolwire.calls.tools.encoded_arguments import Encoding
from toolwire.calls.tools.kinds import lower
from toolwire.dialects import DIALECTS
from toolwire.profiles import (
    ANTHROPIC,
    GEMINI_SCHEMAS,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    PLAIN,
    PLAIN_CHAT,
    RESPONSES,
    Profile,
)
from toolwire.types import Message, Request, Text, Tool, ToolCall, ToolChoice, ToolResult

PLAIN_OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
OPTIONAL: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
CYCLE: dict[str, Any] = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "v": {"type": "string"}}}},
}
UNION: dict[str, Any] = {
    "oneOf": [
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    ]
}
PROFILES = {"chat": OPENAI_CHAT, "responses": OPENAI_RESPONSES, "messages": ANTHROPIC}
GEMINI = replace(PLAIN_CHAT, name="gemini", schemas=GEMINI_SCHEMAS)
SUBSETS = {dialect: replace(profile, schemas=GEMINI_SCHEMAS) for dialect, profile in PROFILES.items()}
EACH = pytest.mark.parametrize("dialect", list(PROFILES))


def declared(dialect: str, name: str, schema: Any, **members: Any) -> dict[str, Any]:
    match dialect:
        case "chat":
            return {"type": "function", "function": {"name": name, "parameters": schema, **members}}
        case "responses":
            return {"type": "function", "name": name, "parameters": schema, **members}
        case _:
            return {"name": name, "input_schema": schema, **members}


def schema_in(tool: dict[str, Any]) -> Any:
    function = tool.get("function", tool)
    return function["input_schema"] if "input_schema" in function else function["parameters"]


def asked(dialect: str, *tools: Any, **members: Any) -> Request:
    said: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}]}
    body = {"model": "m", **({"input": "go"} if dialect == "responses" else said), "tools": list(tools), **members}
    return DIALECTS[dialect].decode_request(json.dumps({"max_tokens": 9, **body}).encode(), {})


def fit(request: Request, profile: Profile, *, is_own: bool = False) -> Fitted:
    return Fitter().fit(request, profile, is_own=is_own)


def sent(request: Request, dialect: str, profile: Profile | None = None) -> dict[str, Any]:
    """What leaves for a back end of this dialect."""
    chosen = profile or PROFILES[dialect]
    is_own = request.origin == dialect
    fitted = fit(
        lower(request, chosen.tool_kinds if is_own else frozenset(), longest=0 if is_own else 64).request,
        chosen,
        is_own=is_own,
    )
    body: dict[str, Any] = json.loads(DIALECTS[dialect].encode_request(fitted.request, chosen).body)
    return body


@EACH
def test_tools_that_fit_leave_the_same_request(dialect: str) -> None:
    request = asked(dialect, declared(dialect, "t", PLAIN_OBJECT))
    for profile in (*PROFILES.values(), PLAIN, PLAIN_CHAT, RESPONSES):
        for is_own in (True, False):
            assert fit(request, profile, is_own=is_own) == Fitted(request)
            assert fit(request, profile, is_own=is_own).request is request


@EACH
@pytest.mark.parametrize("target", ["chat", "responses"])
def test_H066_an_object_without_properties_gets_some_for_openai(dialect: str, target: str) -> None:
    schema = {"type": "object", "properties": {"inner": {"type": "object"}}}
    body = sent(asked(dialect, declared(dialect, "t", {"type": "object"}), declared(dialect, "u", schema)), target)
    assert schema_in(body["tools"][0]) == {"type": "object", "properties": {}}
    assert schema_in(body["tools"][1])["properties"]["inner"]["properties"] == {}


@EACH
@pytest.mark.parametrize("target", list(PROFILES))
@pytest.mark.parametrize("schema", [{}, None, {"properties": {}}])
def test_H068_a_schema_that_is_missing_or_says_no_type_becomes_one(dialect: str, target: str, schema: Any) -> None:
    if schema is None and dialect == "messages":
        schema = {}
    body = sent(asked(dialect, declared(dialect, "t", schema)), target)
    assert schema_in(body["tools"][0]) == {"type": "object", "properties": {}}
    assert fit(asked(dialect, declared(dialect, "t", schema)), PROFILES[target]).losses == ()


@EACH
def test_H064_a_union_at_the_root_is_one_object_for_messages_and_the_tool_is_named(dialect: str) -> None:
    request = asked(dialect, declared(dialect, "good", PLAIN_OBJECT), declared(dialect, "bad", UNION))
    good, bad = sent(request, "messages")["tools"]
    assert schema_in(good) == PLAIN_OBJECT
    assert not {"oneOf", "anyOf", "allOf"} & schema_in(bad).keys()
    assert set(schema_in(bad)["properties"]) == {"path", "url"}
    losses = fit(request, ANTHROPIC).losses
    assert [(loss.feature, loss.where) for loss in losses] == [("schema", 'tools "bad"')]
    assert "oneOf" in losses[0].why


@EACH
@pytest.mark.parametrize("target", ["chat", "responses"])
def test_H065_a_tool_that_asks_to_be_strict_is_made_so_and_its_calls_may_hold_nulls(dialect: str, target: str) -> None:
    request = asked(
        dialect, declared(dialect, "t", OPTIONAL, strict=True), declared(dialect, "u", OPTIONAL, strict=False)
    )
    strict, loose = sent(request, target)["tools"]
    assert schema_in(strict)["required"] == ["a"]
    assert schema_in(strict)["properties"]["a"]["type"] == ["string", "null"]
    assert strict.get("function", strict)["strict"] is True
    assert schema_in(loose) == OPTIONAL
    fitted = fit(request, PROFILES[target])
    assert fitted.encodings == {"t": Encoding(has_nulls=True)}
    assert [(loss.feature, loss.where) for loss in fitted.losses] == [("schema", 'tools "t"')]
    assert "properties.a" in fitted.losses[0].why
    assert request.tools[0].schema == OPTIONAL


@EACH
@pytest.mark.parametrize("target", ["chat", "responses"])
def test_H065_a_tool_that_cannot_be_strict_no_longer_asks_for_it(dialect: str, target: str) -> None:
    free = {"type": "object", "properties": {"a": {"type": "object", "properties": {}, "additionalProperties": True}}}
    request = asked(dialect, declared(dialect, "t", free, strict=True))
    (tool,) = sent(request, target)["tools"]
    assert tool.get("function", tool)["strict"] is False
    assert schema_in(tool) == free
    fitted = fit(request, PROFILES[target])
    assert fitted.encodings == {}
    assert "cannot be strict" in fitted.losses[0].why


def test_H065_a_strict_tool_whose_members_are_all_required_gets_no_nulls() -> None:
    request = asked("chat", declared("chat", "t", PLAIN_OBJECT, strict=True))
    fitted = fit(request, OPENAI_CHAT)
    assert fitted.request is not request
    assert fitted.encodings == {}
    assert fit(request, PLAIN_CHAT).request is request


@EACH
@pytest.mark.parametrize("target", list(PROFILES))
def test_H069_H070_a_schema_that_goes_round_in_a_circle_ends(dialect: str, target: str) -> None:
    request = asked(dialect, declared(dialect, "fine", PLAIN_OBJECT), declared(dialect, "round", CYCLE))
    _, tool = sent(request, target, SUBSETS[target])["tools"]
    assert "$ref" not in json.dumps(tool)
    assert "next" in json.dumps(tool)
    assert [loss.where for loss in fit(request, SUBSETS[target]).losses] == ['tools "round"']


@EACH
def test_H067_an_object_without_named_properties_becomes_text_for_gemini(dialect: str) -> None:
    schema = {"type": "object", "properties": {"inner": {"type": "object"}}}
    fitted = fit(asked(dialect, declared(dialect, "t", schema), declared(dialect, "u", {"type": "object"})), GEMINI)
    assert fitted.request.tools[1].schema is None
    (tool, _) = sent(asked(dialect, declared(dialect, "t", schema), declared(dialect, "u", schema)), "chat", GEMINI)[
        "tools"
    ]
    assert schema_in(tool)["properties"]["inner"]["type"] == "string"


@EACH
@pytest.mark.parametrize("target", list(PROFILES))
def test_H063_an_empty_list_of_tools_is_left_out(dialect: str, target: str) -> None:
    body = sent(asked(dialect), target)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


def test_a_request_that_says_nothing_of_tools_stays_the_same_object() -> None:
    request = DIALECTS["chat"].decode_request(b'{"model":"m","messages":[{"role":"user","content":"x"}]}', {})
    for is_own in (True, False):
        assert fit(request, ANTHROPIC, is_own=is_own).request is request


@EACH
def test_in_its_own_dialect_a_tool_loses_nothing_but_what_its_schema_had_to(dialect: str) -> None:
    profile = replace(PROFILES[dialect], schemas=OPENAI_CHAT.schemas)
    members = {"description": "", "cache_control": {"type": "ephemeral"}, "x": [1, None]}
    odd = {**declared(dialect, "t", {"type": "object", "title": "T"}, **members), "y": 1}
    kept = declared(dialect, "u", PLAIN_OBJECT, defer_loading=True)
    choice = {"type": "tool", "name": "u", "z": 1} if dialect == "messages" else "auto"
    body = sent(asked(dialect, odd, kept, tool_choice=choice), dialect, profile)
    function = body["tools"][0].get("function", body["tools"][0])
    assert schema_in(function) == {"type": "object", "title": "T", "properties": {}}
    function["input_schema" if dialect == "messages" else "parameters"] = {"type": "object", "title": "T"}
    assert body["tools"] == [odd, kept]
    assert body["tool_choice"] == choice


def test_a_tool_inside_a_namespace_stays_there() -> None:
    inner = declared("responses", "t", {"type": "object"})
    space = {
        "type": "namespace",
        "name": "n",
        "description": "d",
        "tools": [declared("responses", "a", PLAIN_OBJECT), inner],
    }
    hosted = {"type": "web_search"}
    body = sent(asked("responses", hosted, space), "responses")
    first, second = body["tools"]
    assert first == hosted
    assert second["tools"][0] == space["tools"][0]
    assert second["tools"][1] == {**inner, "parameters": {"type": "object", "properties": {}}}


def test_tools_that_items_declare_stay_as_they_are_in_their_own_dialect() -> None:
    items = [
        {"role": "user", "content": "x"},
        {"type": "additional_tools", "tools": [declared("responses", "t", {"type": "object"})]},
    ]
    request = asked("responses", declared("responses", "a", PLAIN_OBJECT), input=items)
    assert fit(request, OPENAI_RESPONSES, is_own=True) == Fitted(request)
    assert schema_in(sent(request, "chat")["tools"][1]) == {"type": "object", "properties": {}}


def test_a_changed_request_is_no_longer_its_bytes() -> None:
    request = asked("chat", declared("chat", "t", {"type": "object"}))
    assert request.wire
    assert fit(request, PLAIN_CHAT, is_own=True).request.wire == b""


def test_only_functions_are_fitted() -> None:
    tools = (
        Tool(name="c", kind="custom"),
        Tool(name="t", kind="typed", schema={"type": "object"}),
        Tool(name="h", kind="hosted"),
    )
    request = Request(model="m", messages=(), tools=tools)
    assert fit(request, OPENAI_CHAT).request is request


def test_a_loss_is_bounded_whatever_stands_in_the_schema() -> None:
    names = ["\n" + "n" * 5000 + str(number) for number in range(300)]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    request = Request(model="m", messages=(), tools=(Tool(name="t\n" * 500, schema=schema, strict=True),))
    (loss,) = fit(request, OPENAI_CHAT).losses
    assert len(loss.where) < 250
    assert len(loss.why) < 700
    assert "and 296 more" in loss.why
    assert "\n" not in loss.where + loss.why


# Tools for a history that has none.


def past(*names: str, **members: Any) -> Request:
    messages = [Message(role="user", parts=(Text(text="go"),))]
    for number, name in enumerate(names):
        messages.append(Message(role="assistant", parts=(ToolCall(id=f"c{number}", name=name, raw="{}", args={}),)))
        messages.append(Message(role="tool", parts=(ToolResult(call_id=f"c{number}", parts=(Text(text="ok"),)),)))
    return Request(model="m", messages=tuple(messages), origin="chat", **members)


def test_H089_a_history_of_calls_without_tools_names_them_and_none_may_be_called() -> None:
    request = past("read", "bash", "read", max_tokens=5)
    fitted = fit(request, ANTHROPIC)
    assert [loss.feature for loss in fitted.losses] == ["tools.history"]
    body = json.loads(DIALECTS["messages"].encode_request(fitted.request, ANTHROPIC).body)
    assert body["tools"] == [{"name": name, "input_schema": {"type": "object"}} for name in ("read", "bash")]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("request_", "profile", "is_own"),
    [
        (past("read"), OPENAI_CHAT, False),
        (past("read"), ANTHROPIC, True),
        (past(), ANTHROPIC, False),
        (past("read", tools=(Tool(name="other", schema=PLAIN_OBJECT),)), ANTHROPIC, False),
    ],
)
def test_H089_nobody_else_is_offered_tools_that_the_client_did_not_offer(
    request_: Request, profile: Profile, is_own: bool
) -> None:
    assert fit(request_, profile, is_own=is_own) == Fitted(request_)
    assert with_history_tools(past(), profile).losses == ()


@pytest.mark.parametrize("dialect", ["chat", "responses"])
def test_H088_a_choice_of_none_keeps_the_tools_and_says_none(dialect: str) -> None:
    request = asked(dialect, declared(dialect, "t", PLAIN_OBJECT), tool_choice="none")
    request = replace(request, messages=past("t").messages)
    body = sent(request, "messages")
    assert [tool["name"] for tool in body["tools"]] == ["t"]
    assert body["tool_choice"] == {"type": "none"}


def test_H089_a_choice_of_the_client_gives_way_to_none() -> None:
    request = past("t", tool_choice=ToolChoice(mode="required"), parallel_calls=False)
    body = json.loads(DIALECTS["messages"].encode_request(fit(request, ANTHROPIC).request, ANTHROPIC).body)
    assert body["tool_choice"] == {"type": "none"}


# What is remembered.


@EACH
@pytest.mark.parametrize("schema", [PLAIN_OBJECT, {"type": "object"}, UNION])
def test_a_list_that_was_seen_before_gives_the_same(dialect: str, schema: Any) -> None:
    fitter, sets = Fitter(), ToolSets(Schemas())
    for profile in (*PROFILES.values(), PLAIN, *SUBSETS.values()):
        found = []
        for _ in range(3):
            request = asked(dialect, declared(dialect, "t", schema), declared(dialect, "u", OPTIONAL, strict=True))
            found.append(fitter.fit(request, profile, sets.check(request)))
            assert found[-1].request.tools == fit(request, profile).request.tools
        assert all((one.losses, one.encodings) == (found[0].losses, found[0].encodings) for one in found)


def test_tools_of_another_request_than_the_known_one_are_looked_at() -> None:
    fitter, sets = Fitter(), ToolSets(Schemas())
    request = asked("chat", declared("chat", "t", PLAIN_OBJECT))
    known = sets.check(request)
    assert fitter.fit(request, OPENAI_CHAT, known).request is request
    other = replace(request, tools=(Tool(name="t", schema={"type": "object"}),))
    assert fitter.fit(other, OPENAI_CHAT, known).request.tools[0].schema == {"type": "object", "properties": {}}


def test_the_memory_is_bounded() -> None:
    fitter = Fitter(max_bytes=50_000)
    for number in range(500):
        schema = {"type": "object", "properties": {f"p{number}": {"type": "object"}}}
        fitter.fit(Request(model="m", messages=(), tools=(Tool(name="t", schema=schema),)), OPENAI_CHAT)
    assert 1 < len(fitter) < 100


def test_forty_known_tools_cost_microseconds() -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "d" * 60} for n in range(9)}}
    request = asked("chat", *(declared("chat", f"t{number}", schema) for number in range(40)))
    fitter, sets = Fitter(), ToolSets(Schemas())
    fitter.fit(request, OPENAI_CHAT, sets.check(request))
    started = time.process_time()
    for _ in range(1000):
        fitter.fit(request, OPENAI_CHAT, sets.check(request))
    assert (time.process_time() - started) / 1000 < 0.0001


json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["object", "string", "#/$defs/a", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs", "required", "a", "enum"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(
    st.dictionaries(st.sampled_from(["type", "properties", "anyOf", "allOf", "$ref", "$defs"]), json_value, max_size=4),
    st.booleans(),
)
def test_whatever_a_schema_holds_it_is_fitted_once_and_never_changed_itself(
    schema: dict[str, Any], strict: bool
) -> None:
    before = json.dumps(schema)
    request = Request(model="m", messages=(), tools=(Tool(name="t", schema=schema, strict=strict),))
    for profile in (OPENAI_CHAT, ANTHROPIC, GEMINI):
        fitted = fit(request, profile)
        assert json.dumps(schema) == before
        assert fitted.request.tools[0].name == "t"
        assert (fitted.request is request) == (fitted.request.tools is request.tools)
