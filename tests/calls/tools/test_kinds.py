"""Tools of every kind as functions, and calls back as their clients declared them."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.calls.refusing import refusals
from toolwire.calls.tools.adapter import adapt_ids
from toolwire.calls.tools.kinds import CallRestorer, FunctionRequest, to_functions
from toolwire.dialects import DIALECTS
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted
from toolwire.profiles import ANTHROPIC, PLAIN_CHAT, RESPONSES
from toolwire.types import Choice, Message, Opaque, Request, Source, Text, Tool, ToolCall, ToolChoice, ToolResult, Usage

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
ALL = frozenset({"custom", "namespace", "typed", "hosted", "deferred"})
FUNCTION = Tool(name="read", schema=SCHEMA)
CUSTOM = Tool(name="edit", kind="custom", description="Edits.", grammar="(lark) start: /x/")
INNER = Tool(name="close", schema=SCHEMA, namespace="agents", label="agents__close")
TYPED = Tool(name="search", kind="typed", schema=SCHEMA, description="Finds.")
STRICT = Tool(name="shell", kind="typed", schema={**SCHEMA, "required": ["q"]}, strict=True)
HOSTED = Tool(name="web_search", kind="hosted")
DEFERRED = Tool(name="later", schema=SCHEMA, is_deferred=True)
TOOLS = (FUNCTION, CUSTOM, INNER, TYPED, HOSTED, DEFERRED)


def asked(*messages: Message, tools: tuple[Tool, ...] = TOOLS, **members: Any) -> Request:
    return Request(model="m", messages=messages or (said("user", Text(text="hi")),), tools=tools, **members)


def said(role: Any, *parts: Any) -> Message:
    return Message(role=role, parts=parts)


def lowered(**members: Any) -> FunctionRequest:
    return to_functions(asked(**members))


def restored(names: Any, name: str, raw: str, index: int = 0, kind: Any = "function") -> list[Event]:
    """One call as a back end streams it, in two pieces."""
    args = None
    with contextlib.suppress(ValueError):
        args = json.loads(raw)
    call = ToolCall(id="c", name=name, raw=raw, args=args if isinstance(args, dict) else None, kind=kind)
    restorer = CallRestorer(names)
    events: list[Event] = []
    for piece in (
        PartStarted(index=index, part=ToolCall(id="c", name=name, raw="", kind=kind)),
        PartDelta(index, raw[:3]),
        PartDelta(index, raw[3:]),
        PartEnded(index=index, part=call),
    ):
        events += restorer.send([piece])
    return events


def call_in(events: list[Event]) -> ToolCall:
    last = events[-1]
    assert isinstance(last, PartEnded)
    assert isinstance(last.part, ToolCall)
    first = events[0]
    assert isinstance(first, PartStarted)
    assert isinstance(first.part, ToolCall)
    assert (first.part.name, first.part.namespace, first.part.kind) == (
        last.part.name,
        last.part.namespace,
        last.part.kind,
    )
    assert "".join(event.text for event in events if isinstance(event, PartDelta)) == last.part.raw
    return last.part


def test_a_request_of_plain_functions_stays_the_same_object() -> None:
    request = asked(tools=(FUNCTION,))
    assert to_functions(request) == FunctionRequest(request, ids=frozenset())
    assert to_functions(request).request is request


def test_the_ids_of_a_plain_request_are_found_in_passing() -> None:
    call, result = ToolCall(id="1", name="read", raw="{}"), ToolResult(call_id="2", parts=())
    assert to_functions(asked(said("assistant", call), said("tool", result), tools=(FUNCTION,))).ids == {"1", "2"}
    assert to_functions(asked(said("assistant", call), tools=TOOLS)).ids is None


def history(dialect: str, call_id: str) -> dict[str, Any]:
    """A plain call and one of a tool that is more than a function, as far as the dialect has any, with its results."""
    plain = {"type": "object", "properties": {}}
    if dialect == "chat":
        function = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
        custom = {"id": f"{call_id}c", "type": "custom", "custom": {"name": "edit", "input": "x"}}
        messages = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "Now.", "tool_calls": [function, custom]},
            {"role": "tool", "tool_call_id": call_id, "content": "ok"},
            {"role": "tool", "tool_call_id": f"{call_id}c", "content": "ok"},
        ]
        return {
            "messages": messages,
            "tools": [
                {"type": "function", "function": {"name": "read", "parameters": plain}},
                {"type": "custom", "custom": {"name": "edit"}},
            ],
        }
    if dialect == "messages":
        calls = [{"type": "tool_use", "id": call_id + mark, "name": "bash", "input": {}} for mark in ("", "c")]
        results = [{"type": "tool_result", "tool_use_id": call_id + mark, "content": "ok"} for mark in ("", "c")]
        messages = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": calls},
            {"role": "user", "content": results},
        ]
        return {"max_tokens": 9, "messages": messages, "tools": [{"type": "bash_20250124", "name": "bash"}]}
    items = [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": f"{call_id}c", "name": "edit", "input": "x"},
        {"type": "function_call_output", "call_id": call_id, "output": "ok"},
        {"type": "custom_tool_call_output", "call_id": f"{call_id}c", "output": "ok"},
    ]
    return {
        "input": items,
        "tools": [{"type": "function", "name": "read", "parameters": plain}, {"type": "custom", "name": "edit"}],
    }


PROFILES = {"chat": PLAIN_CHAT, "messages": ANTHROPIC, "responses": RESPONSES}


@pytest.mark.parametrize("call_id", ["c" * 83, "functions.read:0 " * 6, "call_1"])
@pytest.mark.parametrize("dialect", list(PROFILES))
@pytest.mark.parametrize("target", list(PROFILES))
def test_H043_H044_H045_a_rewritten_call_and_the_message_of_its_result_keep_one_legal_id(
    dialect: str, target: str, call_id: str
) -> None:
    body = json.dumps({"model": "m", **history(dialect, call_id)}).encode()
    request, profile = DIALECTS[dialect].decode_request(body, {}), PROFILES[target]
    found = to_functions(request, longest=0 if target == dialect else 64)
    fitted = replace(found.request, messages=adapt_ids(found.request.messages, profile.ids, found.ids), wire=b"")
    encoded = DIALECTS[target].encode_request(fitted, profile)
    assert refusals(target, encoded.body) == []
    assert encoded.body.count(b"custom_tool_call") == encoded.body.count(b'"type":"custom"') == 0


def test_what_the_back_end_knows_stays() -> None:
    request = asked(said("assistant", ToolCall(id="c", name="edit", raw="x", kind="custom")))
    assert to_functions(request, ALL).request is request


def test_H102_every_kind_becomes_a_function_or_a_loss() -> None:
    found = lowered()
    assert [tool.name for tool in found.request.tools] == ["read", "edit", "agents__close", "search"]
    assert {tool.kind for tool in found.request.tools} == {"function"}
    edit = found.request.tools[1]
    assert edit.schema is not None
    assert edit.schema["required"] == ["input"]
    assert "start: /x/" in str(edit.description)
    assert [(loss.feature, loss.where) for loss in found.losses] == [("tool.hosted", 'tools "web_search"')]


def test_hosted_tools_pass_to_a_back_end_that_has_some() -> None:
    found = to_functions(asked(), frozenset({"hosted"}))
    assert HOSTED in found.request.tools
    assert found.losses == ()


def test_a_removed_tool_is_noticed_by_who_writes_the_request() -> None:
    found = lowered(tools=(FUNCTION, DEFERRED))
    assert found.request.has_new_tools
    assert [(tool.name, tool.source) for tool in found.request.tools] == [("read", None)]


def test_names_that_meet_are_kept_apart_and_restored() -> None:
    other = Tool(name="agents__close", schema=SCHEMA)
    found = lowered(tools=(other, INNER))
    assert [tool.name for tool in found.request.tools] == ["agents__close", "agents__close_2"]
    assert call_in(restored(found.names, "agents__close_2", "{}")).namespace == "agents"
    assert call_in(restored(found.names, "agents__close", "{}")).namespace == ""


@pytest.mark.parametrize("order", ["a.b a/b a_b", "a_b a.b a/b", "a/b a_b a.b"])
def test_a_tool_that_can_keep_its_name_keeps_it_wherever_it_stands(order: str) -> None:
    """And the others have theirs whatever the order."""
    found = lowered(tools=tuple(Tool(name=name, schema=SCHEMA) for name in order.split()))
    written = dict(zip(order.split(), (tool.name for tool in found.request.tools), strict=True))
    assert written == {"a_b": "a_b", "a.b": "a_b_2", "a/b": "a_b_3"}
    assert [call_in(restored(found.names, label, "{}")).name for label in written.values()] == order.split()


def test_a_flat_name_of_a_namespace_gives_way_to_a_tool_of_that_name() -> None:
    found = lowered(tools=(INNER, HOSTED, Tool(name="agents__close", schema=SCHEMA)))
    assert [tool.name for tool in found.request.tools] == ["agents__close_2", "agents__close"]
    assert call_in(restored(found.names, "agents__close", "{}")).namespace == ""


@pytest.mark.parametrize(
    "spelled", ["agents__close", "agents.close", "close", "agents_close", "functions.agents__close"]
)
def test_H058_a_namespace_is_restored_whatever_the_model_makes_of_the_name(spelled: str) -> None:
    call = call_in(restored(lowered().names, spelled, '{"q": "x"}'))
    assert (call.namespace, call.name, call.kind, call.raw) == ("agents", "close", "function", '{"q": "x"}')


def test_a_bare_name_that_two_tools_share_matches_nothing() -> None:
    two = (INNER, Tool(name="close", schema=SCHEMA, namespace="files", label="files__close"))
    assert call_in(restored(lowered(tools=two).names, "close", "{}")).namespace == ""


def test_unknown_names_pass_as_they_are() -> None:
    assert call_in(restored(lowered().names, "other", "{}")).name == "other"


def test_H103_a_freeform_call_comes_back_as_text() -> None:
    call = call_in(restored(lowered().names, "edit", json.dumps({"input": 'é中😀 "q" \\ \t'})))
    assert (call.kind, call.name, call.raw, call.args) == ("custom", "edit", 'é中😀 "q" \\ \t', None)


def test_a_call_that_came_freeform_already_is_left_alone() -> None:
    call = call_in(restored(lowered().names, "edit", '{"input": "x"}', kind="custom"))
    assert call.raw == '{"input": "x"}'


def test_a_typed_call_keeps_its_arguments() -> None:
    call = call_in(restored(lowered().names, "search", '{"q": "x"}'))
    assert (call.kind, call.raw, call.args) == ("typed", '{"q": "x"}', {"q": "x"})


def finished(reason: Any) -> Finished:
    return Finished(choices=(Choice(reason=reason),))


@pytest.mark.parametrize(("raw", "lacking"), [('{"q": ', "a JSON object."), ("{}", '"q"')])
def test_a_call_that_its_type_has_no_form_for_ends_the_answer_with_the_reason(raw: str, lacking: str) -> None:
    names = lowered(tools=(STRICT,)).names
    restorer = CallRestorer(names)  # type: ignore[arg-type]
    call = ToolCall(id="c", name="shell", raw=raw, args=None if raw != "{}" else {})
    events = restorer.send([PartStarted(index=0, part=ToolCall(id="c", name="shell", raw="")), PartDelta(0, raw)])
    events += restorer.send([PartEnded(index=0, part=call)])
    events += restorer.send([Noted(note=Usage()), finished("tool_calls")])
    assert [type(event) for event in events] == [PartStarted, Noted, Failed]
    assert isinstance(events[-1], Failed)
    assert "shell" in events[-1].error.message
    assert lacking in events[-1].error.message
    assert restorer.send([finished("stop")]) == []


def test_a_call_that_was_cut_leaves_an_answer_that_was_cut() -> None:
    restorer = CallRestorer(lowered(tools=(STRICT,)).names)  # type: ignore[arg-type]
    restorer.send([PartStarted(index=0, part=ToolCall(id="c", name="shell", raw=""))])
    restorer.send([PartDelta(0, '{"q'), PartEnded(index=0, part=ToolCall(id="c", name="shell", raw='{"q'))])
    assert restorer.send([finished("length")]) == [finished("length")]


def test_typed_calls_that_are_not_strict_pass_as_the_model_wrote_them() -> None:
    call = call_in(restored(lowered().names, "search", '{"q": '))
    assert (call.kind, call.raw, call.args) == ("typed", '{"q": ', None)


def test_H052_H053_names_that_no_back_end_takes_are_fitted_and_restored() -> None:
    long = Tool(name="close.it", namespace="n" * 70, label=f"{'n' * 70}__close.it", schema=SCHEMA)
    plain = Tool(name="files.read", schema=SCHEMA)
    history = said("assistant", ToolCall(id="1", name="files.read", raw="{}"), ToolCall(id="2", name="b c", raw="{}"))
    found = to_functions(
        asked(history, tools=(long, plain), tool_choice=ToolChoice(mode="named", names=("files.read",)))
    )
    label, other = (tool.name for tool in found.request.tools)
    assert other == "files_read"
    assert len(label) <= 64
    assert label.endswith("__close_it")
    assert [part.name for part in found.request.messages[0].parts if isinstance(part, ToolCall)] == [other, "b_c"]
    assert found.request.tool_choice is not None
    assert found.request.tool_choice.names == (other,)
    assert call_in(restored(found.names, label, "{}")).name == "close.it"
    assert call_in(restored(found.names, other, "{}")).name == "files.read"


def test_a_back_end_of_the_clients_dialect_gets_names_as_they_are() -> None:
    request = asked(tools=(Tool(name="files.read", schema=SCHEMA),))
    assert to_functions(request, longest=0).request is request


def test_calls_side_by_side_do_not_mix() -> None:
    restorer = CallRestorer(lowered().names)  # type: ignore[arg-type]
    one, two = ToolCall(id="a", name="edit", raw=""), ToolCall(id="b", name="read", raw="")
    events = restorer.send([PartStarted(index=0, part=one), PartStarted(index=1, part=two)])
    events += restorer.send(
        [PartDelta(0, '{"input"'), PartDelta(1, '{"q":'), PartDelta(0, ':"x"}'), PartDelta(1, "1}")]
    )
    events += restorer.send(
        [
            PartEnded(index=0, part=ToolCall(id="a", name="edit", raw='{"input":"x"}', args={"input": "x"})),
            PartEnded(index=1, part=ToolCall(id="b", name="read", raw='{"q":1}', args={"q": 1})),
        ]
    )
    assert [event.text for event in events if isinstance(event, PartDelta) and event.index == 0] == ["x"]
    assert [event.text for event in events if isinstance(event, PartDelta) and event.index == 1] == ['{"q":', "1}"]


def test_past_calls_are_sent_as_the_tools_are() -> None:
    request = asked(
        said("developer"),
        said("user", Text(text="go")),
        said("assistant", ToolCall(id="1", name="edit", raw="x\ny", kind="custom", item_id="ctc_1")),
        said("tool", ToolResult(call_id="1", parts=(Text(text="ok"),), kind="custom", item_id="ctco_1")),
        said("assistant", ToolCall(id="2", name="close", namespace="agents", raw="{}", args={})),
        said("assistant", ToolCall(id="3", name="gone", namespace="old", raw="{}", args={})),
        said("assistant", ToolCall(id="4", name="search", raw='{"q":1}', args={"q": 1}, kind="typed")),
    )
    messages = to_functions(request).request.messages
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "assistant",
        "assistant",
    ]
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
    assert [(call.kind, call.name, call.raw) for call in calls] == [
        ("function", "edit", '{"input":"x\\ny"}'),
        ("function", "agents__close", "{}"),
        ("function", "old__gone", "{}"),
        ("function", "search", '{"q":1}'),
    ]
    result = messages[2].parts[0]
    assert isinstance(result, ToolResult)
    assert result.kind == "function"


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        (ToolChoice(mode="auto"), "auto", ()),
        (ToolChoice(mode="named", names=("edit",)), "named", ("edit",)),
        (ToolChoice(mode="named", names=("agents__close",)), "named", ("agents__close",)),
        (ToolChoice(mode="named", names=("close",)), "named", ("agents__close",)),
        (ToolChoice(mode="allowed", names=("read", "close", "web_search")), "allowed", ("read", "agents__close")),
        (ToolChoice(mode="hosted", names=("search",)), "named", ("search",)),
    ],
)
def test_H056_a_choice_follows_the_names(choice: ToolChoice, mode: str, names: tuple[str, ...]) -> None:
    found = lowered(tool_choice=choice).request.tool_choice
    assert found is not None
    assert (found.mode, found.names) == (mode, names)


def test_a_choice_of_what_cannot_be_offered_is_a_loss() -> None:
    found = lowered(tool_choice=ToolChoice(mode="hosted", names=("web_search",)))
    assert found.request.tool_choice is None
    assert "tool_choice" in {loss.feature for loss in found.losses}


def test_foreign_parts_are_not_touched() -> None:
    part = Opaque(dialect="x", value={"type": "y"})
    assert to_functions(asked(said("assistant", part))).request.messages[0].parts == (part,)


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["f", "a__f", "g"])), max_size=6))
def test_each_flat_name_is_one_tool_and_leads_back_to_it(pairs: list[tuple[str, str]]) -> None:
    unique = list(dict.fromkeys(pairs))
    tools = tuple(
        Tool(name=name, namespace=space, label=f"{space}__{name}" if space else name, schema=SCHEMA)
        for space, name in unique
    )
    found = to_functions(asked(tools=(*tools, CUSTOM)))
    labels = [tool.name for tool in found.request.tools][:-1]
    assert len(set(labels)) == len(labels)
    for label, pair in zip(labels, unique, strict=True):
        call = call_in(restored(found.names, label, "{}"))
        assert (call.namespace, call.name) == pair


def declaring(*parts: Any) -> Message:
    return Message(role="system", parts=parts, declares_tools=True, source=Source("chat", {"tools": [{}]}))


def test_a_message_that_declares_tools_stays_where_the_back_end_takes_it() -> None:
    request = asked(said("user", Text(text="hi")), declaring(), tools=(FUNCTION,))
    assert to_functions(request, frozenset({"declared"})).request is request


@pytest.mark.parametrize("native", [frozenset(), frozenset({"custom", "hosted"})])
def test_elsewhere_the_tools_are_in_the_list_and_the_message_has_none(native: frozenset[str]) -> None:
    spoken = declaring(Text(text="Be terse."))
    found = to_functions(asked(said("user", Text(text="hi")), declaring(), spoken, tools=(FUNCTION,)), native).request
    assert [tool.name for tool in found.tools] == ["read"]
    assert found.has_new_tools
    assert found.messages[1:] == (said("system", Text(text="Be terse.")),)


def test_a_namespace_is_described_by_its_first_tool() -> None:
    tools = (
        replace(INNER, is_deferred=True, namespace_description="Agents of mine."),
        replace(INNER, name="open", label="agents__open", namespace_description="Agents of mine."),
        replace(
            INNER, name="list", label="agents__list", description="Lists.", namespace_description="Agents of mine."
        ),
        replace(
            INNER, name="look", namespace="web", label="web__look", description="Looks.", namespace_description="W."
        ),
    )
    found = lowered(tools=tools).request.tools
    assert {tool.name: tool.description for tool in found} == {
        "agents__open": "About all tools of agents: Agents of mine.",
        "agents__list": "Lists.",
        "web__look": "Looks.\n\nAbout all tools of web: W.",
    }


def test_members_of_a_tool_stay_when_it_gets_another_name() -> None:
    extra = {"messages": {"cache_control": {"type": "ephemeral"}}}
    assert lowered(tools=(replace(INNER, extra=extra),)).request.tools[0].extra == extra
