"""What every dialect offers: both directions, for requests, answers and errors, without I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeGuard

from msgspec import Struct

from ..errors import GatewayError, UpstreamError, quote
from ..events import Answer, Event, Failed, Folder, PartDelta
from ..profiles import Profile
from ..types import JsonObject, Loss, Request
from ..wire.exact_json import BadJson, decode, encode, object_of
from ..wire.frame_template import Shortcut
from ..wire.sse import Frame, FrameTooLarge, SseReader
from .shared.assembly import Assembly, Growing

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b":", b"id:", b"retry:")  # what a line of a stream begins with, and no JSON
_FORWARDED = (
    "idempotency-key",
    "session-id",
    "thread-id",
    "traceparent",
    "tracestate",
    "x-client-request-id",
    "x-session-affinity",
    "x-session-id",
)
_MOST = 1 << 53  # tokens; beyond, no client counts right

OTHER_CHOICES = Loss(
    "choices", "answer", "the back end sent several choices where one was asked for; one is the answer"
)

Mint: TypeAlias = Callable[[str], str]  # prefix -> a new id that starts with it
Decode: TypeAlias = Callable[[bytes, Mapping[str, str]], Request]  # body, headers -> request


class ModelLine(Struct, frozen=True, kw_only=True):
    """One model in a list: what any dialect's list can say of it."""

    id: str
    owner: str = "toolwire"
    created: int = 0
    title: str = ""


class Endpoint(Struct, frozen=True, kw_only=True):
    """What clients of a dialect can request at one path.

    A request for an answer or a token count is a POST, and decode() reads its body. The list of models and the description of one model have
    no body. key is the API key of a query string. is_array: the client expects each JSON body, errors included, as an array of one element.
    """

    task: Literal["answer", "count", "models", "model"]
    decode: Decode | None = None
    model: str = ""  # for task "model": the one that the path names
    key: str = ""
    is_array: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD") if self.decode is None else ("POST",)


class Encoded(NamedTuple):
    """A request ready to send: path is relative to the back end's base address."""

    path: str
    body: bytes
    losses: tuple[Loss, ...]


class Context(Struct, frozen=True, kw_only=True):
    """What an encoder needs beside the events: the request it answers, the time, and a maker of ids.

    is_kept: the gateway remembers this answer, or what it leans on; answer_id is then its id, "" where the back end's own will do.
    """

    request: Request
    mint: Mint
    now: int
    is_renamed: bool = False  # the back end was asked for another model name; the answer has the one in request
    is_kept: bool = False
    answer_id: str = ""


class ResponseDecoder(Protocol):
    """irregular says why what came last is not as the dialect has it; "" while all is well."""

    irregular: str

    def feed(self, data: bytes) -> list[Event]: ...

    def close(self) -> list[Event]:
        """The answer has ended; whatever is still open ends here, in Finished or Failed."""


class StreamDecoder(ResponseDecoder, Protocol):
    """is_ending: frames have begun to tell how the answer ends; is_over: it has ended."""

    is_ending: bool
    is_over: bool

    def frame(self, frame: Frame) -> list[Event]: ...

    def read(self, frame: Frame) -> list[Event]:
        """As frame(), without parsing where the frame is like the one before it."""

    def quick(self, data: bytes) -> PartDelta | None:
        """The one delta that these bytes are, if they are one frame like the one before it."""


class ResponseEncoder(Protocol):
    """send() gives the bytes of one event; observe() only keeps up with events that left as they came."""

    content_type: str

    def send(self, event: Event) -> bytes: ...

    def observe(self, event: Event) -> None: ...

    def passed(self, frame: Frame) -> None:
        """A frame that was more than one delta left as it came; its events were observed."""

    def resume(self, last: Frame | None) -> None:
        """From here on send() writes; last is the last frame that left as it came."""

    def close(self) -> bytes: ...

    def final(self) -> JsonObject | None:
        """The whole answer as the client has it, once its end is written; only its id where nobody is to remember it."""


def match_nothing(path: str, query: bytes) -> Endpoint | None:
    return None


def encode_count(tokens: int) -> bytes:
    return encode({"input_tokens": tokens})


def decode_count(body: bytes) -> int | None:
    return count_member(body, "input_tokens")


def bearer_headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    return bearer(key) | forwarded_headers(given, "openai-beta")


