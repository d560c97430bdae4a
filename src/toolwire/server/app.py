"""The gateway as a plain ASGI application: routes, limits, and every error in the dialect of the asker."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any, TypeAlias

from ..backends import build
from ..backends.http.transport import Transport
from ..backends.mounts import Mount, mount_kinds
from ..backends.search import build_search
from ..catalog.router import router_for
from ..config.file import Config, default_store_path
from ..config.policy import policy_of
from ..dialects import DIALECTS, Dialect, messages
from ..errors import BadRequest, GatewayError, InternalError, drop_tracebacks, quote
from ..ids import new_id
from ..memory.answers import AnswerMemory, storing_backends
from ..memory.signatures import SignatureMemory
from ..memory.store import Store, open_store
from ..offload import LARGE, offload
from ..pipeline.search import Searching
from ..runtime import Runtime
from ..telemetry import Record, wire_trace
from ..telemetry.hourly import HourlyCounts
from ..telemetry.prometheus import Prometheus
from ..types import LOOP_HEADER, REACHED_BOUND, Request
from .auth import Guard, owner_of
from .body import ClientGone, Receive, Send, check_type, read_body, with_model
from .collector import Collector
from .exchange import Exchange, while_here
from .gemini import Door, counted, door_of
from .logs import Log
from .mounts import RuntimeAccess
from .reply import Reply, WrongMethod
from .state import State, is_stateful
from .state.query import Asked, query_in
from .stats_writer import Recorder
from .tracer import Tracer

Decode: TypeAlias = Callable[[bytes, Mapping[str, str]], Request]

_BODY_SECONDS = 120.0
_CLEAN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_ASKED = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
_PROBES = frozenset({"/healthz", "/readyz"})
_PATHS = {**_ASKED, "/conversations": "responses"}


class App:
    """One instance a process. Back ends are built when the server starts, so that they belong to its loop."""

    def __init__(self, config: Config, store: Store | None = None) -> None:
        self._config = config
        self._given_store = store
        self._state: State | None = None
        self._limit = config.server.max_body_mb << 20
        self._guard = Guard(config.server)
        self._log = Log(config.server.log, config.server.log_format)
        self._tracer = Tracer(config, self._log.say)
        self._metrics = Prometheus()
        self._history = HourlyCounts()
        self._recorder: Recorder | None = None
        self._collector = Collector()
        self._open = 0
        self._is_ready = False
        self._runtime: Runtime | None = None
        self.mounts: dict[str, Mount] = {}  # by path
        self._transport: Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket" and (mount := self.mounts.get(scope["path"])) is not None:
            await mount.serve(scope, receive, send)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tracer.start()
        self._transport = Transport()
        backends = {config.name: build(config, self._transport) for config in self._config.backends}
        policies = {config.name: policy_of(config) for config in self._config.backends}
        keepers, is_shared = storing_backends(self._config.backends), bool(self._config.server.keys)
        store = self._given_store or self._opened_store()
        keeping = AnswerMemory(store, keepers, is_shared=is_shared)
        vault = SignatureMemory(store) if self._config.store.reasoning else None
        asked = self._config.search
        searching = Searching(build_search(asked, self._transport)) if asked is not None else None
        self._runtime = Runtime(backends, router_for(self._config), policies, keeping, searching, vault)
        gateway = RuntimeAccess(self._log.say, self._running, self._opened, self._done)
        self.mounts = {kind.path: kind.build(gateway, backends.values()) for kind in mount_kinds()}
        self._state = State(self._runtime, keeping, self._done, self._report, self._config.server.keep_alive_seconds)
        self._recorder = Recorder(store, self._history, self._report)
        self._recorder.start()
        self._collector.start()
        self._is_ready = True

    def _opened_store(self) -> Store:
        """In each worker anew; what is wrong with the file ends the start with its reason."""
        asked = self._config.store
        opened = open_store(
            kind=asked.kind,
            path=asked.path,
            default_path=default_store_path(),
            max_age_days=asked.max_age_days,
            max_mb=asked.max_mb,
        )
        if opened.warning:
            self._log.say("warning", opened.warning)
        return opened.store

    async def stop(self) -> None:
        self._is_ready = False
        self._collector.stop()
        if self._recorder is not None:
            await self._recorder.stop()
        if self._state is not None:
            await self._state.stop()
        if self._runtime is not None:
            await self._runtime.close()
        if self._transport is not None:
            await self._transport.close()
        self._tracer.stop()
        self._log.close()

    def log_handler(self) -> logging.Handler:
        """For what other libraries log."""
        return self._log.handler()

    def close_log(self) -> None:
        """Writes what is left; also for a server that never started."""
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
        short = _short(path)
        door = door_of(path, scope.get("query_string", b""))
        dialect = DIALECTS["gemini"] if door is not None else dialect_of(short.removeprefix("/v1"), headers)
        request_id = headers.get("x-request-id", "")
        if not _CLEAN_ID.fullmatch(request_id):
            request_id = new_id("req_")
        record = Record(request_id=request_id, dialect=dialect.name, started=time.monotonic())
        if wire_trace.active:
            wire_trace.enter(request_id)
        origin = self._guard.allowed_origin(headers.get("origin"))
        reply = Reply(send, dialect, request_id, origin) if door is None else door.reply(send, request_id, origin)
        headers = headers if door is None else door.headers(headers)
        try:
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await reply.preflight()
                return
            self._guard.admit(headers, is_probe=short in _PROBES)
            if door is not None:
                await self._through(door, scope["method"], headers, receive, reply, record)
            elif is_stateful(short):
                await self._show_state(scope, short, headers, receive, reply)
            else:
                await self._route(scope["method"], path, headers, receive, reply, record)
        except ClientGone:
            record.outcome, record.status = "client_gone", record.status or 499
        except GatewayError as error:
            await self._refuse(error, reply, record)
        except Exception as cause:
            fault = InternalError(f"something went wrong inside the gateway; the log has it under {request_id}.")
            fault.__cause__ = cause
            await self._refuse(fault, reply, record)

    async def _refuse(self, error: GatewayError, reply: Reply, record: Record) -> None:
        if isinstance(error, InternalError):
            self._report(error, record.request_id)
        if not record.ended:  # it was refused at the door
            record.outcome, record.error, record.status = "error", error.code, error.status
            self._metrics.opened(record)
            self._close(record)
        if not reply.is_started:
            await reply.error(error)
        drop_tracebacks(error)

    def _report(self, error: InternalError, request_id: str) -> None:
        self._log.say("error", "".join(traceback.format_exception(error)), request_id)

    def _close(self, record: Record) -> None:
        record.ended = time.monotonic()
        self._metrics.closed(record)
        self._history.closed(record)
        self._log.request(record)

    async def _route(
        self, method: str, whole: str, headers: Mapping[str, str], receive: Receive, reply: Reply, record: Record
    ) -> None:
        path = _short(whole)
        if path in _ASKED or path == "/messages/count_tokens":
            if method != "POST":
                raise WrongMethod(method, "POST")
            await self._model_request(path, headers, receive, reply, record)
            return
        get = self._pages().get(path)
        if get is None and path.startswith("/models/"):
            get = self._one_model(path.removeprefix("/models/"), reply)
        if get is None:
            hint = f"The base URL has one /v1 too many: try {quote(path)}." if path.startswith("/v1/") else ""
            raise BadRequest(f"there is nothing at {quote(whole)}.", status=404, code="not_found", hint=hint)
        if method not in ("GET", "HEAD"):
            raise WrongMethod(method, "GET, HEAD")
        if path in self.mounts and "origin" in headers:
            raise BadRequest(f"a web page may not read {quote(path)}.", status=403, code="origin_refused")
        await get(reply)

    async def _through(
        self, door: Door, method: str, headers: Mapping[str, str], receive: Receive, reply: Reply, record: Record
    ) -> None:
        """A path of the dialect that names the model there."""
        if method not in (("POST",) if door.is_post else ("GET", "HEAD")):
            raise WrongMethod(method, "POST" if door.is_post else "GET, HEAD")
        if door.is_post:
            await self._model_request("", headers, receive, reply, record, door)
        else:
            await (self._one_model(door.model, reply) if door.model else self._list_models)(reply)

    async def _show_state(
        self, scope: MutableMapping[str, Any], path: str, headers: Mapping[str, str], receive: Receive, reply: Reply
    ) -> None:
        self._running()
        assert self._state is not None
        asked = Asked(
            method=scope["method"],
            path=tuple(path.split("/")[1:]),
            owner=owner_of(headers),
            query=query_in(scope["query_string"]),
            headers=headers,
        )
        body = await read_body(receive, headers, self._limit, _BODY_SECONDS, self._loop)
        await self._state.answer(asked, body, reply, receive)

    def _pages(self) -> dict[str, Callable[[Reply], Awaitable[None]]]:
        return {
            "/": _front_page,
            "/healthz": _healthy,
            "/readyz": self._ready,
            "/metrics": self._show_metrics,
            "/models": self._list_models,
            **{path: partial(self._describe, mount) for path, mount in self.mounts.items()},
        }

    async def _model_request(
        self,
        path: str,
        headers: Mapping[str, str],
        receive: Receive,
        reply: Reply,
        record: Record,
        door: Door | None = None,
    ) -> None:
        runtime = self._running()
        self._opened(record)
        is_handed_on = False
        try:
            check_type(headers)
            body = await read_body(receive, headers, self._limit, _BODY_SECONDS, self._loop)
            if path == "/messages/count_tokens" or (door is not None and door.is_counting):
                counting = await self._decoded(
                    messages.decode_count_request if door is None else door.decode, body, headers
                )
                record.model = counting.model[:100]
                tokens = await while_here(receive, runtime.count(counting, owner_of(headers)))
                await reply.json(tokens if door is None else counted(tokens))
                record.status = 200
                return
            decode = reply.dialect.decode_request if door is None else door.decode
            request = await self._decoded(decode, body, headers)
            record.model, record.is_stream = request.model[:100], request.stream
            record.has_reached_bound = headers.get(LOOP_HEADER) == REACHED_BOUND
            record.is_debugged = headers.get("x-toolwire-debug", "0") not in ("0", "false", "")
            assert self._loop is not None
            owner = owner_of(headers)
            if self._state is not None and await _runs_behind(request, runtime):
                tell = await self._state.run(request, owner, record)
                is_handed_on = True
                await tell(reply, receive)
                return
            exchange = Exchange(self._loop, runtime, record, self._config.server.keep_alive_seconds, owner)
            await exchange.run(request, receive, reply)
        except ClientGone:
            if is_handed_on:
                return
            record.outcome, record.status = "client_gone", record.status or 499
        except GatewayError as error:
            record.outcome, record.error, record.status = "error", error.code, record.status or error.status
            raise
        except Exception:
            record.outcome, record.error, record.status = "error", InternalError.code, record.status or 500
            raise
        finally:
            if not is_handed_on:
                self._done(record)

    async def _decoded(self, decode: Decode, body: bytes, headers: Mapping[str, str]) -> Request:
        """A request that names no model goes to the default, where there is one."""
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
        """Raises BadRequest where there is no room for it."""
        if self._open >= self._config.server.max_streams:
            raise BadRequest(
                f"{self._open} requests are being answered, the most this server takes at once.",
                status=429,
                code="too_many_requests",
                hint="Try again shortly; [server] max_streams sets the limit.",
            )
        self._open += 1
        self._metrics.opened(record)

    def _done(self, record: Record) -> None:
        self._open -= 1
        self._close(record)

    async def _ready(self, reply: Reply) -> None:
        self._running()
        await reply.json(b'{"status":"ready"}')

    def _running(self) -> Runtime:
        if self._runtime is None or not self._is_ready:
            raise BadRequest("the gateway is starting or stopping.", status=503, code="not_ready")
        return self._runtime

    async def _show_metrics(self, reply: Reply) -> None:
        await reply.whole(200, self._metrics.render(), "text/plain; version=0.0.4; charset=utf-8")

    async def _describe(self, mount: Mount, reply: Reply) -> None:
        self._running()
        await reply.json(mount.describe())

    async def _list_models(self, reply: Reply) -> None:
        await reply.json(reply.dialect.encode_models(await self._running().catalog.models()))

    def _one_model(self, name: str, reply: Reply) -> Callable[[Reply], Awaitable[None]]:
        async def show(reply: Reply) -> None:
            line = await self._running().catalog.model(name)
            if line is None:
                raise BadRequest(f"no back end lists the model {quote(name)}.", status=404, code="model_not_found")
            await reply.json(reply.dialect.encode_model(line))

        return show


def dialect_of(path: str, headers: Mapping[str, str]) -> Dialect:
    """By path; where that does not tell, by the headers."""
    for start, name in _PATHS.items():
        if path.startswith(start):
            return DIALECTS[name]
    return next((dialect for dialect in reversed(DIALECTS.values()) if dialect.claims(headers)), DIALECTS["chat"])


def _short(path: str) -> str:
    """Clients may have the version in the address that they were given, or not."""
    return path.removeprefix("/v1").rstrip("/") or "/"


async def _runs_behind(request: Request, runtime: Runtime) -> bool:
    """In the background here; where the back end keeps answers, it runs them itself."""
    return request.state is not None and request.state.is_background and await runtime.stores(request)


async def _front_page(reply: Reply) -> None:
    await reply.json(
        b'{"name":"toolwire","paths":["/v1/chat/completions","/v1/responses","/v1/messages","/v1/models"]}'
    )


async def _healthy(reply: Reply) -> None:
    await reply.json(b'{"status":"ok"}')
