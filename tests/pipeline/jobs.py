"""Jobs and back ends for tests of single stages."""

from __future__ import annotations

import asyncio
from typing import Any

from toolwire.backends.base import Backend, EventReply
from toolwire.config.file import Guard
from toolwire.config.policy import Policy
from toolwire.pipeline.job import Job
from toolwire.pipeline.prepare import Preparation
from toolwire.profiles import PLAIN, Profile
from toolwire.telemetry import Record
from toolwire.types import Request


class Closed(Backend):
    """A back end that has properties and answers nothing."""

    name = "b"

    def __init__(self, dialect: str = "chat", profile: Profile = PLAIN, kinds: frozenset[str] = frozenset()) -> None:
        self.dialect = dialect
        self.profile = profile
        self.tool_kinds = kinds

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        raise AssertionError("the test sends nothing")


def job_of(request: Request, backend: Backend | None = None, guard: Guard = "check", **members: Any) -> Job:
    backend = backend or Closed()
    defaults: dict[str, Any] = {"policy": Policy(), "record": Record(), "model": request.model}
    defaults |= {"is_own": backend.dialect == request.origin, "is_renamed": False}
    return Job(received=request, request=request, backend=backend, guard=guard, **(defaults | members))


def prepared(
    request: Request, backend: Backend | None = None, guard: Guard = "check", preparation: Preparation | None = None
) -> Job:
    """The job after all request stages."""
    job = job_of(request, backend, guard)
    asyncio.run((preparation or Preparation()).run(job))
    return job
