"""Schemas compiled once, and never fetched."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from toolwire.calls.schemas import Schemas, check_schema
from toolwire.calls.schemas.cache import MAX_SCHEMAS
from toolwire.errors import BadRequest
from toolwire.types import Tool

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
