"""The gateway as an ASGI application: routing, limits, and errors in the dialect of the client."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from functools import partial
from itertools import count
from typing import Any

from ..backends.base import Backend
from ..backends.mounts import Mount, Receive, Send, mount_kinds
from ..cluster.node import ClusterNode
from ..config.file import Config
from ..config.prices import price_table
from ..dialects.base import Decode, Endpoint
from ..dialects.routes import PATHS, find, without_version
from ..errors import BadRequest, GatewayError, InternalError, drop_tracebacks, quote
from ..ids import new_id
from ..memory.answers import AnswerMemory
from ..memory.connection import History
from ..memory.store import Store
from ..memory.store.factory import opened_store, report_outage
from ..offload import LARGE, offload
from ..runtime import Runtime
from ..telemetry import Record, wire_trace
from ..telemetry.hourly import HourlyCounts
from ..telemetry.otel import SpanRecorder, span_recorder
from ..telemetry.prometheus import Prometheus
from ..telemetry.record import RecordBatch
from ..types import LOOP_HEADER, REACHED_BOUND, JsonObject, Request
from .assembly.reload import PATH as RELOAD_PATH
from .assembly.reload import Reload
from .assembly.retirement import Retirement
from .assembly.runtime_parts import RuntimeParts
from .auth import Guard, key_in
from .collector import Collector
from .exchange import ClientGone, Exchange, check_type, read_body, while_here, with_model
from .key_access import KeyAccess
from .logs import Log
from .mcp import endpoint as mcp
from .mounts import RuntimeAccess
from .reply import Reply, WrongMethod, front_page, healthy, internal_error, loss_header, unlisted_header
from .socket.connection import SocketSettings
from .socket.endpoint import ResponsesSocket
from .socket.requests import PATHS as SOCKET_PATHS
from .socket.requests import SocketRequests
from .state import StateApi, is_stateful
from .state.query import StateQuery, query_in
from .stats_writer import Recorder
from .tracer import Tracer, recorder_for
from .ui.access import MARK, UiAccess
from .ui.counts import hourly_stats
from .ui.routes import Inspector

_BODY_SECONDS = 120.0
_CLEAN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_PROBES = frozenset({"/healthz", "/readyz"})


class App:
    """One instance per process. Back ends are built when the server starts, because they belong to its event loop."""

    def __init__(
        self,
        config: Config,
        store: Store | None = None,
        cluster: ClusterNode | None = None,
        reload: Reload | None = None,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._given_store = store
        self._store = store
        self._state: StateApi | None = None
        self._limit = config.server.max_body_mb << 20
        self._guard = Guard(config.server)
        self._log = Log(config.server.log, config.server.log_format)
        self.reload = reload or Reload()
        self.reload.use, self.reload.say = self._configure, self._log.say
        self._tracer = Tracer(config, self._log.say)
        self._metrics = Prometheus()
        self._history = HourlyCounts()
        self._prices = price_table(config)
        self._kinds = {backend.name: backend.kind for backend in config.backends}
        self._closed = RecordBatch(self._count)
        self._spans: SpanRecorder | None = None
        self._recorder: Recorder | None = None
        self._collector = Collector()
        self._keys: KeyAccess | None = None
        self._flows = recorder_for(config, partial(self._log.say, "warning"))
        self._access = UiAccess(self._guard)
        self._inspector = Inspector(self._access, self._flows, self._stats, self._report)
        self._id_prefix = new_id("req_")[:-8]  # of request ids; the rest is a number
        self._request_count = count(1)
        self._requests = Retirement()  # those that are open
        self._is_ready = False
        self.is_draining = False  # the server stops soon: load balancers should choose another one
        self._parts: RuntimeParts | None = None
        self.mounts: dict[str, Mount] = {}  # by path
        self.sockets: dict[str, Mount | ResponsesSocket] = {}  # paths with a WebSocket
        self._pages: dict[str, Callable[[Reply], Awaitable[None]]] = {
            "/": front_page,
            "/healthz": healthy,
            "/readyz": self._ready,
            "/metrics": self._show_metrics,
        }
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        if scope["type"] == "http":
            return self._http(scope, receive, send)
        if scope["type"] == "lifespan":
            return self._lifespan(receive, send)
        return self.sockets[scope["path"]].serve(scope, receive, send)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tracer.start()
        traces = self._config.telemetry
        content = self._flows.content_of if traces.content and self._flows is not None else None
        self._spans = span_recorder(traces.otlp_endpoint, self._kinds, traces.service_name, traces.sample, content)
        store = self._store = self._given_store or opened_store(self._config.store, self._log.say)
        parts = self._parts = RuntimeParts(self._config, store, self._cluster, self._requests)
        memory = parts.answers
        gateway = RuntimeAccess(self._log.say, self._running, self._opened, self._done)
        self.mounts = {kind.path: kind.build(gateway, parts.backends.values()) for kind in mount_kinds()}
        self.sockets = {**self.mounts, **self._response_sockets(memory)}
        self._pages |= {path: partial(self._describe, mount) for path, mount in self.mounts.items()}
        interval = self._config.server.keep_alive_seconds
        self._state = StateApi(parts.runtime, memory, self._done, self._report, interval, self._cluster)
        self._recorder = Recorder(store, self._history, self._report, parts.quality)
        self._recorder.start()
        self._collector.start()
        self._is_ready = True

    def _response_sockets(self, answers: AnswerMemory) -> dict[str, ResponsesSocket]:
        requests = SocketRequests(
            guard=self._guard,
            endpoint=PATHS["/responses"][1],
            answer=self._model_request,
            refuse=self._refuse,
            flows=self._flows,
        )
        settings = SocketSettings(
            respond=requests.respond, decode=self._decoded, answers=answers, max_bytes=self._limit
        )
        is_on = self._config.server.websocket
        socket = ResponsesSocket(self._guard, self._log.say, self._limit, settings if is_on else None)
        return dict.fromkeys(SOCKET_PATHS, socket)

    def leave(self) -> None:
        """The server stops soon: end what would last until its reader leaves."""
        self._inspector.close()

    async def stop(self) -> None:
        self._is_ready = False
        self._collector.stop()
        self._closed.flush()
        if self._recorder is not None:
            await self._recorder.stop()
        if self._keys is not None:
            await self._keys.stop()
        if self._cluster is not None:
            await self._cluster.leave()
        if self._state is not None:
            await self._state.stop()
        if self._parts is not None:
            await self._parts.stop()
        if self._flows is not None:
            self._flows.stop()
        self._closed.flush()
        if self._spans is not None:
            await self._spans.stop()
        self._tracer.stop()
        self._log.close()

    def _configure(self, config: Config) -> str:
        """Use another configuration, and describe what has changed. Raises ConfigError."""
        assert self._parts is not None
        changes = self._parts.replace(config)
        config = self._config = self._parts.config
        self._guard.configure(config.server)
        self._prices = price_table(config)
        self._kinds.update((backend.name, backend.kind) for backend in config.backends)
        return changes.describe()

    def log_handler(self) -> logging.Handler:
        """For the log lines of other libraries."""
        return self._log.handler()

    def close_log(self) -> None:
        """Write the lines that wait, also for a server that never started."""
        self._log.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self.start()
            assert self._store is not None
            await report_outage(self._store, self._log.say)
            self._keys = KeyAccess(self._store, self._guard, self._log.say, self._running(), lambda: self._prices)
            await self._keys.start()
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
        exact = PATHS.get(path)
        if exact is None and self._inspector.serves(path, headers):
            await self._inspector.serve(scope, headers, receive, send)
            return
        short = without_version(path) if exact is None else path
        dialect, endpoint = exact or find(path, short, scope.get("query_string", b""), headers)
        request_id = headers.get("x-request-id", "")
        if not _CLEAN_ID.fullmatch(request_id):
            request_id = f"{self._id_prefix}{next(self._request_count):08x}"
        record = Record(request_id=request_id, path=path, dialect=dialect.name, started=time.monotonic())
        if self._spans is not None:
            record.traceparent = headers.get("traceparent", "")
        if wire_trace.active:
            wire_trace.enter(request_id)
        is_post = scope["method"] == "POST"
        if self._flows is not None and endpoint is not None and endpoint.decode is not None and is_post:
            send = self._flows.begin(record, scope, endpoint.decode, endpoint.key or key_in(headers), send)
        origin = self._guard.allowed_origin(headers["origin"]) if "origin" in headers else None
        reply = Reply(send, dialect, request_id, origin)
        if endpoint is not None:
            reply.is_array = endpoint.is_array
            if endpoint.key and not key_in(headers):
                headers["authorization"] = f"Bearer {endpoint.key}"
        try:
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await reply.preflight()
                return
            if MARK in headers and (key := self._access.page_key(headers)) is not None:
                headers["authorization"] = f"Bearer {key}"
            self._guard.admit(headers, is_probe=short in _PROBES, path=short)
            if endpoint is not None:
                if endpoint.place:
                    await self._show_state(scope, endpoint.place, headers, receive, reply)
                elif endpoint.decode is not None and is_post:
                    await self._model_request(endpoint, endpoint.decode, headers, receive, reply, record)
                elif scope["method"] in endpoint.methods:
                    await self._describe_models(endpoint, headers, receive, reply)
                else:
                    raise WrongMethod(scope["method"], ", ".join(endpoint.methods))
            elif is_stateful(short):
                await self._show_state(scope, tuple(short.split("/")[1:]), headers, receive, reply)
            else:
                await self._show_page(scope, short, headers, receive, reply)
        except ClientGone:
            record.outcome, record.status = "client_gone", record.status or 499
        except GatewayError as error:
            await self._refuse(error, reply, record)
        except Exception as cause:
            await self._refuse(internal_error(request_id, cause), reply, record)
        finally:
            if record.flow is not None:
                record.flow.close()

    async def _refuse(self, error: GatewayError, reply: Reply, record: Record) -> None:
        if isinstance(error, InternalError):
            self._report(error, record.request_id)
        if not record.ended:  # refused before it was opened
            record.fail(error)
            record.status = error.status
            self._metrics.opened(record)
            self._close(record)
        if not reply.is_started:
            await reply.error(error)
        drop_tracebacks(error)

    def _report(self, error: InternalError, request_id: str) -> None:
        self._log.say("error", "".join(traceback.format_exception(error)), request_id)

    def _close(self, record: Record) -> None:
        record.ended = time.monotonic()
        record.cost = self._prices.cost(record.backend, record.sent_model or record.model, record.usage)
        self._closed.add(record)
        if record.flow is not None:
            record.flow.end()

    def _count(self, records: list[Record]) -> None:
        self._metrics.closed_all(records)
        self._log.requests(records)
        for record in records:
            self._history.closed(record)
            if self._spans is not None:
                self._spans.closed(record)

    async def _stats(self, hours: int) -> list[JsonObject]:
        assert self._recorder is not None
        self._closed.flush()
        return await hourly_stats(self._recorder, hours, time.time())

    async def _describe_models(
        self, endpoint: Endpoint, headers: Mapping[str, str], receive: Receive, reply: Reply
    ) -> None:
        if endpoint.task == "fixed":
            await reply.json(endpoint.body)
            return
        catalog, model = self._running().catalog, endpoint.model
        if endpoint.task == "models":
            key = self._guard.named_key(headers)
            lines = [line for line in await catalog.models() if key is None or key.allows_model(line.id)]
            body = reply.dialect.encode_models(lines)
            await reply.whole(200, body, "application/json", unlisted_header(catalog.unlisted))
            return
        if endpoint.name_in is not None:
            model = endpoint.name_in(await read_body(receive, headers, self._limit, _BODY_SECONDS, self._loop))
        line = await catalog.model(model)
        if line is None:
            name = quote(model)
            raise BadRequest(f"no back end lists the model {name}.", status=404, code="model_not_found")
        await reply.json(reply.dialect.encode_model(line))

    async def _show_page(
        self, scope: MutableMapping[str, Any], short: str, headers: Mapping[str, str], receive: Receive, reply: Reply
    ) -> None:
        """What is the same for clients of all dialects."""
        method, path = scope["method"], scope["path"]
        if short == mcp.PATH:
            mcp.check_method(method)
            body = await read_body(receive, headers, self._limit, _BODY_SECONDS, self._loop)
            await mcp.answer(self, body, headers, receive, reply)
            return
        if short == RELOAD_PATH:
            self._running()
            await self.reload.answer(method, self._guard.named_key(headers), reply)
            return
        page = self._pages.get(short)
        if page is None:
            hint = f"The base URL has one /v1 too many: try {quote(short)}." if short.startswith("/v1/") else ""
            raise BadRequest(f"there is nothing at {quote(path)}.", status=404, code="not_found", hint=hint)
        if method not in ("GET", "HEAD"):
            raise WrongMethod(method, "GET, HEAD")
        if short in self.mounts and "origin" in headers:
            raise BadRequest(f"a web page may not read {quote(short)}.", status=403, code="origin_refused")
        await page(reply)

    async def _show_state(
        self,
        scope: MutableMapping[str, Any],
        path: tuple[str, ...],
        headers: Mapping[str, str],
        receive: Receive,
        reply: Reply,
    ) -> None:
        self._running()
        assert self._state is not None
        asked = StateQuery(
            method=scope["method"],
            path=path,
            owner=self._guard.owner_of(headers),
            query=query_in(scope["query_string"]),
            headers=headers,
        )
        body = await read_body(receive, headers, self._limit, _BODY_SECONDS, self._loop)
        await self._state.answer(asked, body, reply, receive)

    async def _model_request(
        self,
        endpoint: Endpoint,
        decode: Decode,
        headers: Mapping[str, str],
        receive: Receive,
        reply: Reply,
        record: Record,
        history: History | None = None,
    ) -> None:
        runtime, owner = self._running(), self._guard.owner_of(headers)
        self._opened(record)
        is_detached = False  # it runs in the background, and the record belongs to that run
        try:
            check_type(headers)
            body = await read_body(receive, headers, self._limit, _BODY_SECONDS, self._loop)
            if record.flow is not None:
                record.flow.client.request(body)
            request = await self._decoded(decode, body, headers)
            record.model, record.is_stream = request.model[:100], request.stream
            if self._guard.named and (key := self._guard.named_key(headers)) is not None:
                assert self._keys is not None
                await self._keys.admit(key, request, len(body), record)
            if endpoint.task == "count":
                counted = await while_here(receive, runtime.count(request, owner))
                await reply.json(counted.body or reply.dialect.encode_count(counted.tokens))
                record.status = 200
                return
            if endpoint.embedded is not None:
                await self._embed(endpoint.embedded, request, receive, reply, record)
                return
            if endpoint.load is not None and not request.messages:
                await runtime.catalog.route(request.model)
                record.status = 200
                await reply.json(endpoint.load(request, int(time.time())))
                return
            record.has_reached_bound = headers.get(LOOP_HEADER) == REACHED_BOUND
            record.is_debugged = headers.get("x-toolwire-debug", "0") not in ("0", "false", "")
            if request.state is not None and request.state.is_background and await runtime.stores(request):
                assert self._state is not None
                show = await self._state.run(request, owner, record)
                is_detached = True
                await show(reply, receive)
                return
            assert self._loop is not None
            exchange = Exchange(self._loop, runtime, record, self._config.server.keep_alive_seconds, owner, history)
            await exchange.run(request, receive, reply)
        except ClientGone:
            if not is_detached:
                record.outcome, record.status = "client_gone", record.status or 499
        except GatewayError as error:
            record.fail(error)
            record.status = record.status or error.status
            raise
        except Exception:
            record.outcome, record.error, record.status = "error", InternalError.code, record.status or 500
            raise
        finally:
            if not is_detached:
                self._done(record)

    async def _embed(
        self,
        encode: Callable[[bytes, Request], bytes],
        request: Request,
        receive: Receive,
        reply: Reply,
        record: Record,
    ) -> None:
        wire = encode(await while_here(receive, self._running().embed(request, record)), request)
        record.status = 200
        await reply.whole(200, wire, "application/json", loss_header(record.losses))

    async def _decoded(self, decode: Decode, body: bytes, headers: Mapping[str, str]) -> Request:
        """A request without a model gets the default model, where there is one."""
        try:
            return await offload(decode, body, headers) if len(body) > LARGE else decode(body, headers)
        except BadRequest as error:
            if (error.code, error.where) != ("missing_field", "model"):
                raise
            model = await self._running().catalog.default_model()
            if not model:
                raise
        return decode(with_model(body, model), headers)

    def _opened(self, record: Record) -> None:
        """Raises BadRequest where too many requests are open."""
        if self._requests.count >= self._config.server.max_streams:
            raise BadRequest(
                f"{self._requests.count} requests are being answered, the most this server takes at once.",
                status=429,
                code="too_many_requests",
                hint="Try again shortly; [server] max_streams sets the limit.",
            )
        self._requests.opened(record)
        self._metrics.opened(record)

    def _done(self, record: Record) -> None:
        self._requests.closed(record)
        if record.grant is not None and self._keys is not None:
            self._keys.settle(record)
        self._close(record)

    async def _ready(self, reply: Reply) -> None:
        """Whether a load balancer should prefer this process: 503 while the store is down, although most requests still work."""
        self._running()
        if self.is_draining:
            raise BadRequest("the gateway is about to stop.", status=503, code="not_ready")
        if self._store is not None and not await self._store.is_available():
            raise BadRequest("the store is not available.", status=503, code="store_unavailable")
        await reply.json(b'{"status":"ready"}')

    def backend(self, name: str) -> Backend:
        return self._running().backends[name]

    def _running(self) -> Runtime:
        if self._parts is None or not self._is_ready:
            raise BadRequest("the gateway is starting or stopping.", status=503, code="not_ready")
        return self._parts.runtime

    async def _show_metrics(self, reply: Reply) -> None:
        self._closed.flush()
        await reply.whole(200, self._metrics.render(), "text/plain; version=0.0.4; charset=utf-8")

    async def _describe(self, mount: Mount, reply: Reply) -> None:
        self._running()
        await reply.json(mount.describe())
