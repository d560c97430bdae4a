"""Tool lists that are decoded and checked once, and what is known about them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from toolwire.calls.schemas import Schemas
from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.tool_lists import TOOL_LISTS, ToolListCache
from toolwire.errors import BadRequest
from toolwire.types import RecurringTools, Request, Tool

GOOD = {"type": "object", "properties": {"a": {"type": "string"}}}
BAD = {"type": "object", "properties": {"a": {"type": 5}}}


def request(schema: object, turns: int = 1, *, is_first: bool = True, name: str = "t") -> Request:
    tools = {"tools": [{"name": name, "input_schema": schema}]}
    rest = {"messages": [{"role": "user", "content": "x" * 50}] * turns}
    return decoded({**tools, **rest} if is_first else {**rest, **tools})


def decoded(body: dict[str, object], dialect: str = "messages") -> Request:
    head = {"model": "m", "max_tokens": 9} if dialect == "messages" else {"model": "m"}
    return DIALECTS[dialect].decode_request(json.dumps({**head, **body}).encode(), {})


def recurring(found: Request) -> RecurringTools:
    assert isinstance(found.tools, RecurringTools)
    return found.tools


class Counting(Schemas):
    looks = 0

    def check(self, tool: Tool, where: str = "") -> None:
        self.looks += 1
        super().check(tool, where)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_same_tools_are_looked_at_once(is_first: bool) -> None:
    schemas = Counting()
    name = f"first {is_first}"
    for turns in range(1, 9):
        schemas.check_all(request(GOOD, turns, is_first=is_first, name=name).tools)
    assert schemas.looks == 1
    schemas.check_all(request(GOOD, 3, is_first=is_first, name=f"{name} of all").tools)
    assert schemas.looks == 2


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_a_body_with_a_known_list_is_decoded_as_any_other(dialect: str) -> None:
    function = {"name": "f", "description": 'é \\u00e9 " ]', "parameters": {**GOOD, "default": 1.50}}
    tools: dict[str, list[dict[str, Any]]] = {
        "chat": [{"type": "function", "function": function}],
        "messages": [{"name": "f", "input_schema": GOOD, "cache_control": {"type": "ephemeral"}}],
        "responses": [{"type": "function", **function}, {"type": "web_search"}],
    }
    items = "input" if dialect == "responses" else "messages"
    for turns in range(1, 4):
        said = [{"role": "user", "content": f"[{turn}]"} for turn in range(turns)]
        for body in ({"tools": tools[dialect], items: said}, {items: said, "tools": tools[dialect]}):
            found = decoded(body, dialect)
            assert found.source["tools"] == tools[dialect]
            assert list(found.source) == list(json.loads(found.wire))
            assert len(found.messages) == turns
            assert found.tools[0].name == "f"
            assert found.tools is decoded(body, dialect).tools


def test_bad_ones_are_refused_every_time_and_good_ones_beside_them_are_not() -> None:
    schemas = Schemas()
    for _ in range(3):
        schemas.check_all(request(GOOD).tools)
        with pytest.raises(BadRequest, match=r"properties\.a\.type"):
            schemas.check_all(request(BAD).tools)


def test_a_body_that_is_not_at_hand_is_looked_at_each_time() -> None:
    schemas = Counting()
    for wire in (b"", b"{", b"[]", b'{"tools":[]}', b'{"x":1}'):
        schemas.check_all(Request(model="m", messages=(), tools=(Tool(name="t", schema=GOOD),), wire=wire).tools)
    assert schemas.looks == 5


def test_tools_that_a_conversation_brings_are_looked_at_beside_known_ones() -> None:
    schemas = Counting()
    tools = [{"type": "function", "name": "brought", "parameters": GOOD}]
    for schema in (GOOD, GOOD, BAD):
        items = [{"type": "additional_tools", "tools": [{"type": "function", "name": "u", "parameters": schema}]}]
        schemas.check_all(decoded({"tools": tools, "input": "hi"}, "responses").tools)
        asked = decoded({"tools": tools, "input": [{"role": "user", "content": "hi"}, *items]}, "responses")
        if schema is BAD:
            with pytest.raises(BadRequest):
                schemas.check_all(asked.tools)
        else:
            schemas.check_all(asked.tools)
            assert not isinstance(asked.tools, RecurringTools)
    assert schemas.looks == 1 + 3 * 2


def test_messages_that_declare_tools_are_read_beside_a_known_list() -> None:
    tool = {"type": "function", "function": {"name": "listed", "parameters": GOOD}}
    user = {"role": "user", "content": "hi"}
    declaring = {"role": "system", "tools": [{"type": "function", "function": {"name": "late"}}]}
    for _ in range(3):
        assert [one.name for one in decoded({"tools": [tool], "messages": [user]}, "chat").tools] == ["listed"]
        found = decoded({"tools": [tool], "messages": [user, declaring]}, "chat")
        assert [one.name for one in found.tools] == ["listed", "late"]
        old = decoded({"tools": [tool], "messages": [user], "functions": [{"name": "old"}]}, "chat")
        assert [one.name for one in old.tools] == ["listed", "old"]


def test_what_was_found_out_about_a_list_is_there_when_it_comes_again() -> None:
    first = recurring(request(GOOD, name="remembered"))
    assert "rules" not in first.facts
    first.remember("rules", {0: "fits"})
    again = recurring(request(GOOD, 7, name="remembered"))
    assert again.facts == {"rules": {0: "fits"}}
    assert "rules" not in recurring(request(GOOD, name="another")).facts


def test_tools_in_namespaces_are_known_again_too() -> None:
    inner = {"type": "function", "name": "t", "parameters": GOOD}
    body = {"tools": [{"type": "namespace", "name": "n", "tools": [inner, {**inner, "name": "u"}]}], "input": "hi"}
    recurring(decoded(body, "responses")).remember("a", 1)
    assert recurring(decoded(body, "responses")).facts["a"] == 1


def test_who_repeats_known_bytes_beside_other_tools_cannot_decide_what_others_get() -> None:
    tools = json.dumps([{"name": "honest", "input_schema": GOOD}])
    other = json.dumps([{"name": "other", "input_schema": {"type": "object"}}])
    honest = f'{{"model": "m", "max_tokens": 9, "tools": {tools}, "messages": [{{"role": "user", "content": "x"}}]}}'
    hostile = honest[:-1] + f', "tools": {other}}}'
    decode = DIALECTS["messages"].decode_request
    recurring(decode(honest.encode(), {}))
    for _ in range(2):
        poisoned = recurring(decode(hostile.encode(), {}))
        assert [tool.name for tool in poisoned] == ["other"]
        poisoned.remember("rules", "poison")
    assert "rules" not in recurring(decode(honest.encode(), {})).facts


def test_known_bytes_in_another_place_are_not_taken_for_the_list() -> None:
    tools = json.dumps([{"name": "t", "input_schema": GOOD}])
    cache = ToolListCache()
    assert cache.decode(f'{{"tools":{tools},"a":1}}'.encode())["a"] == 1
    same_place = f'{{"other":{tools},"a":1}}'.encode().replace(b'"other"', b'"tool5"')
    assert cache.decode(same_place) == {"tool5": json.loads(tools), "a": 1}
    assert cache.known({"tools": json.loads(tools)}, "messages") is None
    inside = json.dumps({"tools": [], "a": tools}).encode()
    assert cache.decode(inside) == {"tools": [], "a": tools}
    with pytest.raises(BadRequest, match="not valid JSON"):
        cache.decode(f'{{"tools":{tools},"a":1'.encode())


def test_a_list_has_a_bounded_memory() -> None:
    for number in range(100):
        recurring(request(GOOD, name="bounded")).remember(number, number)
    facts = recurring(request(GOOD, name="bounded")).facts
    assert facts[99] == 99
    assert len(facts) <= 8


def test_freeform_and_hosted_tools_have_no_schema_to_look_at() -> None:
    Schemas().check_all((Tool(name="t", schema=BAD, kind="hosted"), Tool(name="u", kind="custom")))


def test_it_is_bounded() -> None:
    for number in range(200):
        request(GOOD, name=f"t{number}")
    assert len(TOOL_LISTS) <= 64


def test_a_large_set_is_recognised_in_microseconds() -> None:
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "d" * 100} for n in range(700)},
    }
    schemas = Schemas()
    schemas.check_all(request(schema).tools)
    again = request(schema, 5)
    started = time.process_time()
    for _ in range(200):
        schemas.check_all(again.tools)
        TOOL_LISTS.decode(again.wire)
    assert (time.process_time() - started) / 200 < 0.0005
