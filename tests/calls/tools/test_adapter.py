"""Schemas as a back end takes them, all the way to the bytes that leave; and nothing else of a tool lost on the way."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.thorough import examples
from toolwire.calls.ledger.repair import repair_history
from toolwire.calls.tools.adapter import AdaptedRequest, ToolAdapter, adapt_ids, ids_in, with_history_tools
from toolwire.calls.tools.encoded_arguments import Encoding
from toolwire.calls.tools.kinds import to_functions
from toolwire.dialects import DIALECTS
from toolwire.profiles import (
    ANTHROPIC,
    ANTHROPIC_API,
    CHAT_IDS,
    GEMINI_SCHEMAS,
    KIMI_IDS,
    MESSAGES_IDS,
    MISTRAL_IDS,
    OPENAI_CHAT,
    OPENAI_IDS,
    OPENAI_RESPONSES,
    PLAIN,
    PLAIN_CHAT,
    RESPONSES,
    RESPONSES_IDS,
    IdRule,
    Profile,
)
from toolwire.types import Message, Opaque, Request, Source, Text, Tool, ToolCall, ToolChoice, ToolResult

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


def fit(request: Request, profile: Profile, *, is_own: bool = False) -> AdaptedRequest:
    return ToolAdapter().adapt(request, profile, is_own=is_own)


def sent(request: Request, dialect: str, profile: Profile | None = None) -> dict[str, Any]:
    """What leaves for a back end of this dialect."""
    chosen = profile or PROFILES[dialect]
    is_own = request.origin == dialect
    fitted = fit(
        to_functions(request, chosen.tool_kinds if is_own else frozenset(), longest=0 if is_own else 64).request,
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
            assert fit(request, profile, is_own=is_own) == AdaptedRequest(request)
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
    assert fit(request, OPENAI_RESPONSES, is_own=True) == AdaptedRequest(request)
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


def test_H089_clients_of_another_server_of_the_dialect_get_their_tools_named_too() -> None:
    assert [tool.name for tool in fit(past("read"), ANTHROPIC, is_own=True).request.tools] == ["read"]


@pytest.mark.parametrize(
    ("request_", "profile", "is_own"),
    [
        (past("read"), OPENAI_CHAT, False),
        (past("read"), ANTHROPIC_API, True),
        (past(), ANTHROPIC, False),
        (past("read", tools=(Tool(name="other", schema=PLAIN_OBJECT),)), ANTHROPIC, False),
    ],
)
def test_H089_other_back_ends_are_not_offered_tools_that_the_client_did_not_offer(
    request_: Request, profile: Profile, is_own: bool
) -> None:
    assert fit(request_, profile, is_own=is_own) == AdaptedRequest(request_)
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
    adapter = ToolAdapter()
    for profile in (*PROFILES.values(), PLAIN, *SUBSETS.values()):
        found = []
        for _ in range(3):
            request = asked(dialect, declared(dialect, "t", schema), declared(dialect, "u", OPTIONAL, strict=True))
            found.append(adapter.adapt(request, profile))
            assert found[-1].request.tools == fit(request, profile).request.tools
        assert all((one.losses, one.encodings) == (found[0].losses, found[0].encodings) for one in found)


def test_tools_of_another_request_than_the_known_one_are_looked_at() -> None:
    adapter = ToolAdapter()
    request = asked("chat", declared("chat", "t", PLAIN_OBJECT))
    assert adapter.adapt(request, OPENAI_CHAT).request is request
    other = replace(request, tools=(Tool(name="t", schema={"type": "object"}),))
    assert adapter.adapt(other, OPENAI_CHAT).request.tools[0].schema == {"type": "object", "properties": {}}


def test_the_memory_is_bounded() -> None:
    adapter = ToolAdapter(max_bytes=50_000)
    for number in range(500):
        schema = {"type": "object", "properties": {f"p{number}": {"type": "object"}}}
        adapter.adapt(Request(model="m", messages=(), tools=(Tool(name="t", schema=schema),)), OPENAI_CHAT)
    assert 1 < len(adapter) < 100


def test_forty_known_tools_cost_microseconds() -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "d" * 60} for n in range(9)}}
    request = asked("chat", *(declared("chat", f"t{number}", schema) for number in range(40)))
    adapter = ToolAdapter()
    adapter.adapt(request, OPENAI_CHAT)
    started = time.process_time()
    for _ in range(1000):
        adapter.adapt(request, OPENAI_CHAT)
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


@examples(150)
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


RULES = [CHAT_IDS, OPENAI_IDS, RESPONSES_IDS, MESSAGES_IDS, MISTRAL_IDS]
ODD = [IdRule(letters="base62"), IdRule(letters="word", longest=20), IdRule(length=30), IdRule(letters="word")]
FOREIGN = [
    "functions.Bash:0",
    "portkey-" + "0f" * 18,
    "ws_" + "a" * 48,
    "call_" + "x" * 78,
    "é" * 20,
    "a b",
    "\ud800",
    "abcDEF123",
    "",
    "call_1",
    "sig__thought__" + "A+/=" * 30,
]

one_id = st.sampled_from(FOREIGN) | st.text(min_size=1, max_size=70) | st.text("abc123_-", min_size=1, max_size=10)
entry = st.tuples(st.booleans(), one_id)
history = st.lists(entry, max_size=12)


def call(call_id: str, name: str = "f", **members: object) -> ToolCall:
    return ToolCall(id=call_id, name=name, raw="{}", args={}, **members)  # type: ignore[arg-type]


def result(call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text="ok"),))


def talk(entries: Iterable[tuple[bool, str]]) -> tuple[Message, ...]:
    """A history that may be anything: results before calls, without calls, twice."""
    return tuple(
        Message(role="assistant", parts=(Text(text="t"), call(call_id)), source=Source("chat", {"id": call_id}))
        if is_call
        else Message(role="tool", parts=(result(call_id),), source=Source("chat", {"tool_call_id": call_id}))
        for is_call, call_id in entries
    )


def exchange(*ids: str, name: str = "f") -> tuple[Message, ...]:
    messages = [Message(role="user", parts=(Text(text="go"),))]
    for call_id in ids:
        messages.append(Message(role="assistant", parts=(call(call_id, name),)))
        messages.append(Message(role="tool", parts=(result(call_id),)))
    return tuple(messages)


def listed(messages: tuple[Message, ...]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for part in parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def mapped(entries: Iterable[tuple[bool, str]], rule: IdRule) -> dict[str, str]:
    messages = talk(entries)
    return dict(zip(listed(messages), listed(adapt_ids(messages, rule)), strict=True))


def is_legal(call_id: str, rule: IdRule) -> bool:
    """By other means than the code under test."""
    if rule.preserved and rule.preserved in call_id:
        return True
    letters = {"any": r"[\s\S]", "word": "[a-zA-Z0-9_-]", "base62": "[a-zA-Z0-9]"}[rule.letters]
    size = f"{{{rule.length}}}" if rule.length else f"{{1,{rule.longest or ''}}}"
    return re.fullmatch(letters + size, call_id) is not None


@examples(250)
@given(st.sampled_from([*RULES, *ODD]), history)
def test_H043_H044_H045_H046_calls_and_results_get_the_same_legal_id_and_different_ones_stay_apart(
    rule: IdRule, entries: list[tuple[bool, str]]
) -> None:
    before, after = listed(talk(entries)), listed(adapt_ids(talk(entries), rule))
    pairs = set(zip(before, after, strict=True))
    assert len(pairs) == len(set(before)) == len(set(after))
    assert all(is_legal(call_id, rule) for call_id in after)


@examples(250)
@given(st.sampled_from([*RULES, *ODD]), history, history)
def test_what_comes_later_never_changes_what_was_sent(
    rule: IdRule, entries: list[tuple[bool, str]], more: list[tuple[bool, str]]
) -> None:
    short, long = adapt_ids(talk(entries), rule), adapt_ids(talk([*entries, *more]), rule)
    assert long[: len(entries)] == short


@examples(250)
@given(st.sampled_from([*RULES, *ODD, KIMI_IDS]), history)
def test_fitting_again_changes_nothing(rule: IdRule, entries: list[tuple[bool, str]]) -> None:
    once = adapt_ids(talk(entries), rule)
    assert adapt_ids(once, rule) is once
    assert adapt_ids(talk(entries), rule) == once


@pytest.mark.parametrize(
    ("rule", "call_id"),
    [
        (CHAT_IDS, "functions.Bash:0"),
        (CHAT_IDS, "x" * 40),
        (CHAT_IDS, "call_1__thought__" + "A+/=" * 100),
        (RESPONSES_IDS, "ä" * 64),
        (MESSAGES_IDS, "toolu_01A-b"),
        (MESSAGES_IDS, "x" * 64),
        (MISTRAL_IDS, "abcDEF123"),
        (KIMI_IDS, "functions.f:0"),
        (IdRule(), "anything at all: " * 50),
    ],
)
def test_legal_ids_leave_the_same_object(rule: IdRule, call_id: str) -> None:
    messages = exchange(call_id)
    assert adapt_ids(messages, rule) is messages
    assert adapt_ids(messages, rule, ids_in(messages)) is messages


@pytest.mark.parametrize("rule", [*RULES, KIMI_IDS])
def test_a_conversation_without_calls_stays_the_same_object(rule: IdRule) -> None:
    messages = (Message(role="user", parts=(Text(text="hi"), Opaque(dialect="x", value={"id": "a b"}))),)
    assert adapt_ids(messages, rule) is messages
    assert adapt_ids(messages, rule, frozenset()) is messages


def test_H043_foreign_ids_are_changed_alike_in_call_and_result_and_restored() -> None:
    messages = adapt_ids(exchange("functions.Bash:0"), MESSAGES_IDS)
    first, second = listed(messages)
    assert first == second
    assert first.startswith("functions_Bash_0_")


def test_H045_a_long_id_is_mapped_and_a_thought_in_an_id_is_left_to_who_reads_it() -> None:
    long, thought = "call_" + "x" * 78, "call_1__thought__" + "A+/=" * 30
    fitted = listed(adapt_ids(exchange(long, thought), CHAT_IDS))
    assert [len(call_id) for call_id in fitted[:2]] == [40, 40]
    assert fitted[2:] == [thought, thought]
    assert listed(adapt_ids(exchange(thought), OPENAI_IDS))[0] != thought


def test_H046_H047_mistral_gets_nine_letters_from_any_server() -> None:
    fitted = listed(adapt_ids(exchange("call_abc", "0f8fad5b-d9cb-469f-a165-70867728950e", "D681PevKs"), MISTRAL_IDS))
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call_id) for call_id in fitted)
    assert fitted[4] == "D681PevKs"


def test_H048_an_id_used_again_is_another_call_by_the_time_it_is_mapped() -> None:
    messages = exchange("call_0", "call_0", "call_0")
    settled = repair_history(Request(model="m", messages=messages)).request.messages
    fitted = listed(adapt_ids(settled, MISTRAL_IDS))
    assert fitted[::2] == fitted[1::2]
    assert len(set(fitted)) == 3


@pytest.mark.parametrize("rule", [MESSAGES_IDS, MISTRAL_IDS, CHAT_IDS])
def test_a_legal_id_that_was_given_to_another_call_already_is_mapped_itself(rule: IdRule) -> None:
    foreign = "a b" * 30
    taken = mapped([(True, foreign)], rule)[foreign]
    later = mapped([(True, foreign), (False, foreign), (True, taken), (False, taken)], rule)
    assert later[foreign] == taken
    assert later[taken] != taken
    assert is_legal(later[taken], rule)


@pytest.mark.parametrize("rule", [MESSAGES_IDS, MISTRAL_IDS, CHAT_IDS])
def test_an_id_whose_place_is_taken_from_the_start_tries_on(rule: IdRule) -> None:
    foreign = "a b" * 30
    entries, made = [], mapped([(True, foreign)], rule)[foreign]
    for _ in range(5):  # each of them legal, there first, and what the foreign one would have become
        entries.append((True, made))
        made = mapped([*entries, (True, foreign)], rule)[foreign]
        assert made not in {call_id for _, call_id in entries}
    found = mapped([*entries, (True, foreign)], rule)
    assert all(found[call_id] == call_id for _, call_id in entries)
    assert is_legal(found[foreign], rule)


def test_ids_are_given_in_the_order_of_parts_within_a_message_too() -> None:
    both = Message(role="assistant", parts=(call("a b"), call("functions.c:1")))
    alone = adapt_ids((Message(role="assistant", parts=(call("a b"),)),), MESSAGES_IDS)
    assert listed(adapt_ids((both,), MESSAGES_IDS))[0] == listed(alone)[0]


def test_a_changed_message_has_no_source_and_the_others_keep_theirs() -> None:
    messages = talk([(True, "a b"), (True, "fine"), (False, "a b"), (False, "fine")])
    fitted = adapt_ids(messages, MESSAGES_IDS)
    assert [message.source is None for message in fitted] == [True, False, True, False]
    assert fitted[1] is messages[1]
    assert fitted[0].parts[0] is messages[0].parts[0]


def test_item_ids_stay_and_what_only_a_source_can_tell_becomes_a_function() -> None:
    long = "c" * 90
    messages = (
        Message(role="assistant", parts=(call(long, item_id="fc_" + "1" * 80),)),
        Message(role="assistant", parts=(call(long + "t", kind="typed", item_id="lsh_1"),)),
        Message(role="tool", parts=(ToolResult(call_id=long + "t", parts=(), kind="typed"),)),
        Message(role="assistant", parts=(call(long + "c", kind="custom"),)),
    )
    first, typed, told, custom = (message.parts[0] for message in adapt_ids(messages, RESPONSES_IDS))
    assert isinstance(first, ToolCall)
    assert first.item_id == "fc_" + "1" * 80
    assert isinstance(typed, ToolCall)
    assert (typed.kind, typed.item_id) == ("function", "")
    assert isinstance(told, ToolResult)
    assert (told.kind, told.call_id) == ("function", typed.id)
    assert isinstance(custom, ToolCall)
    assert custom.kind == "custom"


def test_H118_H119_ids_tell_the_tool_and_the_number_of_the_call_whatever_they_were() -> None:
    messages = (
        Message(role="user", parts=(Text(text="go"),)),
        Message(role="assistant", parts=(call("functions.read:4", "read"), call("toolu_1", "bash"))),
        Message(role="tool", parts=(result("functions.read:4"), result("toolu_1"))),
        Message(role="assistant", parts=(call("functions.bash:1", "read"),)),
        Message(role="tool", parts=(result("functions.bash:1"),)),
    )
    assert listed(adapt_ids(messages, KIMI_IDS)) == [
        "functions.read:0",
        "functions.bash:1",
        "functions.read:0",
        "functions.bash:1",
        "functions.read:2",
        "functions.read:2",
    ]


def test_H118_numbers_go_on_over_the_conversation_and_never_change() -> None:
    ids = [f"call_{number}" for number in range(30)]
    long = listed(adapt_ids(exchange(*ids, name="a_b"), KIMI_IDS))
    assert long[::2] == long[1::2] == [f"functions.a_b:{number}" for number in range(30)]
    for cut in range(30):
        assert listed(adapt_ids(exchange(*ids[:cut], name="a_b"), KIMI_IDS)) == long[: 2 * cut]


def test_H048_H118_a_result_follows_the_last_call_of_its_id() -> None:
    assert listed(adapt_ids(exchange("call_0", "call_0"), KIMI_IDS)) == [
        "functions.f:0",
        "functions.f:0",
        "functions.f:1",
        "functions.f:1",
    ]
    early = talk([(False, "x"), (True, "x")])
    assert listed(adapt_ids(early, KIMI_IDS)) == ["functions.f:0", "functions.f:0"]


@given(history)
def test_H118_numbered_ids_are_given_to_calls_alone(entries: list[tuple[bool, str]]) -> None:
    messages = talk(entries)
    fitted = listed(adapt_ids(messages, KIMI_IDS))
    numbered = [call_id for (is_call, _), call_id in zip(entries, fitted, strict=True) if is_call]
    assert numbered == [f"functions.f:{number}" for number in range(len(numbered))]
    called = {call_id for is_call, call_id in entries if is_call}
    for (is_call, before), after in zip(entries, fitted, strict=True):
        assert is_call or (after in numbered) == (before in called)


def test_a_result_without_a_call_is_not_taken_for_one_that_is_there() -> None:
    messages = talk([(False, "functions.f:0"), (False, "lost"), (True, "a"), (False, "a")])
    stray, lost, *rest = listed(adapt_ids(messages, KIMI_IDS))
    assert stray.startswith("call_")
    assert lost == "lost"
    assert rest == ["functions.f:0", "functions.f:0"]


def test_a_thousand_legal_ids_cost_next_to_nothing_and_hostile_ones_cost_in_proportion() -> None:
    legal, hostile = (
        exchange(*(f"toolu_{n:020d}" for n in range(1000))),
        exchange(*(f"{n} " * 2000 for n in range(500))),
    )
    started = time.process_time()
    for _ in range(20):
        adapt_ids(legal, MESSAGES_IDS)
    adapt_ids(hostile, MESSAGES_IDS)
    assert time.process_time() - started < 1.0
