"""Back ends reached over HTTP: any dialect, one transport. Nothing is retried after the first byte of an answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from functools import lru_cache
from typing import Self
from urllib.parse import quote

from msgspec.structs import replace

from ...config.file import BackendConfig
from ...dialects import DIALECTS
from ...dialects.base import Encoded
from ...errors import UpstreamError
from ...offload import LARGE, offload
from ...profiles import ALL_KINDS, profile_for
from ...telemetry import flow_draft, wire_trace
from ...types import LOOP_HEADER, Loss, Request
from ...wire.exact_json import object_of
from ..base import Backend, Model, TokenCount
from .kinds import DIALECT_OF, base_of
from .refusals import changed_body, check_tools, is_passing
from .transport import Response, Timeouts, Transport

_KINDS: dict[str, frozenset[str]] = {"all": ALL_KINDS, "functions": frozenset()}
_EMBEDDING = ("chat", "responses")  # dialects of OpenAI
_COUNTED = ("input_tokens", "totalTokens")
_RETRIED = frozenset({429, 502, 503, 504, 529})
_LONGEST_WAIT = 2.0  # a longer Retry-After is left to the client
_MAX_ERROR = 1 << 20
_MAX_LIST = 8 << 20
_MAX_EMBEDDINGS = 64 << 20
_LEAST_SECRET = 8  # anything shorter may be in an error by chance
_LAST_SECOND = 1 << 37  # far beyond, no calendar has such dates
_SHOWN = ("retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id")
_SHOWN_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-", "openai-")


class HttpReply:
    """The bytes of an answer as they are received."""

    def __init__(self, response: Response, losses: tuple[Loss, ...], backend: str) -> None:
        self._response = response
        # Not wrapped unless it is traced: this is called for every piece of every stream.
        self.read = wire_trace.read_through(backend, response.read) if wire_trace.active else response.read
        self.losses = losses
        self.headers = shown_headers(response.headers)
        self.content_type = response.headers.get("content-type", "")

    @property
    def is_complete(self) -> bool:
        return self._response.is_complete

    def abort(self) -> None:
        self._response.abort()


class HttpBackend(Backend):
    @classmethod
    def from_config(cls, config: BackendConfig, transport: Transport) -> Self:
        return cls(config, transport)

    def __init__(self, config: BackendConfig, transport: Transport) -> None:
        self.name = config.name
        self.dialect = DIALECT_OF[config.kind]
        self.profile = profile_for(config.kind, config.base_url, config.profile)
        if config.max_tools is not None:
            self.profile = replace(self.profile, max_tools=config.max_tools)
        self.tool_kinds = self.profile.tool_kinds if config.tool_kinds == "auto" else _KINDS[config.tool_kinds]
        self._config = config
        self._key = config.key.reveal()
        self._transport = transport
        self._wire = DIALECTS[self.dialect]
        self._base = base_of(config.base_url, self._wire.path)
        self._own_headers = self._wire.headers(self.profile, self._key, {}) | config.headers
        self._timeouts = Timeouts(
            connect=config.connect_timeout, first_byte=config.first_byte_timeout, idle=config.idle_timeout
        )

    async def models(self) -> list[Model]:
        if self._config.models:
            return [Model(id=name, owner=self.name) for name in self._config.models]
        if self._config.missing:
            raise self._missing_key()
        timeouts = Timeouts(connect=5.0, first_byte=10.0, idle=10.0)
        url = self._base + self._wire.models_path
        response = await self._exchange("GET", url, self._own_headers, b"", timeouts)
        body = await response.read_all(_MAX_LIST)
        if wire_trace.active:
            wire_trace.received(self.name, "the list of models", body)
        return [
            Model(
                id=line.id,
                owner=line.owner,
                created=line.created if 0 <= line.created < _LAST_SECOND else 0,
                title=line.title,
                context=line.context,
            )
            for line in self._wire.decode_models(body)
        ]

    async def open(self, request: Request, *, is_verbatim: bool) -> HttpReply:
        if self._config.missing:
            raise self._missing_key()
        if self.profile.max_tools:
            check_tools(request, self.profile)
        encoded: Encoded | None = None
        if not is_verbatim and request.size > LARGE:
            encoded = await offload(self._wire.encode_request, request, self.profile)
        elif not is_verbatim:
            encoded = self._wire.encode_request(request, self.profile)
        path = self._wire.path if encoded is None else encoded.path
        if encoded is None and self._wire.path_of_request is not None:
            path = self._wire.path_of_request(request)
        body = request.wire if encoded is None else encoded.body
        losses = [] if encoded is None else list(encoded.losses)
        response = await self._send(path, body, request, None if self._config.guard == "off" else losses)
        return HttpReply(response, tuple(losses), self.name)

    async def count(self, request: Request) -> TokenCount | None:
        """Only for requests of its own dialect, whose body is sent as it is."""
        if not self._wire.count_path or request.origin != self.dialect:
            return None
        if self._config.missing:
            raise self._missing_key()
        try:
            path = self._wire.count_path.format(model=quote(request.model, safe=""))
            response = await self._send(path, request.wire, request)
        except UpstreamError as error:
            if error.status not in (404, 405, 501):
                raise
            return None  # many servers of this dialect cannot count
        body = await response.read_all(_MAX_ERROR)
        value = object_of(body.decode("utf-8", "replace")) or {}
        tokens = next((value[key] for key in _COUNTED if isinstance(value.get(key), int)), None)
        return None if tokens is None else TokenCount(tokens, body)

    async def embed(self, request: Request) -> bytes | None:
        """Only servers with OpenAI's API have the path. One that lacks it refuses the request itself."""
        if self.dialect not in _EMBEDDING:
            return None
        if self._config.missing:
            raise self._missing_key()
        response = await self._send("/embeddings", request.wire, request)
        return await response.read_all(_MAX_EMBEDDINGS)

    async def relay(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> HttpReply:
        """Sent once; a refusal is an UpstreamError."""
        if self._config.missing:
            raise self._missing_key()
        sent = {
            "accept": "*/*",
            "user-agent": "toolwire",
            **self._wire.headers(self.profile, self._key, headers),
            **self._config.headers,
        }
        if method == "POST":
            sent["content-type"] = "application/json"
        response = await self._exchange(method, self._base + path + query, sent, b"", self._timeouts)
        return HttpReply(response, (), self.name)

    def _missing_key(self) -> UpstreamError:
        return UpstreamError(
            f'back end "{self.name}" has no key: {self._config.missing}.',
            status=401,
            code="missing_key",
            hint="Set it and restart toolwire; `toolwire doctor` shows what is missing.",
        )

    async def _send(
        self,
        path: str,
        body: bytes,
        request: Request,
        losses: list[Loss] | None = None,
        feature: tuple[str, str] = ("", ""),
    ) -> Response:
        """Retries with growing pauses until the first byte of an answer. A refusal that another body avoids is sent with that body, and
        what it lacks is added to losses; not where losses is None."""
        own = self._own_headers
        if request.origin == self.dialect and not self._wire.forwarded.isdisjoint(request.headers):
            own = self._wire.headers(self.profile, self._key, request.headers) | self._config.headers
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if request.stream else "application/json",
            "user-agent": "toolwire",
            **own,
        }
        if self.profile.is_gateway and LOOP_HEADER in request.headers:
            headers[LOOP_HEADER] = request.headers[LOOP_HEADER]
        if feature[0]:
            headers[feature[0]] = ",".join(filter(None, (headers.get(feature[0], ""), feature[1])))
        url = self._base + path
        for attempt in range(self._config.retries + 1):
            try:
                return await self._exchange("POST", url, headers, body, self._timeouts)
            except UpstreamError as error:
                pause = _pause(error, attempt)
                if not error.retryable or attempt == self._config.retries or pause > _LONGEST_WAIT:
                    if losses is None or (better := changed_body(self.dialect, body, error, self.profile)) is None:
                        raise
                    losses.append(better.loss)
                    body, feature = better.body, better.feature if better.feature[0] else feature
                    break
            headers.pop(LOOP_HEADER, None)  # a task is counted once
            await asyncio.sleep(pause)
        return await self._send(path, body, request, losses, feature)

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> Response:
        """One request and the head of its reply. A status of 300 or more is raised as an UpstreamError."""
        if wire_trace.active:
            message = {"headers": dict(headers), "body": wire_trace.read(body) if body else None}
            wire_trace.sent(self.name, f"{method} {url.partition('?')[0]}", message, size=len(body))
        flow = flow_draft.current.get() if method == "POST" else None
        wire = None if flow is None else flow.exchange(self.dialect, method, url, headers, body)
        try:
            response = await self._transport.send(method, url, headers, body, timeouts=timeouts)
        except UpstreamError as error:
            if wire is not None:
                wire.fail(error)
            raise
        if wire is not None:
            wire.answer(response.status, response.headers, response.started)
            response.wire = wire
        if wire_trace.active:
            wire_trace.received(self.name, str(response.status), {"headers": dict(response.headers)}, size=0)
        if response.status < 300:
            return response
        raise self._refusal(response, await response.read_all(_MAX_ERROR))

    def _refusal(self, response: Response, content: bytes) -> UpstreamError:
        content = self._without_secrets(content)
        if wire_trace.active:
            wire_trace.received(self.name, "a refusal", content)
        error = self._wire.decode_error(response.status, content, shown_headers(response.headers))
        if not 400 <= response.status < 600:
            error.status = 502
        if response.status == 401 and not error.hint:
            error.hint = self._key_hint()
        is_temporary = response.status in _RETRIED or is_passing(error, self.profile)
        error.retryable = is_temporary and not error.is_runaway
        return error

    def _key_hint(self) -> str:
        """Which back end refuses the request: the client has another key, that of the gateway."""
        if not self._key:
            return f'This is from the back end "{self.name}", which wants a key: set key under [backends.{self.name}].'
        return f'This is from the back end "{self.name}": check the key of [backends.{self.name}].'

    def _without_secrets(self, content: bytes) -> bytes:
        """Some servers repeat the request; the client must not see the owner's key."""
        for secret in (self._key, *self._config.headers.values()):
            if len(secret) >= _LEAST_SECRET:
                content = content.replace(secret.encode(), b"[hidden]")
        return content


def _pause(error: UpstreamError, attempt: int) -> float:
    """Retry-After of the back end, else a quarter of a second, doubled each time, with jitter."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(error.headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    if "retry-after" in error.headers:  # a date, which the client can read
        return _LONGEST_WAIT * 2
    return float(0.25 * 2**attempt * random.uniform(0.8, 1.2))


def shown_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if _is_shown(name)}


@lru_cache(maxsize=256)  # a server sends the same names with every reply
def _is_shown(name: str) -> bool:
    return name in _SHOWN or name.startswith(_SHOWN_PREFIXES)
