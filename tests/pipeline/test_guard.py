from __future__ import annotations

import pytest

from toolwire.calls.schemas import Schemas
from toolwire.calls.turn import CallCounter, CallMonitor
from toolwire.config.file import Guard
from toolwire.config.policy import Policy
from toolwire.pipeline.correction import CorrectingBackend
from toolwire.pipeline.guard import guarded, simulated
from toolwire.pipeline.job import Job
from toolwire.pipeline.simulation import SimulatingBackend
from toolwire.types import Message, Request, Text, Tool

from .jobs import Closed, job_of

TOOL = Tool(name="weather", schema={"type": "object"})


def job(guard: Guard, *tools: Tool, policy: Policy | None = None) -> Job:
    request = Request(
        model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),), tools=tools, origin="chat", wire=b"{}"
    )
    return job_of(request, guard=guard, offered=tools, policy=policy or Policy())


@pytest.mark.parametrize(("guard", "watcher"), [("off", CallCounter), ("check", CallMonitor)])
def test_without_repair_calls_stream_and_are_watched(guard: Guard, watcher: type) -> None:
    one = job(guard, TOOL)
    backend, found = guarded(one, Schemas(), None)
    assert backend is one.backend
    assert type(found) is watcher


@pytest.mark.parametrize("guard", ["repair", "retry"])
def test_with_repair_calls_are_held_where_there_are_tools(guard: Guard) -> None:
    backend, watcher = guarded(job(guard, TOOL), Schemas(), None)
    assert (type(backend), watcher) == (CorrectingBackend, None)
    without_tools = job(guard)
    backend, watcher = guarded(without_tools, Schemas(), None)
    assert (backend, type(watcher)) == (without_tools.backend, CallMonitor)


def test_a_strict_tool_is_held_where_tools_are_simulated() -> None:
    strict = Tool(name="weather", schema={"type": "object"}, strict=True)
    backend, _ = guarded(job("check", strict, policy=Policy(tools="simulate")), Schemas(), None)
    assert type(backend) is CorrectingBackend


def test_a_back_end_without_tools_is_wrapped() -> None:
    backend = Closed()
    assert simulated(backend, Policy(), "m", Schemas()) is backend
    assert type(simulated(backend, Policy(tools="simulate"), "m", Schemas())) is SimulatingBackend
