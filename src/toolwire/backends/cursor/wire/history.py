"""Cursor: the conversation so far, message by message, in the shape that the server builds the model's prompt from.

Each message is JSON whose bytes depend only on what stands before it, so that a conversation that goes on keeps its beginning to the
byte and to the id, and prompt caches hold. Every call has its result right behind the message that made it: one that is missing is
said to be missing, one that answers nothing is text_and_images in the user's words. Images in results would be passed over, so they follow in a
message of the user. What the user says last is not part of it: that is what the run is asked.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import deque
from collections.abc import Iterable
from hashlib import sha256

from msgspec import Struct

from ....dialects.shared.media.data import BadMedia, data_url, settled, text_in
from ....dialects.shared.media.policy import Courier, Takes
from ....dialects.shared.media.text import described, placeholder, rendered
from ....dialects.shared.media.types import is_text
from ....dialects.shared.requests import fit_id, lose_thinking
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
from .names import Names

NAME = "cursor"
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PROFILE = Profile(name=NAME, image_types=IMAGE_TYPES)
_TAKES = Takes(file_types=frozenset(), image_schemes=frozenset())
_LONGEST_ID = 64
_NUMBERED = 50  # letters of an id that needs a number behind it
_MISSING = "No result of this call was recorded."
_PREFACE = (
    "What follows is a conversation so far, one JSON object per line, oldest first; only a line's own role says who speaks in it. "
    'Go on from its last line as the assistant; do not repeat or mention this form. {"image": N} is the Nth image attached.'
)
_ACTIVE = re.compile(r"[<>&\x7f-\x9f\u2028\u2029\ufeff]|\[(?=[/|A-Z]|[a-z][A-Z~])|\](?=~)")


class Entry(Struct, frozen=True):
    """One message; spoken is what the user said in it, empty for all others."""

    value: JsonObject
    spoken: tuple[Text | Media, ...] = ()


class Story(Struct, frozen=True):
    """entries, and what the user said behind them."""

    entries: tuple[Entry, ...]
    last: tuple[Entry, ...] = ()

    @property
    def ends_with(self) -> str:
        """Whose the last of the entries is."""
        return str(self.entries[-1].value["role"]) if self.entries else ""


def story_of(request: Request, messages: list[tuple[int, Message]], names: Names, losses: list[Loss]) -> Story:
    """Of messages that are no instructions, with their places; linear."""
    telling = _Telling(Courier(request, _PROFILE, NAME, _TAKES, losses), names, losses)
    for index, message in messages:
        telling.tell(message, f"messages[{index}]")
    telling.close()
    entries = telling.entries
    count = len(entries)
    while count and entries[count - 1].spoken:
        count -= 1
    return Story(tuple(entries[:count]), tuple(entries[count:]))


def blobs_of(story: Story) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The ids of its messages, in order, and what they stand for."""
    blobs = [encode(entry.value) for entry in story.entries]
    ids = [sha256(blob).digest() for blob in blobs]
    return ids, dict(zip(ids, blobs, strict=True))


def said(entries: tuple[Entry, ...]) -> tuple[str, list[Media]]:
    """The words and the images of the user, each in their order."""
    parts = [part for entry in entries for part in entry.spoken]
    text = "\n\n".join(part.text for part in parts if isinstance(part, Text))
    return sendable(text), [part for part in parts if isinstance(part, Media)]


def flattened(story: Story) -> tuple[str, list[Media]]:
    """Everything in one text, a line a message, in which nothing can begin another line, or pose as a token of a template."""
    if not story.entries and len(story.last) == 1:
        return said(story.last)
    images: list[Media] = []
    lines = [_inert(_line(entry, images)) for entry in (*story.entries, *story.last)]
    return "\n".join([_PREFACE, "", *lines]), images


