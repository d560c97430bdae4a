"""Tools of a conversation, looked at once."""

from __future__ import annotations

import json
import time

import pytest

from toolwire.calls.schemas import Schemas, ToolSets
from toolwire.errors import BadRequest
from toolwire.types import Request, Tool

GOOD = {"type": "object", "properties": {"a": {"type": "string"}}}
BAD = {"type": "object", "properties": {"a": {"type": 5}}}


def request(schema: object, turns: int = 1, *, is_first: bool = True, name: str = "t") -> Request:
    tools = {"tools": [{"name": name, "input_schema": schema}]}
    rest = {"messages": [{"role": "user", "content": "x" * 50}] * turns}
    body = {**tools, **rest} if is_first else {**rest, **tools}
    assert isinstance(schema, dict)
    return Request(model="m", messages=(), tools=(Tool(name=name, schema=schema),), wire=json.dumps(body).encode())


class Counting(Schemas):
    looks = 0

    def check(self, tool: Tool, where: str = "") -> None:
        self.looks += 1
        super().check(tool, where)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_same_tools_are_looked_at_once(is_first: bool) -> None:
    schemas = Counting()
    sets = ToolSets(schemas)
    for turns in range(1, 9):
        sets.check(request(GOOD, turns, is_first=is_first))
    assert schemas.looks == 1
    sets.check(request(GOOD, 3, is_first=is_first, name="u"))
    assert schemas.looks == 2


def test_bad_ones_are_refused_every_time_and_good_ones_beside_them_are_not() -> None:
    sets = ToolSets(Schemas())
    for _ in range(3):
        sets.check(request(GOOD))
        with pytest.raises(BadRequest, match=r"properties\.a\.type"):
            sets.check(request(BAD))


def test_a_body_that_is_not_at_hand_is_looked_at_each_time() -> None:
    schemas = Counting()
    sets = ToolSets(schemas)
    for wire in (b"", b"{", b"[]", b'{"tools":[]}', b'{"x":1}'):
        sets.check(Request(model="m", messages=(), tools=(Tool(name="t", schema=GOOD),), wire=wire))
    assert schemas.looks == 5


def test_freeform_and_hosted_tools_have_no_schema_to_look_at() -> None:
    tools = (Tool(name="t", schema=BAD, kind="hosted"), Tool(name="u", kind="custom"))
    ToolSets(Schemas()).check(Request(model="m", messages=(), tools=tools))


def test_it_is_bounded() -> None:
    sets = ToolSets(Schemas())
    for number in range(200):
        sets.check(request(GOOD, name=f"t{number}"))
    assert len(sets._known) <= 64


def test_a_large_set_is_recognised_in_microseconds() -> None:
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "d" * 100} for n in range(700)},
    }
    sets = ToolSets(Schemas())
    sets.check(request(schema))
    again = request(schema, 5)
    started = time.process_time()
    for _ in range(200):
        sets.check(again)
    assert (time.process_time() - started) / 200 < 0.0005
