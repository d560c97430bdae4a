"""What the strict readers share: JSON bodies, server-sent events, and the answer in terms that all dialects have."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct, field

from ..deviations import DeviationLog

DONE = "[DONE]"
_MARK = "\ufeff"  # the byte order mark
_FIELDS = ("data", "event", "id", "retry")


class SeenCall(Struct, kw_only=True):
    """arguments: the text that the server sent, or the JSON of an object where the dialect sends objects."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class SeenAnswer(Struct, kw_only=True):
    """finish: "stop", "calls", "length", another word of the server, or "" without one. usage: input and output tokens."""

    text: str = ""
    calls: list[SeenCall] = field(default_factory=list)
    finish: str = ""
    usage: tuple[int, int] | None = None
    error: str = ""  # sent in place of the answer
    has_reasoning: bool = False
    pieces: int = 0  # of text and arguments that a stream sent


class PieceLog:
    """Finds servers that send everything so far in each fragment, instead of what is new."""

    def __init__(self) -> None:
        self._last = ""
        self._count = 0
        self._is_growing = True

    def add(self, piece: str) -> None:
        if piece:
            self._is_growing = self._is_growing and len(piece) > len(self._last) and piece.startswith(self._last)
            self._count += 1
            self._last = piece

    def check(self, log: DeviationLog, where: str) -> None:
        if self._is_growing and self._count > 2:
            log.add("stream.cumulative", where, self._last[:80])


class SeenEvent(Struct, kw_only=True):
    """number: counts all events of the stream, for messages."""

    number: int
    name: str
    data: str
    value: dict[str, Any] | None = None

    @property
    def where(self) -> str:
        return f"event {self.number}"


def json_object(raw: bytes, log: DeviationLog, where: str = "body") -> dict[str, Any] | None:
    text = utf8(raw, log, where)
    if text.lstrip().startswith(("data:", "event:")):
        log.add("body.is_stream", where, text[:80])
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        log.add("body.not_json", where, f"{error}: {text[:80]}")
        return None
    if not isinstance(value, dict):
        log.add("body.not_json", where, f"found {type(value).__name__}")
        return None
    return value


def events(raw: bytes, log: DeviationLog) -> list[SeenEvent]:
    """The events of a stream. value is None for an event whose data is no JSON object, and for [DONE]."""
    text = utf8(raw, log, "stream").replace("\r\n", "\n").replace("\r", "\n")
    log.expect(not text.startswith(_MARK), "stream.byte_order_mark", "stream")
    text = text.removeprefix(_MARK)
    if text.lstrip()[:1] in ("{", "["):
        log.add("stream.not_streamed", "stream", text[:80])
        return []
    blocks = text.split("\n\n")
    if blocks[-1].strip():
        log.add("stream.framing", "end", "the last event has no blank line after it, so clients drop it")
    found: list[SeenEvent] = []
    for block in blocks:
        event = _event(block, len(found) + 1, log)
        if event is not None:
            found.append(event)
    if not found:
        log.add("stream.framing", "stream", "no event found")
    return found


def utf8(raw: bytes, log: DeviationLog, where: str) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        log.add("body.encoding", where, f"invalid byte at {error.start}")
        return raw.decode("utf-8", "replace")
    if "\ufffd" in text or "\\ufffd" in text.lower():
        log.add("body.encoding", where, "found U+FFFD, which replaces bytes that were lost")
    return text


def _event(block: str, number: int, log: DeviationLog) -> SeenEvent | None:
    """None for a block of comments."""
    data: list[str] = []
    name = ""
    for line in block.split("\n"):
        member, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line or not member:
            continue  # a comment
        if member not in _FIELDS:
            log.add("stream.framing", f"event {number}", f"a line without a field: {line[:60]}")
        elif member == "data":
            data.append(value)
        elif member == "event":
            name = value
    if not data:
        return None
    event = SeenEvent(number=number, name=name, data="\n".join(data))
    if event.data.strip() != DONE:
        event.value = _value(data, event, log)
    return event


def _value(lines: list[str], event: SeenEvent, log: DeviationLog) -> dict[str, Any] | None:
    try:
        value = json.loads(event.data)
    except (ValueError, RecursionError):
        if len(lines) > 1 and all(line.startswith(("{", DONE)) for line in lines):
            log.add("stream.framing", event.where, "two events without a blank line between them")
        else:
            log.add("stream.bad_json", event.where, event.data[:80])
        return None
    if not isinstance(value, dict):
        log.add("stream.bad_json", event.where, f"found {type(value).__name__}")
        return None
    return value


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def usage_of(
    usage: object, log: DeviationLog, names: tuple[str, str], total: str = "", where: str = "usage"
) -> tuple[int, int] | None:
    """Input and output tokens. None if the answer has no valid usage."""
    if usage is None:
        return None
    if not isinstance(usage, dict):
        log.add("usage.type", where, usage)
        return None
    if not all(is_count(usage.get(name)) for name in names):
        add_wrong_usage(usage, log, where, names)
        return None
    counted = usage[names[0]], usage[names[1]]
    # Some providers count reasoning only in the total.
    if total and usage.get(total) is not None and (not is_count(usage[total]) or usage[total] < sum(counted)):
        log.add("usage.wrong", where, usage)
    return counted


def add_wrong_usage(usage: dict[str, Any], log: DeviationLog, where: str, names: tuple[str, ...]) -> None:
    """Counts that are missing or negative are wrong; other JSON types break clients that validate answers."""
    has_type = all(isinstance(usage.get(name), int | float | None) for name in names)
    log.add("usage.wrong" if has_type else "usage.type", where, usage)


def has_wrong_usage(log: DeviationLog) -> bool:
    return not {"usage.wrong", "usage.type"}.isdisjoint(log.found)
