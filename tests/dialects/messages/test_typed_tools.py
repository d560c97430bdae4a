"""Typed tools of the client, told as functions."""

from __future__ import annotations

import pytest

from toolwire.dialects.messages.typed_tools import schema_for


@pytest.mark.parametrize(
    ("kind", "member"),
    [
        ("bash_20241022", "command"),
        ("bash_20250124", "restart"),
        ("text_editor_20241022", "file_text"),
        ("text_editor_20250728", "insert_text"),
        ("computer_20250124", "scroll_direction"),
        ("computer_20251124", "action"),
        ("memory_20250818", "old_path"),
        ("bash_20991231", "command"),
    ],
)
def test_a_tool_the_client_runs_has_a_schema(kind: str, member: str) -> None:
    told = schema_for(kind, {"type": kind, "name": "x", "display_width_px": 1, "display_height_px": 2})
    assert told is not None
    assert told.schema["type"] == "object"
    assert member in told.schema["properties"]
    assert set(told.schema["required"]) <= set(told.schema["properties"])
    assert told.description


@pytest.mark.parametrize(
    "kind", ["web_search_20250305", "code_execution_20260521", "tool_search_tool_regex_20251119", "x"]
)
def test_a_tool_the_provider_runs_has_none(kind: str) -> None:
    assert schema_for(kind, {"type": kind}) is None


def test_an_edit_can_be_undone_only_where_the_tool_supports_it() -> None:
    old, new = schema_for("text_editor_20250124", {}), schema_for("text_editor_20250429", {})
    assert old is not None
    assert "undo_edit" in old.schema["properties"]["command"]["enum"]
    assert new is not None
    assert "undo_edit" not in new.schema["properties"]["command"]["enum"]


def test_zoom_is_described_where_it_is_enabled() -> None:
    plain, zooming = schema_for("computer_20251124", {}), schema_for("computer_20251124", {"enable_zoom": True})
    assert plain is not None
    assert "zoom" not in plain.schema["properties"]["action"]["enum"]
    assert zooming is not None
    assert "zoom" in zooming.schema["properties"]["action"]["enum"]
