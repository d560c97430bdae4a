"""Records the flows of one process: begins and ends them, bounds their memory, and finds them again.

A flow that has ended is sealed (redacted and packed) a moment later, in a thread if it is large, and at the latest before it is read. All
methods are called on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any, Protocol, TypeAlias

from ..config.values import FlowsConfig
from ..ids import new_id
from ..offload import LARGE, offload
from ..telemetry import Record
from ..telemetry.flow_draft import FLOW_COST, FlowBudget, FlowDraft, Send, WireDraft, current
from .record import FlowSummary
from .redact import WireRedaction
from .sealed import SealedFlow, seal_wires
from .summary import reports_of, summarize

Entry: TypeAlias = FlowDraft | SealedFlow
Listener: TypeAlias = Callable[[FlowSummary | None], None]  # None: flows were deleted

_SEAL_SECONDS = 0.05
_DAY = 86400.0


class _Timer(Protocol):
    def cancel(self) -> None: ...


Schedule: TypeAlias = Callable[[float, Callable[[], None]], _Timer]


def _on_loop(seconds: float, work: Callable[[], None]) -> _Timer:
    return asyncio.get_running_loop().call_later(seconds, work)


class FlowRecorder:
    """schedule: calls a function after some seconds."""

    def __init__(
        self,
        config: FlowsConfig,
        redaction: WireRedaction,
        clock: Callable[[], float] = time.time,
        schedule: Schedule = _on_loop,
    ) -> None:
        self._schedule = schedule
        self._config = config
        self._redaction = redaction
        self._clock = clock
        self._budget = FlowBudget(config.max_mb << 20, config.max_body_kb << 10 if config.bodies else 0)
        self._budget.reclaim = self._evict
        self._entries: dict[str, Entry] = {}  # in the order in which they began
        self._ended: deque[FlowDraft] = deque()
        self._timer: _Timer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._seq = 0
        self._prefix = new_id("flow_")[:-12]
        self.listeners: set[Listener] = set()
        self.sink: Callable[[SealedFlow], None] | None = None  # gets each flow that has ended

    @property
    def limits(self) -> dict[str, Any]:
        config = self._config
        return {
            "max_flows": config.max_flows,
            "max_mb": config.max_mb,
            "max_body_kb": config.max_body_kb,
            "max_age_days": config.max_age_days,
            "bodies": config.bodies,
        }

    @property
    def used(self) -> int:
        """Bytes of memory."""
        return self._budget.used

    def begin(self, record: Record, scope: MutableMapping[str, Any], secret: str, send: Send) -> Send:
        """Record this request; what the client gets must go through the function that is returned."""
        self._seq += 1
        query = scope.get("query_string", b"").decode("latin-1")
        url = f"{scope['path']}?{query}" if query else scope["path"]
        client = WireDraft(self._budget, record.dialect, scope["method"], url, scope["headers"])
        client.opened = record.started
        draft = FlowDraft(f"{self._prefix}{self._seq:08x}", self._seq, record, client, self._budget, self._end)
        draft.secret = secret
        record.flow = draft
        current.set(draft)
        self._entries[draft.id] = draft
        return draft.observe(send)

    def _end(self, draft: FlowDraft) -> None:
        if self.sink is not None:
            self.sink(_seal(draft, self._redaction))
        self._ended.append(draft)
        if self._timer is None:
            self._timer = self._schedule(_SEAL_SECONDS, self._seal_ended)

    def entries(self) -> list[SealedFlow]:
        """All of them, the newest first. Open ones as they are now."""
        self._expire()
        return [self._sealed(entry) for entry in reversed(list(self._entries.values()))]

    def find(self, flow_id: str) -> SealedFlow | None:
        entry = self._entries.get(flow_id)
        return None if entry is None else self._sealed(entry)

    def open(self) -> list[FlowDraft]:
        return [entry for entry in self._entries.values() if isinstance(entry, FlowDraft)]

    def summarize(self, draft: FlowDraft) -> FlowSummary:
        return summarize(draft, self._redaction)

    def delete(self, flow_id: str = "") -> bool:
        """One flow, or all. An open one is recorded no further."""
        ids = [flow_id] if flow_id else list(self._entries)
        found = [entry for one in ids if (entry := self._entries.pop(one, None)) is not None]
        for entry in found:
            self._release(entry)
        if found:
            self._notify(None)
        return bool(found)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._seal_ended()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _sealed(self, entry: Entry) -> SealedFlow:
        if isinstance(entry, SealedFlow):
            return entry
        flow = _seal(entry, self._redaction)
        if entry in self._ended:
            self._ended.remove(entry)
            self._store(entry, flow)
        return flow

    def _seal_ended(self) -> None:
        self._timer = None
        drafts, self._ended = self._ended, deque()
        for draft in drafts:
            if draft.charged - FLOW_COST > LARGE:
                task = asyncio.get_running_loop().create_task(self._seal_large(draft))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                self._store(draft, _seal(draft, self._redaction))

    async def _seal_large(self, draft: FlowDraft) -> None:
        self._store(draft, await offload(_seal, draft, self._redaction))

    def _store(self, draft: FlowDraft, flow: SealedFlow) -> None:
        if self._entries.get(draft.id) is not draft:  # deleted meanwhile, or sealed by a reader
            return
        self._budget.used += flow.memory - draft.charged
        self._entries[draft.id] = flow
        draft.drop()
        self._notify(flow.summary)
        if self._budget.used > self._budget.limit:
            self._evict()
        if (surplus := len(self._entries) - self._config.max_flows) > 0:
            self._evict(surplus)

    def _notify(self, flow: FlowSummary | None) -> None:
        for listener in list(self.listeners):
            listener(flow)

    def _release(self, entry: Entry) -> None:
        self._budget.used -= entry.charged if isinstance(entry, FlowDraft) else entry.memory
        if isinstance(entry, FlowDraft):
            entry.drop()

    def _evict(self, count: int = 0) -> None:
        """The oldest that have ended: so many, or until a tenth of the memory is free."""
        surplus = self._budget.used - self._budget.limit * 9 // 10
        doomed: list[str] = []
        for flow_id, entry in self._entries.items():
            if len(doomed) >= count if count else surplus <= 0:
                break
            if isinstance(entry, SealedFlow):
                doomed.append(flow_id)
                surplus -= entry.memory
        for flow_id in doomed:
            self._release(self._entries.pop(flow_id))

    def _expire(self) -> None:
        oldest = self._clock() - self._config.max_age_days * _DAY
        for flow_id, entry in list(self._entries.items()):
            if isinstance(entry, FlowDraft) or entry.summary.started >= oldest:
                break
            del self._entries[flow_id]
            self._release(entry)


def _seal(draft: FlowDraft, redaction: WireRedaction) -> SealedFlow:
    client, upstream = seal_wires(draft, redaction)
    return SealedFlow(summarize(draft, redaction), client, upstream, reports_of(draft, redaction))
