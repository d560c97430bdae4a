"""The refusals of the real server (headers, first message, history, tools), and what of a run reaches the model."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ....types import JsonObject
from ..wire.values import from_value
from .journal import Run
from .script import Offered, Seen, parts_of
from .settings import ERRORS, RunRefused, Settings, refused

BUILT_IN = frozenset({"read", "write", "ls", "delete", "grep", "glob", "shell", "web_search", "web_fetch"})
_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]+")
_LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EFFORT = re.compile(r"(gpt|o\d).*-(none|minimal|low|medium|high|xhigh)(-fast)?")
_VERSIONS = {"cli": re.compile(r"cli-\d"), "sdk": re.compile(r"sdk-\d"), "ide": re.compile(r"\d")}
_PARTS = {
    "system": {"text"},
    "user": {"text", "image"},
    "assistant": {"text", "reasoning", "redacted-reasoning", "tool-call"},
    "tool": {"tool-result"},
}
_DIGEST = 32


def check_headers(headers: Mapping[str, str], settings: Settings) -> None:
    """Who does not say which client it is counts as outdated."""
    if headers.get("connect-protocol-version") != "1":
        raise refused("invalid_argument", 'missing required header: set Connect-Protocol-Version to "1"')
    kind = headers.get("x-cursor-client-type", "")
    version = headers.get("x-cursor-client-version", "")
    if kind not in _VERSIONS or not _VERSIONS[kind].match(version):
        raise RunRefused(ERRORS["update_required"])
    if settings.minimum_version and _numbers(version) < _numbers(settings.minimum_version):
        raise RunRefused(ERRORS["update_required"])


def check_opening(request: Any, settings: Settings) -> None:
    """Checks the AgentRunRequest before anything is fetched."""
    if not request.HasField("conversation_state"):
        raise refused("invalid_argument", "Conversation state is required")
    if not request.HasField("action") or request.action.WhichOneof("action") is None:
        raise refused("invalid_argument", "Action is required")
    if request.HasField("custom_system_prompt"):
        raise refused("permission_denied", "--system-prompt is not allowed for this user or team")
    if request.HasField("exclude_workspace_context") and request.exclude_workspace_context:
        why = "Workspace context exclusion is not allowed for this user, team, or selected model"
        raise refused("invalid_argument", why)
    if settings.needs_context:
        _check_context(getattr(request.action, request.action.WhichOneof("action")))
    _check_model(model_of(request), settings)


def _check_context(action: Any) -> None:
    """In strict mode the first message must contain the client's complete environment."""
    fields = action.DESCRIPTOR.fields_by_name
    if "request_context" not in fields or not action.HasField("request_context"):
        raise refused("invalid_argument", "Request context is required")
    env = action.request_context.env
    for name in ("os_version", "shell", "time_zone", "workspace_paths"):
        if not getattr(env, name):
            raise refused("invalid_argument", f"Request context is incomplete: env.{name} is empty")


def model_of(request: Any) -> str:
    """requested_model takes precedence over the older model_details."""
    return str(request.requested_model.model_id or request.model_details.model_id)


def blob_missing(blob_id: bytes) -> RunRefused:
    return refused("internal", f"Blob not found: {blob_id[:_DIGEST].hex()}")


def check_blob_id(blob_id: bytes) -> None:
    """An id is a SHA-256, never the payload."""
    if len(blob_id) != _DIGEST:
        raise blob_missing(blob_id)


def message_in(blob_id: bytes, data: bytes) -> JsonObject:
    """The message in a blob, whose data must match its id and be a valid prompt message."""
    if hashlib.sha256(data).digest() != blob_id:
        raise blob_missing(blob_id)
    try:
        message = json.loads(data)
    except ValueError:
        raise refused("internal", "Failed to parse root prompt message") from None
    if not isinstance(message, dict) or message.get("role") not in _PARTS or "content" not in message:
        raise refused("internal", "Invalid root prompt message")
    content = message["content"]
    if not isinstance(content, str | list) or (message["role"] == "tool" and isinstance(content, str)):
        raise refused("internal", f"Invalid content in a root prompt message of {message['role']}")
    for part in parts_of(message):
        if part.get("type") not in _PARTS[message["role"]]:
            raise refused("internal", f"Invalid part {part.get('type')!r} in a root prompt message")
    return message


def check_history(messages: Sequence[JsonObject]) -> None:
    """Calls and results must pair up in order; otherwise a provider refuses without a message."""
    open_calls: set[str] = set()
    seen: set[str] = set()
    for message in messages:
        if open_calls and message["role"] in ("user", "assistant"):
            raise RunRefused(ERRORS["bare"])
        for part in parts_of(message):
            if part["type"] == "tool-call":
                _check_call(part)
                if part["toolCallId"] in seen:
                    raise RunRefused(ERRORS["bare"])
                open_calls.add(part["toolCallId"])
                seen.add(part["toolCallId"])
            elif part["type"] == "tool-result":
                _check_result(part)
                if part["toolCallId"] not in open_calls:
                    raise RunRefused(ERRORS["bare"])
                open_calls.remove(part["toolCallId"])
    if open_calls:
        raise RunRefused(ERRORS["bare"])


