"""Answers in, the part that all dialects share: frames to events, parts under construction, whole bodies.

A part that is open grows in one place, OpenPart.grow(); everything else about it, such as whether the arguments of a call are complete, is
derived from what it has collected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ...errors import GatewayError
from ...events import Event, Failed, PartDelta, PartEnded, PartStarted
from ...types import Citation, Json, JsonObject, Part, Reasoning, Refusal, Request, Text, ToolCall
from ...wire.exact_json import BadJson, decode, encode, object_of
from ...wire.sse import Frame, FrameTooLarge, SseReader, plain_frame
from ..base import FrameRun, StreamDecoder, excerpt, garbage

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b":", b"id:", b"retry:")  # how lines of a stream begin, and JSON does not
_MARKS = re.compile(r'["\\{}\[\]]')
_END = b"\n\n"
MOST_RUNS = 8  # per read; each one copies the rest of it


class FrameDecoder:
    """Base of the stream decoders: bytes to frames, frames to events, no events after the end.

    Most frames of an answer differ from the frame before them only in a piece of plain text. match() finds that text without parsing
    (OpenPart.match), and find_run() the texts of all such frames that one read has brought. A decoder calls only_grows() while it parses a frame
    whose only effect is more text for one part. It must not call it for a frame with any other effect, also on its own state, because these two
    would skip that effect.
    """

    def __init__(self) -> None:
        self.irregular = ""
        self.is_ending = False
        self.is_over = False
        self._sse = SseReader()
        self._assembly = Assembly()
        self._is_between = False  # two frames: the next byte begins one
        self._grown: OpenPart | None = None  # by the frame that is being parsed, and by nothing else in it
        self._learned: OpenPart | None = None  # it knows what the last frame looked like
        self.match: Callable[[bytes], PartDelta | None] = _match_nothing

    def parse(self, frame: Frame) -> list[Event]:
        """The events of one frame."""
        raise NotImplementedError

    def end(self) -> list[Event]:
        """The stream has ended without a terminal event."""
        raise NotImplementedError

    def feed(self, data: bytes) -> list[Event]:
        if self._is_between and data[-2:] == _END and (delta := self.match(data[:-2])) is not None:
            return [delta]
        events: list[Event] = []
        try:
            for _ in range(MOST_RUNS):
                if self._is_between and (run := self.find_run(data)) is not None:
                    self.extend(run)
                    events.append(run.delta)
                    data = data[run.size :]
                first, data = split_frame(data)
                if first:
                    self._read_all(first, events)
                if not data:
                    return events
            self._read_all(data, events)
        except FrameTooLarge as fault:
            events += self.fail(garbage(str(fault)))
        return events

    def find_run(self, data: bytes) -> FrameRun | None:
        """The frames at the start of data that are like the last one; the caller gives them to extend(), or decodes them otherwise."""
        return None if self._learned is None else self._learned.find_run(data)

    def extend(self, run: FrameRun) -> None:
        assert self._learned is not None
        self._learned.grow(run.delta.text)

    def read(self, frame: Frame) -> list[Event]:
        self._grown = self._learned = None
        self.match = _match_nothing
        events = self.parse(frame)
        if len(events) == 1 and type(event := events[0]) is PartDelta:
            self._learn(frame.block, event.text)
        return events

    def _read_all(self, data: bytes, events: list[Event]) -> None:
        if self._is_between and (plain := plain_frame(data)) is not None:
            events += self.read(plain)
            return
        for frame in self._sse.feed(data):
            if (delta := self.match(frame.block)) is not None:
                events.append(delta)
            else:
                events += self.read(frame)
        self._is_between = self._sse.is_idle

    def _learn(self, block: bytes, text: str) -> None:
        if self._grown is not None and self._grown.learn(block, text):
            self._learned, self.match = self._grown, self._grown.match

    def only_grows(self, growing: OpenPart) -> OpenPart:
        """The frame that is being parsed adds text to this part, and changes nothing else."""
        self._grown = None if self.is_ending else growing
        return growing

    def parse_next(self) -> None:
        """The frame that is being parsed has other effects: the next one must be parsed, too."""
        self._grown = None

    def close(self) -> list[Event]:
        events: list[Event] = []
        for frame in last_frames(self._sse):
            events += self.parse(frame)
        if not self.is_over:
            events += self.end()
        return events

    def fail(self, error: GatewayError) -> list[Event]:
        if self.is_over:
            return []
        self.is_over = True
        self._learned, self.match = None, _match_nothing
        self.irregular = self.irregular or "an error"
        return [Failed(error=error)]


class BodyDecoder:
    """Collects a whole answer and returns all its events at the end. A stream with the content type of a body is decoded as a stream.

    regular_events_of: reads the bytes of a common body without decoding all of it; returns None for any other.
    has_arrays: the body may be an array of the chunks of a stream.
    """

    def __init__(
        self,
        request: Request,
        events_of: Callable[[Request, JsonObject], tuple[list[Event], str]],
        stream: Callable[[Request], StreamDecoder],
        regular_events_of: Callable[[Request, bytes], list[Event] | None] | None = None,
        has_arrays: bool = False,
    ) -> None:
        self.irregular = ""
        self._has_arrays = has_arrays
        self._request = request
        self._value: JsonObject | None = None
        self._events_of = events_of
        self._regular_events_of = regular_events_of
        self._stream = stream
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        self._pieces.append(data)
        return []

    def close(self) -> list[Event]:
        given = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        if (
            self._regular_events_of is not None
            and (regular := self._regular_events_of(self._request, given)) is not None
        ):
            return regular
        body = given.removeprefix(_BOM)
        if body.lstrip().startswith(_FIELDS):
            return self._streamed(given)
        try:
            value = decode(body)
        except BadJson as fault:
            return self._broken(f"the back end's answer is not JSON ({fault}): {excerpt(body)}")
        if isinstance(value, list) and value and self._has_arrays:
            return self._streamed(b"data: " + encode(value) + b"\n\n")
        if not isinstance(value, dict):
            return self._broken(f"the back end's answer is not a JSON object: {excerpt(body)}")
        self._value = value
        events, self.irregular = self._events_of(self._request, value)
        if body != given:
            self.irregular = self.irregular or "a byte order mark"
        return events

    @property
    def value(self) -> JsonObject | None:
        """The body as JSON, once it is complete; None if it is no object."""
        if self._value is None and not self.irregular:
            self._value = object_of(b"".join(self._pieces).decode())
        return self._value

    def _streamed(self, wire: bytes) -> list[Event]:
        self.irregular = "a stream where a body was due"
        decoder = self._stream(self._request)
        return decoder.feed(wire) + decoder.close()

    def _broken(self, message: str) -> list[Event]:
        self.irregular = "not JSON"
        return [Failed(error=garbage(message))]


class Assembly:
    """Open parts by index; start() and end() return the events to emit."""

    def __init__(self) -> None:
        self.count = 0
        self.open: dict[int, OpenPart] = {}

    def start(self, part: Part, choice: int = 0) -> tuple[OpenPart, Event]:
        is_function = isinstance(part, ToolCall) and part.kind == "function"
        growing = (OpenCallPart if is_function else OpenPart)(self.count, part, choice)
        self.open[self.count] = growing
        self.count += 1
        return growing, PartStarted(index=growing.index, part=part, choice=choice)

    def end(self, growing: OpenPart, *, is_cut: bool = False, **changes: Any) -> list[Event]:
        """Close a part. A call without arguments gets an empty object, in one delta, unless the answer was cut there."""
        if self.open.pop(growing.index, None) is None:
            return []
        events: list[Event] = []
        is_function = isinstance(growing.part, ToolCall) and growing.part.kind == "function"
        if is_function and not is_cut and not growing.content.strip():
            events.append(growing.grow("{}"))
        part = _complete(growing)
        if changes:
            part = replace(part, **changes)
        events.append(PartEnded(index=growing.index, part=part, choice=growing.choice))
        return events

    def is_open(self, growing: OpenPart) -> bool:
        return growing.index in self.open

    def end_all(self, *, is_cut: bool = False) -> list[Event]:
        events: list[Event] = []
        for growing in list(self.open.values()):
            events += self.end(growing, is_cut=is_cut)
        return events


class OpenPart:
    """One open part: its start, and what has come since. Its content changes in grow() and match() only."""

    __slots__ = ("_head", "_pieces", "_tail", "choice", "citations", "index", "logprobs", "part")

    def __init__(self, index: int, part: Part, choice: int) -> None:
        self.index = index
        self.part = part
        self.choice = choice
        self._pieces: list[str] = []
        self._head = b""  # bytes of a frame before and after its text
        self._tail = b""
        self.citations: list[Citation] = []
        self.logprobs: list[Json] = []

    def grow(self, text: str, logprobs: tuple[Json, ...] | None = None) -> PartDelta:
        self._pieces.append(text)
        if logprobs is None:
            return PartDelta(self.index, text)
        self.logprobs += logprobs
        return PartDelta(self.index, text, logprobs)

    def learn(self, block: bytes, text: str) -> bool:
        """Whether match() can find the text of frames like this one: it contains its text once, and no escapes."""
        head, quoted, tail = block.partition(b'"' + text.encode("utf-8", "replace") + b'"')
        self._head, self._tail = head + b'"', b'"' + tail
        return is_plain(text) and b"\\" not in block and bool(quoted) and quoted not in tail

    def match(self, block: bytes) -> PartDelta | None:
        """Grow by the text of a frame that is otherwise equal to the learned one; None for any other frame.

        If the bytes around the text are equal and the text needs no unescaping, the frame means the same with this text.
        """
        if not block.startswith(self._head) or not block.endswith(self._tail):
            return None
        try:
            text = block[len(self._head) : -len(self._tail)].decode("utf-8")
        except UnicodeDecodeError:
            return None
        # is_plain() and grow(), inlined: this runs for every frame of every stream.
        if not text or not text.isprintable() or '"' in text or "\\" in text:
            return None
        self._pieces.append(text)
        return PartDelta(self.index, text)

    def find_run(self, data: bytes) -> FrameRun | None:
        """The same for all frames at the start of data that match, without growing: one loop instead of a call for each frame."""
        head, end = self._head, self._tail + _END
        if not data.startswith(head):
            return None
        texts: list[bytes] = []
        between, start = end + head, len(head)
        while (stop := data.find(b'"', start)) > start:
            if data.startswith(between, stop):
                texts.append(data[start:stop])
                start = stop + len(between)
            else:
                if data.startswith(end, stop):
                    texts.append(data[start:stop])
                break
        text = _plain_text(texts)
        if text is None:
            texts = texts[: _count_plain(texts)]
            text = _plain_text(texts)
        if not text:
            return None
        return FrameRun(PartDelta(self.index, text), sum(map(len, texts)) + len(texts) * len(between))

    @property
    def is_empty(self) -> bool:
        return not self._pieces

    @property
    def pieces(self) -> list[str]:
        return [piece for piece in self._pieces if piece]

    @property
    def content(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def value(self) -> JsonObject | None:
        """Only a call's arguments are a value."""
        return None


