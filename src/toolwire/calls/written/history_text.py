"""Renders the calls and results of a history as text that tool output cannot forge.

A call is a block in the assistant's text, at its position, with its arguments unchanged. A result is one line of JSON between two tags in
a user message. In that JSON every character that could begin or end a tag, a role or a token of a chat template is written as \\uXXXX,
which means the same: `<`, `>`, `&`, control characters, other line ends, and brackets around such tokens. So the output of a tool ends
where its line ends, and cannot pose as anything else.

The results of a turn and the user's text after them become one message, because most templates want the roles to alternate. Rendered
text is joined with the text beside it, because a message of one text is a plain string on the wire, which every server accepts. A message
depends only on those before it: a conversation that grows keeps its bytes, and so its place in the prompt cache.
"""

from __future__ import annotations

import base64
import re
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from ...types import Extra, JsonObject, Loss, Media, Message, Opaque, Part, Role, Text, ToolCall, ToolResult
from ...wire.exact_json import BadJson, encode, object_of

# Tokens of templates that have no angle bracket: [INST], [/TOOL_RESULTS], [gMASK], [|assistant|], ]~b], [e~[
_OPENING = r"\[(?=/?[a-z]?[A-Z][A-Z0-9_]+\]|\||e~\[)"
BRACKETED = _OPENING + r"|\](?=~)"
_ACTIVE = re.compile(r"[<>\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]|" + BRACKETED)
_BRACKET = re.compile(_OPENING)
_RARE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff]")  # and left as they are by the encoder
_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF)}
_SHOWN = 4000  # characters of a part that only its own dialect understands


class RenderedHistory(Struct, frozen=True):
    messages: tuple[Message, ...]
    losses: tuple[Loss, ...] = ()


class HistoryRenderer:
    """Renders conversations without calls and results; linear. A conversation that continues the last one is rendered from there."""

    def __init__(self) -> None:
        self._source: tuple[Message, ...] = ()
        self._rendering = _Rendering()

    def render(self, messages: tuple[Message, ...]) -> RenderedHistory:
        if not self._continues(messages):
            self._source, self._rendering = (), _Rendering()
        rendering = self._rendering
        for index in range(len(self._source), len(messages)):
            rendering.add(messages[index], f"messages[{index}]")
        rendering.close()
        self._source = messages
        return RenderedHistory(tuple(rendering.messages), tuple(rendering.losses))

    def _continues(self, messages: tuple[Message, ...]) -> bool:
        """Whether messages extends the last conversation, by an assistant's message first: that one ends the message before it."""
        done = len(self._source)
        if done >= len(messages) or messages[done].role != "assistant":
            return False
        return all(map(is_, self._source, messages))


def has_calls(messages: tuple[Message, ...]) -> bool:
    return any(isinstance(part, ToolCall | ToolResult) for message in messages for part in message.parts)


def with_paragraph(message: Message, text: str) -> Message:
    """The message with a paragraph added at its end."""
    writing = _PartWriter()
    for part in message.parts:
        writing.add(part)
    writing.insert(text)
    return message.with_parts(writing.parts())


def call_block(name: str, arguments: str) -> str:
    """arguments: JSON as text."""
    return f'<tool_call>\n{{"name":{encode(name).decode()},"arguments":{arguments}}}\n</tool_call>'


class _PartWriter:
    """Collects the parts of one message. Inserted text is joined to the text part beside it, which keeps its other members.

    Some encoders join all texts of an assistant, so an inserted block begins on a new line there.
    """

    def __init__(self, *, is_assistants: bool = False, is_mid_line: bool = False) -> None:
        self._is_assistants = is_assistants
        self._between = "\n" if is_assistants else "\n\n"
        self._is_mid_line = is_mid_line  # the text before does not end its line
        self._parts: list[Part] = []
        self._pieces: list[str] = []  # of one text, the last part
        self._carrier: Text | None = None  # whose text is among them
        self._is_inserted = False  # the last of them

    def insert(self, text: str) -> None:
        if not self._pieces and self._is_mid_line:
            self._pieces.append("\n")
        self._leave_line("\n" if self._is_inserted else self._between)
        self._pieces.append(text)
        self._is_inserted = True

    def add(self, part: Part) -> None:
        if not isinstance(part, Text):
            self._flush()
            self._parts.append(part)
        elif self._is_inserted and self._carrier is None and not part.citations and part.logprobs is None:
            if part.text:
                self._leave_line(self._between)
            self._pieces.append(part.text)
            self._carrier = part
        else:
            self._flush()
            self._pieces, self._carrier = [part.text], part
        self._is_inserted = False

    def parts(self) -> tuple[Part, ...]:
        self._flush()
        return tuple(self._parts)

    def _leave_line(self, between: str) -> None:
        last = self._pieces[-1] if self._pieces else ""
        if last and not last.endswith("\n"):
            self._pieces.append(between)

    def _flush(self) -> None:
        text = "".join(self._pieces)
        if self._carrier is not None:
            self._parts.append(replace(self._carrier, text=text))
        elif self._is_inserted:
            self._parts.append(Text(text=text))
        if text and self._is_assistants:
            self._is_mid_line = not text.endswith("\n")
        self._pieces, self._carrier, self._is_inserted = [], None, False


class _Open(Struct):
    """A message under construction."""

    role: Role
    writing: _PartWriter
    extra: Extra = {}


