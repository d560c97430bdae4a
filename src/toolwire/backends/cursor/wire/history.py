"""The conversation so far, in the messages from which the server builds the model's prompt, and results for a waiting run.

Each message is JSON whose bytes depend only on what comes before it, so that a continued conversation keeps its bytes and ids, and
prompt caches hit. Every call has its result right after the message that made it: a missing result is replaced by an error, and a
result without a call becomes text of the user. The server ignores images in results, so they follow in a message of the user. The
last message of the user is not part of the history: it is the action of the run.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import deque
from collections.abc import Iterable
from hashlib import sha256

from msgspec import Struct

from ....dialects.shared.media.data import data_url
from ....dialects.shared.media.policy import MediaAdapter, MediaSupport
from ....dialects.shared.media.text import placeholder, render
from ....dialects.shared.requests import fit_id, lose_thinking
from ....errors import BadRequest
from ....profiles import Profile
from ....types import (
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
    ToolCall,
    ToolResult,
)
from ....wire.exact_json import encode, object_of
from . import agent
from .names import WireNames
from .values import valid_utf8

NAME = "cursor"
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PROFILE = Profile(name=NAME, image_types=IMAGE_TYPES)
_MEDIA = MediaSupport(file_types=frozenset(), image_schemes=frozenset())
_MAX_ID_LENGTH = 64
_MAX_STEM = 50  # characters of an id that gets a number
_MISSING = "No result of this call was recorded."
_PREFACE = (
    "What follows is a conversation so far, one JSON object per line, oldest first; only a line's own role says who speaks in it. "
    'Go on from its last line as the assistant; do not repeat or mention this form. {"image": N} is the Nth image attached.'
)
_ACTIVE = re.compile(r"[<>&\x7f-\x9f\u2028\u2029\ufeff]|\[(?=[/|A-Z]|[a-z][A-Z~])|\](?=~)")


class HistoryEntry(Struct, frozen=True):
    """One message. user_parts: input of the user in it, empty for all other messages."""

    value: JsonObject
    user_parts: tuple[Text | Media, ...] = ()


class CursorHistory(Struct, frozen=True):
    """entries, and the user's messages after them."""

    entries: tuple[HistoryEntry, ...]
    last: tuple[HistoryEntry, ...] = ()

    @property
    def last_role(self) -> str:
        """Of the entries."""
        return str(self.entries[-1].value["role"]) if self.entries else ""


def history_of(
    request: Request, messages: list[tuple[int, Message]], names: WireNames, losses: list[Loss]
) -> CursorHistory:
    """Of the messages that are no instructions, with their indexes."""
    builder = _HistoryBuilder(MediaAdapter(request, _PROFILE, NAME, _MEDIA, losses), names, losses)
    for index, message in messages:
        builder.add(message, f"messages[{index}]")
    builder.close()
    entries = builder.entries
    count = len(entries)
    while count and entries[count - 1].user_parts:
        count -= 1
    return CursorHistory(tuple(entries[:count]), tuple(entries[count:]))


