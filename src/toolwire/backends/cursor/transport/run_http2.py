"""The run transport: one full-duplex HTTP/2 stream per run, many of them on one connection."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from typing import TypeAlias

from ....config.file import BackendConfig, is_loopback
from ....errors import UpstreamError
from ....wire.connect import frame
from ...addresses import Race, Resolve, dial_error, resolve
from ...http.connection import TransportError
from ...http.proxy import choose_proxy
from ...http.transport import HttpTarget as Address
from ...http.transport import parse_target
from .channel import RunChannel
from .http2 import Http2Connection
from .stream import Http2Limits, Http2Stream
from .target import RUN, Attempt, headers_of, url_of

_USE_SSE = 'Set transport = "sse" for this back end; that works over HTTP/1.1 and through proxies.'
_CLOSE_SECONDS = 2.0
# Hop-by-hop headers, and those that HTTP/2 expresses in another way; servers refuse a request with them.
_HOP = frozenset(
    {"host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "content-length"}
)

_Key: TypeAlias = tuple[str, str, int]


class Http2Connections:
    """The HTTP/2 connections of one event loop: few per host, many streams on each."""

    def __init__(
        self,
        limits: Http2Limits | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        self._limits = limits or Http2Limits()
        self._environ = dict(os.environ if environ is None else environ)
        self._ssl_context = ssl_context
        self._resolve = resolve
        self._live: dict[Http2Connection, _Key] = {}
        self._dialling: dict[_Key, asyncio.Task[None]] = {}
        self._is_closed = False

    async def stream(self, url: str, headers: Mapping[str, str], connect_timeout: float) -> Http2Stream:
        """A POST whose body follows. Raises UpstreamError."""
        address = parse_target(url)
        fields = [(":method", "POST"), (":scheme", address.scheme), (":authority", address.host_header)]
        fields.append((":path", address.path))
        fields.extend((name, value) for name, value in headers.items() if name not in _HOP)
        return (await self.reach(address, connect_timeout)).open(fields)

    async def reach(self, address: Address, seconds: float) -> Http2Connection:
        """A connection with room for a stream. Raises UpstreamError.

        Concurrent requests wait for the same new connection; cancelling one of them does not stop it.
        """
        self._check(address)
        key = (address.scheme, address.host, address.port)
        while True:
            for connection, place in self._live.items():
                if place == key and connection.has_room:
                    return connection
            dialling = self._dialling.get(key)
            if dialling is None or dialling.done():
                dialling = self._dialling[key] = asyncio.create_task(self._dial(address, key, seconds))
                dialling.add_done_callback(lambda task: self._forget_dial(key, task))
            await asyncio.wait([dialling])
            if dialling.cancelled():
                raise _closed()
            dialling.result()

    async def close(self) -> None:
        """Close every connection with its streams, and wait for it."""
        self._is_closed = True
        dialling = list(self._dialling.values())
        for task in dialling:
            task.cancel()
        await asyncio.gather(*dialling, return_exceptions=True)
        live = list(self._live)
        for connection in live:
            connection.close()
        if live:
            await asyncio.wait([connection.closed for connection in live], timeout=_CLOSE_SECONDS)

    def _forget_dial(self, key: _Key, task: asyncio.Task[None]) -> None:
        if self._dialling.get(key) is task:
            del self._dialling[key]
        if not task.cancelled():
            task.exception()  # retrieved, because all waiting requests may be gone

    async def _dial(self, address: Address, key: _Key, seconds: float) -> None:
        """Up to the server's settings, which contain its limits."""
        race = Race(address.host, address.port, self._resolve)
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connect(address, key, race)
                try:
                    await connection.ready
                except asyncio.CancelledError:
                    connection.close()
                    raise
        except OSError as error:
            raise _dial_error(error, address.address, seconds, race.story) from None
        if connection.fault is not None:
            raise connection.fault.fresh()

    async def _connect(self, address: Address, key: _Key, race: Race) -> Http2Connection:
        is_tls = address.scheme == "https"
        connected = await race.connect()
        try:
            transport, connection = await asyncio.get_running_loop().create_connection(
                lambda: Http2Connection(address.address, self._limits),
                sock=connected,
                ssl=self._tls() if is_tls else None,
                server_hostname=address.host if is_tls else None,
            )
        except BaseException:
            connected.close()
            raise
        self._live[connection] = key
        connection.closed.add_done_callback(lambda _: self._live.pop(connection, None))
        if is_tls and transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            connection.close()
            raise _without_http2(address.address)
        return connection

    def _check(self, address: Address) -> None:
        if self._is_closed:
            raise _closed()
        if address.scheme == "http" and not is_loopback(address.host):
            raise UpstreamError(f"{address.address} is not on this machine and its URL is http://; expected https://.")
        proxy = choose_proxy(self._environ, address.scheme, address.host, address.port)
        if proxy is not None:
            problem = f"{address.address} is behind the proxy {proxy.address}, which the run transport cannot use."
            raise _http2_required(problem)

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
            self._ssl_context.set_alpn_protocols(["h2"])
        return self._ssl_context


class Http2Channel(RunChannel):
    """A run on one stream."""

    how = "run"

    def __init__(self, stream: Http2Stream, backend: str) -> None:
        super().__init__(backend)
        self._stream = stream

    async def write(self, message: bytes) -> None:
        try:
            await self._stream.send(frame(message))
        except UpstreamError:
            # A run that has just ended accepts nothing more; receive() returns its last messages and its end.
            if self._decoder.is_ended or not self._stream.is_readable:
                raise

    async def read(self) -> bytes:
        return await self._stream.read()

    def fail(self, error: UpstreamError) -> None:
        self._stream.reset()


async def open_run(connections: Http2Connections, config: BackendConfig, attempt: Attempt, first: bytes) -> RunChannel:
    """The run, with its first message being sent. Raises UpstreamError; a refusal may also come with receive()."""
    headers = headers_of(config, attempt, "run")
    stream = await connections.stream(url_of(config, RUN), headers, config.connect_timeout)
    channel = Http2Channel(stream, config.name)
    try:
        await channel.send(first)
    except BaseException:
        channel.abort()
        raise
    return channel


def _closed() -> UpstreamError:
    return UpstreamError("this back end is closed.", status=503, code="closed")


def _http2_required(problem: str) -> UpstreamError:
    return UpstreamError(problem, status=502, code="http2_required", hint=_USE_SSE)


def _without_http2(peer: str) -> UpstreamError:
    return _http2_required(f"{peer} does not offer HTTP/2 in the TLS handshake, which the run transport needs.")


def _dial_error(error: OSError, peer: str, seconds: float, story: str) -> UpstreamError:
    if isinstance(error, TimeoutError):
        message = f"{peer} did not accept an HTTP/2 connection in {seconds:g} s.{story}"
        return TransportError("connect_timeout", message, sent=False)
    if isinstance(error, ssl.SSLError) and "NO_APPLICATION_PROTOCOL" in (error.reason or ""):
        return _without_http2(peer)
    return dial_error(error, peer, seconds, story=story)
