"""Anthropic Messages: requests out. What this dialect cannot say is reworded or left out, and recorded as a loss."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import assert_never

from ...profiles import Profile
from ...types import (
    JsonObject,
    Loss,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from ...wire.exact import encode
from ..base import Encoded
from ..foreign import foreign_members, lose_thinking, lost_tools
from ..ids import fit_id
from ..media import opaque_text, placeholder
from ..opening import split_head
from .request_options import members
from .shapes import MAX_ID, NAME, input_of

PATH = "/v1/messages"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def encode_request(request: Request, profile: Profile) -> Encoded:
    losses: list[Loss] = []
    is_own = request.origin == NAME and bool(request.source)
    writer = _Writer(profile, losses)
    if is_own:
        body = dict(request.source)
    else:
        body = members(request, profile, losses)
        foreign_members(request, NAME, losses)
    head, rest = split_head(request.messages)
    if not is_own and (system := writer.system(head)):
        body["system"] = system
    body["model"] = request.model
    body["messages"] = writer.messages(rest if not is_own else [m for m in request.messages if not m.is_head])
    if tools := _tools(_offered(request), losses):
        body["tools"] = tools
    elif not is_own:
        body.pop("tool_choice", None)
    return Encoded(PATH, encode(body), tuple(losses))


class _Writer:
    """Messages with alternating roles; results come first in the user message behind their calls."""

    def __init__(self, profile: Profile, losses: list[Loss]) -> None:
        self._profile = profile
        self._losses = losses
        self._out: list[JsonObject] = []
        self._grown: JsonObject | None = None  # the last message, if we made it and it may still grow

    def system(self, head: list[Message]) -> str | list[JsonObject]:
        blocks = [block for message in head for part in message.parts for block in self._block(part, "system")]
        texts = [block for block in blocks if block["type"] == "text"]
        return str(texts[0]["text"]) if len(texts) == 1 and _is_plain(texts[0]) else texts

    def messages(self, messages: list[Message]) -> list[JsonObject]:
        for index, message in enumerate(messages):
            self._message(message, f"messages[{index}]")
        return self._out

    def _message(self, message: Message, where: str) -> None:
        if message.source is not None and message.source.dialect == NAME and not message.is_head:
            self._out.append(message.source.value)
            self._grown = None
            return
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [block for part in message.parts for block in self._block(part, where)]
        if message.role in ("system", "developer"):
            blocks = self._note(blocks, where)
        if not blocks:
            return
        if self._grown is None or self._grown["role"] != role:
            self._grown = {"role": role, "content": []}
            self._out.append(self._grown)
        self._grown |= message.extra.get(NAME, {})
        content = self._grown["content"]
        content += blocks
        if role == "user":
            content.sort(key=lambda block: block["type"] != "tool_result")
        else:
            content.sort(key=lambda block: block["type"] == "tool_use")

    def _note(self, blocks: list[JsonObject], where: str) -> list[JsonObject]:
        """Instructions in mid-conversation stay in their place, as a labelled note (H141)."""
        self._losses.append(Loss("role.system", where, "written as a note in a user message"))
        text = "\n".join(str(block.get("text", "")) for block in blocks)
        return [{"type": "text", "text": f"<system>\n{text}\n</system>"}]

    def _block(self, part: Part, where: str) -> list[JsonObject]:
        own = part.extra.get(NAME, {})
        match part:
            case Text() | Refusal():
                return [{"type": "text", "text": part.text, **own}] if part.text.strip() else []
            case ToolCall():
                if part.kind == "custom":
                    self._losses.append(Loss("call.custom", where, "written as a function call"))
                call_id = fit_id(part.id, MAX_ID)
                return [{"type": "tool_use", "id": call_id, "name": part.name, "input": input_of(part), **own}]
            case ToolResult():
                return [self._result(part, where)]
            case Media():
                return [_medium(part, where, self._losses) | own]
            case Reasoning(redacted=str(data)):
                return [{"type": "redacted_thinking", "data": data}]
            case Reasoning(signature=str(signature)):
                return [{"type": "thinking", "thinking": part.text, "signature": signature}]
            case Reasoning():
                lose_thinking(part, where, self._losses)
                return []
            case Opaque():
                if part.dialect == NAME:
                    return [part.value]
                return [{"type": "text", "text": opaque_text(part, where, self._losses)}]
            case _:
                assert_never(part)

    def _result(self, result: ToolResult, where: str) -> JsonObject:
        content = [block for part in result.parts for block in self._block(part, where)]
        value: JsonObject = {
            "type": "tool_result",
            "tool_use_id": fit_id(result.call_id, MAX_ID),
            "content": content[0]["text"] if len(content) == 1 and _is_plain(content[0]) else content,
        }
        if result.is_error:
            value["is_error"] = True
        return {**value, **result.extra.get(NAME, {})}


def _is_plain(block: JsonObject) -> bool:
    """Nothing but text: a string says the same."""
    return block["type"] == "text" and len(block) == 2


def _medium(media: Media, where: str, losses: list[Loss]) -> JsonObject:
    kind = "image" if media.kind == "image" else "document"
    named = {"title": media.name} if media.name and kind == "document" else {}
    if media.kind == "audio":
        return {"type": "text", "text": placeholder(media, where, losses, "this dialect has no audio")}
    if media.url is not None:
        return {"type": kind, "source": {"type": "url", "url": media.url}, **named}
    if media.data is not None and (
        (kind == "image" and media.mime in _IMAGES) or (kind == "document" and media.mime == "application/pdf")
    ):
        return {"type": kind, "source": {"type": "base64", "media_type": media.mime, "data": media.data}, **named}
    if media.data is not None and kind == "document" and media.mime.startswith("text/"):
        try:
            text = b64decode(media.data, validate=True).decode("utf-8")
        except (Base64Error, ValueError):
            return {"type": "text", "text": placeholder(media, where, losses, "its data is not text in base64")}
        return {"type": kind, "source": {"type": "text", "media_type": "text/plain", "data": text}, **named}
    return {"type": "text", "text": placeholder(media, where, losses, f"{kind}s of this type have no place here")}


def _offered(request: Request) -> tuple[Tool, ...]:
    """A choice among some tools is said by offering only those."""
    choice = request.tool_choice
    if request.origin == NAME or choice is None or choice.mode != "allowed":
        return request.tools
    return tuple(tool for tool in request.tools if tool.name in choice.names)


def _tools(tools: tuple[Tool, ...], losses: list[Loss]) -> list[JsonObject]:
    written = []
    for tool in tools:
        if tool.source is not None and tool.source.dialect == NAME:
            written.append(tool.source.value)
        elif tool.kind == "function":
            value: JsonObject = {"name": tool.name}
            if tool.description:
                value["description"] = tool.description
            schema = tool.schema or {}
            value["input_schema"] = schema if "type" in schema else {"type": "object", "properties": {}, **schema}
            if tool.strict:
                value["strict"] = True
            written.append(value | tool.extra.get(NAME, {}))
        else:
            losses.append(lost_tools(tool))
    return written
