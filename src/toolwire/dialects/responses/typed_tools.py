"""OpenAI Responses: tools that the client runs and that have items of their own, and the same tools as plain functions."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...types import Json, JsonObject, Media, Opaque, Text, ToolCall, ToolResult
from ...wire.exact_json import encode, object_of
from ...wire.fields import rest
from ..shared.media.data import from_url
from .shapes import NAME

_TEXT: JsonObject = {"type": "string"}
_NUMBER: JsonObject = {"type": "integer"}
_WORDS: JsonObject = {"type": "array", "items": _TEXT}
# Members that are read, or that say again what the tool or the other half of the pair says.
_READ = frozenset({"type", "id", "call_id", "status", "execution", "environment", "pending_safety_checks"})
_READ_RESULT = frozenset({"type", "id", "call_id", "status", "execution", "output", "tools", "max_output_length"})
_DEEP = 10  # deeper than any of these schemas


class Typed(NamedTuple):
    """One tool: the type and id prefix of its call item, the type of its result, and the member of the call that holds
    what the model chose, "" where that is members of the call itself. always: members of the call; filled: members of
    what was chosen; label: its name as a function, if it is another."""

    call: str
    prefix: str
    output: str
    member: str
    description: str
    schema: JsonObject
    always: JsonObject = {}
    filled: JsonObject = {}
    label: str = ""


def _schema(required: list[str], **properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_ACTION = _schema(
    ["type"],
    type={
        "type": "string",
        "enum": ["click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"],
    },
    x=_NUMBER,
    y=_NUMBER,
    button={"type": "string", "enum": ["left", "right", "wheel", "back", "forward"]},
    keys=_WORDS,
    text=_TEXT,
    scroll_x=_NUMBER,
    scroll_y=_NUMBER,
    path={"type": "array", "items": _schema(["x", "y"], x=_NUMBER, y=_NUMBER)},
)

TYPED: dict[str, Typed] = {
    "tool_search": Typed(
        "tool_search_call",
        "tsc_",
        "tool_search_output",
        "arguments",
        "Find more tools by what they should do; those found can be called in the next turn.",
        _schema(["query"], query=_TEXT, limit=_NUMBER),
        always={"execution": "client"},
    ),
    "local_shell": Typed(
        "local_shell_call",
        "lsh_",
        "local_shell_call_output",
        "action",
        "Run a command on the user's machine: the program and its arguments, without a shell around them.",
        _schema(
            ["command"],
            command=_WORDS,
            env={"type": "object", "additionalProperties": _TEXT},
            timeout_ms=_NUMBER,
            working_directory=_TEXT,
            user=_TEXT,
        ),
        filled={"type": "exec", "env": {}},
    ),
    "shell": Typed(
        "shell_call",
        "sh_",
        "shell_call_output",
        "action",
        "Run shell commands on the user's machine, one after the other.",
        _schema(["commands"], commands=_WORDS, timeout_ms=_NUMBER, max_output_length=_NUMBER),
        always={"environment": {"type": "local"}},
    ),
    "apply_patch": Typed(
        "apply_patch_call",
        "apc_",
        "apply_patch_call_output",
        "operation",
        "Change one file: create it, change it by a diff in V4A form, or delete it (without a diff).",
        _schema(
            ["type", "path"],
            type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            path=_TEXT,
            diff=_TEXT,
        ),
    ),
    "computer": Typed(
        "computer_call",
        "cu_",
        "computer_call_output",
        "",
        "Act on the user's screen, one action after the other, then see it.",
        _schema(["actions"], actions={"type": "array", "items": _ACTION}),
        always={"pending_safety_checks": []},
    ),
    "computer_use_preview": Typed(
        "computer_call",
        "cu_",
        "computer_call_output",
        "action",
        "Act on the user's screen, then see it.",
        _ACTION,
        always={"pending_safety_checks": []},
        label="computer",
    ),
}
_BY_CALL = {typed.call: name for name, typed in reversed(TYPED.items())}
_BY_OUTPUT = {typed.output: name for name, typed in reversed(TYPED.items())}


def is_typed(kind: str) -> bool:
    """Whether items of this type are calls or results of such a tool."""
    return kind in _BY_CALL or kind in _BY_OUTPUT


def is_client_run(tool: JsonObject) -> bool:
    """Whether the client itself runs this tool, so that any model can be offered it."""
    kind, environment = tool.get("type"), tool.get("environment")
    if kind == "tool_search":
        return tool.get("execution") == "client"
    if kind == "shell" and isinstance(environment, dict):
        return environment.get("type") == "local"
    return isinstance(kind, str) and kind in TYPED


def typed_item(call: ToolCall, item_id: str, status: str) -> JsonObject:
    typed = TYPED[call.name]
    head: JsonObject = {"type": typed.call, "id": item_id, "call_id": call.id, "status": status}
    chosen = None if call.args is None else typed.filled | _in_lists(call.args, typed.schema)
    if typed.member:
        members: JsonObject = {typed.member: call.raw if chosen is None else chosen}
    else:
        members = {key: value for key, value in (chosen or {}).items() if key in typed.schema["properties"]}
    return {**head, **typed.always, **members, **call.extra.get(NAME, {})}


def shell_commands(call: ToolCall) -> list[str]:
    """The commands of a shell call, each of which clients get as events of its own; none for other calls."""
    given = (call.args or {}).get("commands") if call.name == "shell" else None
    return [given] if isinstance(given, str) else [one for one in given or () if isinstance(one, str)]


def _in_lists(args: JsonObject, schema: JsonObject) -> JsonObject:
    """Some models write a lone text where the client reads a list of texts."""
    known = schema.get("properties", {})
    return {
        key: [value] if isinstance(value, str) and known.get(key) == _WORDS else value for key, value in args.items()
    }


def typed_call(item: JsonObject) -> ToolCall | None:
    """A past call of such a tool; None if it has no call id, or if the back end ran the tool itself."""
    name = _BY_CALL.get(str(item.get("type")))
    call_id = item.get("call_id")
    if name is None or not isinstance(call_id, str) or not call_id or item.get("execution") == "server":
        return None
    if name == "computer" and isinstance(item.get("action"), dict):
        name = "computer_use_preview"
    typed = TYPED[name]
    chosen = item.get(typed.member) if typed.member else {key: item.get(key) for key in typed.schema["properties"]}
    args = chosen if isinstance(chosen, dict) else {}
    if name != "tool_search":
        # Clients send required members and nulls for optional ones back; the model wrote neither.
        args = {key: value for key, value in _without_nulls(args).items() if typed.filled.get(key) != value}
    raw = chosen if isinstance(chosen, str) else encode(args).decode("utf-8")
    return ToolCall(
        id=call_id,
        name=name,
        raw=raw,
        args=object_of(raw),
        item_id=str(item.get("id") or ""),
        kind="typed",
        extra=rest(item, _READ | {typed.member} | typed.schema["properties"].keys(), NAME),
    )


def _without_nulls(value: Json, depth: int = 0) -> Json:
    if depth > _DEEP:
        return value
    if isinstance(value, dict):
        return {key: _without_nulls(item, depth + 1) for key, item in value.items() if item is not None}
    return [_without_nulls(item, depth + 1) for item in value] if isinstance(value, list) else value


def typed_result(item: JsonObject) -> ToolResult | None:
    name = _BY_OUTPUT.get(str(item.get("type")))
    call_id = item.get("call_id") or (item.get("id") if name == "local_shell" else None)
    if name is None or not isinstance(call_id, str) or item.get("execution") == "server":
        return None
    is_error = item.get("status") in ("failed", "incomplete")
    return ToolResult(
        call_id=call_id,
        parts=tuple(_result_parts(name, item)),
        is_error=is_error,
        kind="typed",
        extra=rest(item, _READ_RESULT, NAME),
    )


def _result_parts(name: str, item: JsonObject) -> list[Text | Media | Opaque]:
    """The result as text and media for any model."""
    output = item.get("output")
    if name == "tool_search":
        return [Text(text=_found(item.get("tools")))]
    if name == "computer" and isinstance(output, dict):
        url, file_id = output.get("image_url"), output.get("file_id")
        if isinstance(url, str):
            return [from_url("image", url)]
        if isinstance(file_id, str):
            return [Media(kind="image", file_id=file_id)]
    if isinstance(output, list):
        return [Text(text="\n".join(_run(piece) for piece in output if isinstance(piece, dict)))]
    return [Text(text=output if isinstance(output, str) else "" if output is None else encode(output).decode())]


def _run(piece: JsonObject) -> str:
    outcome = piece.get("outcome")
    outcome = outcome if isinstance(outcome, dict) else {}
    ending = f"exit code {outcome['exit_code']}" if "exit_code" in outcome else str(outcome.get("type") or "")
    texts = [str(piece[key]) for key in ("stdout", "stderr") if piece.get(key)]
    return "\n".join([*texts, f"[{ending}]"] if ending else texts)


def _found(tools: Any) -> str:
    names = [name for tool in (tools if isinstance(tools, list) else ()) for name in _names(tool)]
    return f"Found, and callable from now on: {', '.join(names)}" if names else "No tool was found."


def _names(tool: Any) -> list[str]:
    if not isinstance(tool, dict):
        return []
    name = str(tool.get("name") or tool.get("type") or "")
    inner = tool.get("tools")
    if tool.get("type") != "namespace" or not isinstance(inner, list):
        return [name]
    return [flat(name, str(one.get("name"))) for one in inner if isinstance(one, dict)]


def flat(namespace: str, name: str) -> str:
    """The name of a tool for those who have no namespaces; "functions" is where a call without one is looked for."""
    return name if namespace in ("", "functions") else f"{namespace}__{name}"
