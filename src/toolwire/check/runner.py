"""Runs all probes against an endpoint, in every dialect that it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from ..backends.http.transport import Transport
from ..config.file import BackendConfig
from . import behaviour_probes, schema_probes, wire_probes
from .endpoint import CheckedEndpoint
from .questions import LABELLED, ask
from .results import DialectReport, ProbeResult
from .session import CheckSession
from .tool_schemas import schema_tools

_WIRE = (22, 25)  # requests of a quick and a full run
_BEHAVIOUR = (6 + 6, 9 + len(LABELLED))
_TOKENS = 260  # of one request with its answer, on average
_ABSENT = (404, 405, 501)


class Plan(Struct, frozen=True, kw_only=True):
    """The expected cost of a run for one dialect."""

    requests: int
    tokens: int


class CheckOptions(Struct, frozen=True, kw_only=True):
    is_quick: bool = False
    seconds: float = 60.0  # without a byte from the server
    baseline: tuple[BackendConfig, str] | None = None  # another endpoint, and its model


def plan(options: CheckOptions) -> Plan:
    index = 0 if options.is_quick else 1
    requests = _WIRE[index] + len(schema_tools(is_quick=options.is_quick)) + _BEHAVIOUR[index]
    large = 0 if options.is_quick else 60_000  # the large request
    return Plan(requests=requests, tokens=requests * _TOKENS + large)


def wire_plan() -> Plan:
    """The expected cost of `check_wire`."""
    requests = _WIRE[0] + len(schema_tools(is_quick=True))
    return Plan(requests=requests, tokens=requests * _TOKENS)


async def has_dialect(config: BackendConfig, model: str, transport: Transport, seconds: float) -> bool:
    """Whether the endpoint has the path of this dialect. An unreachable endpoint has none."""
    endpoint = CheckedEndpoint(config, model, transport, seconds)
    attempt = await endpoint.ask(ask(model, "Reply with the word ready.", max_tokens=20))
    return not attempt.code and attempt.status not in _ABSENT


async def check_dialect(
    config: BackendConfig,
    model: str,
    transport: Transport,
    options: CheckOptions,
    progress: Callable[[ProbeResult], None],
) -> DialectReport:
    started = time.monotonic()
    endpoint = CheckedEndpoint(config, model, transport, options.seconds)
    session = CheckSession(endpoint, is_quick=options.is_quick, progress=progress)
    await wire_probes.run(session)
    if session.report.verdict("wire") != "untested" and len(session.report.results) > 1:
        await schema_probes.run(session)
        await behaviour_probes.run(session, *await _baseline(options, transport))
    session.note_ignored_tools()
    session.report.requests = endpoint.requests
    session.report.seconds = time.monotonic() - started
    return session.report


async def check_wire(
    config: BackendConfig,
    model: str,
    transport: Transport,
    options: CheckOptions,
    progress: Callable[[ProbeResult], None],
) -> DialectReport:
    """Only the wire format and the schemas, for a second look through the gateway."""
    endpoint = CheckedEndpoint(config, model, transport, options.seconds)
    session = CheckSession(endpoint, is_quick=True, progress=progress)
    await wire_probes.run(session)
    if len(session.report.results) > 1:
        await schema_probes.run(session)
    session.note_ignored_tools()
    session.report.requests = endpoint.requests
    return session.report


async def _baseline(options: CheckOptions, transport: Transport) -> tuple[Sequence[bool] | None, str]:
    if options.baseline is None:
        return None, "the labels of the questions"
    config, model = options.baseline
    endpoint = CheckedEndpoint(config, model, transport, options.seconds)
    session = CheckSession(endpoint, is_quick=options.is_quick, progress=_ignore)
    return await behaviour_probes.decisions(session), f"{config.name}/{model}"


def _ignore(result: ProbeResult) -> None:
    """The probes of a baseline are not shown."""
