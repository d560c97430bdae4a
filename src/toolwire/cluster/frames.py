"""A request to a live run and the events of its answer, as JSON lines between two processes.

The processes may have different versions: unknown members are ignored, missing ones have their defaults, and an unknown kind of event
ends the answer as an error.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import BadRequest, GatewayError, InternalError, UpstreamError
from ..events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from ..types import Citation, JsonObject, Loss, Opaque, Request, Usage
from ..wire.exact_json import BadJson, decode, encode, typed_decoder

_T = TypeVar("_T")
_SECRETS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"})
_NOTES: dict[str, Any] = {"usage": Usage, "loss": Loss, "citation": Citation, "opaque": Opaque}
_KEPT = (Decimal,)  # types that stay as they are
_ERRORS: dict[str, type[GatewayError]] = {"client": BadRequest, "upstream": UpstreamError}


class RunRequest(Struct, frozen=True):
    """A request for a back end of another process."""

    backend: str
    request: Request


class ErrorFrame(Struct, frozen=True, kw_only=True, tag="failed"):
    """An error; who: which class it has there."""

    who: str
    message: str
    status: int = 500
    code: str = ""
    where: str = ""
    hint: str = ""
    details: JsonObject = {}
    headers: dict[str, str] = {}
    is_retryable: bool = False


class NoteFrame(Struct, frozen=True, kw_only=True, tag="noted"):
    kind: str
    note: JsonObject
    index: int | None = None


EventFrame: TypeAlias = Started | PartStarted | PartDelta | PartEnded | NoteFrame | Finished | ErrorFrame


class RunFrame(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line. The first one has is_open, or the error with which the back end refused. A line without members is a heartbeat."""

    is_open: bool = False
    losses: tuple[Loss, ...] = ()
    headers: dict[str, str] = {}
    how: str = ""
    events: tuple[EventFrame, ...] = ()
    error: ErrorFrame | None = None
    is_missing: bool = False  # the run does not exist any more
    is_end: bool = False


_request_decoder = typed_decoder(RunRequest)
_frame_decoder = typed_decoder(RunFrame)


def encode_request(backend: str, request: Request) -> bytes:
    """Without the client's bytes and keys: a live run needs neither."""
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _SECRETS}
    sent = replace(request, tools=tuple(request.tools), headers=headers, wire=b"", source={})
    return _line(RunRequest(backend, sent))


def decode_request(body: bytes) -> RunRequest:
    """Raises BadRequest."""
    try:
        return _decode(_request_decoder, RunRequest, body)
    except (msgspec.MsgspecError, BadJson) as error:
        raise BadRequest(f"the forwarded request cannot be decoded: {error}.") from None


def encode_frame(frame: RunFrame) -> bytes:
    return _line(frame) + b"\n"


def decode_frame(line: bytes) -> RunFrame:
    """Raises UpstreamError."""
    try:
        return _decode(_frame_decoder, RunFrame, line)
    except (msgspec.MsgspecError, BadJson):
        message = "another process of this gateway sent something that cannot be decoded."
        raise UpstreamError(message, code="cluster_garbage") from None


def events_out(events: list[Event]) -> tuple[EventFrame, ...]:
    return tuple(_event_out(event) for event in events)


def events_in(frames: tuple[EventFrame, ...]) -> list[Event]:
    """Raises UpstreamError for an unknown kind of note."""
    return [_event_in(frame) for frame in frames]


def error_out(error: GatewayError) -> ErrorFrame:
    is_upstream = isinstance(error, UpstreamError)
    return ErrorFrame(
        who="upstream" if is_upstream else "client" if isinstance(error, BadRequest) else "gateway",
        message=error.message,
        status=error.status,
        code=error.code,
        where=error.where,
        hint=error.hint,
        details=error.details,
        headers=error.headers if isinstance(error, UpstreamError) else {},
        is_retryable=isinstance(error, UpstreamError) and error.retryable,
    )


def error_in(frame: ErrorFrame) -> GatewayError:
    kind = _ERRORS.get(frame.who, InternalError)
    error = kind(
        frame.message,
        status=frame.status,
        code=frame.code,
        where=frame.where,
        hint=frame.hint,
        details=frame.details,
    )
    if isinstance(error, UpstreamError):
        error.headers, error.retryable = dict(frame.headers), frame.is_retryable
    return error


def _event_out(event: Event) -> EventFrame:
    if isinstance(event, Noted):
        kind = next(name for name, found in _NOTES.items() if isinstance(event.note, found))
        return NoteFrame(kind=kind, note=msgspec.to_builtins(event.note, builtin_types=_KEPT), index=event.index)
    return error_out(event.error) if isinstance(event, Failed) else event


def _event_in(frame: EventFrame) -> Event:
    if isinstance(frame, NoteFrame):
        if frame.kind not in _NOTES:
            raise UpstreamError("another process of this gateway sent an unknown event.", code="cluster_garbage")
        return Noted(note=msgspec.convert(frame.note, _NOTES[frame.kind]), index=frame.index)
    return Failed(error=error_in(frame)) if isinstance(frame, ErrorFrame) else frame


def _line(value: Struct) -> bytes:
    try:
        return encode(value)
    except UnicodeEncodeError:
        return encode(msgspec.to_builtins(value, builtin_types=_KEPT))


def _decode(decoder: msgspec.json.Decoder[_T], kind: type[_T], data: bytes) -> _T:
    """Raises MsgspecError or BadJson."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return msgspec.convert(decode(data), kind)  # lone surrogates are accepted only here
