"""Checks that a stream of Responses is well formed."""

from __future__ import annotations

from typing import Any

from tests.dialects.codec_harness import frames


def well_formed(wire: bytes) -> list[dict[str, Any]]:
    """The events: numbered from 0, items dense and added before all else about them, done once, and as the final object has them."""
    values = []
    added: dict[int, Any] = {}
    done: dict[int, Any] = {}
    for number, (name, value) in enumerate(frames(wire)):
        assert name == value["type"]
        assert value["sequence_number"] == number
        values.append(value)
        if name == "response.output_item.added":
            assert value["output_index"] == len(added)
            added[value["output_index"]] = value["item"]
        elif "output_index" in value:
            index = value["output_index"]
            assert index in added
            assert index not in done
            assert value.get("item_id", added[index]["id"]) == added[index]["id"]
        if name == "response.output_item.done":
            assert (value["item"]["id"], value["item"]["type"]) == (added[index]["id"], added[index]["type"])
            done[value["output_index"]] = value["item"]
    final = values[-1]["response"]
    if final["status"] != "failed":
        assert done.keys() == added.keys()
        assert final["output"] == [done[index] for index in sorted(done)]
    assert values[0]["type"] == "response.created"
    return values
