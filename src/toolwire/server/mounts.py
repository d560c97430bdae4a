"""The gateway as the mounts of back ends use it: `GatewayAccess` of `backends/mounts.py`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from msgspec import Struct

from ..backends import Model
from ..dialects.base import ModelLine
from ..errors import BadRequest
from ..events import Event
from ..runtime import Runtime
from ..telemetry import Record
from ..types import Request


class RuntimeAccess(Struct, frozen=True):
    """runtime raises BadRequest while the server starts or stops."""

    log: Callable[..., None]
    runtime: Callable[[], Runtime]
    opened: Callable[[Record], None]
    closed: Callable[[Record], None]

    async def answer(self, request: Request, record: Record) -> AsyncGenerator[list[Event]]:
        answer = await self.runtime().answer(request, record, request.owner, is_guarded=True)
        try:
            async with aclosing(answer.events()) as batches:
                async for events in batches:
                    yield events
        finally:
            await answer.release()

    async def models(self) -> list[ModelLine]:
        return await self.runtime().catalog.models()

    async def backend_of(self, model: str) -> str:
        return (await self.runtime().catalog.route(model)).backend

    def models_changed(self, backend: str, models: list[Model]) -> None:
        with suppress(BadRequest):  # no client lists models while the server stops
            self.runtime().catalog.note_models(backend, models)
