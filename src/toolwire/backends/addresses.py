"""TCP connections to hosts with several addresses: attempts race, and the first that succeeds is used (RFC 8305, "happy eyeballs").

The next address is tried when the previous one fails or does not answer within a quarter of a second; both address families alternate. So a
host with broken IPv6 costs a quarter of a second instead of the whole connect timeout. Python's own event loop can do this, uvloop cannot.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from ..errors import quote
from .http.connection import TransportError
from .http.proxy import authority

# As getaddrinfo() returns it: family, type, protocol, canonical name, address.
AddressInfo: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[AddressInfo]]]

_DELAY = 0.25  # seconds, as RFC 8305 recommends
_MOST = 16  # addresses of one host that are tried


async def resolve(host: str, port: int) -> Sequence[AddressInfo]:
    """By the resolver of the system. Raises socket.gaierror."""
    try:  # a numeric address needs no thread
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class Race:
    """One attempt to reach a host."""

    def __init__(self, host: str, port: int, resolve: Resolve = resolve, delay: float = _DELAY) -> None:
        self._host = host
        self._port = port
        self._resolve = resolve
        self._delay = delay
        self._outcomes: dict[str, OSError | None] = {}  # of the addresses tried so far; None: no answer yet

    async def connect(self) -> socket.socket:
        """A connected socket. Raises OSError if no address accepts, and socket.gaierror if there is none."""
        waiting = list(alternating(await self._resolve(self._host, self._port)))[:_MOST]
        if not waiting:
            raise socket.gaierror(socket.EAI_NONAME, "the host has no address")
        trying: set[asyncio.Task[socket.socket | None]] = set()
        try:
            while waiting or trying:
                if waiting:
                    trying.add(asyncio.create_task(self._try(waiting.pop(0))))
                done, trying = await asyncio.wait(
                    trying, timeout=self._delay if waiting else None, return_when=asyncio.FIRST_COMPLETED
                )
                connected = [found for task in done if (found := task.result()) is not None]
                for late in connected[1:]:
                    late.close()
                if connected:
                    return connected[0]
        finally:
            for task in trying:
                task.cancel()
                task.add_done_callback(_close_late)
        raise self._failure()

    @property
    def story(self) -> str:
        """Which addresses were tried, to append to an error message; "" if there was only one."""
        if len(self._outcomes) < 2:
            return ""
        tried = [f"{address} ({_reason(error)})" for address, error in self._outcomes.items()]
        return f" Tried {', '.join(tried)}."

    async def _try(self, info: AddressInfo) -> socket.socket | None:
        """None if this address does not accept."""
        family, kind, protocol, _, address = info
        name = authority(str(address[0]), int(address[1]))
        self._outcomes[name] = None
        try:
            connecting = socket.socket(family, kind, protocol)
            try:
                connecting.setblocking(False)
                await asyncio.get_running_loop().sock_connect(connecting, address)
            except BaseException:
                connecting.close()
                raise
        except OSError as error:
            self._outcomes[name] = error.with_traceback(None)
            return None
        return connecting

    def _failure(self) -> OSError:
        """The error of all addresses if it is the same, else one without errno."""
        errors = [error for error in self._outcomes.values() if error is not None]
        is_same = len({(type(error), error.errno) for error in errors}) == 1
        return type(errors[0])(*errors[0].args) if is_same else OSError("no address accepted a connection")


def alternating(found: Sequence[AddressInfo]) -> Iterator[AddressInfo]:
    """In the order of the system, but with alternating families and without duplicates."""
    unique = list({info[4]: info for info in found}.values())
    first = [info for info in unique if info[0] == unique[0][0]]
    other = [info for info in unique if info[0] != unique[0][0]]
    for pair in zip_longest(first, other):
        yield from (info for info in pair if info is not None)


def dial_error(error: OSError, peer: str, seconds: float, *, server: str = "", story: str = "") -> TransportError:
    """Maps the exceptions of a failed connection. peer: the other end of the connection. server: the other end of TLS, if that is another
    one behind a proxy. story: of the race.
    """
    server = server or peer
    if isinstance(error, TimeoutError):
        message = f"{peer} did not accept a connection in {seconds:g} s.{story}"
        return TransportError("connect_timeout", message, sent=False)
    if isinstance(error, socket.gaierror):
        return TransportError("dns", f"{peer} has a host name that does not resolve.", sent=False)
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = quote(error.verify_message)
        return TransportError("tls", f"{server} has a certificate that is not trusted here: {reason}.", sent=False)
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", "") or "no reason given"
        return TransportError("tls", f"{server} failed the TLS handshake: {reason}.", sent=False)
    if isinstance(error, ConnectionRefusedError):
        return TransportError("refused", f"{peer} refused the connection.{story}", sent=False)
    reason = os.strerror(error.errno) if error.errno else "no address of this host took a connection"
    return TransportError("refused", f"{peer} is out of reach: {reason}.{story}", sent=False)


def _reason(error: OSError | None) -> str:
    if error is None:
        return "no answer"
    return os.strerror(error.errno).lower() if error.errno else "failed"


def _close_late(task: asyncio.Task[socket.socket | None]) -> None:
    """It connected after another attempt had succeeded."""
    if not task.cancelled() and task.exception() is None and (late := task.result()) is not None:
        late.close()