def no_header(given: Mapping[str, str]) -> bool:
    return False


class Dialect(Struct, frozen=True, kw_only=True):
    """One wire format: how to serve its clients and how to be a client of its servers.

    path, models_path and count_path are relative to a back end's base address; count_path is "" if no endpoint counts tokens. routes are the
    exact paths, without a version, that only clients of this dialect use.
    """

    name: str
    path: str
    models_path: str = "/models"
    count_path: str = ""
    routes: Mapping[str, Endpoint] = {}
    # The endpoint of a path that is not in routes, because it contains the name of a model or the version of the API.
    match: Callable[[str, bytes], Endpoint | None] = match_nothing
    # Whether these request headers are those of a client of this dialect, for paths that several dialects use.
    claims: Callable[[Mapping[str, str]], bool] = no_header
    heartbeat: bytes = b": keep-alive\n\n"  # keeps an idle stream open

    decode_request: Decode
    # Tools of other dialects are functions by now (calls/tools/kinds.py).
    encode_request: Callable[[Request, Profile], Encoded]
    path_of: Callable[[Request], str]  # where a request goes whose bytes are forwarded unchanged
    # From the key and the client's own headers, as far as they are forwarded.
    headers: Callable[[Profile, str, Mapping[str, str]], dict[str, str]] = bearer_headers

    stream_decoder: Callable[[Request], StreamDecoder]
    body_decoder: Callable[[Request], ResponseDecoder]
    encoder: Callable[[Context], ResponseEncoder]

    decode_error: Callable[[int, bytes, Mapping[str, str]], UpstreamError]  # status, body, headers
    encode_error: Callable[[GatewayError, str], bytes]  # error, request id
    encode_count: Callable[[int], bytes] = encode_count
    decode_count: Callable[[bytes], int | None] = decode_count
    encode_models: Callable[[Sequence[ModelLine]], bytes]
    encode_model: Callable[[ModelLine], bytes]
    decode_models: Callable[[bytes], list[ModelLine]]


class FrameDecoder:
    """Base of the stream decoders: bytes to frames, frames to events, nothing after the end.

    A frame that differs from the previous one only in its text is not parsed. The decoder calls only_grows() while it reads a frame whose only
    effect is more text for one part; the text of a frame like it is then added to that part. A decoder must not call it for a frame with any
    other effect, also on its own state, because that effect would be skipped.
    """

    def __init__(self) -> None:
        self.irregular = ""
        self.is_ending = False
        self.is_over = False
        self._sse = SseReader()
        self._assembly = Assembly()
        self._shortcut = Shortcut()
        self._grown: Growing | None = None  # where the text of a frame like the last one goes
        self._is_between = False  # two frames: what comes begins one

    def frame(self, frame: Frame) -> list[Event]:
        raise NotImplementedError

    def end(self) -> list[Event]:
        """The stream has ended without a terminal event."""
        raise NotImplementedError

    def feed(self, data: bytes) -> list[Event]:
        if self._is_between and (delta := self.quick(data)) is not None:
            return [delta]
        events: list[Event] = []
        try:
            for frame in self._sse.feed(data):
                events += self.read(frame)
        except FrameTooLarge as fault:
            events += self.fail(garbage(str(fault)))
        self._is_between = self._sse.is_idle
        return events

    def read(self, frame: Frame) -> list[Event]:
        growing = self._grown
        if growing is not None and (text := self._shortcut.text_in(frame.block)) is not None:
            return [growing.grow(text)]
        self.parse_next()
        events = self.frame(frame)
        if self._grown is not None and len(events) == 1 and type(event := events[0]) is PartDelta:
            self._shortcut.learn(frame.block, event.text)
        else:
            self.parse_next()
        return events

    def quick(self, data: bytes) -> PartDelta | None:
        growing = self._grown
        if growing is None or (text := self._shortcut.text_in_frame(data)) is None:
            return None
        return growing.grow(text)

    def only_grows(self, growing: Growing) -> Growing:
        """The frame that is being read adds text to this part, and changes nothing else."""
        self._grown = None if self.is_ending else growing
        return growing

    def parse_next(self) -> None:
        """The next frame must be parsed, whatever it is like."""
        self._grown = None

    def close(self) -> list[Event]:
        events: list[Event] = []
        for frame in last_frames(self._sse):
            events += self.frame(frame)
        if not self.is_over:
            events += self.end()
        return events

    def fail(self, error: GatewayError) -> list[Event]:
        if self.is_over:
            return []
        self.is_over = True
        self.parse_next()
        self.irregular = self.irregular or "an error"
        return [Failed(error=error)]


