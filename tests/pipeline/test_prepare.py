"""A request made ready for its back end: what changes, what is told, and that nothing changes without a need."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from msgspec.structs import replace

from toolwire.backends.base import EventReply, Model
from toolwire.config.file import Guard
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.pipeline.prepare import Preparing
from toolwire.profiles import PLAIN, IdRule, Profile
from toolwire.types import Message, Request, Text, Tool, ToolCall, ToolResult

LEVELS: tuple[Guard, ...] = ("off", "check", "repair", "retry")
WEATHER = Tool(name="weather", schema={"type": "object", "properties": {"city": {"type": "string"}}})


class Named:
    """A back end that is only looked at."""

    name = "b"

    def __init__(self, dialect: str = "chat", profile: Profile = PLAIN, kinds: frozenset[str] = frozenset()) -> None:
        self.dialect = dialect
        self.profile = profile
        self.tool_kinds = kinds

    async def models(self) -> list[Model]:
        return []

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        raise AssertionError("nobody is asked yet")

    async def close(self) -> None:
        pass


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
    prepared = Preparing().prepare(request, Named(), level, is_own=True)
    assert prepared.request is request
    assert (prepared.why, prepared.losses, prepared.repairs, prepared.names) == ("", (), (), None)
    assert prepared.offered == (WEATHER,)


@pytest.mark.parametrize("level", LEVELS)
def test_a_call_without_its_result_is_repaired_unless_the_owner_wants_nothing_touched(level: Guard) -> None:
    request = request_of(user(), called("call_1"), user("go on"))
    prepared = Preparing().prepare(request, Named(), level, is_own=True)
    assert (prepared.request is request) == (level == "off")
    if level != "off":
        assert prepared.why == "its history had to be repaired"
        assert [loss.feature for loss in prepared.losses] == [f"history.{repair.kind}" for repair in prepared.repairs]
        assert prepared.repairs


def test_another_dialect_gets_a_settled_history_at_every_level() -> None:
    request = request_of(user(), called("call_1"), user("go on"))
    assert Preparing().prepare(request, Named("messages"), "off", is_own=False).repairs


@pytest.mark.parametrize("level", LEVELS)
def test_a_tool_that_nobody_can_understand_is_refused_unless_the_owner_wants_nothing_touched(level: Guard) -> None:
    bad = Tool(name="bad", schema={"type": "object", "properties": {"x": {"anyOf": 3}}})
    request = request_of(user(), tools=(bad,))
    if level == "off":
        assert Preparing().prepare(request, Named(), level, is_own=True).request is request
        return
    with pytest.raises(BadRequest, match="bad"):
        Preparing().prepare(request, Named(), level, is_own=True)


def test_tools_of_other_kinds_become_functions_and_the_client_is_told_the_reason() -> None:
    patch = Tool(name="apply_patch", kind="custom", description="Edits.")
    prepared = Preparing().prepare(request_of(user(), tools=(patch,)), Named(), "check", is_own=True)
    assert prepared.names is not None
    assert prepared.names.tool("apply_patch") is patch
    assert [tool.kind for tool in prepared.offered] == ["function"]
    assert prepared.why.startswith("the back end does not know all kinds")


def test_ids_are_fitted_to_the_back_end_and_pairs_stay_pairs() -> None:
    profile = replace(PLAIN, ids=IdRule(letters="base62", length=9))
    request = request_of(user(), called("call-1"), answered("call-1"))
    prepared = Preparing().prepare(request, Named(profile=profile), "check", is_own=True)
    [made] = [part for message in prepared.request.messages for part in message.parts if isinstance(part, ToolCall)]
    [result] = [part for message in prepared.request.messages for part in message.parts if isinstance(part, ToolResult)]
    assert made.id == result.call_id != "call-1"
    assert len(made.id) == 9
    assert prepared.why
    assert prepared.request.wire == b""


@pytest.mark.parametrize("level", LEVELS)
def test_H137_a_model_that_repeats_itself_is_told_only_where_it_is_guarded(level: Guard) -> None:
    rounds = [message for number in range(4) for message in (called(f"c{number}"), answered(f"c{number}"))]
    prepared = Preparing().prepare(request_of(user(), *rounds), Named(), level, is_own=True)
    is_told = level in ("repair", "retry")
    assert ("loop" in {loss.feature for loss in prepared.losses}) == is_told
    assert ("Notice" in str(prepared.request.messages)) == is_told


def test_large_histories_and_large_tools_that_were_not_seen_are_costly() -> None:
    preparing = Preparing()
    tools = [{"type": "function", "function": {"name": f"t{n}", "description": "d" * 5000}} for n in range(60)]
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    wire = json.dumps(body).encode()
    request = replace(DIALECTS["chat"].decode_request(wire, {}), size=len(wire))
    assert preparing.is_costly(request)
    preparing.prepare(request, Named(), "check", is_own=True)
    assert not preparing.is_costly(request)
    assert preparing.is_costly(replace(request, size=2 << 20))
    assert not preparing.is_costly(replace(request, tools=(), size=500_000))
    assert not preparing.is_costly(replace(request, tools=(WEATHER,), size=1000))


def test_threads_share_what_was_learned() -> None:
    """Evictions included: the caches are small enough to be full all the time."""
    preparing = Preparing()
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for number in range(1500):
                schema = {"type": "object", "properties": {f"p{(number * seed) % 1300}": {"type": "string"}}}
                tool = Tool(name="t", schema=schema)
                preparing.prepare(request_of(user(), tools=(tool,)), Named("messages"), "check", is_own=False)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(preparing.schemas) == 1000
