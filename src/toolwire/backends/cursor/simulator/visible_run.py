"""What of a run reaches the model, as far as is known of the real server."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from ....types import JsonObject
from .checks import model_of, offered
from .journal import Run
from .steps import Seen

_USER = 2


def seen_by(request: Any, context: Any, run: Run, headers: Mapping[str, str]) -> Seen:
    """A system message among the blobs is fetched and dropped: the model has the vendor's own."""
    action = request.action.user_message_action
    said = [*action.prepend_user_messages, *([action.user_message] if action.HasField("user_message") else [])]
    history = [message for message in run.messages if message["role"] != "system"]
    requested = request.requested_model
    return Seen(
        messages=(*history, *map(_as_message, said)),
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
    """Rules that reach the model always: global ones of the user, and the rule of the cloud."""
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
