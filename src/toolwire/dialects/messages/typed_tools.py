"""Anthropic Messages: tools that the client runs and that the API knows by type alone, as plain functions for other models."""

from __future__ import annotations

from typing import NamedTuple

from ...types import JsonObject

_TEXT: JsonObject = {"type": "string"}
_NUMBER: JsonObject = {"type": "integer"}
_PAIR: JsonObject = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}


class ToolDefinition(NamedTuple):
    description: str
    schema: JsonObject


def schema_for(kind: str, tool: JsonObject) -> ToolDefinition | None:
    """None for a tool that the provider runs. Types end in a date; newer ones get the schema of the last known one."""
    family = kind.rstrip("0123456789").rstrip("_")
    if family == "computer":
        return _computer(tool)
    if family == "text_editor":
        return _editor(kind)
    return {"bash": _BASH, "memory": _MEMORY}.get(family)


def _schema(required: list[str], **properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required}


def _one_of(*words: str) -> JsonObject:
    return {"type": "string", "enum": list(words)}


_BASH = ToolDefinition(
    "Run a command in a bash session that lasts; restart begins a new one.",
    _schema([], command=_TEXT, restart={"type": "boolean"}),
)

_MEMORY = ToolDefinition(
    "Read and change files that outlast this conversation, under /memories. view shows a file or folder, create writes a "
    "file, str_replace changes text that occurs once, insert adds lines after a line, delete and rename as their names say.",
    _schema(
        ["command"],
        command=_one_of("view", "create", "str_replace", "insert", "delete", "rename"),
        path=_TEXT,
        view_range=_PAIR,
        file_text=_TEXT,
        old_str=_TEXT,
        new_str=_TEXT,
        insert_line=_NUMBER,
        insert_text=_TEXT,
        old_path=_TEXT,
        new_path=_TEXT,
    ),
)


def _editor(kind: str) -> ToolDefinition:
    """Before April 2025 an edit could be undone; before July the member for inserted text had another name."""
    commands = ["view", "create", "str_replace", "insert"]
    date = kind.rpartition("_")[2]
    if date < "20250429":
        commands.append("undo_edit")
    inserted = {"insert_text": _TEXT} if date >= "20250728" else {}
    return ToolDefinition(
        "View and edit text files. view shows a file (or lines of it) or a folder, create writes a file, str_replace "
        "changes text that occurs exactly once, insert adds text after a line.",
        _schema(
            ["command", "path"],
            command=_one_of(*commands),
            path=_TEXT,
            view_range=_PAIR,
            file_text=_TEXT,
            old_str=_TEXT,
            new_str=_TEXT,
            insert_line=_NUMBER,
            **inserted,
        ),
    )


def _computer(tool: JsonObject) -> ToolDefinition:
    width, height = tool.get("display_width_px"), tool.get("display_height_px")
    actions = [
        "key",
        "hold_key",
        "type",
        "cursor_position",
        "mouse_move",
        "left_mouse_down",
        "left_mouse_up",
        "left_click",
        "left_click_drag",
        "right_click",
        "middle_click",
        "double_click",
        "triple_click",
        "scroll",
        "wait",
        "screenshot",
    ]
    if tool.get("enable_zoom") is True:
        actions.append("zoom")
    return ToolDefinition(
        f"Use mouse and keyboard on a screen of {width} by {height} pixels, and see it. A coordinate is [x, y] from the "
        "top left; text is what to type, or the keys to press in xdotool syntax.",
        _schema(
            ["action"],
            action=_one_of(*actions),
            coordinate=_PAIR,
            start_coordinate=_PAIR,
            text=_TEXT,
            duration={"type": "number"},
            scroll_direction=_one_of("up", "down", "left", "right"),
            scroll_amount=_NUMBER,
            region={"type": "array", "items": _NUMBER, "minItems": 4, "maxItems": 4},
        ),
    )
