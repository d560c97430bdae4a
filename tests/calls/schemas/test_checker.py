"""Arguments against one compiled schema, hostile ones too; and schemas that are compiled once and never fetched."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from toolwire.calls.schemas import Checker, Schemas, TooCostly, check_schema
from toolwire.calls.schemas.checker import MAX_SCHEMAS, MOST, cost_of, depth, has_at_most
from toolwire.calls.schemas.reader import read
from toolwire.errors import BadRequest
from toolwire.types import Tool
from toolwire.wire.exact_json import encode


def checker(schema: dict[str, Any]) -> Checker:
    return Checker(read(schema))


def fits(schema: dict[str, Any], arguments: Any) -> bool:
    return checker(schema).fits(arguments, len(encode(arguments)))


def test_H071_numbers_keep_their_digits() -> None:
    schema = {"properties": {"id": {"type": "integer", "enum": [2512292042121000001]}}}
    assert fits(schema, {"id": 2512292042121000001})
    assert not fits(schema, {"id": 2512292042121000000})
    assert fits({"properties": {"a": {"maximum": Decimal("0.1")}}}, {"a": Decimal("0.1")})
    assert not fits({"properties": {"a": {"maximum": Decimal("0.1")}}}, {"a": Decimal("0.1000000000000000000001")})
    assert fits({"properties": {"a": {"type": "integer"}}}, {"a": 10**4000})


def test_half_a_surrogate_pair_is_a_character_like_others() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": "^x", "maxLength": 2}}, "additionalProperties": False}
    assert fits(schema, {"a": "x\ud800"})
    assert not fits(schema, {"a": "\ud800"})
    assert not fits(schema, {"\ud800": "x"})
    assert checker(schema).faults({"a": "\ud800"}, 10)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(?=(a*b))c", r"(a*)(a*)(a*)\1\2\3b$", "^(?!.*b)(a|a)*c$"]
)
def test_a_pattern_costs_bounded_time(pattern: str) -> None:
    compiled = checker({"properties": {"a": {"pattern": pattern}}})
    started = time.process_time()
    for size in (100, 10_000, 1_000_000):
        compiled.fits({"a": "a" * size + "!"}, size)
    assert time.process_time() - started < 5


def test_patterns_that_backtrack_are_left_out_for_long_texts_only() -> None:
    schema = {
        "properties": {"a": {"pattern": "^(?!x)"}, "b": {"pattern": "^y", "anyOf": [{"pattern": "(?<=z)"}]}},
        "patternProperties": {"^(?!ab)": {"type": "string"}},
    }
    compiled = checker(schema)
    assert not compiled.fits({"a": "x"}, 10)
    assert compiled.fits({"a": "x" * 20_000}, 20_010)
    assert not compiled.fits({"b": "n" * 20_000}, 20_010)


@pytest.mark.slow
def test_a_million_items_are_checked_and_their_faults_counted_not_reported() -> None:
    compiled = checker({"properties": {"a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}}})
    numbers = list(range(1_000_000))
    started = time.process_time()
    assert compiled.fits({"a": numbers}, 8_000_000)
    texts = {"a": ["x"] * 1_000_000}
    assert not compiled.fits(texts, 4_000_000)
    assert compiled.faults(texts, 4_000_000) == []
    assert time.process_time() - started < 10


def test_a_huge_enum_costs_little() -> None:
    compiled = checker({"properties": {"a": {"enum": [f"value {number}" for number in range(40_000)]}}})
    started = time.process_time()
    assert not compiled.fits({"a": "none"}, 12)
    assert len(compiled.faults({"a": "none"}, 12)) <= 1
    assert time.process_time() - started < 2


def test_schemas_with_too_many_ways_are_not_compiled() -> None:
    with pytest.raises(ValueError, match="ways"):
        checker(chain(60))
    with pytest.raises(ValueError, match="ways"):
        checker(chain(60, "allOf"))


def test_many_ways_times_many_places_is_too_costly() -> None:
    compiled = checker({"properties": {"a": {"items": chain(14)}}, "$defs": chain(14)["$defs"]})
    assert not compiled.fits({"a": [1]}, 9)
    with pytest.raises(TooCostly):
        compiled.fits({"a": [1] * 100_000}, 200_006)
    started = time.process_time()
    assert compiled.faults({"a": [1] * 10}, 30) == []
    assert time.process_time() - started < 1


def test_recursion_is_followed_as_deep_as_json_goes() -> None:
    compiled = checker({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}}})
    value: Any = 5
    for _ in range(400):
        value = {"a": value}
    started = time.process_time()
    assert compiled.fits(value, 3000)
    wrong: Any = "x"
    for _ in range(60):
        wrong = {"a": wrong}
    assert not compiled.fits(wrong, 3000)
    assert compiled.faults(wrong, 3000) == []
    assert time.process_time() - started < 2


def test_formats_are_words_for_people() -> None:
    assert fits({"properties": {"a": {"type": "string", "format": "uri"}}}, {"a": "not a uri"})


def test_places_and_depth() -> None:
    assert has_at_most(5, {"a": [1, {"b": 2}]})
    assert not has_at_most(4, {"a": [1, {"b": 2}]})
    assert has_at_most(1, "text")
    assert not has_at_most(1000, [[0] * 10] * 1000)
    assert depth({"a": [1, {"b": 2}]}) == 4


def test_what_nests_too_deep_for_the_validator_is_not_checked() -> None:
    made = checker({"properties": {"a": {"type": "integer"}}, "required": ["a"]})
    deep: Any = {"a": 1}
    for _ in range(400):
        deep = {"b": deep}
    with pytest.raises(TooCostly):
        made.faults(deep, 4000)


def test_members_missing_by_the_thousand_are_not_reported() -> None:
    names = [f"name_{number}" for number in range(5000)]
    made = checker({"required": names})
    assert made.faults({}, 2) == []
    assert len(made.faults(dict.fromkeys(names[3:], 1), 90_000)) == 3


def test_objects_to_choose_from_count_in_full() -> None:
    made = checker({"properties": {"a": {"items": {"enum": [{"k": number} for number in range(5000)]}}}})
    with pytest.raises(TooCostly):
        made.fits({"a": [{"k": 4999}] * 2000}, 30_000)
    assert made.fits({"a": [{"k": 4999}]}, 20)


def chain(length: int, key: str = "anyOf") -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{number}": {key: [{"$ref": f"#/$defs/d{number + 1}"}, {"$ref": f"#/$defs/d{number + 1}"}]}
        for number in range(length)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{length}": {"type": "string"}}}


def test_a_plain_object_costs_one_look_at_each_place() -> None:
    schema = {"properties": {name: {"type": "string"} for name in "abcdef"}, "required": ["a"]}
    assert cost_of(schema) == (1, False, 1)


def test_ways_multiply() -> None:
    assert cost_of(chain(10)).looks > 1000
    started = time.process_time()
    assert cost_of(chain(200)).looks == MOST
    assert time.process_time() - started < 1


def test_ways_multiply_on_the_way_down_too() -> None:
    definitions: dict[str, Any] = {"d30": {}}
    for number in range(30):
        inner = {"properties": {"a": {"$ref": f"#/$defs/d{number + 1}"}}}
        definitions[f"d{number}"] = {"allOf": [inner, inner]}
    assert cost_of({"$ref": "#/$defs/d0", "$defs": definitions}).looks == MOST


def test_recursion_is_seen_and_counted_once() -> None:
    cost = cost_of({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}})
    assert cost.is_recursive
    assert cost.looks < 5


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