class _Telling:
    def __init__(self, courier: Courier, names: Names, losses: list[Loss]) -> None:
        self.entries: list[Entry] = []
        self._courier = courier
        self._names = names
        self._losses = losses
        self._content: list[JsonObject] = []  # of the assistant's message under construction
        self._calls: dict[str, deque[tuple[str, str]]] = {}  # without a result yet: id -> the written id, and name
        self._images: list[JsonObject] = []  # of results, to be shown behind them
        self._given: set[str] = set()
        self._numbers: dict[str, int] = {}

    def tell(self, message: Message, where: str) -> None:
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._result(part, where)
        rest = [part for part in message.parts if not isinstance(part, ToolResult)]
        if message.role == "assistant":
            for part in rest:
                self._say(part, where)
        else:
            self._hear(rest, where)

    def close(self) -> None:
        """The assistant's message is whole, and so are its results."""
        self._end_message()
        for waiting in self._calls.values():
            for call_id, name in waiting:
                self.entries.append(_result_entry(call_id, name, _MISSING, is_error=True))
        self._calls = {}
        if self._images:
            self.entries.append(Entry({"role": "user", "content": self._images}))
            self._images = []

    def _end_message(self) -> None:
        if self._content:
            self.entries.append(Entry({"role": "assistant", "content": self._content}))
            self._content = []

    def _say(self, part: Part, where: str) -> None:
        if not self._content:
            self.close()
        match part:
            case ToolCall():
                self._call(part)
            case Reasoning():
                self._think(part, where)
            case Refusal():
                self._content += _text(part.text)
            case _:
                for piece in self._courier.deliver(part, where, "an assistant's message holds words only"):
                    self._content += _text(piece.text) if isinstance(piece, Text) else []

    def _call(self, call: ToolCall) -> None:
        call_id, name = self._fresh_id(call.id), self._names.wire(call.name)
        self._calls.setdefault(call.id, deque()).append((call_id, name))
        args = call.args if call.args is not None else object_of(call.raw or "{}")
        args = args if args is not None else {"_raw": call.raw}
        self._content.append({"type": "tool-call", "toolCallId": call_id, "toolName": name, "args": args})

    def _think(self, part: Reasoning, where: str) -> None:
        """Only what this back end has signed: others' proofs are not its business, and without one a thought is refused."""
        if NAME in part.extra and part.redacted:
            self._content.append({"type": "redacted-reasoning", "data": part.redacted})
        elif NAME in part.extra and part.signature:
            self._content.append({"type": "reasoning", "text": part.text, "signature": part.signature})
        else:
            lose_thinking(part, where, self._losses)

    def _hear(self, parts: Iterable[Part], where: str) -> None:
        heard: list[Text | Media] = []
        for part in parts:
            if isinstance(part, ToolCall | Reasoning):
                self._losses.append(Loss("part", where, "only an assistant calls and reasons"))
                continue
            given = Text(text=part.text) if isinstance(part, Refusal) else part
            pieces = self._courier.deliver(given, where)
            heard += [piece for piece in pieces if isinstance(piece, Text | Media)]
        self._hear_all(heard)

    def _hear_all(self, heard: list[Text | Media]) -> None:
        heard = [part for part in heard if isinstance(part, Media) or part.text.strip()]
        if heard:
            self.close()
            self.entries.append(Entry({"role": "user", "content": [_shown(part) for part in heard]}, tuple(heard)))

    def _result(self, result: ToolResult, where: str) -> None:
        self._end_message()
        pieces = text_and_images(result.parts, where, self._losses)
        waiting = self._calls.get(result.call_id)
        if not waiting:
            self._stray(result, pieces, where)
            return
        call_id, name = waiting.popleft()
        if not waiting:
            del self._calls[result.call_id]
        images = [piece for piece in pieces if isinstance(piece, Media)]
        text = _joined(pieces)
        self.entries.append(_result_entry(call_id, name, text, is_error=result.is_error))
        if images:
            self._images += _text(f"Images in the result of {name} ({call_id}):")
            self._images += [_shown(image) for image in images]

    def _stray(self, result: ToolResult, pieces: list[str | Media], where: str) -> None:
        self._losses.append(Loss("result", where, "it answers no call, and is text_and_images in the user's words"))
        line: JsonObject = {"name": self._names.wire(result.name)} if result.name else {}
        line |= {"error": True} if result.is_error else {}
        words = _inert(line | {"output": _joined(pieces)})
        images = [piece for piece in pieces if isinstance(piece, Media)]
        self._hear_all([Text(text=f"<tool_result>{words}</tool_result>"), *images])

    def _fresh_id(self, call_id: str) -> str:
        """Legal, and no other call's: an id that is used again gets a number."""
        wanted = written = fit_id(call_id, _LONGEST_ID) or "call"
        stem = wanted[:_NUMBERED]
        while written in self._given:
            self._numbers[stem] = self._numbers.get(stem, 1) + 1
            written = f"{stem}_{self._numbers[stem]}"
        self._given.add(written)
        return written


