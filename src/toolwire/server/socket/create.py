"""The messages of a client: response.create with its body, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ...dialects.responses.request_in import decode_request
from ...errors import BadRequest, quote
from ...types import Json, JsonObject, Request, State
from ...wire.exact_json import BadJson, decode, encode

_STREAM_ID = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_OWN = frozenset({"type", "generate", "stream_id"})  # members that a body for POST does not have
_FEATURE = "responses_websockets"  # in the header openai-beta, about this connection only


class Create(Struct, frozen=True):
    """A request for an answer. is_warm_up: it only prepares the next one. previous: the answer that it continues."""

    body: bytes
    stream_id: str
    previous: str
    is_warm_up: bool


class Steer(Struct, frozen=True):
    stream_id: str
    input: Json


def read_message(text: str) -> Create | Steer:
    """Raises BadRequest."""
    try:
        top = decode(text.encode())
    except BadJson as fault:
        raise BadRequest(f"the message is not JSON: {fault}.", code="invalid_json") from None
    if not isinstance(top, dict):
        raise BadRequest("found JSON that is no object; expected an event.", code="invalid_json")
    stream_id = lane_of(top)
    match top.get("type"):
        case "response.create":
            return _create(top, stream_id)
        case "response.steer":
            return Steer(stream_id, top.get("input"))
        case other:
            raise BadRequest(
                f"found the event {quote(other)}; expected response.create.", where="type", code="unknown_event"
            )


def lane_of(top: JsonObject) -> str:
    """The client's stream_id, "" without one. Raises BadRequest."""
    given = top.get("stream_id")
    if given is None:
        return ""
    if not isinstance(given, str) or not _STREAM_ID.fullmatch(given):
        raise BadRequest("expected 1 to 256 letters, digits, _, . and -.", where="stream_id", code="invalid_stream_id")
    return given


def _create(top: JsonObject, stream_id: str) -> Create:
    if top.get("background"):
        raise BadRequest(
            "found true; a response over a WebSocket does not run in the background.",
            where="background",
            hint="Send it with POST.",
        )
    options, previous = top.get("prompt_cache_options"), top.get("previous_response_id")
    is_warm_up = top.get("generate") is False or (isinstance(options, dict) and options.get("prewarm") is True)
    body = {key: value for key, value in top.items() if key not in _OWN}
    body["stream"] = True
    return Create(encode(body), stream_id, previous if isinstance(previous, str) else "", is_warm_up)


def decode_create(body: bytes, headers: Mapping[str, str]) -> Request:
    """As a request of POST, with a state: the connection remembers answers also where store is false."""
    request = decode_request(body, headers)
    return request if request.state is not None else replace(request, state=State())


def request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of the upgrade that are about requests."""
    found = {key: value for key, value in headers.items() if not key.startswith("sec-websocket-")}
    if beta := found.pop("openai-beta", ""):
        features = [one for one in map(str.strip, beta.split(",")) if one and not one.startswith(_FEATURE)]
        found |= {"openai-beta": ",".join(features)} if features else {}
    return found