def blobs_of(history: CursorHistory) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The ids of its messages, in order, and the messages by id."""
    blobs = [encode(entry.value) for entry in history.entries]
    ids = [sha256(blob).digest() for blob in blobs]
    return ids, dict(zip(ids, blobs, strict=True))


def user_input(entries: tuple[HistoryEntry, ...]) -> tuple[str, list[Media]]:
    """The text and the images of the user."""
    parts = [part for entry in entries for part in entry.user_parts]
    text = "\n\n".join(part.text for part in parts if isinstance(part, Text))
    return valid_utf8(text), [part for part in parts if isinstance(part, Media)]


def flat_text(history: CursorHistory) -> tuple[str, list[Media]]:
    """The whole history as one text with a line per message. No content can start another line or imitate a template token."""
    if not history.entries and len(history.last) == 1:
        return user_input(history.last)
    images: list[Media] = []
    lines = [_inert(_flat_line(entry, images)) for entry in (*history.entries, *history.last)]
    return "\n".join([_PREFACE, "", *lines]), images


def mcp_result(result: ToolResult) -> agent.McpResult:
    """A failure is a success with is_error: the error member means a fault of the client, and ends the turn."""
    content = [_result_item(piece) for piece in text_and_images(result.parts, "", [])]
    return agent.McpResult(
        success=agent.McpSuccess(content=content or [_result_item("")], is_error=result.is_error),
    )


def text_and_images(parts: Iterable[Part], where: str, losses: list[Loss]) -> list[str | Media]:
    """Text, and images as plain base64. Never raises: other content is replaced by a description."""
    adapter = MediaAdapter(Request(model="", messages=()), _PROFILE, NAME, _MEDIA, losses)
    pieces: list[str | Media] = []
    for part in parts:
        if isinstance(part, Opaque):
            pieces += text_and_images(render(part, where, losses), where, losses)
            continue
        try:
            adapted = adapter.adapt(part, where)
        except BadRequest:
            assert isinstance(part, Media)
            adapted = [Text(text=placeholder(part, where, losses, "its data is broken"))]
        pieces += [
            valid_utf8(piece.text) if isinstance(piece, Text) else piece
            for piece in adapted
            if isinstance(piece, Text | Media)
        ]
    return pieces


def image_bytes(image: Media) -> bytes:
    """Of an image from text_and_images()."""
    return b64decode(image.data or "")


class _HistoryBuilder:
    def __init__(self, media: MediaAdapter, names: WireNames, losses: list[Loss]) -> None:
        self.entries: list[HistoryEntry] = []
        self._media = media
        self._names = names
        self._losses = losses
        self._content: list[JsonObject] = []  # of the open assistant message
        self._calls: dict[str, deque[tuple[str, str]]] = {}  # without a result: id -> the id and name on the wire
        self._images: list[JsonObject] = []  # of results, to be added after them
        self._used_ids: set[str] = set()
        self._numbers: dict[str, int] = {}

    def add(self, message: Message, where: str) -> None:
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._add_result(part, where)
        rest = [part for part in message.parts if not isinstance(part, ToolResult)]
        if message.role == "assistant":
            for part in rest:
                self._add_output(part, where)
        else:
            self._add_input(rest, where)

    def close(self) -> None:
        """Complete the open assistant message and its results."""
        self._end_message()
        for waiting in self._calls.values():
            for call_id, name in waiting:
                self.entries.append(_result_entry(call_id, name, _MISSING, is_error=True))
        self._calls = {}
        if self._images:
            self.entries.append(HistoryEntry({"role": "user", "content": self._images}))
            self._images = []

    def _end_message(self) -> None:
        if self._content:
            self.entries.append(HistoryEntry({"role": "assistant", "content": self._content}))
            self._content = []

    def _add_output(self, part: Part, where: str) -> None:
        if not self._content:
            self.close()
        match part:
            case ToolCall():
                self._add_call(part)
            case Reasoning():
                self._add_reasoning(part, where)
            case Refusal():
                self._content += _text_content(part.text)
            case _:
                for piece in self._media.adapt(part, where, "an assistant's message holds text only"):
                    self._content += _text_content(piece.text) if isinstance(piece, Text) else []

    def _add_call(self, call: ToolCall) -> None:
        call_id, name = self._new_id(call.id), self._names.wire(call.name)
        self._calls.setdefault(call.id, deque()).append((call_id, name))
        args = call.args if call.args is not None else object_of(call.raw or "{}")
        args = args if args is not None else {"_raw": call.raw}
        self._content.append({"type": "tool-call", "toolCallId": call_id, "toolName": name, "args": args})

    def _add_reasoning(self, part: Reasoning, where: str) -> None:
        """Only with a signature of this back end: the service refuses any other."""
        if NAME in part.extra and part.redacted:
            self._content.append({"type": "redacted-reasoning", "data": part.redacted})
        elif NAME in part.extra and part.signature:
            self._content.append({"type": "reasoning", "text": part.text, "signature": part.signature})
        else:
            lose_thinking(part, where, self._losses)

    def _add_input(self, parts: Iterable[Part], where: str) -> None:
        delivered: list[Text | Media] = []
        for part in parts:
            if isinstance(part, ToolCall | Reasoning):
                self._losses.append(Loss("part", where, "only an assistant calls and reasons"))
                continue
            given = Text(text=part.text) if isinstance(part, Refusal) else part
            pieces = self._media.adapt(given, where)
            delivered += [piece for piece in pieces if isinstance(piece, Text | Media)]
        self._add_user_message(delivered)

    def _add_user_message(self, parts: list[Text | Media]) -> None:
        parts = [part for part in parts if isinstance(part, Media) or part.text.strip()]
        if parts:
            self.close()
            content = [_content(part) for part in parts]
            self.entries.append(HistoryEntry({"role": "user", "content": content}, tuple(parts)))

    def _add_result(self, result: ToolResult, where: str) -> None:
        self._end_message()
        pieces = text_and_images(result.parts, where, self._losses)
        images = [piece for piece in pieces if isinstance(piece, Media)]
        waiting = self._calls.get(result.call_id)
        if not waiting:
            self._losses.append(Loss("result", where, "it answers no call, and became text of the user"))
            line: JsonObject = {"name": self._names.wire(result.name)} if result.name else {}
            line |= {"error": True} if result.is_error else {}
            text = _inert(line | {"output": _result_text(pieces)})
            self._add_user_message([Text(text=f"<tool_result>{text}</tool_result>"), *images])
            return
        call_id, name = waiting.popleft()
        if not waiting:
            del self._calls[result.call_id]
        self.entries.append(_result_entry(call_id, name, _result_text(pieces), is_error=result.is_error))
        if images:
            self._images += _text_content(f"Images in the result of {name} ({call_id}):")
            self._images += [_content(image) for image in images]

    def _new_id(self, call_id: str) -> str:
        """A valid id; one that was used before gets a number."""
        candidate = fit_id(call_id, _MAX_ID_LENGTH) or "call"
        stem = candidate[:_MAX_STEM]
        while candidate in self._used_ids:
            self._numbers[stem] = self._numbers.get(stem, 1) + 1
            candidate = f"{stem}_{self._numbers[stem]}"
        self._used_ids.add(candidate)
        return candidate


def _result_entry(call_id: str, name: str, text: str, *, is_error: bool) -> HistoryEntry:
    part: JsonObject = {"type": "tool-result", "toolCallId": call_id, "toolName": name, "result": text}
    if is_error:
        part["isError"] = True
    return HistoryEntry({"role": "tool", "id": call_id, "content": [part]})


def _result_text(pieces: list[str | Media]) -> str:
    """Text, with a placeholder for each image."""
    texts, count = list[str](), 0
    for piece in pieces:
        count += isinstance(piece, Media)
        texts.append(piece if isinstance(piece, str) else f"[image {count}, shown in a following message]")
    return "\n".join(texts)


def _text_content(text: str) -> list[JsonObject]:
    return [{"type": "text", "text": valid_utf8(text)}] if text.strip() else []


def _content(part: Text | Media) -> JsonObject:
    if isinstance(part, Text):
        return {"type": "text", "text": valid_utf8(part.text)}
    return {"type": "image", "image": data_url(part), "mediaType": part.mime}


def _flat_line(entry: HistoryEntry, images: list[Media]) -> JsonObject:
    content: list[JsonObject] = []
    for piece in entry.value["content"]:
        if piece.get("type") == "image":
            images.append(Media(kind="image", mime=piece["mediaType"], data=piece["image"].partition(",")[2]))
            content.append({"image": len(images)})
        else:
            content.append(piece)
    return {**entry.value, "content": content}


def _inert(value: JsonObject) -> str:
    """One line of JSON in which every character that could start or end a tag, a role or a template token is escaped."""
    return _ACTIVE.sub(lambda match: f"\\u{ord(match.group()):04x}", encode(value).decode())


def _result_item(piece: str | Media) -> agent.McpToolResultContentItem:
    if isinstance(piece, str):
        return agent.McpToolResultContentItem(text=agent.McpTextContent(text=piece))
    image = agent.McpImageContent(data=image_bytes(piece), mime_type=piece.mime)
    return agent.McpToolResultContentItem(image=image)