class BodyDecoder:
    """A whole answer: collects the body, then gives all its events at once; a stream that is called a body is read as one."""

    def __init__(
        self,
        events_of: Callable[[JsonObject], tuple[list[Event], str]],
        stream: Callable[[], StreamDecoder] | None = None,
    ) -> None:
        self.irregular = ""
        self.value: JsonObject | None = None
        self._events_of = events_of
        self._stream = stream
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        self._pieces.append(data)
        return []

    def close(self) -> list[Event]:
        given = b"".join(self._pieces)
        body = given.removeprefix(_BOM)
        if self._stream is not None and body.lstrip().startswith(_FIELDS):
            return self._streamed(self._stream(), given)
        try:
            value = decode(body)
        except BadJson as fault:
            return self._broken(f"the back end's answer is not JSON ({fault}): {shown(body)}")
        if not isinstance(value, dict):
            return self._broken(f"the back end's answer is not a JSON object: {shown(body)}")
        self.value = value
        events, self.irregular = self._events_of(value)
        if body != given:
            self.irregular = self.irregular or "a byte order mark"
        return events

    def _streamed(self, decoder: StreamDecoder, data: bytes) -> list[Event]:
        self.irregular = "a stream where a body was due"
        return decoder.feed(data) + decoder.close()

    def _broken(self, message: str) -> list[Event]:
        self.irregular = "not JSON"
        return [Failed(error=garbage(message))]


class BodyEncoder:
    """The whole answer in one body, once its last event has come; an answer that failed raises its error instead."""

    content_type = "application/json"

    def __init__(self, context: Context, body_of: Callable[[Answer, Context], JsonObject]) -> None:
        self._context = context
        self._body_of = body_of
        self._folder = Folder()
        self._value: JsonObject | None = None

    def send(self, event: Event) -> bytes:
        self._folder.send(event)
        return b""

    def observe(self, event: Event) -> None:
        self._folder.send(event)

    def passed(self, frame: Frame) -> None:
        pass

    def resume(self, last: Frame | None) -> None:
        pass

    def close(self) -> bytes:
        self._value = self._body_of(self._folder.answer(), self._context)
        return encode(self._value)

    def final(self) -> JsonObject | None:
        return self._value


def count_member(body: bytes, name: str) -> int | None:
    """The token count under this name in a response body."""
    value = (object_of(body.decode("utf-8", "replace")) or {}).get(name)
    return value if is_count(value) else None


def garbage(message: str) -> UpstreamError:
    return UpstreamError(message, status=502, code="upstream_garbage")


def cut(message: str) -> UpstreamError:
    return UpstreamError(message, status=502, code="upstream_cut")


def shown(data: bytes) -> str:
    """The start of foreign bytes, for a message."""
    return quote(data[:300].decode("utf-8", "replace"))


def object_in(frame: Frame) -> JsonObject | None:
    """The JSON object a frame carries, or None."""
    try:
        value = decode(frame.data)
    except BadJson:
        return None
    return value if isinstance(value, dict) else None


def last_frames(reader: SseReader) -> list[Frame]:
    """A frame whose blank line never came counts only if it is whole; half of one says that the stream was cut."""
    frames = reader.close()
    if reader.is_document:
        return frames
    return [frame for frame in frames if is_mark(frame.data) or object_in(frame) is not None]


def is_mark(data: bytes) -> bool:
    """The words by which two of the dialects end a stream, and some servers any."""
    return data.strip() == b"[DONE]"


def count_of(value: object) -> int:
    """A count of tokens as a server gives it; 0 where it can be none."""
    if isinstance(value, Decimal):
        value = int(value) if 0 <= value < _MOST and value == value.to_integral_value() else 0
    return value if is_count(value) else 0


def is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def forwarded_headers(given: Mapping[str, str], *names: str) -> dict[str, str]:
    """The client's headers that a back end of the same dialect gets: features and tracing, never identity or keys."""
    return {name: given[name] for name in (*_FORWARDED, *names) if name in given}
