"""Images, files and audio as a client of each dialect sends them, and what a back end of each dialect receives."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from toolwire.dialects import DIALECTS
from toolwire.profiles import ANTHROPIC, GEMINI, OPENAI_CHAT, PLAIN_CHAT, RESPONSES, Profile
from toolwire.types import Loss, Media, Request, Text, ToolResult

Body = dict[str, Any]

TARGETS: dict[str, tuple[str, Profile]] = {
    "Chat, any server": ("chat", PLAIN_CHAT),
    "Chat, OpenAI": ("chat", OPENAI_CHAT),
    "Responses": ("responses", RESPONSES),
    "Messages": ("messages", ANTHROPIC),
    "Gemini": ("gemini", GEMINI),
}
PLACES = ("user", "assistant", "system", "result")


class Sent(NamedTuple):
    """One medium: its kind and type, and one of bytes, URL and id."""

    kind: str
    mime: str
    raw: bytes = b""
    url: str = ""
    file_id: str = ""
    name: str = ""

    @property
    def data(self) -> str:
        return b64encode(self.raw).decode()


class Found(NamedTuple):
    """What a request contains after translation: media, texts and losses."""

    media: list[Media]
    words: str
    losses: tuple[Loss, ...]
    body: Body


def part_of(dialect: str, sent: Sent) -> Body | None:
    """The part in which a client of this dialect sends it; None if the dialect has none."""
    return {"chat": _chat, "responses": _responses, "messages": _messages}[dialect](sent)


def _chat(sent: Sent) -> Body | None:
    if sent.kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": sent.data, "format": "wav"}}
    if sent.kind == "image":
        url = sent.url or f"data:{sent.mime};base64,{sent.data}"
        return None if sent.file_id else {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}
    if sent.file_id:
        return {"type": "file", "file": {"file_id": sent.file_id}}
    file = {"filename": sent.name, "file_data": f"data:{sent.mime};base64,{sent.data}"}
    return None if sent.url else {"type": "file", "file": file}


def _responses(sent: Sent) -> Body | None:
    if sent.kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": sent.data, "format": "wav"}}
    if sent.kind == "image":
        place = (
            {"file_id": sent.file_id}
            if sent.file_id
            else {"image_url": sent.url or f"data:{sent.mime};base64,{sent.data}"}
        )
        return {"type": "input_image", "detail": "auto", **place}
    if sent.file_id:
        return {"type": "input_file", "file_id": sent.file_id}
    if sent.url:
        return {"type": "input_file", "file_url": sent.url}
    return {"type": "input_file", "filename": sent.name, "file_data": sent.data}


def _messages(sent: Sent) -> Body | None:
    kind = {"image": "image", "file": "document"}.get(sent.kind)
    if kind is None:
        return None
    source: Body = {"type": "base64", "media_type": sent.mime, "data": sent.data}
    if sent.url:
        source = {"type": "url", "url": sent.url}
    elif sent.file_id:
        source = {"type": "file", "file_id": sent.file_id}
    elif sent.mime == "text/plain":
        source = {"type": "text", "media_type": "text/plain", "data": sent.raw.decode()}
    title = {"title": sent.name} if sent.name and kind == "document" else {}
    return {"type": kind, "source": source, **title}


def request_with(dialect: str, parts: dict[str, list[Body]]) -> Request:
    """A conversation with one call, with these parts in the given places."""
    build = {"chat": _chat_body, "responses": _responses_body, "messages": _messages_body}[dialect]
    return DIALECTS[dialect].decode_request(json.dumps({"model": "m", **build(parts)}).encode(), {})


def _chat_body(parts: dict[str, list[Body]]) -> Body:
    def blocks_of(place: str) -> list[Body]:
        return [{"type": "text", "text": f"the {place}"}, *parts.get(place, [])]

    calls = [
        {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in ("call_1", "call_2")
    ]
    return {
        "messages": [
            {"role": "system", "content": blocks_of("system")},
            {"role": "user", "content": blocks_of("user")},
            {"role": "assistant", "content": blocks_of("assistant"), "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": blocks_of("result")},
            {"role": "tool", "tool_call_id": "call_2", "content": "plain"},
        ]
    }


def _responses_body(parts: dict[str, list[Body]]) -> Body:
    def blocks_of(place: str, kind: str = "input_text") -> list[Body]:
        return [{"type": kind, "text": f"the {place}"}, *parts.get(place, [])]

    calls = [
        {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"} for name in ("call_1", "call_2")
    ]
    return {
        "input": [
            {"role": "system", "content": blocks_of("system")},
            {"role": "user", "content": blocks_of("user")},
            {"role": "assistant", "content": blocks_of("assistant", "output_text")},
            *calls,
            {"type": "function_call_output", "call_id": "call_1", "output": blocks_of("result")},
            {"type": "function_call_output", "call_id": "call_2", "output": "plain"},
        ]
    }


def _messages_body(parts: dict[str, list[Body]]) -> Body:
    def blocks_of(place: str) -> list[Body]:
        return [{"type": "text", "text": f"the {place}"}, *parts.get(place, [])]

    calls: list[Body] = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in ("call_1", "call_2")]
    results = [
        {"type": "tool_result", "tool_use_id": "call_1", "content": blocks_of("result")},
        {"type": "tool_result", "tool_use_id": "call_2", "content": "plain"},
    ]
    return {
        "max_tokens": 9,
        "system": blocks_of("system"),
        "messages": [
            {"role": "user", "content": blocks_of("user")},
            {"role": "assistant", "content": [*blocks_of("assistant"), *calls]},
            {"role": "user", "content": results},
        ],
    }


def arrived(request: Request, dialect: str, profile: Profile) -> Found:
    """The content that a back end of this dialect reads in the request."""
    encoded = DIALECTS[dialect].encode_request(request, profile)
    body = {"model": request.model, **json.loads(encoded.body)}  # some dialects name it in the path only
    again = DIALECTS[dialect].decode_request(json.dumps(body).encode(), {})
    media: list[Media] = []
    words: list[str] = []
    for message in again.messages:
        for part in message.parts:
            inner = part.parts if isinstance(part, ToolResult) else (part,)
            media += [one for one in inner if isinstance(one, Media)]
            words += [one.text for one in inner if isinstance(one, Text)]
    return Found(media, "\n".join(words), encoded.losses, json.loads(encoded.body))


def end_of(sent: Sent, found: Found) -> str:
    """as it is: the same bytes or URL; text: its content as text; named: a placeholder that describes it."""
    for medium in found.media:
        if medium.data is not None and sent.raw and b64decode(medium.data) == sent.raw:
            return "as it is"
        if sent.url and medium.url == sent.url:
            return "as it is"
        if sent.file_id and medium.file_id == sent.file_id:
            return "as it is"
    if sent.raw and sent.mime.startswith("text/") and sent.raw.decode() in found.words:
        assert any(loss.why.startswith("written as text") for loss in found.losses)
        return "text"
    name = sent.url or sent.file_id or sent.name or sent.mime.replace("jpg", "jpeg")
    assert "not shown" in found.words, sent
    assert name in found.words, sent
    assert any(loss.feature.startswith("media.") for loss in found.losses)
    return "named"
