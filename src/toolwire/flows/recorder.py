"""Records the flows of one process: begins and ends them, bounds their memory, and finds them again.

While requests are served, a flow is a draft: a few references, nothing decoded. Drafts that have ended are packed together, a moment later: that
costs half as much in succession as between two requests. Sealing (redacting) a flow costs as much as a request. It is
done in a thread: when the flow is first read or written, or else after some seconds without requests. All methods are called on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from ..config.values import FlowsConfig
from ..dialects.base import Decode
from ..ids import new_id
from ..offload import offload
from ..telemetry import Record
from ..telemetry.flow_draft import FlowBudget, FlowDraft, Send, WireDraft, current
from ..telemetry.spans import content_attributes
from .conversations import ConversationIndex
from .detail import answer_of, request_of
from .disk import FlowFiles
from .packed import PackedFlow, memory_of, pack_draft, pack_sealed, unpack_draft, unpack_sealed
from .query import FlowPage, FlowQuery, matches_record, matches_text, page_of
from .record import Flow, FlowSummary
from .redact import WireRedaction
from .sealed import SealedFlow, sealed_from
from .summary import seal, summarize

Entry: TypeAlias = FlowDraft | PackedFlow  # open, or ended
Listener: TypeAlias = Callable[[FlowSummary | None], None]  # None: flows were deleted

TICK = 1.0  # seconds until drafts that have ended are packed
IDLE = 10.0  # seconds without a request until all flows are sealed
_SEALED_TOGETHER = 100
_MAX_ENDED = 200  # drafts that wait to be packed
_BATCH_BYTES = 4 << 20  # of flows that are read at a time
_DAY = 86400.0
_MAX_LOOKED_BACK = 300  # flows in which the previous one of a conversation is looked for


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
        self._config = config
        self._redaction = redaction
        self._clock = clock
        self._schedule = schedule
        self._max_flows = config.max_flows
        self._budget = FlowBudget(config.max_mb << 20, config.max_body_kb << 10 if config.bodies else 0)
        self._budget.reclaim = self._reclaim
        # By number, in the order in which they began. A dict would scan the places of all evicted ones to find the oldest.
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._ended: list[FlowDraft] = []  # to be packed
        self._timer: _Timer | None = None
        self._idle_timer: _Timer | None = None
        self._sealing: asyncio.Task[None] | None = None
        self._seq = 0
        self._prefix = new_id("flow_")[:-12]
        self._conversations = ConversationIndex()
        self._files: FlowFiles | None = None
        self._stored_ids: dict[int, str] = {}  # of flows that an earlier process has recorded
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

    def begin(
        self, record: Record, scope: MutableMapping[str, Any], decode: Decode | None, secret: str, send: Send
    ) -> Send:
        """Record this request; what the client gets must go through the function that is returned. decode: reads its body."""
        self._seq = seq = self._seq + 1
        url: str = scope["path"]
        if query := scope.get("query_string"):
            url = f"{url}?{query.decode('latin-1')}"
        client = WireDraft(self._budget, record.dialect, scope["method"], url, scope["headers"], record.started)
        draft = FlowDraft(seq, record, client, secret, self._budget, self._end)
        draft.decode, record.tally.texts = decode, []
        record.flow = draft
        current.set(draft)
        self._entries[seq] = draft
        return draft.observe(send)

    def content_of(self, record: Record) -> dict[str, Any]:
        """The messages of a request that has just ended, as attributes of its span."""
        if record.flow is None:
            return {}
        flow = self._sealed(record.flow)
        return dict(content_attributes(request_of(flow, record.flow.decode), answer_of(flow)))

    def id_of(self, seq: int) -> str:
        return self._stored_ids.get(seq) or f"{self._prefix}{seq:08x}"

    def entries(self) -> list[Entry]:
        """All of them, the newest first."""
        self._pack_ended()
        self._expire()
        return list(reversed(self._entries.values()))

    def drafts(self) -> list[FlowDraft]:
        """Those that are open."""
        self._pack_ended()
        return [entry for entry in self._entries.values() if isinstance(entry, FlowDraft)]

    def summarize(self, draft: FlowDraft) -> FlowSummary:
        return summarize(draft, self.id_of(draft.seq), self._redaction)

    async def page(self, query: FlowQuery) -> FlowPage:
        found = [entry for entry in self.entries() if matches_record(entry, query)]
        is_searched = bool(query.q or query.conversation)
        rest = [entry for entry in found if query.before is None or entry.seq < query.before][: query.limit + 1]
        summaries: deque[FlowSummary] = deque()
        # The oldest first, because a flow needs the one before it in its conversation.
        for entries in reversed(list(_batches(found if is_searched else rest))):
            flows = await self._read([self._entries.get(entry.seq, entry) for entry in entries])
            if is_searched:  # only what is redacted is searched
                flows = await offload(_matching, flows, query)
            summaries.extendleft(flow.summary for flow in reversed(flows))
        return page_of(summaries, query, None if is_searched else len(found))

    async def find(self, flow_id: str) -> SealedFlow | None:
        self._pack_ended()
        entry = self._entries.get(self._seq_of(flow_id))
        return None if entry is None else (await self._read([entry]))[0]

    async def find_all(self, flow_ids: Sequence[str]) -> list[SealedFlow]:
        """Those that are there, the oldest first."""
        self._pack_ended()
        by_id = {self.id_of(seq): seq for seq in self._entries}
        numbers = sorted({by_id[flow_id] for flow_id in flow_ids if flow_id in by_id})
        return await self._read([self._entries[seq] for seq in numbers])

    async def previous(self, flow: SealedFlow) -> SealedFlow | None:
        """The flow before this one in its conversation, among the last few hundred."""
        older = [entry for entry in self.entries() if entry.seq < flow.summary.seq][:_MAX_LOOKED_BACK]
        await self._read([entry for entry in older if isinstance(entry, PackedFlow) and not entry.is_sealed])
        seq = self._conversations.previous(flow.summary, self._entries)
        return None if seq is None else (await self._read([self._entries[seq]]))[0]

    def delete(self, flow_id: str = "") -> bool:
        """One flow, or all. An open one is recorded no further."""
        self._pack_ended()
        numbers = [self._seq_of(flow_id)] if flow_id else list(self._entries)
        found = [entry for number in numbers if (entry := self._entries.pop(number, None)) is not None]
        for entry in found:
            self._release(entry)
        if not flow_id:
            self._conversations.clear()
        if self._files is not None:
            self._files.delete(flow_id)
        if found:
            self._notify(None)
        return bool(found)

    def store_in(self, files: FlowFiles) -> None:
        """From now on flows are written to these files. The newest of those that are there are read."""
        self._files = files
        for flow in files.load(self._max_flows, self._budget.limit // 2):
            self._add(flow, flow.summary.started)

    def open_flows(self, flows: Sequence[Flow]) -> int:
        """Lists flows of a cassette beside the recorded ones, until the process ends. They count as new ones for the limit of age.
        Returns how many there were: those that are listed already are left out."""
        self._pack_ended()
        known = {self.id_of(seq) for seq in self._entries}
        fresh = {flow.summary.id: flow for flow in flows[-self._max_flows :] if flow.summary.id not in known}
        for flow in fresh.values():
            self._add(flow, self._clock())
        if len(self._entries) > self._max_flows:
            self._evict(len(self._entries) - self._max_flows)
        if self._budget.used > self._budget.limit:
            self._reclaim(0)
        self._notify(None)
        return len(fresh)

    def _add(self, flow: Flow, started: float) -> None:
        self._seq += 1
        entry = replace(pack_sealed(sealed_from(flow, self._seq)), started=started)
        self._entries[self._seq] = entry
        self._budget.used += entry.memory
        self._stored_ids[self._seq] = flow.summary.id
        self._conversations.add(replace(flow.summary, seq=self._seq))

    def stop(self) -> None:
        self._pack_ended()
        for pending in (self._timer, self._idle_timer, self._sealing):
            if pending is not None:
                pending.cancel()
        self._timer = self._idle_timer = self._sealing = None
        if self._files is not None:
            self._files.close()

    def _end(self, draft: FlowDraft) -> None:
        if self._entries.get(draft.seq) is not draft:
            return
        if self.listeners:
            self._notify(self.summarize(draft))
        if self.sink is not None:
            self.sink(self._sealed(draft))
        self._ended.append(draft)
        if self._timer is None:
            self._timer = self._schedule(TICK, self._tick)
        elif len(self._ended) >= _MAX_ENDED:
            self._pack_ended()

    def _tick(self) -> None:
        self._timer = None
        self._pack_ended()
        if self._idle_timer is None:
            self._idle_timer = self._schedule(IDLE, partial(self._on_idle, self._seq))

    def _on_idle(self, seq: int) -> None:
        """seq: of the newest flow when the timer was set."""
        self._idle_timer = None
        if self._seq != seq:
            self._idle_timer = self._schedule(IDLE, partial(self._on_idle, self._seq))
        elif self._sealing is None or self._sealing.done():
            self._sealing = asyncio.get_running_loop().create_task(self._seal_all())

    async def _seal_all(self) -> None:
        unsealed = [entry for entry in self.entries() if isinstance(entry, PackedFlow) and not entry.is_sealed]
        for start in range(0, len(unsealed), _SEALED_TOGETHER):
            await self._read(unsealed[start : start + _SEALED_TOGETHER])

    def _pack_ended(self) -> None:
        ended, self._ended = self._ended, []
        for draft in ended:
            if self._entries.get(draft.seq) is draft:
                packed = pack_draft(draft)
                self._replace(draft, packed)
                draft.drop()
                if self._files is not None:
                    self._files.put(partial(self._sealed, packed), packed.memory)
        if len(self._entries) > self._max_flows:
            self._evict(len(self._entries) - self._max_flows)

    def _sealed(self, entry: Entry) -> SealedFlow:
        if isinstance(entry, PackedFlow) and entry.is_sealed:
            return unpack_sealed(entry)
        draft = entry if isinstance(entry, FlowDraft) else unpack_draft(entry)
        return seal(draft, self.id_of(entry.seq), self._redaction)

    async def _read(self, entries: Sequence[Entry]) -> list[SealedFlow]:
        """In the same order."""
        flows, packed = await offload(self._read_all, entries)
        self._pack_ended()
        for before, sealed in packed:
            if self._entries.get(before.seq) is before:
                self._replace(before, sealed)
        for place, entry in enumerate(entries):
            now = self._entries.get(entry.seq)
            if isinstance(entry, FlowDraft) and isinstance(now, PackedFlow):  # it ended meanwhile
                flows[place] = self._sealed(now)
        for flow in flows:
            self._conversations.add(flow.summary)
        for flow in flows:
            if (seq := self._conversations.previous(flow.summary, self._entries)) is not None:
                flow.summary = replace(flow.summary, previous=self.id_of(seq))
        return flows

    def _read_all(self, entries: Sequence[Entry]) -> tuple[list[SealedFlow], list[tuple[PackedFlow, PackedFlow]]]:
        """In a thread. The second list has those that were sealed for the first time."""
        flows = [self._sealed(entry) for entry in entries]
        pairs = zip(entries, flows, strict=True)
        return flows, [
            (entry, pack_sealed(flow)) for entry, flow in pairs if isinstance(entry, PackedFlow) and not entry.is_sealed
        ]

    def _replace(self, entry: Entry, packed: PackedFlow) -> None:
        self._budget.used += packed.memory - memory_of(entry)
        self._entries[packed.seq] = packed

    def _notify(self, flow: FlowSummary | None) -> None:
        for listener in list(self.listeners):
            listener(flow)

    def _release(self, entry: Entry) -> None:
        self._budget.used -= memory_of(entry)
        if isinstance(entry, FlowDraft):
            entry.drop()

    def _reclaim(self, size: int) -> None:
        """Evict until this memory and a tenth of all are free."""
        self._pack_ended()
        self._evict(surplus=self._budget.used + size - self._budget.limit * 9 // 10)

    def _evict(self, count: int = 0, surplus: int = 0) -> None:
        """The oldest that have ended: so many, or with so many bytes."""
        doomed: list[int] = []
        for number, entry in self._entries.items():
            if len(doomed) >= count if count else surplus <= 0:
                break
            if isinstance(entry, PackedFlow):
                doomed.append(number)
                surplus -= entry.memory
        for number in doomed:
            self._release(self._entries.pop(number))

    def _expire(self) -> None:
        oldest = self._clock() - self._config.max_age_days * _DAY
        doomed: list[int] = []
        for number, entry in self._entries.items():
            if entry.started >= oldest:
                break
            doomed += [number] if isinstance(entry, PackedFlow) else []
        for number in doomed:
            self._release(self._entries.pop(number))

    def _seq_of(self, flow_id: str) -> int:
        """0 for the id of no flow. A flow of this process may have been deleted and opened again, with another number."""
        number = flow_id.removeprefix(self._prefix)
        try:
            seq = int(number, 16) if len(number) == 8 else 0
        except ValueError:
            seq = 0
        if seq in self._entries and flow_id == self.id_of(seq):
            return seq
        return next((seq for seq, stored in self._stored_ids.items() if stored == flow_id and seq in self._entries), 0)


def _batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Some flows at a time: all of them, unpacked, would take the memory that they are limited to once again."""
    start = size = 0
    for place, entry in enumerate(entries):
        if size > _BATCH_BYTES:
            yield entries[start:place]
            start, size = place, 0
        size += memory_of(entry)
    yield entries[start:]


def _matching(flows: Sequence[SealedFlow], query: FlowQuery) -> list[SealedFlow]:
    return [flow for flow in flows if matches_text(flow, query)]
