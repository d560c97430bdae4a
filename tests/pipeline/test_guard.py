from __future__ import annotations

import pytest

from toolwire.calls.schemas import Schemas
from toolwire.calls.streamed_calls import CallRepairer
from toolwire.calls.turn import CallCounter, CallMonitor
from toolwire.config.file import Guard
from toolwire.config.policy import Corrections, Policy
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


@pytest.mark.parametrize(("guard", "watcher"), [("off", CallCounter), ("check", CallMonitor), ("repair", CallRepairer)])
def test_without_retry_calls_stream(guard: Guard, watcher: type) -> None:
    one = job(guard, TOOL)
    backend, found = guarded(one, Schemas(), None)
    assert backend is one.backend
    assert type(found) is watcher


def test_with_retry_calls_are_held_where_there_are_tools() -> None:
    backend, watcher = guarded(job("retry", TOOL), Schemas(), None)
    assert (type(backend), watcher) == (CorrectingBackend, None)
    without_tools = job("retry")
    backend, watcher = guarded(without_tools, Schemas(), None)
    assert (backend, type(watcher)) == (without_tools.backend, CallMonitor)


@pytest.mark.parametrize(
    "terms", [Corrections(policy="text"), Corrections(policy="error"), Corrections(unknown="text")]
)
def test_calls_that_may_be_withdrawn_are_held(terms: Corrections) -> None:
    backend, watcher = guarded(job("repair", TOOL, policy=Policy(terms=terms)), Schemas(), None)
    assert (type(backend), watcher) == (CorrectingBackend, None)


def test_a_strict_tool_is_held_where_tools_are_simulated() -> None:
    strict = Tool(name="weather", schema={"type": "object"}, strict=True)
    backend, _ = guarded(job("check", strict, policy=Policy(tools="simulate")), Schemas(), None)
    assert type(backend) is CorrectingBackend


def test_other_tools_are_only_watched_at_guard_check() -> None:
    _, watcher = guarded(job("check", TOOL, policy=Policy(tools="simulate")), Schemas(), None)
    assert type(watcher) is CallMonitor
    _, watcher = guarded(job("check", Tool(name="weather", strict=True)), Schemas(), None)
    assert type(watcher) is CallMonitor


def test_a_back_end_without_tools_is_wrapped() -> None:
    backend = Closed()
    assert simulated(backend, Policy(), "m", Schemas()) is backend
    assert type(simulated(backend, Policy(tools="simulate"), "m", Schemas())) is SimulatingBackend