def offered(definitions: Sequence[Any]) -> tuple[Offered, ...]:
    """The client's tools. Raises RunRefused for tools that a provider refuses."""
    tools = tuple(_offered(definition) for definition in definitions)
    names = [tool.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise refused("invalid_argument", f"Duplicate tool name: {name}")
    return tools


def _offered(definition: Any) -> Offered:
    for name in {definition.name, definition.tool_name or definition.name}:
        if not _LEGAL_NAME.fullmatch(name):
            raise refused("invalid_argument", f"Invalid tool name: {name[:100]!r}")
        if name.lower() in BUILT_IN:
            raise refused("invalid_argument", f"Tool name conflicts with a built-in tool: {name}")
    return Offered(
        name=definition.name,
        tool_name=definition.tool_name or definition.name,
        provider=definition.provider_identifier,
        description=definition.description,
        schema=_schema(definition),
    )


def _schema(definition: Any) -> JsonObject:
    if definition.HasField("input_schema_json"):
        try:
            schema = json.loads(definition.input_schema_json)
        except ValueError:
            schema = None
    else:
        schema = from_value(definition.input_schema)
    if not isinstance(schema, dict):
        raise refused("invalid_argument", f"Invalid input schema of the tool {definition.name}")
    return schema


def _check_call(part: JsonObject) -> None:
    if not isinstance(part.get("toolName"), str) or not isinstance(part.get("args"), dict):
        raise refused("internal", "Invalid tool-call in a root prompt message")
    if not isinstance(part.get("toolCallId"), str) or not _LEGAL_ID.fullmatch(part["toolCallId"]):
        raise RunRefused(ERRORS["bare"])


def _check_result(part: JsonObject) -> None:
    if "result" not in part or not isinstance(part.get("toolName"), str):
        raise refused("internal", "Invalid tool-result in a root prompt message")
    if not isinstance(part.get("toolCallId"), str):
        raise RunRefused(ERRORS["bare"])


def _check_model(model: str, settings: Settings) -> None:
    if _EFFORT.fullmatch(model) and model not in settings.models:
        raise RunRefused(ERRORS["bare"])
    if not model or (model not in settings.models and not settings.knows_every_model):
        raise RunRefused(replace(ERRORS["bad_model"], detail=f"Model name is not valid: {model[:100]!r}"))


def _numbers(version: str) -> list[int]:
    """The leading date or number of a version, without its build."""
    found = re.search(r"\d+(?:\.\d+)*", version)
    return [int(number) for number in found[0].split(".")] if found else []


_USER = 2


def seen_by(request: Any, context: Any, run: Run, headers: Mapping[str, str]) -> Seen:
    """Input of the model. System messages among the blobs are dropped: the model has the vendor's own."""
    action = request.action.user_message_action
    messages = [*action.prepend_user_messages, *([action.user_message] if action.HasField("user_message") else [])]
    history = [message for message in run.messages if message["role"] != "system"]
    requested = request.requested_model
    return Seen(
        messages=(*history, *map(_as_message, messages)),
        user_text=action.user_message.text,
        images=tuple(_images(action.user_message)),
        is_resumed=request.action.HasField("resume_action"),
        rules=tuple(rules_in(context)),
        tools=offered(context.tools or request.mcp_tools.mcp_tools),
        model=run.model or model_of(request),
        parameters={parameter.id: parameter.value for parameter in requested.parameters},
        max_mode=requested.max_mode or request.model_details.max_mode,
        allowed_tools=tuple(filter(None, headers.get("x-cursor-agent-allowed-tools", "").split(","))),
        number=run.number,
    )


def rules_in(context: Any) -> Iterator[str]:
    """Rules that always reach the model: global rules of the user, and the cloud rule."""
    for rule in context.rules:
        if rule.type.HasField("global") and rule.source == _USER:
            yield rule.content
    if context.cloud_rule:
        yield context.cloud_rule


def _as_message(message: Any) -> JsonObject:
    images = [
        {"type": "image", "image": f"data:{mime};base64,{base64.b64encode(data).decode()}", "mediaType": mime}
        for mime, data in _images(message)
    ]
    return {"role": "user", "content": [{"type": "text", "text": message.text}, *images]}


def _images(message: Any) -> Iterator[tuple[str, bytes]]:
    for image in message.selected_context.selected_images:
        yield image.mime_type, bytes(image.data)
