"""What every dialect offers, for requests, answers and errors, without I/O: to its clients, and most of them to its servers as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from ..errors import GatewayError, UpstreamError, quote
from ..events import Event, PartDelta
from ..profiles import Profile
from ..types import JsonObject, Loss, Request
from ..wire.exact_json import encode, object_of
from ..wire.fields import is_count
from ..wire.sse import Frame

# The client's headers that a back end of the same dialect gets: features and tracing, never identity or keys.
FORWARDED = frozenset(
    {
        "idempotency-key",
        "session-id",
        "thread-id",
        "traceparent",
        "tracestate",
        "x-client-request-id",
        "x-session-affinity",
        "x-session-id",
    }
)
_OPENAI = FORWARDED | {"openai-beta"}
EVENT_STREAM = "text/event-stream; charset=utf-8"

OTHER_CHOICES = Loss(
    "choices", "answer", "the back end sent several choices where one was requested; one is the answer"
)

Mint: TypeAlias = Callable[[str], str]  # prefix -> a new id that starts with it
Decode: TypeAlias = Callable[[bytes, Mapping[str, str]], Request]  # body, headers -> request


class ModelLine(Struct, frozen=True, kw_only=True):
    """One model in a list. context: the largest number of tokens of a conversation; 0 if it is unknown."""

    id: str
    owner: str = "toolwire"
    created: int = 0
    title: str = ""
    context: int = 0


class Endpoint(Struct, frozen=True, kw_only=True):
    """What clients of a dialect can request at one path.

    A request for an answer, a token count or embeddings is a POST, and decode() reads its body. So is the description of a model that
    name_in() finds in the body. The list of models, the description of a model in the path and a fixed body are a GET.
    A path to something stored has methods of its own.
    key is the API key of a query string. is_array: the client expects each JSON body, errors included, as an array of one element.
    """

    task: Literal["answer", "count", "embed", "models", "model", "fixed", "state"]
    decode: Decode | None = None
    model: str = ""  # for task "model": the one that the path names
    name_in: Callable[[bytes], str] | None = None
    body: bytes = b""  # for task "fixed"
    place: tuple[str, ...] = ()  # for task "state": the path of something stored, without a version
    # For task "answer": the answer to a request without messages, which only asks for the model to be loaded. The number is the time.
    load: Callable[[Request, int], bytes] | None = None
    # For task "embed": the back end's response, which has the form of OpenAI, as the client expects it.
    embedded: Callable[[bytes, Request], bytes] | None = None
    key: str = ""
    is_array: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD") if self.decode is None and self.name_in is None else ("POST",)


class Encoded(NamedTuple):
    """A request ready to send: path is relative to the back end's base address."""

    path: str
    body: bytes
    losses: tuple[Loss, ...]


class AnswerContext(Struct, frozen=True, kw_only=True):
    """What an encoder needs besides the events: the request, the time, and a source of ids.

    is_kept: the gateway stores this answer, or the request refers to stored ones; answer_id is its id, "" to use the back end's own.
    clock returns seconds, and started is what it returned when the request arrived: for dialects that report how long an answer took.
    """

    request: Request
    mint: Mint
    now: int
    is_renamed: bool = False  # the back end got another model name; the answer has the one of the request
    is_kept: bool = False
    answer_id: str = ""
    clock: Callable[[], float] = float  # always 0.0
    started: float = 0.0


class ResponseDecoder(Protocol):
    """irregular is why the last input does not conform to the dialect; "" if it does."""

    irregular: str

    def feed(self, data: bytes) -> list[Event]: ...

    def close(self) -> list[Event]:
        """The answer has ended: end everything that is open, with Finished or Failed."""


class FrameRun(Struct, frozen=True):
    """Successive frames that only extend one part. delta: by all their text. size: their bytes, with the blank line after each."""

    delta: PartDelta
    size: int


class StreamDecoder(ResponseDecoder, Protocol):
    """is_ending: the end of the answer has begun; is_over: it has ended."""

    is_ending: bool
    is_over: bool

    @property
    def match(self) -> Callable[[bytes], PartDelta | None]:
        """The delta of a frame that differs from the last one only in its text, without parsing; the argument is its lines."""

    def find_run(self, data: bytes) -> FrameRun | None:
        """The same for the successive frames at the start of data. Nothing has happened until they are given to extend()."""

    def extend(self, run: FrameRun) -> None: ...

    def read(self, frame: Frame) -> list[Event]:
        """The events of a frame that did not match."""


