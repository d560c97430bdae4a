"""JSON-RPC in lines, without I/O: bytes in, messages out. The variant of programs that use pipes: no `jsonrpc` member.

Both sides send requests and responses, each with ids of its own, so open requests need one table per direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeGuard

from msgspec import Struct

from ..errors import quote
from ..types import Json, JsonObject
from .exact_json import BadJson, decode
from .exact_json import encode as encode_json

Id: TypeAlias = int | str

LONGEST = 256 << 20  # bytes of one line: some messages repeat a request with its images
_SHOWN = 300  # bytes of a line that is no message


class RpcResponse(Struct, frozen=True, kw_only=True):
    """The response to one of our requests; error is None if there is a result."""

    id: Id
    result: Json = None
    error: JsonObject | None = None


class RpcRequest(Struct, frozen=True, kw_only=True):
    """A request of the peer, which expects a response with this id."""

    id: Id
    method: str
    params: JsonObject = {}


class RpcNotification(Struct, frozen=True, kw_only=True):
    """A notification: it has no response."""

    method: str
    params: JsonObject = {}


class BadLine(Struct, frozen=True):
    """A line that is no message, and why. is_lost: it was too long to buffer, and may have been one."""

    why: str
    is_lost: bool = False


Incoming: TypeAlias = RpcResponse | RpcRequest | RpcNotification | BadLine


class LineReader:
    """Buffers at most one unfinished line; a line that grows too long is dropped up to its end."""

    def __init__(self, longest: int = LONGEST) -> None:
        self.size = 0  # bytes of the line that was given last
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_dropping = False

    def feed(self, data: bytes) -> Iterator[Incoming]:
        """One by one, so that the caller can stop early; otherwise the iterator must be exhausted."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            yield from self._keep(piece)
            yield from self._line()
        yield from self._keep(rest)

    def close(self) -> list[Incoming]:
        """The end of the input: a rest without a line break is a line, too."""
        return self._line()

    def _keep(self, piece: bytes) -> list[Incoming]:
        if self._is_dropping or not piece:
            return []
        self._size += len(piece)
        if self._size > self._longest:
            self._pieces.clear()
            self._is_dropping = True
            return [BadLine(f"a line is longer than {self._longest} bytes", is_lost=True)]
        self._pieces.append(piece)
        return []

    def _line(self) -> list[Incoming]:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self.size, self._size = self._size, 0
        self._is_dropping = False
        return [message_in(line)] if line.strip() else []


def message_in(line: bytes) -> Incoming:
    """The message in one line, or in the text of one frame."""
    try:
        value = decode(line)
    except BadJson as fault:
        return _garbled(f"it is not JSON ({fault})", line)
    if not isinstance(value, dict):
        return _garbled("it is not a JSON object", line)
    return _message(value) or _garbled("it is neither a request, a notification nor an answer", line)


def encode(message: JsonObject) -> bytes:
    """One line; JSON has no line break inside."""
    return encode_json(message) + b"\n"


def request(id: Id, method: str, params: JsonObject) -> JsonObject:
    return {"id": id, "method": method, "params": params}


def notification(method: str, params: JsonObject | None = None) -> JsonObject:
    return {"method": method} if params is None else {"method": method, "params": params}


def result(id: Id, value: Json) -> JsonObject:
    return {"id": id, "result": value}


def refusal(id: Id, error: JsonObject) -> JsonObject:
    return {"id": id, "error": error}


def _message(value: JsonObject) -> Incoming | None:
    method, id, params = value.get("method"), value.get("id"), value.get("params")
    if isinstance(method, str):
        given = params if isinstance(params, dict) else {}
        if id is None:
            return RpcNotification(method=method, params=given)
        return RpcRequest(id=id, method=method, params=given) if _is_id(id) else None
    if method is not None or not _is_id(id) or not ("result" in value or "error" in value):
        return None
    error = value.get("error")
    if error is not None and not isinstance(error, dict):
        error = {"message": error if isinstance(error, str) else "the error is no object"}
    return RpcResponse(id=id, result=value.get("result"), error=error)


def _is_id(value: Json) -> TypeGuard[Id]:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _garbled(why: str, line: bytes) -> BadLine:
    return BadLine(f"{why}: {quote(line[:_SHOWN].decode('utf-8', 'replace'))}")
