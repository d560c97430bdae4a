"""A question and a tool result sent to the gateway as a client would send them, and a short report of the answers."""

from __future__ import annotations

import http.client
import json
import time

from msgspec import Struct
from msgspec.structs import replace

from ...dialects import DIALECTS
from ...errors import GatewayError, quote
from ...events import Answer, Folder
from ...profiles import PLAIN
from ...types import Message, Request, Text, ToolCall, ToolResult
from ..models import plain
from .client import KEY, Target
from .gateway import connect, path_at
from .shapes import RESULT, Shape, body_of, path_of

SECONDS = 120.0
_LONGEST = 16 * 1024 * 1024
_PIECE = 65536


class Outcome(Struct, frozen=True, kw_only=True):
    is_good: bool
    lines: tuple[str, ...]


class _Turn(Struct, frozen=True, kw_only=True):
    """One answer. loss is what the gateway reported."""

    answer: Answer
    times: str
    loss: str = ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.answer.parts_of(0) if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.answer.parts_of(0) if isinstance(part, Text))


def attempt(target: Target, dialect: str, shape: Shape, key: str) -> Outcome:
    """Ask, and where the model calls the tool, send its result and read the answer to that."""
    trial = _Trial(target, dialect, shape, key)
    body = json.dumps(body_of(shape, dialect, target.model)).encode()
    first = trial.turn(body)
    if isinstance(first, Outcome):
        return first
    outcome = _judged(first, target, shape)
    if not first.calls or not outcome.is_good:
        return outcome
    second = trial.turn(_with_results(DIALECTS[dialect].decode_request(body, {}), first, dialect))
    follow_up = second if isinstance(second, Outcome) else _judged_result(second)
    where = () if follow_up.is_good else ("The call came back whole; this is the answer to its result:",)
    return Outcome(is_good=follow_up.is_good, lines=(*outcome.lines, *where, *follow_up.lines))


class _Trial:
    def __init__(self, target: Target, dialect: str, shape: Shape, key: str) -> None:
        self._target = target
        self._dialect = dialect
        self._shape = shape
        self._key = key

    def turn(self, body: bytes) -> _Turn | Outcome:
        """Send it and read the answer to its end; an Outcome where there is none."""
        target, started = self._target, time.monotonic()
        connection = connect(target.address, SECONDS)
        try:
            path = path_at(target.address, path_of(self._shape, self._dialect))
            connection.request("POST", path, body, _headers(self._shape, self._key))
            return self._read(connection.getresponse(), body, started)
        except ConnectionRefusedError:
            return _bad(f"nothing answers at {target.address}.", "Start the gateway with: toolwire serve")
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            hint = "Check --url, and that the gateway runs there."
            return _bad(f"{target.address} cannot be used: {plain(why)}.", hint)
        finally:
            connection.close()

    def _read(self, response: http.client.HTTPResponse, body: bytes, started: float) -> _Turn | Outcome:
        headers = {name.lower(): value for name, value in response.getheaders()}
        spoken = DIALECTS[self._dialect]
        if response.status != 200:
            return _refusal(spoken.decode_error(response.status, response.read(_PIECE), headers), self._target)
        try:
            answer, first = self._answer(response, spoken.decode_request(body, {}))
        except GatewayError as error:
            return _bad(f"the answer broke off: {plain(error.sentence(), 600)}")
        times = f"first byte after {_ms(first - started)}, done after {_ms(time.monotonic() - started)}"
        return _Turn(answer=answer, times=times, loss=headers.get("x-toolwire-loss", ""))

    def _answer(self, response: http.client.HTTPResponse, request: Request) -> tuple[Answer, float]:
        """The answer and the time of its first byte. Raises GatewayError."""
        spoken = DIALECTS[self._dialect]
        decoder = spoken.stream_decoder(request) if self._shape.is_streaming else spoken.body_decoder(request)
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


def _with_results(request: Request, turn: _Turn, dialect: str) -> bytes:
    """The conversation with the answer, reasoning included, and a result for each call."""
    results = tuple(ToolResult(call_id=call.id, name=call.name, parts=(Text(text=RESULT),)) for call in turn.calls)
    said = Message(role="assistant", parts=turn.answer.parts_of(0))
    messages = (*request.messages, said, Message(role="user", parts=results))
    return DIALECTS[dialect].encode_request(replace(request, messages=messages, wire=b""), PLAIN).body


def _headers(shape: Shape, key: str) -> dict[str, str]:
    given = {"authorization": f"Bearer {key}"} if shape.auth == "bearer" else {"x-api-key": key}
    return {"content-type": "application/json", "user-agent": "toolwire-connect"} | given | shape.headers


def _judged(turn: _Turn, target: Target, shape: Shape) -> Outcome:
    is_good, what = _verdict(turn, shape)
    extra = (f"Lost on the way: {plain(turn.loss, 600)}",) if turn.loss else ()
    return Outcome(is_good=is_good, lines=(f"{target.model} {what}; {turn.times}.", *extra))


def _verdict(turn: _Turn, shape: Shape) -> tuple[bool, str]:
    broken = [call for call in turn.calls if not _is_object(call.raw)]
    if broken:
        return False, f"called {quote(broken[0].name)} with arguments that are no JSON object: {quote(broken[0].raw)}"
    if turn.calls:
        return True, f"called {quote(turn.calls[0].name)[1:-1]} with {quote(turn.calls[0].raw)[1:-1]}"
    if not turn.text:
        return False, "answered with neither text nor a call"
    note = " and did not call the tool" if shape.has_tools else ""
    return True, f"answered with text{note}: {quote(turn.text[:80])}"


def _judged_result(turn: _Turn) -> Outcome:
    if turn.text:
        return Outcome(is_good=True, lines=(f"given its result, it answered: {quote(turn.text[:80])}; {turn.times}.",))
    if turn.calls:
        name = quote(turn.calls[0].name)[1:-1]
        return Outcome(is_good=True, lines=(f"given its result, it called {name} again; {turn.times}.",))
    return _bad(f"it answered with neither text nor a call; {turn.times}.")


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
