"""The gateway as the mounts of back ends use it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolwire.backends import Model
from toolwire.backends.demo.backend import Demo
from toolwire.catalog.router import Router
from toolwire.errors import BadRequest
from toolwire.events import Finished, PartStarted
from toolwire.runtime import Runtime
from toolwire.server.mounts import RuntimeAccess
from toolwire.telemetry import Record
from toolwire.types import Message, Request, Text

REQUEST = Request(model="demo/echo-tools", messages=(Message(role="user", parts=(Text(text="hi"),)),))


def access(runtime: Any = None) -> RuntimeAccess:
    found = runtime or Runtime({"demo": Demo()}, Router(["demo"], {}, "", {}), {})
    return RuntimeAccess(print, lambda: found, lambda record: None, lambda record: None)


def test_answers_come_as_events_to_their_end() -> None:
    async def main() -> None:
        record = Record(request_id="req_1")
        events = [event async for batch in access().answer(REQUEST, record) for event in batch]
        assert any(isinstance(event, PartStarted) for event in events)
        assert isinstance(events[-1], Finished)
        assert record.backend == "demo"

    asyncio.run(main())


def test_models_and_the_back_end_of_a_model() -> None:
    async def main() -> None:
        gateway = access()
        assert await gateway.backend_of("demo/echo-tools") == "demo"
        assert [line.id for line in await gateway.models()]
        gateway.models_changed("demo", [Model(id="other")])
        assert "demo/other" in [line.id for line in await gateway.models()]

    asyncio.run(main())


def test_a_stopped_gateway_answers_nothing() -> None:
    def stopped() -> Runtime:
        raise BadRequest("stopping.", status=503)

    async def main() -> None:
        gateway = RuntimeAccess(print, stopped, lambda record: None, lambda record: None)
        with pytest.raises(BadRequest):
            await anext(gateway.answer(REQUEST, Record(request_id="req_1")))

    asyncio.run(main())
