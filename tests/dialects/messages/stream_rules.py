"""Checks that a stream of Messages is well formed."""

from __future__ import annotations

from typing import Any

from tests.dialects.codec_harness import frames


def well_formed(wire: bytes) -> list[dict[str, Any]]:
    """The events; blocks follow each other, dense, each started and stopped once, and every delta is for the open one."""
    values = []
    open_block, count = None, 0
    for name, value in frames(wire):
        assert name == value["type"]
        values.append(value)
        match name:
            case "content_block_start":
                assert open_block is None
                assert value["index"] == count
                open_block, count = count, count + 1
            case "content_block_delta" | "content_block_stop":
                assert value["index"] == open_block
                open_block = None if name == "content_block_stop" else open_block
    assert values[0]["type"] == "message_start"
    if values[-1]["type"] != "error":
        assert open_block is None
        assert [value["type"] for value in values[-2:]] == ["message_delta", "message_stop"]
    return values
