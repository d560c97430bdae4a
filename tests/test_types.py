"""Canonical values: frozen, equal by content, and honest when they change."""

from __future__ import annotations

import msgspec
import pytest

from toolwire.types import Message, Part, Reasoning, Request, Source, Text, ToolCall


def test_new_parts_drop_the_wire_they_came_from() -> None:
    message = Message(
        role="user", parts=(Text(text="a"),), is_head=True, extra={"chat": {"x": 1}}, source=Source("chat", {})
    )
    changed = message.with_parts((Text(text="b"),))
    assert changed == Message(role="user", parts=(Text(text="b"),), is_head=True, extra={"chat": {"x": 1}})
    assert message.source is not None


def test_values_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Text(text="a").text = "b"  # type: ignore[misc] # that is the point


def test_defaults_are_not_shared() -> None:
    one, two = Request(model="m", messages=()), Request(model="m", messages=())
    one.extra["chat"] = {}
    assert two.extra == {}


def test_parts_know_their_kind_on_the_wire_of_our_own() -> None:
    parts: list[Part] = [
        Text(text="a"),
        Reasoning(text="b", signature="s"),
        ToolCall(id="c", name="f", raw="{ }", args={}),
    ]
    wire = msgspec.json.encode(parts)
    assert msgspec.json.decode(wire, type=list[Part]) == parts
