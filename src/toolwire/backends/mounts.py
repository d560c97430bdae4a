"""Paths that a kind of back end serves on the gateway's own port, named by the entry-point group `toolwire.mounts`.

A mount has a WebSocket, and a description for GET requests. All mounts are built once, when the server starts, whether or not
a back end of their kind is configured; requests to other paths never touch them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final, Protocol, Self, TypeAlias

from ..dialects.base import ModelLine
from ..events import Event
from ..telemetry import Record
from ..types import Request
from .base import Backend, Model
from .registry import load_group

GROUP = "toolwire.mounts"
# Extension of an ASGI scope: {"event": asyncio.Event}, set when the server shuts down.
SHUTDOWN: Final = "toolwire.shutdown"

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class GatewayAccess(Protocol):
    """The running gateway, as a mount uses it: back ends do not import the server."""

    @property
    def log(self) -> Callable[..., None]:
        """Of level, text and request id."""

    @property
    def opened(self) -> Callable[[Record], None]:
        """To be called when a request begins. Raises BadRequest where too many are open."""

    @property
    def closed(self) -> Callable[[Record], None]:
        """To be called at the end of a request that was opened."""

    def answer(self, request: Request, record: Record) -> AsyncGenerator[list[Event]]:
        """Batches of events. Raises GatewayError; the request is accounted for when the generator ends or is closed."""

    async def models(self) -> list[ModelLine]: ...

    async def backend_of(self, model: str) -> str:
        """The name of the back end that a request for this model goes to."""

    def models_changed(self, backend: str, models: list[Model]) -> None:
        """This back end has other models than before."""


class Mount(Protocol):
    path: str
    max_message: int  # bytes of one WebSocket message

    @classmethod
    def prepare(cls, environ: Mapping[str, str]) -> None:
        """Before the server starts: files that clients look for. Raises ConfigError."""

    @classmethod
    def build(cls, gateway: GatewayAccess, backends: Iterable[Backend]) -> Self: ...

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One WebSocket connection, from its handshake to its end."""

    def describe(self) -> bytes:
        """The JSON body for a GET request of a client that is not a web page."""


def mount_kinds() -> list[type[Mount]]:
    return load_group(GROUP)