class OpenCallPart(OpenPart):
    """An open function call. value is its arguments once they are a complete JSON object; it is computed on demand and reads each
    piece once."""

    __slots__ = ("_balance", "_seen", "_value")

    def __init__(self, index: int, part: Part, choice: int, balance: Balance | None = None) -> None:
        super().__init__(index, part, choice)
        self._balance = balance
        self._seen = 0  # pieces that the balance has read
        self._value: JsonObject | None = None

    @property
    def value(self) -> JsonObject | None:
        balance = self._balance = self._balance or Balance()
        was_closed = balance.is_closed
        while self._seen < len(self._pieces):
            balance.read(self._pieces[self._seen])
            self._seen += 1
        if balance.has_more:
            self._value = None
        elif balance.is_closed and not was_closed:
            self._value = object_of(self.content)
        return self._value

    @property
    def content(self) -> str:
        pieces, seen = self._pieces, self._seen
        if len(pieces) > 2:
            self._pieces = ["".join(pieces[:seen]), "".join(pieces[seen:])]
            self._seen = 1
        return "".join(self._pieces)


class Balance:
    """Whether the text so far is one closed JSON value; each character is looked at once."""

    __slots__ = ("_depth", "_is_escaped", "_is_text", "is_closed", "has_more")

    def __init__(self) -> None:
        self._depth = 0
        self._is_text = False
        self._is_escaped = False
        self.is_closed = False
        self.has_more = False  # text came after the end

    def read(self, text: str) -> None:
        if self.is_closed:
            self.has_more = self.has_more or bool(text.strip())
            return
        skipped = 1 if self._is_escaped and text else 0
        for match in _MARKS.finditer(text, skipped):
            at, mark = match.start(), match.group()
            if at < skipped:
                continue
            if self._is_text:
                if mark == "\\":
                    skipped = at + 2
                self._is_text = mark != '"'
            elif mark == '"':
                self._is_text = True
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    self.is_closed = True
                    self.has_more = bool(text[at + 1 :].strip())
                    return
        self._is_escaped = skipped > len(text) if text else self._is_escaped


