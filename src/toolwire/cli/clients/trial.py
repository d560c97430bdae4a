"""One real request to the gateway, as a client would send it, and what came of it in a sentence or two."""

from __future__ import annotations

import http.client
import json
import time

from msgspec import Struct

from ...dialects import DIALECTS
from ...errors import GatewayError, quote
from ...events import Answer, Folder
from ...types import Text, ToolCall
from ..models import plain
from .client import KEY, Target
from .gateway import connect, path_at
from .shapes import Shape, body_of, path_of

SECONDS = 120.0
_LONGEST = 16 * 1024 * 1024
_PIECE = 65536


class Outcome(Struct, frozen=True, kw_only=True):
    is_good: bool
    lines: tuple[str, ...]


def attempt(target: Target, dialect: str, shape: Shape, key: str) -> Outcome:
    """Send it and read the answer to its end."""
    started = time.monotonic()
    connection = connect(target.address, SECONDS)
    try:
        connection.request(
            "POST",
            path_at(target.address, path_of(shape, dialect)),
            json.dumps(body_of(shape, dialect, target.model)).encode(),
            _headers(shape, key),
        )
        return _outcome(connection.getresponse(), target, dialect, shape, started)
    except ConnectionRefusedError:
        return _bad(f"nothing answers at {target.address}.", "Start the gateway with: toolwire serve")
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return _bad(f"{target.address} cannot be used: {plain(why)}.", "Check --url, and that the gateway runs there.")
    finally:
        connection.close()


def _headers(shape: Shape, key: str) -> dict[str, str]:
    given = {"authorization": f"Bearer {key}"} if shape.auth == "bearer" else {"x-api-key": key}
    return {"content-type": "application/json", "user-agent": "toolwire-connect"} | given | shape.headers


def _outcome(response: http.client.HTTPResponse, target: Target, dialect: str, shape: Shape, started: float) -> Outcome:
    headers = {name.lower(): value for name, value in response.getheaders()}
    if response.status != 200:
        body = response.read(_PIECE)
        return _refusal(DIALECTS[dialect].decode_error(response.status, body, headers), target)
    try:
        answer, first = _answer(response, target, dialect, shape)
    except GatewayError as error:
        return _bad(f"the answer broke off: {plain(error.sentence(), 600)}")
    times = f"first byte after {_ms(first - started)}, done after {_ms(time.monotonic() - started)}"
    is_good, what = _verdict(answer, shape)
    loss = headers.get("x-toolwire-loss")
    extra = (f"Lost on the way: {plain(loss, 600)}",) if loss else ()
    return Outcome(is_good=is_good, lines=(f"{target.model} {what}; {times}.", *extra))


def _answer(response: http.client.HTTPResponse, target: Target, dialect: str, shape: Shape) -> tuple[Answer, float]:
    """The answer and the time of its first byte. Raises GatewayError."""
    spoken = DIALECTS[dialect]
    request = spoken.decode_request(json.dumps(body_of(shape, dialect, target.model)).encode(), {})
    decoder = spoken.stream_decoder(request) if shape.is_streaming else spoken.body_decoder(request)
    folder = Folder()
    first = size = 0.0
    while piece := response.read1(_PIECE):
        first = first or time.monotonic()
        size += len(piece)
        if size > _LONGEST:
            raise GatewayError(f"it has more than {_LONGEST} bytes.")
        for event in decoder.feed(piece):
            folder.send(event)
    for event in decoder.close():
        folder.send(event)
    return folder.answer(), first or time.monotonic()


def _verdict(answer: Answer, shape: Shape) -> tuple[bool, str]:
    parts = answer.parts_of(0)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    text = "".join(part.text for part in parts if isinstance(part, Text))
    if calls:
        broken = [call for call in calls if not _is_object(call.raw)]
        if broken:
            return (
                False,
                f"called {quote(broken[0].name)} with arguments that are no JSON object: {quote(broken[0].raw)}",
            )
        return True, f"called {quote(calls[0].name)[1:-1]} with {quote(calls[0].raw)[1:-1]}"
    if not text:
        return False, "answered with neither text nor a call"
    note = " and did not call the tool" if shape.has_tools else ""
    return True, f"answered with text{note}: {quote(text[:80])}"


def _refusal(error: GatewayError, target: Target) -> Outcome:
    said = plain(error.sentence(), 600)
    if error.status in (401, 403):
        wanted = "Give this command" if target.has_key else "The gateway wants a key: give this command"
        return _bad(f"status {error.status}: {said}", f"{wanted} and the client the right one: export {KEY}=...")
    if error.status == 404:
        return _bad(f"status 404: {said}", "`toolwire models` lists the models; choose one with --model.")
    return _bad(f"status {error.status}: {said}")


def _bad(*lines: str) -> Outcome:
    return Outcome(is_good=False, lines=lines)


def _is_object(raw: str) -> bool:
    try:
        return isinstance(json.loads(raw), dict)
    except (ValueError, RecursionError):
        return False


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
