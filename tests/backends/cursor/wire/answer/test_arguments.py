"""Arguments: in the order of the wire, whatever a map makes of it, and all of them, whatever the wire looks like."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.answer.arguments import arguments_of
from toolwire.backends.cursor.wire.values import to_value

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
    return arguments_of(args, data)


@settings(max_examples=40)
@given(st.dictionaries(KEYS, PLAIN, max_size=6))
def test_the_order_is_kept_at_every_depth(plain: dict[str, Any]) -> None:
    assert json.dumps(read(wire(entries(plain, 2)))) == json.dumps(plain)


def test_a_key_that_comes_twice_has_its_last_value() -> None:
    assert read(wire(entries({"a": 1, "b": 2}, 2) + entries({"a": 3}, 2))) == {"a": 3, "b": 2}


def test_what_is_not_found_on_the_wire_is_there_all_the_same() -> None:
    args = agent.McpArgs(args={key: to_value(key) for key in "zax"})
    assert list(arguments_of(args, b"")) == ["a", "x", "z"]


@given(st.binary(max_size=60))
def test_no_bytes_raise(data: bytes) -> None:
    assert arguments_of(agent.McpArgs(args={"a": to_value({"b": [{}]})}), data) == {"a": {"b": [{}]}}
