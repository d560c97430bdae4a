"""Hosts with several addresses, all of them on this machine: one that accepts, one that refuses, one that never answers."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence

from toolwire.backends.addresses import AddressInfo, Resolve


def info(port: int, host: str = "127.0.0.1") -> AddressInfo:
    return socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)


def resolver(*found: AddressInfo) -> Resolve:
    async def resolve(host: str, port: int) -> Sequence[AddressInfo]:
        return found

    return resolve


@contextlib.contextmanager
def refusing() -> Iterator[AddressInfo]:
    """Bound, so that nothing else gets the port, and not listening."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield info(holder.getsockname()[1])


@contextlib.contextmanager
def silent() -> Iterator[AddressInfo]:
    """Its queue is full and never emptied, so the system drops every further attempt, as a dead route does."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield info(listener.getsockname()[1])
