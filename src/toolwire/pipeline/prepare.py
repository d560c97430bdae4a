"""The request stages, in order. Each one is a function of the job: it looks at the request, and may change it.

The first stages may wait for a store, a model or a server. The others only compute, so that a large request can pass them in a thread. A request without
tools and without a past skips the stages that concern only those. A new stage is one method here and one entry in a tuple.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Hashable
from functools import cache
from operator import is_
from threading import Lock
from typing import TypeAlias

from msgspec.structs import replace

from ..calls.ledger.repair import Recipient, losses_of, repair_history
from ..calls.ledger.repetition import with_loop_notices
from ..calls.schemas import Schemas
from ..calls.schemas.diet import shorten
from ..calls.search.index import ToolIndexes
from ..calls.search.selection import token_total
from ..calls.tools.adapter import ToolAdapter, adapt_ids
from ..calls.tools.encoded_arguments import ArgumentDecoder
from ..calls.tools.kinds import to_functions
from ..errors import BadRequest
from ..ids import new_id
from ..memory.answers import AnswerMemory
from ..memory.signatures import SignatureMemory, TurnSignatures, reasoning_source
from ..memory.tool_embeddings import installed_embeddings
from ..offload import LARGE, offload
from ..types import Loss, Media, RecurringTools, Request, Text, Tool
from .compaction.stage import Compactor
from .gateway_tools import GatewayTools, ToolRunningBackend
from .guard import scanned
from .job import Job
from .large_results import LargeResults, wants_handles
from .mounted.servers import MountedServers
from .search import Searching
from .tool_search import FoundTools, ToolSearch, search_plan, with_native_search

Stages: TypeAlias = tuple[Callable[[Job], None], ...]
Lookups: TypeAlias = tuple[Callable[[Job], Awaitable[None]], ...]

# Stages that do nothing for a request without tools and without a past.
_FOR_TOOLS = frozenset(
    {
        "replace_search",
        "check_tools",
        "shorten_tools",
        "plan_tool_search",
        "translate_tools",
        "note_repetition",
        "adapt_ids",
        "adapt_schemas",
        "offer_gateway_tools",
    }
)
_NO_KINDS: frozenset[str] = frozenset()
_GROUPED = frozenset({"namespace", "declared"})
_LARGE_TOOLS = 256 * 1024  # bytes; a byte of a new schema costs a hundred times as much as a byte of a message


class Preparation:
    """Holds what the stages remember between requests: known tool lists and schemas. Safe to use from any thread."""

    def __init__(
        self,
        answers: AnswerMemory | None = None,
        signatures: SignatureMemory | None = None,
        search: Searching | None = None,
        compactor: Compactor | None = None,
        mounts: MountedServers | None = None,
    ) -> None:
        lock = Lock()
        self.schemas = Schemas(lock=lock)
        self._adapter = ToolAdapter(lock=lock)
        self._indexes = ToolIndexes(lock=lock)
        self._embeddings = installed_embeddings()
        self._found = FoundTools(lock=lock)
        self._answers = answers
        self._signatures = signatures
        self._compactor = compactor or Compactor(cache(lambda: (os.urandom(32),)))
        self.configure(search, mounts)
        self.changes: Stages = (
            self.replace_search,
            self.check_tools,
            self.repair_history,
            self.shorten_tools,
            self.plan_tool_search,
            self.translate_tools,
            self.note_repetition,
            self.adapt_ids,
            self.adapt_schemas,
            self.offer_gateway_tools,
        )
        self._plain_changes: Stages = tuple(stage for stage in self.changes if stage.__name__ not in _FOR_TOOLS)

    def configure(self, search: Searching | None = None, mounts: MountedServers | None = None) -> None:
        self._search = search
        self._mounts = mounts
        self.lookups: Lookups = (self.complete_history, self.restore_signatures, self.compact)
        if mounts is not None:
            self.lookups += (self.mount_tools,)

    async def run(self, job: Job) -> None:
        """Raises BadRequest for a request that no back end can accept."""
        request, stages = job.request, self._plain_changes
        job.has_past = has_past(request)
        is_simple = request.state is None and request.compaction is None and self._mounts is None
        if job.has_past or request.tools or not is_simple or "tools" in request.source:
            stages = self.changes
            for lookup in self.lookups:
                await lookup(job)
            job.has_past = job.has_past or job.request is not request
        if job.request.size > _LARGE_TOOLS and self.is_large(job.request):
            await offload(_apply, stages, job)
            return
        for stage in stages:
            stage(job)

    def is_large(self, request: Request) -> bool:
        """Whether the changes may take long: a large history, or unknown tools with large schemas."""
        tools = request.tools
        is_known = not tools or (isinstance(tools, RecurringTools) and tools.is_valid)
        return request.size > _LARGE_TOOLS and (request.size > LARGE or not is_known)

    async def complete_history(self, job: Job) -> None:
        """Add the stored history that the request refers to."""
        request, state = job.request, job.request.state
        if state is None:
            return
        stored = None
        if (history := job.history or self._answers) is not None:
            # A back end that stores the conversation would not have the rounds of mounted tools.
            is_here = self._mounts is not None and self._mounts.serves(job)
            stored = job.stored = await history.begin(request, job.backend, job.owner, new_id, is_here=is_here)
            job.is_queued_upstream = state.is_background and job.is_stored_upstream
        if not job.is_own and state.field and (state.is_upstreams or stored is None):
            raise BadRequest(f"{state.why}.", where=state.field, code="state_unsupported", details=state.refusal)
        if stored is not None and stored.request is not request:
            completed = replace(stored.request, size=request.size + stored.size)
            job.change(completed, "the gateway has stored its history")

    async def restore_signatures(self, job: Job) -> None:
        """Give past turns the reasoning back that the client has dropped. It is found by the history as the client sent it."""
        if self._signatures is None or job.guard == "off":
            return
        if (maker := reasoning_source(job.backend, job.model)) is None:
            return
        recall = job.recall = TurnSignatures(self._signatures, job.request, maker, job.owner)
        restored = await recall.restored()
        job.losses += restored.losses
        if restored.request is not job.request:
            job.change(restored.request, "past turns got their reasoning back")
            job.record.history["reasoning_restored"] += restored.turns

    async def compact(self, job: Job) -> None:
        """Open summaries of earlier compactions, and compact the conversation where the request wants it and the back end cannot."""
        if job.request.compaction is not None:
            await self._compactor.apply(job)

    async def mount_tools(self, job: Job) -> None:
        """Add the tools of MCP servers that the gateway runs."""
        if self._mounts is not None:
            await self._mounts.offer_to(job)

    def replace_search(self, job: Job) -> None:
        """Offer the gateway's web search as a function where the back end has none."""
        if self._search is None:
            return
        backend, request = self._search.around(job.backend, job.request)
        if request is not job.request:
            job.change(request, "the gateway runs its web search")
        if backend is not job.backend:
            job.backend, job.recall = backend, None
            job.is_own = backend.dialect == job.received.origin

    def check_tools(self, job: Job) -> None:
        """Raises BadRequest for a tool whose schema is invalid. Tools that this back end got unchanged before fit it again."""
        if job.guard != "off":
            tools = job.request.tools
            self.schemas.check_all(tools)
            job.has_fitting_tools = isinstance(tools, RecurringTools) and _rules_of(job) in tools.facts

    def repair_history(self, job: Job) -> None:
        """Pair calls and results, and put messages in the order that providers accept."""
        is_own, profile = job.is_own, job.backend.profile
        if job.guard == "off" and is_own:
            return
        reader = Recipient(
            is_strict=is_own and profile.keeps_state,
            may_sign=is_own and profile.signs_thoughts,
            is_formal=profile.is_formal,
            fails_in_words=profile.has_text_failures,
        )
        repaired = repair_history(job.request, reader)
        if repaired.request is not job.request:
            job.change(repaired.request, "its history had to be repaired")
            job.record.history.update(repair.kind for repair in repaired.repairs)
            job.losses += losses_of(repaired.repairs)
            if job.record.flow is not None:
                job.record.flow.repairs = tuple(repaired.repairs)

    def shorten_tools(self, job: Job) -> None:
        """Shorten the definitions of tools, if the owner wants it. What they accept stays the same."""
        tools = job.request.tools
        if not job.policy.tools_diet or not tools:
            return
        shorter = _shortened(tools)
        if shorter is not tools:
            before, after = token_total(tools), token_total(shorter)
            why = f"definitions were shortened from {before:,} to {after:,} tokens (estimated)"
            job.losses.append(Loss("tools.diet", "tools", why))
            job.has_fitting_tools = False
            job.change(replace(job.request, tools=shorter, has_new_tools=True), "its tool definitions were shortened")

    def plan_tool_search(self, job: Job) -> None:
        """Find out whether the request has more tools than the back end takes or the owner wants."""
        most = job.backend.profile.max_tools if job.policy.max_tools is None else job.policy.max_tools
        if job.policy.tools_budget is None and (not most or len(job.request.tools) <= most):
            return
        job.search = search_plan(job, most)
        if job.search is not None:
            job.has_fitting_tools = False

    def translate_tools(self, job: Job) -> None:
        """Offer tools of every kind as functions, under names that the back end accepts."""
        job.offered = job.request.tools
        if job.has_fitting_tools and not job.has_past:
            return
        is_untouched = job.guard == "off" and job.is_own
        kinds = _kinds(job)
        longest = 0 if is_untouched else job.backend.profile.name_length
        translated = to_functions(job.request, kinds, longest=longest, has_fitting_tools=job.has_fitting_tools)
        job.losses += translated.losses
        job.call_ids = translated.ids
        if translated.names is not None:
            job.names = translated.names
            job.change(translated.request, "the back end does not know all kinds and names of its tools")
        job.offered = job.request.tools

    def note_repetition(self, job: Job) -> None:
        """Tell a model that repeats the same call that it does."""
        if job.guard != "retry" or not job.has_past:
            return
        messages = with_loop_notices(job.request.messages)
        if messages is not job.request.messages:
            job.change(replace(job.request, messages=messages), "the model repeats itself")
            job.losses.append(Loss("loop", "messages", "the model repeats itself, and a note tells it so"))

    def adapt_ids(self, job: Job) -> None:
        """Write call ids as the back end accepts them."""
        if not job.has_past or (job.guard == "off" and job.is_own):
            return
        messages = adapt_ids(job.request.messages, job.backend.profile.ids, job.call_ids)
        if messages is not job.request.messages:
            job.change(replace(job.request, messages=messages), "the back end accepts other call ids")

    def adapt_schemas(self, job: Job) -> None:
        """Write tool schemas as the back end accepts them."""
        if (job.has_fitting_tools and job.names is None) or (job.guard == "off" and job.is_own):
            return
        tools = job.request.tools
        adapted = self._adapter.adapt(job.request, job.backend.profile, is_own=job.is_own)
        if adapted.request is job.request and isinstance(tools, RecurringTools):
            tools.remember(_rules_of(job), True)
        if adapted.request is not job.request:
            job.change(adapted.request, "the back end accepts other schemas")
            job.losses += adapted.losses
            job.encodings = adapted.encodings

    def offer_gateway_tools(self, job: Job) -> None:
        """Give the model some of its tools and a search for the others, large results by handle, and run the calls of mounted tools."""
        tools: list[GatewayTools] = []
        if job.search is not None and job.search.is_native:
            request, loss = with_native_search(job.request, job.search, self._indexes, job.backend.dialect)
            job.losses.append(loss)
            job.change(request, "the back end searches its tools")
        elif job.search is not None:
            tools.append(ToolSearch(job.search, self._indexes, self._found, job.owner, self._embeddings))
        if job.policy.max_result_tokens and wants_handles(job):
            tools.append(LargeResults(job.policy.max_result_tokens))
        if job.mounted is not None and self._mounts is not None:
            decoder = self.decoder(job) if job.encodings else None
            tools.append(self._mounts.tools_of(job, job.mounted, decoder))
        if tools:
            job.backend = ToolRunningBackend(scanned(job, self.schemas), tuple(tools), job.record.tally)
            job.change(job.request, "the gateway runs tools of its own")

    def decoder(self, job: Job) -> ArgumentDecoder:
        """For the arguments of the model's calls, where the back end got encoded schemas."""
        return ArgumentDecoder(job.encodings, job.offered, self.schemas)


