"""Gemini's own ways at the front door: the key in other places, the model in the path, a stream without SSE as an array."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from ..dialects import DIALECTS, gemini
from ..dialects.gemini import COUNT, STREAM
from ..types import Request
from ..wire.exact_json import encode, object_of
from .body import Send
from .reply import HeaderList, Reply

_JSON = "application/json"
_LONGEST = 10_000  # letters of a query


class Door:
    """One request by a path of this dialect."""

    def __init__(self, asked: gemini.Asked, query: bytes) -> None:
        self.model = asked.model
        self.is_post = bool(asked.verb)
        self.is_counting = asked.verb == COUNT
        words = parse_qs(query[:_LONGEST].decode("utf-8", "replace"))
        self._key = words.get("key", [""])[-1]
        self._is_sse = "sse" in words.get("alt", ())
        self._is_stream = asked.verb == STREAM

    def headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """The same with the key that stood in the query, if no other was given."""
        is_given = any(name in given for name in ("authorization", "x-api-key", "x-goog-api-key"))
        return dict(given) if is_given or not self._key else {**given, "x-goog-api-key": self._key}

    def reply(self, send: Send, request_id: str, origin: str | None) -> Reply:
        is_listed = self._is_stream and not self._is_sse
        return (Listed if is_listed else Reply)(send, DIALECTS[gemini.NAME], request_id, origin)

    def decode(self, body: bytes, headers: Mapping[str, str]) -> Request:
        if self.is_counting:
            return gemini.decode_count_request(body, headers, model=self.model)
        return gemini.decode_asked(body, headers, model=self.model, is_stream=self._is_stream and self._is_sse)


class Listed(Reply):
    """Who asks for a stream and not for server-sent events gets an array of chunks: here of one, once it is complete."""

    async def whole(self, status: int, body: bytes, kind: str, extra: HeaderList | None = None) -> None:
        await super().whole(status, b"[" + body + b"]" if kind == _JSON else body, kind, extra)


def door_of(path: str, query: bytes) -> Door | None:
    """None for a path that is not this dialect's alone."""
    asked = gemini.asked_in(path)
    return None if asked is None else Door(asked, query)


def counted(body: bytes) -> bytes:
    """A count in this dialect's words, whoever has counted."""
    value = object_of(body.decode("utf-8", "replace")) or {}
    return body if "totalTokens" in value else encode({"totalTokens": value.get("input_tokens", 0)})
