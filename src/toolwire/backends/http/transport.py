"""The HTTP client for back ends: a pool of keep-alive connections.

A connection whose reply was received in full returns to the pool, every other one is closed. If the server closed a pooled connection
while it was idle, the request is sent again on a new one; nothing else is retried.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Hashable, Mapping
from functools import partial
from typing import TypeAlias
from urllib.parse import quote as percent_encode
from urllib.parse import urlsplit

from msgspec import Struct

from ...errors import quote
from ..addresses import Race, Resolve, dial_error, resolve
from .connection import HttpConnection, Outgoing, Response, StaleConnection, Timeouts, TransportError
from .proxy import DEFAULT_PORTS, Proxy, authority, basic_authorization, choose_proxy

__all__ = ["Response", "Timeouts", "Transport", "TransportError"]

PoolKey: TypeAlias = tuple[str, str, int, Proxy | None]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_INJECTION = re.compile(r"[\r\n\0]")
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_DEFAULT_TIMEOUTS = Timeouts()
_BODILESS = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
_MAX_ROUTES = 1024
_MAX_HEADS = 256
_MAX_HEAD = 8192  # bytes; clients choose some of the headers
# Headers that frame a message or belong to one hop are set here; a caller that forwards headers must not break them.
_OURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
    }
)


class HttpTarget(Struct, frozen=True, kw_only=True):
    """A parsed URL. authorization: from its user and password."""

    scheme: str
    host: str
    port: int
    path: str
    authorization: str = ""

    @property
    def address(self) -> str:
        return authority(self.host, self.port)

    def __repr__(self) -> str:
        return f"HttpTarget({self.scheme}://{self.address})"

    @property
    def host_header(self) -> str:
        host = self.host.partition("%")[0]
        host = f"[{host}]" if ":" in host else host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class HttpRoute:
    """The server of a URL and the proxy in front of it. start: the first two lines of every request, without the method."""

    def __init__(self, target: HttpTarget, proxy: Proxy | None) -> None:
        self.target = target
        self.proxy = proxy
        self.key: PoolKey = (target.scheme, target.host, target.port, proxy)
        self.is_tls = target.scheme == "https"
        path = target.path if proxy is None or self.is_tls else f"http://{target.host_header}{target.path}"
        self.start = f"{path} HTTP/1.1\r\nhost: {target.host_header}"
        end = proxy or target
        self.reached = end.host, end.port


class Transport:
    """Belongs to one event loop; safe for any number of concurrent requests."""

    def __init__(
        self,
        *,
        timeouts: Timeouts = _DEFAULT_TIMEOUTS,
        environ: Mapping[str, str] | None = None,
        max_idle_per_host: int = 64,
        idle_seconds: float = 30.0,
        max_header_bytes: int = 65536,
        ssl_context: ssl.SSLContext | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        self._timeouts = timeouts
        self._environ = dict(os.environ if environ is None else environ)
        self._max_idle_per_host = max_idle_per_host
        self._idle_seconds = idle_seconds
        self._max_header_bytes = max_header_bytes
        self._ssl_context = ssl_context
        self._resolve = resolve
        self._routes: dict[str, HttpRoute] = {}
        self._heads: dict[Hashable, bytes] = {}  # of recent requests; most differ only in their length
        self._idle: dict[PoolKey, list[HttpConnection]] = {}
        self._live: set[HttpConnection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        timeouts: Timeouts | None = None,
    ) -> Response:
        """Returns when the head of the reply is complete. Raises ValueError for an invalid request, before any I/O."""
        if self._is_closed:
            raise RuntimeError("This transport is closed; make a new one.")
        limits = timeouts or self._timeouts
        route = self._routes.get(url) or self._add_route(url)
        fields = (method, url, *headers.items())
        head = self._heads.get(fields) or self._add_head(fields, encode_head(method, route, headers))
        outgoing = Outgoing(method, head + length_field(method, len(body)), body)
        kept = self._take_idle(route.key)
        if kept is not None:
            try:
                return await kept.exchange(outgoing, limits)
            except StaleConnection:
                pass
        connection = await self._dial(route, limits)
        return await connection.exchange(outgoing, limits)

    async def close(self) -> None:
        """Close every connection, also those in use, and wait until they are closed."""
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._idle.clear()
        live = list(self._live)
        for connection in live:
            connection.abort()
        await asyncio.gather(*(connection.closed for connection in live))

    def _add_route(self, url: str) -> HttpRoute:
        target = parse_target(url)
        route = HttpRoute(target, choose_proxy(self._environ, target.scheme, target.host, target.port))
        if len(self._routes) >= _MAX_ROUTES:
            self._routes.clear()
        self._routes[url] = route
        return route

    def _add_head(self, fields: Hashable, head: bytes) -> bytes:
        if len(self._heads) >= _MAX_HEADS:
            self._heads.clear()
        if len(head) <= _MAX_HEAD:
            self._heads[fields] = head
        return head

    def _take_idle(self, key: PoolKey) -> HttpConnection | None:
        """The one used last: it is the least likely to be closed, and the others expire."""
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            if connection.is_open and connection.idle_since >= connection.loop.time() - self._idle_seconds:
                return connection
            connection.abort()
        return None

    def _add_idle(self, key: PoolKey, connection: HttpConnection) -> None:
        idle = self._idle.setdefault(key, [])
        if self._is_closed or len(idle) >= self._max_idle_per_host:
            connection.abort()
            return
        idle.append(connection)
        if self._sweeper is None:
            self._sweeper = connection.loop.call_later(self._idle_seconds, self._sweep)

    def _sweep(self) -> None:
        """Close what was idle for too long; the oldest come first."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._idle_seconds
        for key, idle in list(self._idle.items()):
            fresh = [connection for connection in idle if connection.is_open and connection.idle_since > oldest]
            for connection in set(idle).difference(fresh):
                connection.abort()
            if fresh:
                self._idle[key] = fresh
            else:
                del self._idle[key]
        since = min((idle[0].idle_since for idle in self._idle.values()), default=None)
        self._sweeper = None if since is None else loop.call_at(since + self._idle_seconds, self._sweep)

    async def _dial(self, route: HttpRoute, timeouts: Timeouts) -> HttpConnection:
        host, port = route.reached
        race = Race(host, port, self._resolve)
        try:
            async with asyncio.timeout(timeouts.connect):
                connection = await self._connect(route, race)
        except OSError as error:
            raise _dial_error(error, route, timeouts.connect, race.story) from error
        if self._is_closed:
            connection.abort()
            raise TransportError("cut", f"{route.target.address} was not used: the client is closing.", sent=False)
        return connection

    async def _connect(self, route: HttpRoute, race: Race) -> HttpConnection:
        if route.proxy is None:
            return await self._open(route, race, is_tls=route.is_tls)
        connection = await self._open(route, race, is_tls=route.proxy.scheme == "https")
        return await self._tunnel(route, connection) if route.is_tls else connection

    async def _open(self, route: HttpRoute, race: Race, *, is_tls: bool) -> HttpConnection:
        connected = await race.connect()
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: self._new_connection(route),
                sock=connected,
                ssl=self._tls() if is_tls else None,
                server_hostname=route.reached[0] if is_tls else None,
            )
        except BaseException:
            connected.close()
            raise
        self._live.add(connection)
        return connection

    async def _tunnel(self, route: HttpRoute, outer: HttpConnection) -> HttpConnection:
        """CONNECT through the proxy, then TLS with the server inside the tunnel."""
        assert outer.transport is not None
        outer.on_idle = None  # it is part of the tunnel now, never free for another exchange
        try:
            await _ask_for_tunnel(route, outer)
            inner = self._new_connection(route)
            transport = await asyncio.get_running_loop().start_tls(
                outer.transport, inner, self._tls(), server_hostname=route.target.host
            )
            if transport is None:
                raise ConnectionResetError("closed during the handshake")
        except BaseException:
            outer.abort()
            raise
        finally:
            self._live.discard(outer)
        inner.connection_made(transport)
        self._live.add(inner)
        return inner

    def _new_connection(self, route: HttpRoute) -> HttpConnection:
        return HttpConnection(
            route.target.address,
            max_header_bytes=self._max_header_bytes,
            on_idle=partial(self._add_idle, route.key),
            on_lost=self._live.discard,
        )

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
            self._ssl_context.set_alpn_protocols(["http/1.1"])
        return self._ssl_context


