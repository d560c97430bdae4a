"""One request to one back end: find the route, prepare the request, open the back end, read the answer."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from .backends.base import Backend, EventReply, TokenCount, ToolsUnsupported
from .calls.turn import BYTES_PER_TOKEN, CallObserver, Turn
from .catalog.models import Catalog
from .catalog.router import Route, Router
from .config.policy import Policy
from .dialects import FRONTS
from .dialects.base import AnswerContext, ResponseEncoder
from .dialects.shared.compaction import WIRE_MARK as SUMMARY_MARK
from .dialects.shared.requests import foreign_members, with_effort
from .errors import BadRequest, GatewayError, UpstreamError
from .ids import new_id
from .memory.answers import AnswerMemory, StoredTurn
from .memory.connection import History
from .memory.signatures import SignatureMemory
from .offload import LARGE, offload
from .pipeline.answer import Answer, EventAnswer, ReplyReader, pipe_for
from .pipeline.compaction.stage import Compactor
from .pipeline.fallback import hop_of, opened, reason_of
from .pipeline.grammar import GrammarMemory
from .pipeline.groups import NO_GROUPS, ModelGroups
from .pipeline.guard import guarded, simulated, text_splitter
from .pipeline.job import Job
from .pipeline.mounted.servers import MountedServers
from .pipeline.prepare import Preparation
from .pipeline.search import Searching
from .pipeline.verbatim import why_translated, with_model
from .telemetry import Record
from .types import Request, Usage
from .wire.exact_json import BadJson, encode

_DEFAULT = Policy()
_TOKENS = re.compile(rb'"prompt_tokens"\s*:\s*(\d{1,12})')  # of embeddings, behind the numbers
_TAIL = 500  # bytes

_Answered = TypeVar("_Answered", Answer, EventAnswer)


class RuntimeSettings(Struct, frozen=True, kw_only=True):
    """What the owner configured. policies: by name of the back end."""

    backends: Mapping[str, Backend]
    router: Router
    policies: Mapping[str, Policy] = {}
    search: Searching | None = None
    groups: ModelGroups = NO_GROUPS
    mounts: MountedServers | None = None


class GroupChoice(Struct, frozen=True):
    """One model of a group, which must begin to answer within so many seconds."""

    model: str
    stall_seconds: float


class Runtime:
    """The back ends, what the owner configured for each, and the stages that every request passes."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        router: Router,
        policies: Mapping[str, Policy],
        answers: AnswerMemory | None = None,
        signatures: SignatureMemory | None = None,
        compactor: Compactor | None = None,
    ) -> None:
        self.catalog = Catalog(backends, router, policies)
        self._answers = answers
        self._preparation = Preparation(answers, signatures, compactor=compactor)
        self._grammars = GrammarMemory()
        self.configure(RuntimeSettings(backends=backends, router=router, policies=policies))

    def configure(self, settings: RuntimeSettings) -> None:
        """For requests that begin from now on."""
        self.catalog.configure(settings.backends, settings.router, settings.policies)
        self.backends = self.catalog.backends
        self._policies = dict(settings.policies)
        self._preparation.configure(settings.search, settings.mounts)
        self._groups = settings.groups
        self._mounts = settings.mounts

    async def step(
        self,
        request: Request,
        record: Record,
        owner: str = "",
        history: History | None = None,
        choice: GroupChoice | None = None,
    ) -> Answer:
        """The answer in the client's dialect. Raises GatewayError until the back end has accepted the request.

        history: where earlier answers are found and this one is stored, if not in the gateway's store. choice: the model, instead of
        the group that the request names."""
        if choice is None and request.model in self._groups.groups:
            step = partial(self.step, request, record, owner, history)
            return await self._of_group(request, record, owner, step, history)
        job = await self._prepared(request, record, owner, history, choice)
        backend, watcher = self._guarded(job)
        try:
            reader = await self._open(job, backend, choice)
        except ToolsUnsupported as error:
            self._simulate(job, error)
            return await self.step(request, record, owner, history, choice)
        turn = self._turn(job, watcher, is_raw=watcher is not None)
        return Answer(job, reader, turn, pipe_for(job, reader, turn, partial(_encoder_for, job)))

    async def _of_group(
        self,
        request: Request,
        record: Record,
        owner: str,
        ask: Callable[[GroupChoice], Awaitable[_Answered]],
        history: History | None = None,
    ) -> _Answered:
        """The answer of the first model that gives one. ask: sends the request to a model."""
        groups, group = self._groups, self._groups.groups[request.model]
        whole = await self._with_history(request, owner, history)
        failure: GatewayError = UpstreamError("the group has no models.")
        for model in groups.candidates(group, whole, owner):
            try:
                with groups.attempt(group, model):
                    answer = await ask(GroupChoice(model, group.stall_seconds))
            except GatewayError as error:
                if reason_of(error) not in group.fallback_on:
                    raise
                record.hops.append(hop_of(model, error))
                failure = error
            else:
                groups.succeeded(model, whole, owner)
                return answer
        raise failure

    async def _with_history(self, request: Request, owner: str, history: History | None) -> Request:
        """So that a conversation whose history is stored is recognised by its first message."""
        if request.state is None or not request.state.is_leaning:
            return request
        backend = self._backend(await self.catalog.route(request.model))
        stored = await self._stored(request, backend, owner, history)
        return request if stored is None else replace(stored.request, model=request.model)

    async def answer(
        self,
        request: Request,
        record: Record,
        owner: str = "",
        choice: GroupChoice | None = None,
        *,
        is_guarded: bool = False,
    ) -> EventAnswer:
        """The answer as events, for a caller that runs the tools itself. Calls are only checked if is_guarded. choice: as for step()."""
        if choice is None and request.model in self._groups.groups:
            ask = partial(self.answer, request, record, owner, is_guarded=is_guarded)
            return await self._of_group(request, record, owner, ask)
        job = await self._prepared(request, record, owner, choice=choice)
        backend, watcher = self._guarded(job) if is_guarded else (job.backend, None)
        try:
            reader = await self._open(job, backend, choice)
        except ToolsUnsupported as error:
            self._simulate(job, error)
            return await self.answer(request, record, owner, choice, is_guarded=is_guarded)
        return EventAnswer(job, reader, self._turn(job, watcher, is_raw=watcher is not None or not is_guarded))

    async def count(self, request: Request, owner: str = "") -> TokenCount:
        """The number of input tokens: the back end's count where it has one, else an estimate by length."""
        route = await self.catalog.route(request.model)
        backend = self._backend(route)
        stored = await self._stored(request, backend, owner)
        if stored is not None and stored.is_here:
            request = replace(stored.request, wire=encode(stored.request.source))
        outgoing = replace(request, model=route.model, wire=with_model(request.wire, request.model, route.model))
        is_sealed = outgoing.compaction is not None and SUMMARY_MARK in outgoing.wire  # which the back end cannot read
        counted = None if is_sealed else await backend.count(outgoing)
        return counted or TokenCount(max(1, len(request.wire) // BYTES_PER_TOKEN))

    async def embed(self, request: Request, record: Record) -> bytes:
        """Embeddings as OpenAI returns them. Raises BadRequest where the back end of this model has none."""
        route = await self.catalog.route(request.model)
        backend = self.backends[route.backend]
        record.backend, record.sent_model = backend.name, route.model[:100]
        foreign_members(request, "chat", record.losses)
        names = request.model, route.model
        wire = request.wire
        wire = await offload(with_model, wire, *names) if len(wire) > LARGE else with_model(wire, *names)
        body = await backend.embed(replace(request, model=route.model, wire=wire))
        if body is None:
            raise BadRequest(
                f'the back end "{backend.name}" has no embeddings.',
                where="model",
                code="embeddings_unsupported",
                hint="Use a model of a back end of the kind openai-chat or openai-responses.",
            )
        if found := _TOKENS.search(body[-_TAIL:]):
            record.usage = Usage(input=int(found[1]))
        return body

    def models_of(self, name: str) -> tuple[str, ...]:
        """The models that may answer a request for this name: several for a group."""
        group = self._groups.groups.get(name)
        return (name,) if group is None else group.models

    async def stores(self, request: Request) -> bool:
        """Whether the gateway, not the back end, stores the answer."""
        backend = self._backend(await self.catalog.route(request.model))
        return self._answers is not None and not self._answers.is_upstreams(backend, request.origin)

    async def stored(self, request: Request, owner: str) -> StoredTurn | None:
        """The stored history for this request, without sending it."""
        return await self._stored(request, self._backend(await self.catalog.route(request.model)), owner)

    async def close(self) -> None:
        if self._mounts is not None:
            await self._mounts.close()
        for backend in self.backends.values():
            await backend.close()

    async def _prepared(
        self,
        request: Request,
        record: Record,
        owner: str,
        history: History | None = None,
        choice: GroupChoice | None = None,
    ) -> Job:
        if record.flow is not None:
            record.flow.request = request
        route = await self.catalog.route(request.model if choice is None else choice.model)
        if route.effort:
            request = with_effort(request, route.effort)
        request = replace(request, owner=owner, size=len(request.wire))
        backend, policy = self._backend(route), self._policies.get(route.backend, _DEFAULT)
        record.backend, record.sent_model, record.route = backend.name, route.model[:100], route.why
        job = Job(
            received=request,
            request=request,
            backend=backend,
            model=route.model,
            policy=policy,
            guard=policy.guard_for(route.model) if policy.guards else policy.guard,
            record=record,
            is_own=backend.dialect == request.origin,
            is_renamed=route.model != request.model,
            owner=owner,
            history=history,
        )
        await self._preparation.run(job)
        return job

    def _backend(self, route: Route) -> Backend:
        policy = self._policies.get(route.backend, _DEFAULT)
        backend = self.backends[route.backend]
        if policy.tools != "simulate":
            return backend
        grammar = self._grammars.support(backend, route.model, policy.grammar)
        return simulated(backend, policy, route.model, self._preparation.schemas, grammar)

    def _simulate(self, job: Job, error: ToolsUnsupported) -> None:
        """From now on the back end gets tools as text. Raises the error where the owner wants native tools."""
        if job.policy.tools != "auto":
            raise error
        terms = replace(job.policy.terms, is_strict=True)
        self._policies[job.backend.name] = replace(job.policy, tools="simulate", terms=terms)

    def _guarded(self, job: Job) -> tuple[Backend, CallObserver | None]:
        decoder = self._preparation.decoder(job) if job.encodings else None
        return guarded(job, self._preparation.schemas, decoder, self._grammars)

    def _turn(self, job: Job, watcher: CallObserver | None, *, is_raw: bool) -> Turn:
        """is_raw: the events come from the back end itself, so that its text and its arguments must still be decoded."""
        splitter = text_splitter(job, self._preparation.schemas) if is_raw and job.offered else None
        decoder = self._preparation.decoder(job) if is_raw and job.encodings else None
        return Turn(job.received, new_id, job.names, watcher, splitter, decoder)

    async def _open(self, job: Job, backend: Backend, choice: GroupChoice | None) -> ReplyReader:
        """backend: the job's, or a wrapper of it. choice: of a group whose other models could answer, so that this one must begin to."""
        request, record = job.request, job.record
        record.translated = why_translated(job, backend)
        record.is_verbatim = not record.translated
        try:
            wire = request.wire
            if record.is_verbatim and job.model != request.model:
                names = request.model, job.model
                wire = await offload(with_model, wire, *names) if len(wire) > LARGE else with_model(wire, *names)
            if job.model != request.model:
                request = replace(request, model=job.model, wire=wire)
            opening = backend.open(request, is_verbatim=record.is_verbatim)
            if choice is not None:
                reply = await opened(opening, backend.dialect, job.received, choice.stall_seconds)
            else:
                reply = await opening
        except BadJson as fault:
            raise BadRequest(f"the request cannot be encoded: {fault}.", code="invalid_json") from None
        if isinstance(reply, EventReply):
            record.how, record.local = reply.how, reply.local
        return ReplyReader(reply, backend.dialect, job.received)

    async def _stored(
        self, request: Request, backend: Backend, owner: str, history: History | None = None
    ) -> StoredTurn | None:
        job = Job(
            received=request,
            request=request,
            backend=backend,
            model=request.model,
            policy=_DEFAULT,
            guard="off",
            record=Record(),
            is_own=backend.dialect == request.origin,
            is_renamed=False,
            owner=owner,
            history=history,
        )
        await self._preparation.complete_history(job)
        return job.stored


def _encoder_for(job: Job) -> ResponseEncoder:
    """In the dialect of the client. An answer that is sent verbatim needs none."""
    context = AnswerContext(
        request=job.received,
        mint=new_id,
        now=int(time.time()),
        is_renamed=job.is_renamed,
        is_kept=job.stored is not None and job.stored.is_here,
        answer_id="" if job.stored is None else job.stored.answer_id,
        clock=time.monotonic,
        started=job.record.started,
    )
    return FRONTS[job.received.origin].encoder(context)
