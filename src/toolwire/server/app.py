"""The gateway as a plain ASGI application: routes, limits, and every error in the dialect of the asker."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from ..backends import build
from ..backends.transport import Transport
from ..config import Config
from ..dialects import DIALECTS, Dialect, messages
from ..errors import BadRequest, GatewayError, InternalError, UpstreamError, quote
from ..router import router_for
from ..runtime import Runtime, mint
from ..telemetry import Record
from ..telemetry.prometheus import Prometheus
from .auth import Guard
from .body import ClientGone, Receive, Send, check_type, read_body
from .exchange import Exchange, HeaderList, seen_headers
from .logs import Log

_BODY_SECONDS = 120.0
_CLEAN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_ASKED = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
_METHODS = "GET, POST, OPTIONS"


class App:
    """One instance a process. Back ends are built when the server starts, so that they belong to its loop."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._limit = config.server.max_body_mb << 20
        self._guard = Guard(config.server)
        self._log = Log(config.server.log, config.server.log_format)
        self._metrics = Prometheus()
        self._open = 0
        self._is_ready = False
        self._runtime: Runtime | None = None
        self._transport: Transport | None = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1003})

    def start(self) -> None:
        self._transport = Transport()
        backends = {config.name: build(config, self._transport) for config in self._config.backends}
        policies = {config.name: config.verbatim for config in self._config.backends}
        self._runtime = Runtime(backends, router_for(self._config), policies)
        self._is_ready = True

    async def stop(self) -> None:
        self._is_ready = False
        if self._runtime is not None:
            await self._runtime.close()
        if self._transport is not None:
            await self._transport.close()
        self._log.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self.start()
        except GatewayError as error:
            await send({"type": "lifespan.startup.failed", "message": error.sentence()})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        path: str = scope["path"]
        short = path.removeprefix("/v1").rstrip("/") or "/"
        dialect = dialect_of(short, headers)
        request_id = headers.get("x-request-id", "")
        if not _CLEAN_ID.fullmatch(request_id):
            request_id = mint("req_")
        record = Record(request_id=request_id, dialect=dialect.name, started=time.monotonic())
        reply = Reply(send, dialect, request_id, self._guard.allowed_origin(headers.get("origin")))
        try:
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await reply.preflight()
                return
            self._guard.admit(headers)
            await self._route(scope["method"], short, headers, receive, reply, record)
        except ClientGone:
            record.outcome, record.status = "client_gone", record.status or 499
        except GatewayError as error:
            await self._refuse(error, reply, record)
        except Exception:
            self._log.say("error", traceback.format_exc(), request_id)
            fault = InternalError(f"something went wrong inside the gateway; the log has it under {request_id}.")
            await self._refuse(fault, reply, record)

    async def _refuse(self, error: GatewayError, reply: Reply, record: Record) -> None:
        record.outcome, record.error, record.status = "error", error.code, error.status
        if not reply.is_started:
            await reply.error(error)

    async def _route(
        self, method: str, path: str, headers: Mapping[str, str], receive: Receive, reply: Reply, record: Record
    ) -> None:
        if path in _ASKED or path == "/messages/count_tokens":
            if method != "POST":
                raise _not_allowed(method, "POST")
            await self._model_request(path, headers, receive, reply, record)
            return
        get = self._pages().get(path)
        if get is None and path.startswith("/models/"):
            get = self._one_model(path.removeprefix("/models/"), reply)
        if get is None:
            raise BadRequest(f"there is nothing at {quote(path)}.", status=404, code="not_found")
        if method not in ("GET", "HEAD"):
            raise _not_allowed(method, "GET")
        await get(reply)

    def _pages(self) -> dict[str, Callable[[Reply], Awaitable[None]]]:
        return {
            "/": _front_page,
            "/healthz": _healthy,
            "/readyz": self._ready,
            "/metrics": self._show_metrics,
            "/models": self._list_models,
        }

    async def _model_request(
        self, path: str, headers: Mapping[str, str], receive: Receive, reply: Reply, record: Record
    ) -> None:
        runtime = self._runtime
        if runtime is None or not self._is_ready:
            raise BadRequest("the gateway is starting or stopping.", status=503, code="not_ready")
        if self._open >= self._config.server.max_streams:
            raise BadRequest(
                f"{self._open} requests are being answered, the most this server takes at once.",
                status=429,
                code="too_many_requests",
                hint="Try again shortly; [server] max_streams sets the limit.",
            )
        self._open += 1
        self._metrics.opened(record)
        try:
            check_type(headers)
            body = await read_body(receive, headers, self._limit, _BODY_SECONDS)
            if path == "/messages/count_tokens":
                counting = messages.decode_count(body, headers)
                record.model = counting.model[:100]
                await reply.json(await runtime.count(counting))
                record.status = 200
                return
            request = reply.dialect.decode_request(body, headers)
            record.model, record.is_stream = request.model[:100], request.stream
            exchange = Exchange(runtime, reply.dialect, record, self._config.server.keep_alive_seconds)
            await exchange.run(request, receive, reply.send, reply.headers())
        except ClientGone:
            record.outcome, record.status = "client_gone", record.status or 499
        except GatewayError as error:
            record.outcome, record.error, record.status = "error", error.code, error.status
            raise
        finally:
            self._open -= 1
            record.ended = time.monotonic()
            self._metrics.closed(record)
            self._log.request(record)

    async def _ready(self, reply: Reply) -> None:
        if not self._is_ready:
            raise BadRequest("the gateway is starting or stopping.", status=503, code="not_ready")
        await reply.json(b'{"status":"ready"}')

    async def _show_metrics(self, reply: Reply) -> None:
        await reply.whole(200, self._metrics.render(), "text/plain; version=0.0.4; charset=utf-8")

    async def _list_models(self, reply: Reply) -> None:
        assert self._runtime is not None
        await reply.json(reply.dialect.encode_models(await self._runtime.models()))

    def _one_model(self, name: str, reply: Reply) -> Callable[[Reply], Awaitable[None]]:
        async def show(reply: Reply) -> None:
            assert self._runtime is not None
            for line in await self._runtime.models():
                if name in (line.id, line.id.partition("/")[2]):
                    await reply.json(reply.dialect.encode_model(line))
                    return
            raise BadRequest(f"no back end lists the model {quote(name)}.", status=404, code="model_not_found")

        return show


