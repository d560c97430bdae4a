"""Schemas compiled once, and never fetched."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from toolwire.calls.schemas import Schemas, ToolSets, check_schema
from toolwire.calls.schemas.cache import MAX_SCHEMAS
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.types import Request, Tool

pytestmark = pytest.mark.slow


def test_one_schema_is_compiled_once() -> None:
    schemas = Schemas()
    first = schemas.of({"type": "object", "properties": {"a": {"type": "string"}}})
    assert schemas.of({"type": "object", "properties": {"a": {"type": "string"}}}) is first
    assert schemas.of({"type": "object", "properties": {"a": {"type": "integer"}}}) is not first
    assert len(schemas) == 2


def test_it_is_bounded_and_drops_what_was_not_used_lately() -> None:
    schemas = Schemas(max_bytes=20_000)
    kept = schemas.of({"title": "kept"})
    for number in range(500):
        schemas.of({"title": f"number {number}", "properties": {"a": {"type": "string"}}})
        assert schemas.of({"title": "kept"}) is kept
    assert len(schemas) < 50
    assert schemas.of({"title": "number 0"}) is not kept


def test_one_that_is_large_does_not_push_out_others() -> None:
    schemas = Schemas(max_bytes=20_000)
    schemas.of({"title": "kept"})
    schemas.of({"title": "x" * 30_000})
    assert len(schemas) == 1


def test_no_schema_takes_any_object() -> None:
    checker = Schemas().of(None).checker
    assert checker is not None
    assert checker.fits({"a": [1, None]}, 12)
    assert not checker.notes


def test_references_are_never_fetched_nor_read(tmp_path: Path) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    port = server.server_address[1]
    file = tmp_path / "schema.json"
    file.write_text('{"type": "integer"}')
    before = file.stat().st_atime_ns
    schemas = Schemas()
    try:
        for address in (f"http://127.0.0.1:{port}/x", f"http://127.0.0.1:{port}/x#/a", file.as_uri(), str(file)):
            for schema in (
                {"properties": {"a": {"$ref": address}}},
                {"$ref": address},
                {"$schema": address, "type": "object"},
                {"$id": address, "properties": {"a": {"$ref": "other"}}},
                {"properties": {"a": {"$dynamicRef": address}}},
                {"$vocabulary": {address: True}, "allOf": [{"$recursiveRef": address}]},
            ):
                compiled = schemas.of(schema)
                is_plain = "$schema" in schema
                assert (compiled.checker is not None) == is_plain
                assert is_plain or "reference" in compiled.reason
                assert compiled.fault is None
    finally:
        server.shutdown()
        server.server_close()
    assert asked == []
    assert file.stat().st_atime_ns == before


def test_a_schema_that_means_nothing_is_refused_with_tool_and_path() -> None:
    with pytest.raises(BadRequest) as caught:
        check_schema(Tool(name="get_weather", schema={"properties": {"city": {"type": 5}}}), "tools[3]")
    said = caught.value.sentence()
    assert "get_weather" in said
    assert "properties.city.type" in said
    assert said.startswith("tools[3]: ")
    assert caught.value.code == "invalid_tool_schema"
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "any", "required": True}}},
        {"type": "object", "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "made-up", "nullable": True}}},
        {"type": None},
        {"properties": []},
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}},
        {"properties": {"a": {"pattern": "("}}},
        None,
        {},
    ],
)
def test_what_is_only_unusual_is_not_refused(schema: dict[str, Any] | None) -> None:
    check_schema(Tool(name="t", schema=schema))


def test_hostile_schemas_cost_bounded_time() -> None:
    schemas = Schemas()
    started = time.process_time()
    deep: Any = {}
    for _ in range(400):
        deep = {"items": deep}
    for schema in (
        {"properties": {f"p{number}": {"pattern": rf"\p{{L}}{{1,150}}{number}"} for number in range(200)}},
        {"properties": {"a": deep}},
        {"properties": {f"p{number}": {"type": "string"} for number in range(40_000)}},
        {"enum": list(range(100_000))},
        {"anyOf": [{"$ref": "#"}] * 1000},
    ):
        schemas.of(schema)
    assert time.process_time() - started < 15


def test_looking_one_up_takes_microseconds() -> None:
    schemas = Schemas()
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "d" * 60} for n in range(15)}}
    schemas.of(schema)
    started = time.process_time()
    for _ in range(1000):
        schemas.of(schema)
    assert time.process_time() - started < 0.2


def test_small_schemas_are_bounded_by_their_number() -> None:
    schemas = Schemas()
    for number in range(MAX_SCHEMAS + 10):
        schemas.of({"title": str(number)})
    assert len(schemas) == MAX_SCHEMAS


pytestmark = pytest.mark.slow

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


def test_tools_that_a_conversation_brings_are_looked_at_beside_known_ones() -> None:
    schemas = Counting()
    sets = ToolSets(schemas)
    tools = [{"type": "function", "name": "t", "parameters": GOOD}]
    for schema in (GOOD, GOOD, BAD):
        items = [{"type": "additional_tools", "tools": [{"type": "function", "name": "u", "parameters": schema}]}]
        sets.check(decoded({"tools": tools, "input": "hi"}, "responses"))
        asked = decoded({"tools": tools, "input": [{"role": "user", "content": "hi"}, *items]}, "responses")
        if schema is BAD:
            with pytest.raises(BadRequest):
                sets.check(asked)
        else:
            assert sets.check(asked).recall("x") is None
    assert schemas.looks == 1 + 3 * 2


def test_what_was_found_out_about_a_list_is_there_when_it_comes_again() -> None:
    sets = ToolSets(Schemas())
    first = sets.check(request(GOOD))
    assert first.recall("rules") is None
    first.remember("rules", {0: "fits"})
    asked = request(GOOD, 7)
    again = sets.check(asked)
    assert again.tools is asked.tools
    assert again.recall("rules") == {0: "fits"}
    assert again.recall("other rules") is None
    assert sets.check(request(GOOD, name="u")).recall("rules") is None


def test_tools_in_namespaces_are_known_again_too() -> None:
    inner = {"type": "function", "name": "t", "parameters": GOOD}
    body = {"tools": [{"type": "namespace", "name": "n", "tools": [inner, {**inner, "name": "u"}]}], "input": "hi"}
    sets = ToolSets(Schemas())
    sets.check(decoded(body, "responses")).remember("a", 1)
    assert sets.check(decoded(body, "responses")).recall("a") == 1


def test_who_repeats_known_bytes_beside_other_tools_cannot_decide_what_others_get() -> None:
    sets = ToolSets(Schemas())
    tools = json.dumps([{"name": "t", "input_schema": GOOD}])
    other = json.dumps([{"name": "t", "input_schema": {"type": "object"}}])
    honest = f'{{"model": "m", "max_tokens": 9, "tools": {tools}, "messages": [{{"role": "user", "content": "x"}}]}}'
    hostile = honest[:-1] + f', "tools": {other}}}'
    decode = DIALECTS["messages"].decode_request
    sets.check(decode(honest.encode(), {}))
    sets.check(decode(hostile.encode(), {})).remember("rules", "poison")
    assert sets.check(decode(honest.encode(), {})).recall("rules") is None


def test_a_list_has_a_bounded_memory() -> None:
    sets = ToolSets(Schemas())
    for number in range(100):
        sets.check(request(GOOD)).remember(number, number)
    kept = sets.check(request(GOOD))
    assert kept.recall(99) == 99
    assert sum(kept.recall(number) is not None for number in range(100)) <= 8


def test_freeform_and_hosted_tools_have_no_schema_to_look_at() -> None:
    tools = (Tool(name="t", schema=BAD, kind="hosted"), Tool(name="u", kind="custom"))
    ToolSets(Schemas()).check(Request(model="m", messages=(), tools=tools))


def test_it_is_bounded() -> None:
    sets = ToolSets(Schemas())
    for number in range(200):
        sets.check(request(GOOD, name=f"t{number}"))
    assert len(sets) <= 64


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