class _Rendering:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.losses: list[Loss] = []
        self._open: _Open | None = None  # the user's, if results stand in it
        self._calls: dict[str, tuple[int, str]] = {}  # id -> its number in its turn, and its name
        self._count = 0
        self._is_turn = False
        self._is_mid_line = False  # the turn's text so far does not end its line

    def add(self, message: Message, where: str) -> None:
        is_turn = message.role == "assistant"
        if is_turn and not self._is_turn:
            self._count, self._is_mid_line = 0, False
        self._is_turn = is_turn
        is_instruction = message.role in ("system", "developer")
        if is_turn or is_instruction:
            self.close()
        if is_instruction:
            if message.parts:  # without parts it only declared tools; with_parts drops a source that may declare some
                self.messages.append(message.with_parts(message.parts))
        elif self._open is None and not any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
            self._pass(message)
        else:
            self._take_apart(message, where)

    def close(self) -> None:
        if self._open is not None:
            ready = Message(role=self._open.role, parts=self._open.writing.parts(), extra=self._open.extra)
            self._open = None
            self._pass(ready)

    def _pass(self, message: Message) -> None:
        last = next((part.text for part in reversed(message.parts) if isinstance(part, Text) and part.text), "")
        if message.role == "assistant" and last:
            self._is_mid_line = not last.endswith("\n")
        self.messages.append(message if message.role != "tool" else replace(message, role="user"))

    def _take_apart(self, message: Message, where: str) -> None:
        speaker: Role = "assistant" if message.role == "assistant" else "user"
        for part in message.parts:
            match part:
                case ToolCall():
                    self._as("assistant").insert(self._call(part))
                case ToolResult():
                    self._result(part, where)
                case _:
                    self._as(speaker).add(part)
        if self._open is not None and self._open.role == message.role and message.extra:
            self._open.extra = {**self._open.extra, **message.extra}
        if speaker == "assistant":
            self.close()

    def _as(self, role: Role) -> _PartWriter:
        if self._open is None or self._open.role != role:
            self.close()
            is_assistants = role == "assistant"
            writing = _PartWriter(is_assistants=is_assistants, is_mid_line=is_assistants and self._is_mid_line)
            self._open = _Open(role, writing)
        return self._open.writing

    def _call(self, call: ToolCall) -> str:
        self._count += 1
        self._calls[call.id] = (self._count, call.name)
        span = call.extra.get("toolwire", {}).get("text")
        if isinstance(span, str) and span:
            return span
        if not call.raw.strip():
            return call_block(call.name, "{}")
        is_object = call.args is not None or object_of(call.raw) is not None
        return call_block(call.name, call.raw if is_object else encode(call.raw).decode())

    def _result(self, result: ToolResult, where: str) -> None:
        number, name = self._calls.get(result.call_id, (0, result.name))
        media: list[Media] = []
        texts = [self._result_text(part, media, where) for part in result.parts]
        line: JsonObject = {"call": number, "name": name} if number else {"name": name}
        if result.is_error:
            line["error"] = True
        line["output"] = "\n".join(texts)
        writing = self._as("user")
        writing.insert(f"<tool_result>{_inert(line)}</tool_result>")
        if media:
            which = f"call {number} ({_plain(name)})" if number else _plain(name)
            writing.insert(f"Attached to the result of {which}:")
            for medium in media:
                writing.add(medium)

    def _result_text(self, part: Text | Media | Opaque, media: list[Media], where: str) -> str:
        """The text of one part of a result, or what replaces it."""
        match part:
            case Text():
                return part.text
            case Media() if (text := _text_in(part)) is not None:
                self.losses.append(Loss("media.file", where, "written as text"))
                return f"[file {part.name}]\n{text}"
            case Media():
                media.append(self._unwritten(part, where))
                return f"[{part.kind} {len(media)}, attached]"
            case Opaque():
                kind = str(part.value.get("type", "part"))[:60]
                self.losses.append(Loss(f"part.{kind}", where, "results are text here: written as JSON"))
                return _shortened(part.value)

    def _unwritten(self, media: Media, where: str) -> Media:
        """The medium without a word that a tool could have put on it, because an encoder may show them."""
        if any(media.extra.values()):
            self.losses.append(Loss(f"media.{media.kind}", where, "its other members are dropped"))
        url = None if media.url is None else _ACTIVE.sub(_percent, media.url)
        file_id = None if media.file_id is None else _plain(media.file_id)
        return replace(media, name=_plain(media.name), mime=_plain(media.mime), url=url, file_id=file_id, extra={})


def _inert(value: JsonObject) -> str:
    """One line of JSON in which nothing can be taken for anything else."""
    text = encode(value).decode().replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    if "[" in text or "]~" in text:
        text = _BRACKET.sub(r"\\u005b", text).replace("]~", "\\u005d~")
    return text.translate(_ESCAPES) if _RARE.search(text) else text


def _plain(text: str) -> str:
    return _ACTIVE.sub("_", text)


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "replace"))


def _text_in(media: Media) -> str | None:
    """What a file says, if it is text: an encoder might write it into the conversation as it is."""
    if media.kind != "file" or media.data is None:
        return None
    try:
        text = base64.b64decode(media.data).decode()
    except ValueError:
        return None
    return None if "\x00" in text else text


def _shortened(value: JsonObject) -> str:
    try:
        text = encode(value).decode()
    except BadJson:
        return "[not shown]"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} [{len(text) - _SHOWN} more characters not shown]"