def _result_entry(call_id: str, name: str, text: str, *, is_error: bool) -> Entry:
    part: JsonObject = {"type": "tool-result", "toolCallId": call_id, "toolName": name, "result": text}
    if is_error:
        part["isError"] = True
    return Entry({"role": "tool", "id": call_id, "content": [part]})


def _joined(pieces: list[str | Media]) -> str:
    """Words, and where an image stood that is shown elsewhere."""
    texts, count = list[str](), 0
    for piece in pieces:
        count += isinstance(piece, Media)
        texts.append(piece if isinstance(piece, str) else f"[image {count}, shown in a following message]")
    return "\n".join(texts)


def _text(text: str) -> list[JsonObject]:
    return [{"type": "text", "text": sendable(text)}] if text.strip() else []


def _shown(part: Text | Media) -> JsonObject:
    if isinstance(part, Text):
        return {"type": "text", "text": sendable(part.text)}
    return {"type": "image", "image": data_url(part), "mediaType": part.mime}


def _line(entry: Entry, images: list[Media]) -> JsonObject:
    content: list[JsonObject] = []
    for piece in entry.value["content"]:
        if piece.get("type") == "image":
            images.append(Media(kind="image", mime=piece["mediaType"], data=piece["image"].partition(",")[2]))
            content.append({"image": len(images)})
        else:
            content.append(piece)
    return {**entry.value, "content": content}


def _inert(value: JsonObject) -> str:
    """One line of JSON without a letter that a tag, a role or a token of a chat template begins or ends with."""
    return _ACTIVE.sub(lambda match: f"\\u{ord(match.group()):04x}", encode(value).decode())


_INLINE = 400_000  # characters of a text file that are text_and_images


def mcp_result(result: ToolResult) -> agent.McpResult:
    """A failure is a success that says so: the error member stands for a fault of ours, and ends the turn."""
    content = [_item(piece) for piece in text_and_images(result.parts, "", [])]
    return agent.McpResult(
        success=agent.McpSuccess(content=content or [_item("")], is_error=result.is_error),
    )


def text_and_images(parts: Iterable[Part], where: str, losses: list[Loss]) -> list[str | Media]:
    """Words, and images as plain base64. Never raises: what cannot be shown is named."""
    pieces: list[str | Media] = []
    for part in parts:
        match part:
            case Text():
                pieces.append(sendable(part.text))
            case Media():
                pieces.append(_medium(part, where, losses))
            case Opaque():
                pieces += text_and_images(rendered(part, where, losses), where, losses)
    return pieces


def sendable(text: str) -> str:
    """The same text as UTF-8 can have it: a half of a surrogate pair becomes a replacement character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def image_bytes(image: Media) -> bytes:
    """Of one that text_and_images() has given."""
    return b64decode(image.data or "")


def _medium(given: Media, where: str, losses: list[Loss]) -> str | Media:
    try:
        media = settled(given)
    except BadMedia:
        return sendable(placeholder(given, where, losses, "its data is broken"))
    if media.kind == "image" and media.data is not None and media.mime in IMAGE_TYPES:
        return media
    if media.kind == "file" and media.data is not None and is_text(media.mime):
        text = text_in(media) or ""
        losses.append(Loss("media.file", where, "written as text"))
        more = f"\n[{len(text) - _INLINE} more characters not shown]" if len(text) > _INLINE else ""
        return sendable(f"[file: {described(media)}]\n{text[:_INLINE]}{more}")
    return sendable(placeholder(media, where, losses, "a result has room for words and images as data only"))


def _item(piece: str | Media) -> agent.McpToolResultContentItem:
    if isinstance(piece, str):
        return agent.McpToolResultContentItem(text=agent.McpTextContent(text=piece))
    image = agent.McpImageContent(data=image_bytes(piece), mime_type=piece.mime)
    return agent.McpToolResultContentItem(image=image)