class ResponseEncoder(Protocol):
    """send() returns the bytes of one event; observe() updates the state for events that were forwarded unchanged."""

    def send(self, event: Event) -> bytes: ...

    def observe(self, event: Event) -> None: ...

    def passed(self, frame: Frame) -> None:
        """A frame other than a single delta was forwarded unchanged; its events were observed."""

    def resume(self, last: Frame | None) -> None:
        """From here on send() writes; last is the last frame that was forwarded unchanged."""

    def close(self) -> bytes: ...

    def final(self) -> JsonObject | None:
        """The whole answer as the client received it, once its end is written; only its id if it is not stored."""


def match_nothing(path: str, query: bytes) -> Endpoint | None:
    return None


def encode_count(tokens: int) -> bytes:
    return encode({"input_tokens": tokens})


def decode_count(body: bytes) -> int | None:
    return count_member(body, "input_tokens")


def bearer_headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    return bearer(key) | forwarded_headers(given, _OPENAI)


def before_last_event(wire: bytes, added: bytes) -> bytes:
    start = wire.rfind(b"\n\n", 0, -2) + 2 if b"\n\n" in wire[:-2] else 0
    return wire[:start] + added + wire[start:]


def add_comment(wire: bytes, report: bytes) -> bytes:
    return before_last_event(wire, b": toolwire " + report + b"\n\n")


def no_header(given: Mapping[str, str]) -> bool:
    return False


class FrontDialect(Struct, frozen=True, kw_only=True):
    """How to serve the clients of one wire format.

    routes are the exact paths, without a version, that only clients of this dialect use.
    """

    name: str
    routes: Mapping[str, Endpoint] = {}
    # The endpoint of a path that is not in routes, because it contains the name of a model or the version of the API.
    match: Callable[[str, bytes], Endpoint | None] = match_nothing
    # The start of other paths whose errors have the form of this dialect.
    error_paths: str = ""
    # Whether these request headers are those of a client of this dialect, for paths that several dialects use.
    claims: Callable[[Mapping[str, str]], bool] = no_header
    stream_type: str = EVENT_STREAM
    heartbeat: bytes = b": keep-alive\n\n"  # keeps an idle stream open
    # Adds the report of the gateway, as JSON in one line, to the last bytes of a stream.
    add_report: Callable[[bytes, bytes], bytes] = add_comment

    decode_request: Decode
    stream_encoder: Callable[[AnswerContext], ResponseEncoder]
    body_encoder: Callable[[AnswerContext], ResponseEncoder]
    encode_error: Callable[[GatewayError, str], bytes]  # error, request id
    encode_count: Callable[[int], bytes] = encode_count
    encode_models: Callable[[Sequence[ModelLine]], bytes]
    encode_model: Callable[[ModelLine], bytes]

    def encoder(self, context: AnswerContext) -> ResponseEncoder:
        return self.stream_encoder(context) if context.request.stream else self.body_encoder(context)


class Dialect(FrontDialect, frozen=True, kw_only=True):
    """One wire format in both directions: how to serve its clients, and how to be a client of its servers.

    path, models_path and count_path are relative to a back end's base address; count_path is "" if no endpoint counts tokens.
    """

    path: str
    models_path: str = "/models"
    count_path: str = ""

    # Tools of other dialects are functions by now (calls/tools/kinds.py).
    encode_request: Callable[[Request, Profile], Encoded]
    # Where a request goes whose bytes are forwarded unchanged, if that is not always the same path.
    path_of_request: Callable[[Request], str] | None = None
    # From the key and the client's own headers, of which only those in `forwarded` count.
    headers: Callable[[Profile, str, Mapping[str, str]], dict[str, str]] = bearer_headers
    forwarded: frozenset[str] = _OPENAI

    stream_decoder: Callable[[Request], StreamDecoder]
    body_decoder: Callable[[Request], ResponseDecoder]
    decode_error: Callable[[int, bytes, Mapping[str, str]], UpstreamError]  # status, body, headers
    decode_count: Callable[[bytes], int | None] = decode_count
    decode_models: Callable[[bytes], list[ModelLine]]


def count_member(body: bytes, name: str) -> int | None:
    """The token count under this name in a response body."""
    value = (object_of(body.decode("utf-8", "replace")) or {}).get(name)
    return value if is_count(value) else None


def garbage(message: str) -> UpstreamError:
    return UpstreamError(message, status=502, code="upstream_garbage")


def cut(message: str) -> UpstreamError:
    return UpstreamError(message, status=502, code="upstream_cut")


def excerpt(data: bytes) -> str:
    """The start of foreign bytes, for an error message."""
    return quote(data[:300].decode("utf-8", "replace"))


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def forwarded_headers(given: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name in names}
