"""JSON as protobuf values: whole numbers stay whole, and what cannot be kept is known beforehand."""

from __future__ import annotations

import json
import math
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.values import (
    MAX_DEPTH,
    arguments_of,
    from_value,
    is_exact,
    to_value,
)
from toolwire.wire.exact_json import decode

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=25,
)


def sent(value: Any) -> Any:
    return from_value(agent.Value.FromString(to_value(value).SerializeToString()))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@examples(150)
@given(JSON)
def test_json_comes_back(value: Any) -> None:
    assert sent(value) == value
    assert is_exact(value)


@pytest.mark.parametrize("value", [{}, [], "", 0, False, None, {"a": {}}, [[]], {"": None}])
def test_what_is_empty_is_still_there(value: Any) -> None:
    assert sent(value) == value
    assert type(sent(value)) is type(value)


def test_an_empty_struct_has_a_kind_on_the_wire() -> None:
    assert to_value({}).SerializeToString().hex(" ") == "2a 00"
    assert to_value([]).SerializeToString().hex(" ") == "32 00"
    assert to_value(None).SerializeToString().hex(" ") == "08 00"
    assert from_value(agent.Value()) is None


@pytest.mark.parametrize(
    ("number", "expected"),
    [(3.0, 3), (-0.0, 0), (2.0**53, 2**53), (1e20, 10**20), (1e21, 1e21), (0.5, 0.5), (1e300, 1e300)],
)
def test_whole_doubles_are_integers_again(number: float, expected: float) -> None:
    found = from_value(agent.Value(number_value=number))
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_null(number: float) -> None:
    assert from_value(agent.Value(number_value=number)) is None
    assert from_value(to_value(number)) is None
    assert from_value(to_value(Decimal(str(number)))) is None
    assert not is_exact(number)


def test_H072_an_integer_past_the_doubles_is_reported_beforehand() -> None:
    assert is_exact({"id": 2**53})
    assert not is_exact({"id": [10_000_000_000_000_001]})
    assert sent(10_000_000_000_000_001) == 10_000_000_000_000_000
    assert is_exact(10**16)  # happens to be one of them
    assert sent(10**400) == str(10**400)
    assert not is_exact(10**400)


def test_decimals_as_our_own_reader_makes_them() -> None:
    value = decode(b'{"a": 0.1, "b": 1.0, "c": 1e400, "d": 3.14159265358979323846}')
    assert sent(value) == {"a": 0.1, "b": 1, "c": "1E+400", "d": math.pi}
    assert [is_exact(value[key]) for key in "abcd"] == [True, True, False, False]


def test_lone_surrogates_are_replaced_and_reported() -> None:
    assert sent({"\ud83d": "a\ude00b"}) == {"\ufffd": "a\ufffdb"}
    assert sent("\ud83d\ude00") == "\U0001f600"
    assert not is_exact("\ud83d")


def test_what_lies_too_deep_goes_as_its_text() -> None:
    assert sent(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert is_exact(nested(MAX_DEPTH))
    deeper = sent(nested(MAX_DEPTH + 5))
    for _ in range(MAX_DEPTH):
        deeper = deeper["a"]
    assert deeper == '{"a":{"a":{"a":{"a":{"a":1}}}}}'
    assert not is_exact(nested(MAX_DEPTH + 1))


def test_a_deep_value_is_readable_where_it_is_used() -> None:
    success = agent.McpSuccess(structured_content=to_value(nested(MAX_DEPTH + 100)).struct_value)
    result = agent.ExecClientMessage(mcp_result=agent.McpResult(success=success))
    wire = agent.AgentClientMessage(exec_client_message=result).SerializeToString()
    again = agent.AgentClientMessage.FromString(wire).exec_client_message.mcp_result.success
    content = agent.Value(struct_value=again.structured_content)
    assert from_value(content)["a"]["a"]


def test_keys_come_sorted() -> None:
    assert list(sent({"b": 1, "a": 2, "c": 3})) == ["a", "b", "c"]


def test_what_is_no_json_is_an_error_of_ours() -> None:
    with pytest.raises(TypeError, match="bytes is not JSON"):
        to_value({"a": b"x"})
    assert not is_exact(b"x")


def test_the_cost_of_a_value_grows_with_its_size_and_not_with_its_depth() -> None:
    def cpu_seconds(count: int) -> float:
        value: Any = [{"name": "x" * 20, "items": list(range(20))} for _ in range(count)]
        for _ in range(MAX_DEPTH - 4):
            value = [value]
        started = time.process_time()
        assert sent(value) == value
        return time.process_time() - started

    small = max(0.001, min(cpu_seconds(100) for _ in range(3)))
    assert cpu_seconds(800) < 8 * 5 * small


KEYS = st.text("abcxyz", max_size=3)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=6,
)


def member(number: int, data: bytes) -> bytes:
    assert number < 16
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def value(plain: Any) -> bytes:
    """A Value as a server writes it that keeps the order of its objects."""
    if isinstance(plain, dict):
        return member(5, entries(plain, 1))
    if isinstance(plain, list):
        return member(6, b"".join(member(1, value(item)) for item in plain))
    return to_value(plain).SerializeToString()


def entries(plain: dict[str, Any], number: int) -> bytes:
    return b"".join(member(number, member(1, key.encode()) + member(2, value(item))) for key, item in plain.items())


def wire(args: bytes) -> bytes:
    return member(2, b"\x08\x07" + member(11, member(1, b"name") + args + member(5, b"tool")))


def read(data: bytes) -> dict[str, Any]:
    args = agent.AgentServerMessage.FromString(data).exec_server_message.mcp_args
    assert args.name == "name"
    return arguments_of(data)


@examples(40)
@given(st.dictionaries(KEYS, PLAIN, max_size=6))
def test_the_order_is_kept_at_every_depth(plain: dict[str, Any]) -> None:
    assert json.dumps(read(wire(entries(plain, 2)))) == json.dumps(plain)


def test_a_key_that_comes_twice_has_its_last_value() -> None:
    assert read(wire(entries({"a": 1, "b": 2}, 2) + entries({"a": 3}, 2))) == {"a": 3, "b": 2}