def parse_target(url: str) -> HttpTarget:
    """Raises ValueError for anything but an http or https URL, without the URL itself, which may contain a key."""
    if _CONTROL.search(url):
        raise ValueError("The URL has a blank or control character in it; expected them percent-encoded.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host.replace("%25", "%").encode("idna").decode()  # the % of an IPv6 zone
    except ValueError:
        raise ValueError("The URL has no valid host and port; expected http(s)://host[:port]/path.") from None
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise ValueError(f"The URL has the scheme {quote(parts.scheme)}; expected http(s)://host[:port]/path.")
    path = parts.path or "/"
    path = f"{path}?{parts.query}" if parts.query else path
    return HttpTarget(
        scheme=parts.scheme,
        host=host,
        port=DEFAULT_PORTS[parts.scheme] if port is None else port,
        path=path if path.isascii() else percent_encode(path, safe=_PRINTABLE),
        authorization=basic_authorization(parts),
    )


def encode_head(method: str, route: HttpRoute, headers: Mapping[str, str]) -> bytes:
    """The request line and headers, without the length of the body and the end of the head. Raises ValueError for a method or
    header that could smuggle another request."""
    if not _TOKEN.fullmatch(method):
        raise ValueError(f"The method {quote(method)} is not an HTTP token.")
    lines = [f"{method} {route.start}"]
    names = set()
    for name, value in headers.items():
        lowered = name.lower()
        names.add(lowered)
        if lowered in _OURS:
            continue
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"The header name {quote(name)} is not an HTTP token.")
        if _INJECTION.search(value):
            raise ValueError(f"The value of the header {quote(name)} has CR, LF or NUL in it; expected one line.")
        if not value.isascii() and max(value) > "\xff":
            raise ValueError(f"The value of the header {quote(name)} has characters outside Latin-1.")
        lines.append(f"{name}: {value}")
    lines.append("accept-encoding: identity")
    if route.target.authorization and "authorization" not in names:
        lines.append(f"authorization: {route.target.authorization}")
    if route.proxy is not None and route.proxy.authorization and not route.is_tls:
        lines.append(f"proxy-authorization: {route.proxy.authorization}")
    lines.append("")
    return "\r\n".join(lines).encode("latin-1")