def _complete(growing: OpenPart) -> Part:
    part, content = growing.part, growing.content
    match part:
        case Text():
            logprobs = tuple(growing.logprobs) if growing.logprobs else None
            return replace(part, text=content, citations=tuple(growing.citations), logprobs=logprobs)
        case Refusal() | Reasoning():
            return replace(part, text=content)
        case ToolCall():
            return replace(part, raw=content, args=object_of(content) if part.kind == "function" else None)
        case _:
            return part


def object_in(frame: Frame) -> JsonObject | None:
    """The JSON object in a frame, or None."""
    try:
        value = decode(frame.data)
    except BadJson:
        return None
    return value if isinstance(value, dict) else None


def last_frames(reader: SseReader) -> list[Frame]:
    """A last frame without its blank line counts only if it is complete; otherwise the stream was cut."""
    frames = reader.close()
    if reader.is_document:
        return frames
    return [frame for frame in frames if is_mark(frame.data) or object_in(frame) is not None]


def is_mark(data: bytes) -> bool:
    """The end mark of two dialects, which some servers send in any dialect."""
    return data.strip() == b"[DONE]"


def split_frame(data: bytes) -> tuple[bytes, bytes]:
    """The bytes up to the end of the first frame, all of them if it does not end here, and the rest."""
    size = data.find(_END) + len(_END)
    return (data[:size], data[size:]) if size >= len(_END) else (data, b"")


def _match_nothing(block: bytes) -> PartDelta | None:
    return None


def _plain_text(texts: list[bytes]) -> str | None:
    """Pieces of JSON strings, none empty and none with a quote, as one text; None if one of them needs unescaping."""
    joined = b"".join(texts)
    if b"\\" in joined:
        return None
    try:  # a character must not be cut by the end of its frame
        text = joined.decode() if joined.isascii() else "".join([piece.decode() for piece in texts])
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _count_plain(texts: list[bytes]) -> int:
    """How many of the first pieces are plain."""
    return next((count for count, piece in enumerate(texts) if _plain_text([piece]) is None), len(texts))


def is_plain(text: str) -> bool:
    """Whether JSON contains this text as it is: not empty, no quote, no backslash, nothing that cannot be printed."""
    return bool(text) and text.isprintable() and '"' not in text and "\\" not in text