class Reply:
    """The ways to answer that are not a model's: JSON, text, errors, preflights."""

    def __init__(self, send: Send, dialect: Dialect, request_id: str, origin: str | None) -> None:
        self._send = send
        self.dialect = dialect
        self._request_id = request_id
        self._origin = origin
        self.is_started = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.is_started = True
        await self._send(message)

    def headers(self) -> HeaderList:
        request_id = self._request_id.encode()
        found = [(b"x-request-id", request_id), (b"request-id", request_id)]
        if self._origin is not None:
            found += [(b"access-control-allow-origin", self._origin.encode("latin-1")), (b"vary", b"origin")]
        return found

    async def json(self, body: bytes) -> None:
        await self.whole(200, body, "application/json")

    async def error(self, error: GatewayError) -> None:
        extra: HeaderList = seen_headers(error.headers) if isinstance(error, UpstreamError) else []
        if error.status == 429 and not any(name == b"retry-after" for name, _ in extra):
            extra.append((b"retry-after", b"1"))
        if error.status == 405:
            extra.append((b"allow", _METHODS.encode()))
        await self.whole(error.status, self.dialect.encode_error(error, self._request_id), "application/json", extra)

    async def whole(self, status: int, body: bytes, kind: str, extra: HeaderList | None = None) -> None:
        head = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *self.headers()]
        await self.send({"type": "http.response.start", "status": status, "headers": head + (extra or [])})
        await self.send({"type": "http.response.body", "body": body})

    async def preflight(self) -> None:
        head: HeaderList = [(b"content-length", b"0")]
        if self._origin is not None:
            head += [
                *self.headers(),
                (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
                (b"access-control-allow-headers", b"*, authorization"),
                (b"access-control-max-age", b"600"),
            ]
        await self.send({"type": "http.response.start", "status": 204 if self._origin else 403, "headers": head})
        await self.send({"type": "http.response.body", "body": b""})


def dialect_of(path: str, headers: Mapping[str, str]) -> Dialect:
    """By path; where that does not tell, by the headers."""
    for start, name in _ASKED.items():
        if path.startswith(start):
            return DIALECTS[name]
    return next((dialect for dialect in reversed(DIALECTS.values()) if dialect.claims(headers)), DIALECTS["chat"])


def _not_allowed(method: str, expected: str) -> BadRequest:
    return BadRequest(f"found {quote(method)}; expected {expected}.", status=405, code="method_not_allowed")


async def _front_page(reply: Reply) -> None:
    await reply.json(
        b'{"name":"toolwire","paths":["/v1/chat/completions","/v1/responses","/v1/messages","/v1/models"]}'
    )


async def _healthy(reply: Reply) -> None:
    await reply.json(b'{"status":"ok"}')