def length_field(method: str, length: int) -> bytes:
    """The last field of a head, and its end."""
    return b"content-length: %d\r\n\r\n" % length if length or method not in _BODILESS else b"\r\n"


async def _ask_for_tunnel(route: HttpRoute, connection: HttpConnection) -> None:
    assert route.proxy is not None
    address = route.target.address
    head = f"CONNECT {address} HTTP/1.1\r\nhost: {address}\r\n"
    if route.proxy.authorization:
        head += f"proxy-authorization: {route.proxy.authorization}\r\n"
    try:
        response = await connection.exchange(Outgoing("CONNECT", f"{head}\r\n".encode("latin-1")), _DEFAULT_TIMEOUTS)
    except TransportError as error:
        raise _tunnel_error(route, f"failed: {error.message}") from error
    if response.status >= 300:
        raise _tunnel_error(route, f"answered {response.status} to CONNECT.")
    if not connection.is_open:
        raise _tunnel_error(route, "sent bytes of its own into the tunnel.")


def _tunnel_error(route: HttpRoute, problem: str) -> TransportError:
    assert route.proxy is not None
    return TransportError(
        "refused", f"{route.target.address} is out of reach: the proxy {route.proxy.address} {problem}", sent=False
    )


def _dial_error(error: OSError, route: HttpRoute, seconds: float, story: str) -> TransportError:
    server = route.target.address
    has_tls = route.is_tls or (route.proxy is not None and route.proxy.scheme == "https")
    if has_tls and isinstance(error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)):
        return TransportError("tls", f"{server} closed the connection in the TLS handshake.", sent=False)
    peer = server if route.proxy is None else f"The proxy {route.proxy.address}"
    return dial_error(error, peer, seconds, server=server, story=story)
