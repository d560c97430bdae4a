"""Tool lists that are checked once, and what is known about them."""

from __future__ import annotations

import json
import time

import pytest

from toolwire.calls.schemas import Schemas
from toolwire.calls.tools.tool_lists import ToolLists
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.types import Request, Tool

GOOD = {"type": "object", "properties": {"a": {"type": "string"}}}
BAD = {"type": "object", "properties": {"a": {"type": 5}}}


def request(schema: object, turns: int = 1, *, is_first: bool = True, name: str = "t") -> Request:
    tools = {"tools": [{"name": name, "input_schema": schema}]}
    rest = {"messages": [{"role": "user", "content": "x" * 50}] * turns}
    return decoded({**tools, **rest} if is_first else {**rest, **tools})


def decoded(body: dict[str, object], dialect: str = "messages") -> Request:
    head = {"model": "m", "max_tokens": 9} if dialect == "messages" else {"model": "m"}
    return DIALECTS[dialect].decode_request(json.dumps({**head, **body}).encode(), {})


class Counting(Schemas):
    looks = 0

    def check(self, tool: Tool, where: str = "") -> None:
        self.looks += 1
        super().check(tool, where)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_same_tools_are_looked_at_once(is_first: bool) -> None:
    schemas = Counting()
    lists = ToolLists(schemas)
    for turns in range(1, 9):
        lists.check(request(GOOD, turns, is_first=is_first))
    assert schemas.looks == 1
    lists.check(request(GOOD, 3, is_first=is_first, name="u"))
    assert schemas.looks == 2


def test_bad_ones_are_refused_every_time_and_good_ones_beside_them_are_not() -> None:
    lists = ToolLists(Schemas())
    for _ in range(3):
        lists.check(request(GOOD))
        with pytest.raises(BadRequest, match=r"properties\.a\.type"):
            lists.check(request(BAD))


def test_a_body_that_is_not_at_hand_is_looked_at_each_time() -> None:
    schemas = Counting()
    lists = ToolLists(schemas)
    for wire in (b"", b"{", b"[]", b'{"tools":[]}', b'{"x":1}'):
        lists.check(Request(model="m", messages=(), tools=(Tool(name="t", schema=GOOD),), wire=wire))
    assert schemas.looks == 5


def test_tools_that_a_conversation_brings_are_looked_at_beside_known_ones() -> None:
    schemas = Counting()
    lists = ToolLists(schemas)
    tools = [{"type": "function", "name": "t", "parameters": GOOD}]
    for schema in (GOOD, GOOD, BAD):
        items = [{"type": "additional_tools", "tools": [{"type": "function", "name": "u", "parameters": schema}]}]
        lists.check(decoded({"tools": tools, "input": "hi"}, "responses"))
        asked = decoded({"tools": tools, "input": [{"role": "user", "content": "hi"}, *items]}, "responses")
        if schema is BAD:
            with pytest.raises(BadRequest):
                lists.check(asked)
        else:
            assert lists.check(asked).recall("x") is None
    assert schemas.looks == 1 + 3 * 2


def test_what_was_found_out_about_a_list_is_there_when_it_comes_again() -> None:
    lists = ToolLists(Schemas())
    first = lists.check(request(GOOD))
    assert first.recall("rules") is None
    first.remember("rules", {0: "fits"})
    asked = request(GOOD, 7)
    again = lists.check(asked)
    assert again.tools is asked.tools
    assert again.recall("rules") == {0: "fits"}
    assert again.recall("other rules") is None
    assert lists.check(request(GOOD, name="u")).recall("rules") is None


def test_tools_in_namespaces_are_known_again_too() -> None:
    inner = {"type": "function", "name": "t", "parameters": GOOD}
    body = {"tools": [{"type": "namespace", "name": "n", "tools": [inner, {**inner, "name": "u"}]}], "input": "hi"}
    lists = ToolLists(Schemas())
    lists.check(decoded(body, "responses")).remember("a", 1)
    assert lists.check(decoded(body, "responses")).recall("a") == 1


def test_who_repeats_known_bytes_beside_other_tools_cannot_decide_what_others_get() -> None:
    lists = ToolLists(Schemas())
    tools = json.dumps([{"name": "t", "input_schema": GOOD}])
    other = json.dumps([{"name": "t", "input_schema": {"type": "object"}}])
    honest = f'{{"model": "m", "max_tokens": 9, "tools": {tools}, "messages": [{{"role": "user", "content": "x"}}]}}'
    hostile = honest[:-1] + f', "tools": {other}}}'
    decode = DIALECTS["messages"].decode_request
    lists.check(decode(honest.encode(), {}))
    lists.check(decode(hostile.encode(), {})).remember("rules", "poison")
    assert lists.check(decode(honest.encode(), {})).recall("rules") is None


def test_a_list_has_a_bounded_memory() -> None:
    lists = ToolLists(Schemas())
    for number in range(100):
        lists.check(request(GOOD)).remember(number, number)
    kept = lists.check(request(GOOD))
    assert kept.recall(99) == 99
    assert sum(kept.recall(number) is not None for number in range(100)) <= 8


def test_freeform_and_hosted_tools_have_no_schema_to_look_at() -> None:
    tools = (Tool(name="t", schema=BAD, kind="hosted"), Tool(name="u", kind="custom"))
    ToolLists(Schemas()).check(Request(model="m", messages=(), tools=tools))


def test_it_is_bounded() -> None:
    lists = ToolLists(Schemas())
    for number in range(200):
        lists.check(request(GOOD, name=f"t{number}"))
    assert len(lists) <= 64


def test_a_large_set_is_recognised_in_microseconds() -> None:
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "d" * 100} for n in range(700)},
    }
    lists = ToolLists(Schemas())
    lists.check(request(schema))
    again = request(schema, 5)
    started = time.process_time()
    for _ in range(200):
        lists.check(again)
    assert (time.process_time() - started) / 200 < 0.0005
