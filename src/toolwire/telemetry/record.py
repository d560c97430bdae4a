"""The record of one request, for the log, the metrics and the client's debug report; and how they get it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct, field

from ..calls.validation import CallTally, LocalCall, new_counter
from ..errors import GatewayError
from ..types import JsonObject, Loss, Usage
from .flow_draft import FlowDraft
from .loss_names import is_adapted

_COUNTS = ("made", "invalid", "repaired", "unknown", "cut", "corrections", "corrected", "refused", "exhausted")
_MAX_LOSSES = 40
_MAX_LOCAL = 40
_BATCH_SECONDS = 0.1
_MAX_BATCH = 200  # records that wait


class UsageGrant(Protocol):
    """What the request has reserved of the limits of its key."""

    held: Any

    async def settle(self, usage: Usage) -> None:
        """Count what it used instead, before the client gets the end of its answer. Never fails."""


class Record(Struct, kw_only=True, omit_defaults=True):
    """Filled while the request runs. Contains no secret, and no text of the conversation except what an error message quotes."""

    request_id: str = ""
    path: str = ""  # of the client's request
    key: str = ""  # the name of the client's key
    dialect: str = ""
    model: str = ""
    backend: str = ""
    sent_model: str = ""  # the name that the back end received
    route: str = ""  # why this back end
    hops: list[str] = []  # models of a group that failed before, each with its status
    is_stream: bool = False
    is_verbatim: bool = False
    translated: str = ""  # why the client's bytes were not sent as they came
    took_over: str = ""
    how: str = ""  # which way to answer the back end chose, if it has several
    local: list[LocalCall] = []  # tools that the gateway ran itself; the client does not see these calls
    status: int = 0
    error: str = ""
    message: str = ""  # of the error
    outcome: str = "ok"  # ok, error, client_gone
    traceparent: str = ""  # the client's span, if traces are exported
    started: float = 0.0
    first_byte: float = 0.0
    first_token: float = 0.0
    ended: float = 0.0
    tally: CallTally = field(default_factory=CallTally)
    history: Counter[str] = field(default_factory=new_counter)  # repairs of the history by kind
    has_reached_bound: bool = False  # this request is the last one that the agent's task may make
    usage: Usage | None = None
    cost: int | None = None  # in billionths of a dollar; None if the price is unknown
    losses: list[Loss] = []
    is_debugged: bool = False  # the client wants a debug report
    grant: UsageGrant | None = None  # until it is settled
    flow: FlowDraft | None = None  # where the content is recorded, if it is

    def fail(self, error: GatewayError) -> None:
        """The request ends in this error."""
        self.outcome, self.error, self.message = "error", error.code, error.sentence()
        if self.flow is not None:
            self.flow.message = self.message

    def debug_report(self, losses: list[Loss]) -> JsonObject:
        """What a client that asks for it may know, bounded."""
        tally = self.tally
        counts = {name: getattr(tally, name) for name in _COUNTS if getattr(tally, name)}
        return {
            "type": "toolwire.debug",
            "request": self.request_id,
            "backend": self.backend,
            "model": self.sent_model,
            "verbatim": self.is_verbatim,
            "translated": self.translated or None,
            "took_over": self.took_over or None,
            "how": self.how or None,
            "fallback": self.hops or None,
            "calls": counts,
            "local_calls": [
                {
                    "name": call.name,
                    "outcome": call.outcome,
                    "seconds": round(call.seconds, 3),
                    "confinement": call.confinement or None,
                }
                for call in self.local[:_MAX_LOCAL]
            ],
            "more_local_calls": max(0, len(self.local) - _MAX_LOCAL),
            "argument_repairs": dict(tally.repairs),
            "history_repairs": dict(self.history),
            **_listed(losses),
        }

    def stream_report(self, losses: list[Loss]) -> JsonObject | None:
        """What was repaired and lost, for the comment at the end of a stream; None if nothing was."""
        repaired = self.tally.repaired_calls
        if not (losses or repaired):
            return None
        calls = [
            {"call": call.id, "tool": call.name, "members": list(call.members), "repairs": list(call.repairs)}
            for call in repaired[:_MAX_LOSSES]
        ]
        return {"request": self.request_id, "repaired": calls, **_listed(losses)}


def _listed(losses: list[Loss]) -> JsonObject:
    listed = [
        {
            "feature": loss.feature,
            "effect": "adapted" if is_adapted(loss.feature) else "lost",
            "where": loss.where,
            "why": loss.why,
        }
        for loss in losses[:_MAX_LOSSES]
    ]
    return {"losses": listed, "more_losses": max(0, len(losses) - _MAX_LOSSES)}


class RecordBatch:
    """Closed records go to metrics, counts and log together, a moment later: their code costs half as much in succession as between two
    pieces of an answer. Belongs to one event loop. close: called with the records, in the order in which the requests ended."""

    def __init__(self, close: Callable[[list[Record]], None], seconds: float = _BATCH_SECONDS) -> None:
        self._close = close
        self._seconds = seconds
        self._records: list[Record] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, record: Record) -> None:
        self._records.append(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self.flush)
        elif len(self._records) >= _MAX_BATCH:
            self.flush()

    def flush(self) -> None:
        """Hand over what waits. Metrics and counts are complete after it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        records, self._records = self._records, []
        if records:
            self._close(records)


class Telemetry(Protocol):
    def opened(self, record: Record) -> None: ...

    def closed(self, record: Record) -> None: ...


class NoTelemetry:
    """Ignores every record."""

    def opened(self, record: Record) -> None:
        pass

    def closed(self, record: Record) -> None:
        pass
