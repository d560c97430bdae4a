"""The paths under /ui/: files of the page, login, and the API that reads, saves and deletes what was recorded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, MutableMapping
from contextlib import aclosing
from typing import Any, TypeAlias
from urllib.parse import parse_qs

import msgspec
from msgspec.structs import replace

from ... import __version__
from ...backends.mounts import Receive, Send
from ...errors import BadRequest, GatewayError, InternalError, drop_tracebacks, quote
from ...flows.detail import detail
from ...flows.query import MAX_LIMIT, FlowQuery
from ...flows.recorder import FlowRecorder
from ...offload import offload
from ...types import JsonObject
from ...wire.exact_json import BadJson, decode, encode
from ..exchange import ClientGone, read_body, while_here
from ..reply import HeaderList, WrongMethod
from .access import UiAccess
from .cassettes import not_recorded, open_cassette, save_cassette
from .live import LiveFeeds
from .static_files import StaticFiles

Headers: TypeAlias = Mapping[str, str]
Stats: TypeAlias = Callable[[int], Coroutine[Any, Any, list[JsonObject]]]  # of so many hours

_MAX_BODY = 16 * 1024
_BODY_SECONDS = 10.0
_MAX_CASSETTE = 64 << 20
_CASSETTE_SECONDS = 60.0
_MAX_HOURS = 24 * 366
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY: HeaderList = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_PRIVATE = [(b"cache-control", b"no-store")]
_MISSING = b"<!doctype html><title>toolwire</title><p>The page of the inspector is not installed."


class Inspector:
    """flows: None where nothing is recorded. stats: the counts by hour."""

    def __init__(
        self,
        access: UiAccess,
        flows: FlowRecorder | None,
        stats: Stats,
        report: Callable[[InternalError, str], None],
        files: StaticFiles | None = None,
    ) -> None:
        self._access = access
        self._flows = flows
        self._stats = stats
        self._report = report
        self._files = files or StaticFiles()
        self._feeds = LiveFeeds(flows) if flows is not None else None

    @staticmethod
    def serves(path: str, headers: Headers) -> bool:
        """Also "/" for a browser; programs get JSON there."""
        return path == "/ui" or path.startswith("/ui/") or (path == "/" and "text/html" in headers.get("accept", ""))

    def close(self) -> None:
        """The server stops: streams of changes end, so that it need not wait for them."""
        if self._feeds is not None:
            self._feeds.close()

    async def serve(self, scope: MutableMapping[str, Any], headers: Headers, receive: Receive, send: Send) -> None:
        reply = _UiReply(send, is_head=scope["method"] == "HEAD")
        try:
            await self._route(scope, headers, receive, reply)
        except ClientGone:
            pass
        except GatewayError as error:
            await reply.error(error)
            drop_tracebacks(error)
        except Exception as cause:
            fault = InternalError("something went wrong inside the gateway; its log has the details.")
            fault.__cause__ = cause
            self._report(fault, "")
            await reply.error(fault)
            drop_tracebacks(fault)

    async def _route(
        self, scope: MutableMapping[str, Any], headers: Headers, receive: Receive, reply: _UiReply
    ) -> None:
        path, method = scope["path"], scope["method"]
        if path.startswith("/ui/api/"):
            await self._api(path.removeprefix("/ui/api/"), scope, headers, receive, reply)
        elif path in ("/ui/login", "/ui/logout"):
            if method != "POST":
                raise WrongMethod(method, "POST")
            self._access.check_login(headers)
            await (self._login(headers, receive, reply) if path == "/ui/login" else self._logout(headers, reply))
        elif method not in ("GET", "HEAD"):
            raise WrongMethod(method, "GET, HEAD")
        elif path in ("/", "/ui"):
            self._access.check_page(headers, is_document=True)
            await reply.redirect("/ui/")
        else:
            self._access.check_page(headers, is_document=path == "/ui/")
            await self._file(path.removeprefix("/ui/"), headers, reply)

    async def _file(self, name: str, headers: Headers, reply: _UiReply) -> None:
        file = self._files.find(name)
        if file is None:
            if name:
                raise BadRequest(f"there is nothing at {quote('/ui/' + name)}.", status=404, code="not_found")
            await reply.whole(200, _MISSING, "text/html; charset=utf-8", _PRIVATE)
            return
        cached = [(b"cache-control", b"no-cache"), (b"etag", file.tag.encode())]
        if headers.get("if-none-match") == file.tag:
            await reply.whole(304, b"", file.kind, cached)
            return
        await reply.whole(200, file.data, file.kind, cached)

    async def _login(self, headers: Headers, receive: Receive, reply: _UiReply) -> None:
        body = await read_body(receive, headers, _MAX_BODY, _BODY_SECONDS)
        is_form = "urlencoded" in headers.get("content-type", "")
        try:
            cookie = self._access.login(_key_in(body, is_form=is_form), headers)
        except BadRequest:
            if not is_form:
                raise
            await reply.redirect("/ui/?login=failed")
            return
        extra = [(b"set-cookie", cookie.encode())]
        await (reply.redirect("/ui/", extra) if is_form else reply.json({"logged_in": True}, extra))

    async def _logout(self, headers: Headers, reply: _UiReply) -> None:
        await reply.json({"logged_in": False}, [(b"set-cookie", self._access.logout(headers).encode())])

    async def _api(
        self, path: str, scope: MutableMapping[str, Any], headers: Headers, receive: Receive, reply: _UiReply
    ) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if path == "session":
            self._access.check_page(headers)
            await reply.json(
                {
                    "needs_key": self._access.needs_key,
                    "logged_in": self._access.is_logged_in(headers),
                    "version": __version__,
                }
            )
            return
        self._access.check_api(headers, changes=method != "GET")
        if path in ("cassette/open", "cassette/save"):
            if method != "POST":
                raise WrongMethod(method, "POST")
            body = await read_body(receive, headers, _MAX_CASSETTE, _CASSETTE_SECONDS)
            if path == "cassette/open":
                await reply.json(await open_cassette(self._flows, body))
            else:
                await reply.whole(200, await save_cassette(self._flows, body), "application/x-ndjson", _PRIVATE)
            return
        await read_body(
            receive, headers, _MAX_BODY, _BODY_SECONDS
        )  # none is expected; what follows is the end of the connection
        query = {
            name: values[-1] for name, values in parse_qs(scope.get("query_string", b"").decode("latin-1")).items()
        }
        is_flow = path.startswith("flows/") and path != "flows/live"
        allowed = ("GET", "DELETE") if path == "flows" or is_flow else ("GET",)
        if method not in allowed:
            raise WrongMethod(method, ", ".join(allowed))
        if path == "stats":
            hours = _number(query, "hours", 24, _MAX_HOURS) or 24
            await reply.json({"hours": await while_here(receive, self._stats(hours))})
        elif path == "flows/live":
            await self._live(receive, reply)
        elif path == "flows" and method == "GET":
            await reply.json(await self._list(query))
        elif path == "flows" or is_flow:
            flow_id = path.removeprefix("flows/") if is_flow else ""
            await (self._delete(flow_id, reply) if method == "DELETE" else self._show(flow_id, reply))
        else:
            raise BadRequest(f"there is nothing at {quote('/ui/api/' + path)}.", status=404, code="not_found")

    async def _list(self, query: Mapping[str, str]) -> JsonObject:
        flows = self._flows
        if flows is None:
            return {"flows": [], "next": None, "total": 0, "enabled": False, "limits": {}}
        names = ("q", "model", "backend", "dialect", "outcome", "conversation")
        wanted = FlowQuery(
            limit=_number(query, "limit", 100, MAX_LIMIT) or 100,
            before=_number(query, "before", None, 1 << 62),
            **{name: query.get(name, "") for name in names},
        )
        page = await flows.page(wanted)
        return {**msgspec.to_builtins(page), "enabled": True, "limits": flows.limits, "used_bytes": flows.used}

    async def _show(self, flow_id: str, reply: _UiReply) -> None:
        flow = await self._flows.find(flow_id) if self._flows is not None else None
        if flow is None or self._flows is None:
            raise _no_flow(flow_id)
        previous = await self._flows.previous(flow)
        if previous is not None:
            flow.summary = replace(flow.summary, previous=previous.summary.id)
        await reply.json(await offload(detail, flow, previous))

    async def _delete(self, flow_id: str, reply: _UiReply) -> None:
        is_found = self._flows is not None and self._flows.delete(flow_id)
        if flow_id and not is_found:
            raise _no_flow(flow_id)
        await reply.whole(204, b"", "application/json", _PRIVATE)

    async def _live(self, receive: Receive, reply: _UiReply) -> None:
        if self._feeds is None:
            raise not_recorded()
        if self._feeds.is_full:
            raise BadRequest("too many pages follow the flows.", status=429, code="too_many_requests")
        await while_here(receive, reply.stream(self._feeds.follow()), self.close)


class _UiReply:
    """Writes responses that no other origin can read, frame or execute."""

    def __init__(self, send: Send, *, is_head: bool) -> None:
        self._send = send
        self._is_head = is_head
        self._is_started = False

    async def whole(self, status: int, body: bytes, kind: str, extra: HeaderList) -> None:
        self._is_started = True
        head = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *SECURITY, *extra]
        await self._send({"type": "http.response.start", "status": status, "headers": head})
        await self._send({"type": "http.response.body", "body": b"" if self._is_head else body})

    async def json(self, value: JsonObject, extra: HeaderList | None = None) -> None:
        await self.whole(200, encode(value), "application/json", [*_PRIVATE, *(extra or [])])

    async def redirect(self, place: str, extra: HeaderList | None = None) -> None:
        await self.whole(303, b"", "text/plain", [(b"location", place.encode()), *_PRIVATE, *(extra or [])])

    async def error(self, error: GatewayError) -> None:
        if self._is_started:
            return
        value = {"code": error.code, "message": error.message, "hint": error.hint}
        extra: HeaderList = list(_PRIVATE)
        if isinstance(error, WrongMethod):
            extra.append((b"allow", error.allowed.encode()))
        await self.whole(error.status, encode({"error": value}), "application/json", extra)

    async def stream(self, pieces: AsyncGenerator[bytes]) -> None:
        self._is_started = True
        head = [(b"content-type", b"text/event-stream; charset=utf-8"), *SECURITY, *_PRIVATE]
        await self._send({"type": "http.response.start", "status": 200, "headers": head})
        async with aclosing(pieces):
            async for piece in pieces:
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})


def _key_in(body: bytes, *, is_form: bool) -> str:
    if is_form:
        return parse_qs(body.decode("utf-8", "replace")).get("key", [""])[0]
    try:
        value = decode(body)
    except BadJson:
        value = None
    key = value.get("key") if isinstance(value, dict) else None
    if not isinstance(key, str):
        raise BadRequest("found no key; expected a form or a JSON object with the member key.", where="key")
    return key


def _number(query: Mapping[str, str], name: str, default: int | None, most: int) -> int | None:
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise BadRequest(f"found {quote(text)}; expected a whole number.", where=name)
    return min(int(text), most)


def _no_flow(flow_id: str) -> BadRequest:
    return BadRequest(
        f"there is no flow {quote(flow_id)}; it may have been evicted.", status=404, code="flow_not_found"
    )