def has_past(request: Request) -> bool:
    """Whether there is more in its messages than instructions and input of the user: calls, results, answers, declared tools."""
    for message in request.messages:
        if message.role in ("assistant", "tool") or message.declares_tools or not message.parts:
            return True
        for part in message.parts:
            if type(part) is not Text and type(part) is not Media:
                return True
    return False


def _apply(stages: Stages, job: Job) -> None:
    for stage in stages:
        stage(job)


def _shortened(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """The same object where nothing is left out."""
    is_recurring = isinstance(tools, RecurringTools)
    known: tuple[Tool, ...] | None = tools.facts.get("diet") if isinstance(tools, RecurringTools) else None
    if known is None:
        known = tuple(map(shorten, tools))
        known = tools if all(map(is_, known, tools)) else RecurringTools(known) if is_recurring else known
        if isinstance(tools, RecurringTools):
            tools.remember("diet", known)
    return known


def _kinds(job: Job) -> frozenset[str]:
    """The kinds of tools beside functions that the back end gets. Tools that can be added one by one need a list without groups."""
    kinds = job.backend.tool_kinds if job.is_own else _NO_KINDS
    return kinds if job.search is None and not job.policy.tools_diet else kinds - _GROUPED


def _rules_of(job: Job) -> Hashable:
    """All that decides how tools are written for the back end."""
    profile = job.backend.profile
    return job.is_own, job.backend.tool_kinds, profile.name_length, profile.schemas, profile.strict_schemas
