"""A request made ready for its back end: what changes, what is told, and that nothing changes without a need."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from msgspec.structs import replace

from toolwire.config.file import Guard
from toolwire.config.policy import Policy
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.pipeline.prepare import Preparation, has_past
from toolwire.profiles import PLAIN, IdRule, SchemaRules
from toolwire.types import Message, Request, Text, Tool, ToolCall, ToolResult

from .jobs import Closed, job_of, prepared

LEVELS: tuple[Guard, ...] = ("off", "check", "repair", "retry")
WEATHER = Tool(name="weather", schema={"type": "object", "properties": {"city": {"type": "string"}}})


def user(text: str = "hi") -> Message:
    return Message(role="user", parts=(Text(text=text),))


def called(call_id: str, raw: str = "{}") -> Message:
    return Message(role="assistant", parts=(ToolCall(id=call_id, name="weather", raw=raw, args={}),))


def answered(call_id: str, text: str = "sun") -> Message:
    return Message(role="tool", parts=(ToolResult(call_id=call_id, parts=(Text(text=text),)),))


def request_of(*messages: Message, tools: tuple[Tool, ...] = (WEATHER,), **more: Any) -> Request:
    return Request(model="m", messages=messages, tools=tools, origin="chat", wire=b"{}", **more)


@pytest.mark.parametrize("level", LEVELS)
def test_a_plain_request_stays_the_same_object(level: Guard) -> None:
    request = request_of(user(), called("call_1"), answered("call_1"))
    job = prepared(request, Closed(), level)
    assert job.request is request
    assert (job.stale, job.losses, job.names) == ("", [], None)
    assert not job.record.history
    assert job.offered == (WEATHER,)


@pytest.mark.parametrize("level", LEVELS)
def test_a_call_without_its_result_is_repaired_unless_the_owner_wants_nothing_touched(level: Guard) -> None:
    request = request_of(user(), called("call_1"), user("go on"))
    job = prepared(request, Closed(), level)
    assert (job.request is request) == (level == "off")
    if level != "off":
        assert job.stale == "its history had to be repaired"
        assert [loss.feature for loss in job.losses] == [f"history.{kind}" for kind in job.record.history]
        assert job.record.history


def test_another_dialect_gets_a_settled_history_at_every_level() -> None:
    request = request_of(user(), called("call_1"), user("go on"))
    assert prepared(request, Closed("messages"), "off").record.history


@pytest.mark.parametrize("level", LEVELS)
def test_an_invalid_tool_is_refused_unless_the_guard_is_off(level: Guard) -> None:
    bad = Tool(name="bad", schema={"type": "object", "properties": {"x": {"anyOf": 3}}})
    request = request_of(user(), tools=(bad,))
    if level == "off":
        assert prepared(request, Closed(), level).request is request
        return
    with pytest.raises(BadRequest, match="bad"):
        prepared(request, Closed(), level)


def test_tools_of_other_kinds_become_functions_and_the_reason_is_reported() -> None:
    patch = Tool(name="apply_patch", kind="custom", description="Edits.")
    job = prepared(request_of(user(), tools=(patch,)), Closed(), "check")
    assert job.names is not None
    assert job.names.tool("apply_patch") is patch
    assert [tool.kind for tool in job.offered] == ["function"]
    assert job.stale.startswith("the back end does not know all kinds")


def test_ids_are_fitted_to_the_back_end_and_pairs_stay_pairs() -> None:
    profile = replace(PLAIN, ids=IdRule(letters="base62", length=9))
    request = request_of(user(), called("call-1"), answered("call-1"))
    job = prepared(request, Closed(profile=profile), "check")
    [made] = [part for message in job.request.messages for part in message.parts if isinstance(part, ToolCall)]
    [result] = [part for message in job.request.messages for part in message.parts if isinstance(part, ToolResult)]
    assert made.id == result.call_id != "call-1"
    assert len(made.id) == 9
    assert job.stale
    assert job.request.wire == b""


@pytest.mark.parametrize("level", LEVELS)
def test_H137_a_model_that_repeats_itself_gets_a_note_only_with_a_guard(level: Guard) -> None:
    rounds = [message for number in range(4) for message in (called(f"c{number}"), answered(f"c{number}"))]
    job = prepared(request_of(user(), *rounds), Closed(), level)
    is_instructed = level == "retry"
    assert ("loop" in {loss.feature for loss in job.losses}) == is_instructed
    assert ("Notice" in str(job.request.messages)) == is_instructed


def test_large_histories_and_large_tools_that_were_not_seen_are_costly() -> None:
    preparation = Preparation()
    tools = [{"type": "function", "function": {"name": f"t{n}", "description": "d" * 5000}} for n in range(60)]
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    wire = json.dumps(body).encode()
    request = replace(DIALECTS["chat"].decode_request(wire, {}), size=len(wire))
    assert preparation.is_large(request)
    prepared(request, preparation=preparation)
    assert not preparation.is_large(request)
    assert preparation.is_large(replace(request, size=2 << 20))
    assert not preparation.is_large(replace(request, tools=(), size=500_000))
    assert not preparation.is_large(replace(request, tools=(WEATHER,), size=1000))


def test_tools_that_fit_one_back_end_are_still_adapted_to_another() -> None:
    """What is remembered about a list is valid for the rules that it was found under, and for a history of any kind."""
    preparation = Preparation()
    union = {"anyOf": [{"type": "object"}, {"type": "null"}]}
    tools = [{"type": "function", "function": {"name": "t" * 30, "parameters": union}}]
    first = [{"role": "user", "content": "hi"}]
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "x"}}
    later = [
        *first,
        {"role": "assistant", "content": None, "tool_calls": [custom]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    any_union = Closed(profile=replace(PLAIN, schemas=SchemaRules(), name_length=64))
    no_union = Closed(profile=replace(PLAIN, schemas=SchemaRules(has_root_unions=False), name_length=64))
    short = Closed(profile=replace(PLAIN, schemas=SchemaRules(), name_length=20))
    for _ in range(3):
        for messages in (first, later):
            body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
            request = DIALECTS["chat"].decode_request(body, {})
            is_first = messages is first
            job = prepared(request, any_union, preparation=preparation)
            assert (job.request is request) == is_first
            assert job.request.tools[0].schema == union
            assert [tool.name for tool in job.offered] == ["t" * 30]
            adapted = prepared(request, no_union, preparation=preparation).request.tools[0].schema
            assert adapted is not None
            assert "anyOf" not in adapted
            assert len(prepared(request, short, preparation=preparation).offered[0].name) <= 20


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((user(),), False),
        ((Message(role="system", parts=(Text(text="x"),)), user(), user()), False),
        ((user(), Message(role="assistant", parts=(Text(text="x"),))), True),
        ((Message(role="user", parts=(ToolResult(call_id="c", parts=()),)),), True),
        ((answered("c"),), True),
        ((Message(role="developer", parts=(), declares_tools=True), user()), True),
        ((Message(role="user", parts=()),), True),
    ],
)
def test_a_past_is_more_than_instructions_and_input(messages: tuple[Message, ...], expected: bool) -> None:
    assert has_past(request_of(*messages)) == expected


def test_an_empty_list_of_tools_is_removed_where_nothing_else_is_to_be_done() -> None:
    request = request_of(user(), tools=(), source={"tools": []})
    assert prepared(request, Closed()).stale == "the back end accepts other schemas"
    assert prepared(request_of(user(), tools=()), Closed()).stale == ""


@pytest.mark.slow
def test_threads_share_what_was_learned() -> None:
    """Evictions included: the caches are small enough to be full all the time."""
    preparation = Preparation()
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for number in range(1500):
                schema = {"type": "object", "properties": {f"p{(number * seed) % 1300}": {"type": "string"}}}
                tool = Tool(name="t", schema=schema)
                prepared(request_of(user(), tools=(tool,)), Closed("messages"), preparation=preparation)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(preparation.schemas) == 1000


def test_the_owner_can_have_definitions_shortened() -> None:
    tool = Tool(name="t", description="Long text. " * 60, schema={"type": "object", "title": "T"})
    request = Request(model="m", messages=(Message(role="user", parts=(Text(text="x"),)),), tools=(tool,))
    for is_wanted in (False, True):
        job = job_of(request, policy=Policy(tools_diet=is_wanted))
        asyncio.run(Preparation().run(job))
        [sent] = job.request.tools
        assert (sent.schema == {"type": "object"}) == is_wanted
        assert [loss.feature for loss in job.losses] == ["tools.diet"] * is_wanted
        assert bool(job.stale) == is_wanted
