"""The only loop: one model turn, from a client's request to the bytes of its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from .backends.base import Backend, EventReply, Model, WireReply, how_of, is_streamed, local_of
from .calls.turn import BYTES_PER_TOKEN, Count, Turn, Watch, Watcher, has_tools
from .calls.validation import Checking, Offer
from .calls.written.request import Wanted, reminder, wanted_of
from .calls.written.splitter import Manner, Spoken
from .catalog.router import Route, Router
from .config.file import Guard
from .dialects import DIALECTS
from .dialects.base import Context, ModelLine, ResponseDecoder
from .dialects.shared.model_field import Renamer
from .dialects.shared.requests import with_effort
from .errors import BadRequest, GatewayError, quote
from .ids import new_id
from .memory.answers import Keeping, Kept
from .memory.signatures import Recall, Recalled, Vault, maker_of
from .offload import LARGE, offload
from .pipeline.answer import Answering
from .pipeline.correction import CorrectingBackend, Terms
from .pipeline.policy import Handling
from .pipeline.prepare import Prepared, Preparing
from .pipeline.reader import Reading
from .pipeline.search import Searching
from .pipeline.simulation import ListeningBackend, SimulatingBackend
from .pipeline.step import Step
from .pipeline.verbatim import BodyTap, Plan, Translator, Untouched, plan, tap_of, with_model
from .telemetry import Record
from .types import Loss, Request
from .wire.exact_json import BadJson, encode

_LIST_SECONDS = 5.0
_LIST_AGE = 60.0
_PLAINLY = Handling()


class Runtime:
    """Back ends by name, the router, and how each back end is handled."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        router: Router,
        handlings: Mapping[str, Handling],
        keeping: Keeping | None = None,
        searching: Searching | None = None,
        vault: Vault | None = None,
    ) -> None:
        self.backends = dict(backends)
        self.router = router
        self.keeping = keeping
        self._searching = searching
        self._vault = vault
        self._handlings = dict(handlings)
        self._preparing = Preparing()
        self._listed_at = -_LIST_AGE
        self._listing: list[tuple[str, list[Model]]] = []
        self._told: dict[str, list[Model]] = {}  # by back ends that say themselves when their list changes
        self._asking = asyncio.Lock()
        self._is_sure = False
        self._has_asked_default = False

    async def step(self, request: Request, record: Record, owner: str = "") -> Step:
        """Send it to the back end its model names. Raises GatewayError while nothing of an answer has come."""
        asked = await self._asked(request, record, owner)
        backend, watch = self._guarded(asked, record)
        chosen = _chosen(asked, backend)
        record.is_verbatim = chosen.is_verbatim
        reply = await _opened(backend, asked, chosen)
        record.how, record.local = how_of(reply), local_of(reply)
        turn = self._turn(asked, watch, is_first=watch is not None)
        step = self._piped(asked, chosen, turn, reply, record)
        step.lose(asked.losses)
        return step

    async def answer(self, request: Request, record: Record, owner: str = "", *, is_guarded: bool = False) -> Answering:
        """The same for whoever runs the tools here: events in place of bytes, and calls as the model made them, judged by nobody
        unless is_guarded."""
        asked = await self._asked(request, record, owner)
        backend, watch = self._guarded(asked, record) if is_guarded else (asked.backend, None)
        reply = await _opened(backend, asked, _chosen(asked, backend))
        record.how, record.local = how_of(reply), local_of(reply)
        turn = self._turn(asked, watch, is_first=watch is not None or not is_guarded)
        answering = Answering(Reading(reply, backend.dialect, request), turn, record, asked.recall)
        answering.lose((*reply.losses, *asked.losses))
        return answering

    def _turn(self, asked: _Asked, watch: Watcher | None, *, is_first: bool) -> Turn:
        """is_first: the events come from the back end itself; a CorrectingBackend has found and decoded their calls already."""
        spoken = self._spoken(asked) if is_first else None
        decoder = self._preparing.decoder(asked.prepared) if is_first else None
        return Turn(asked.request, new_id, asked.prepared.names, watch, spoken, decoder)

    async def _asked(self, request: Request, record: Record, owner: str) -> _Asked:
        """Who answers it, and what that one is sent."""
        route = await self.route(request.model)
        request = replace(with_effort(request, route.effort), owner=owner, size=len(request.wire))
        backend = self._backend(route)
        record.backend, record.sent_model = backend.name, route.model[:100]
        handling = self._handlings.get(backend.name, _PLAINLY)
        level = handling.level(route.model)
        kept = await self._kept(request, backend, owner)
        sent = request if kept is None else replace(kept.request, size=request.size + kept.size)
        recall = self._recall(sent, backend, route, owner) if level != "off" else None
        recalled = Recalled(sent) if recall is None else await recall.restored()
        sent = recalled.request
        if self._searching is not None:
            backend, sent = self._searching.around(backend, sent)
        is_own = backend.dialect == request.origin
        if self._preparing.is_costly(sent):
            prepared = await offload(self._preparing.prepare, sent, backend, level, is_own=is_own)
        else:
            prepared = self._preparing.prepare(sent, backend, level, is_own=is_own)
        record.history.update(repair.kind for repair in prepared.repairs)
        if recalled.turns:
            record.history["reasoning_restored"] += recalled.turns
        return _Asked(
            request=request,
            route=route,
            backend=backend,
            prepared=prepared,
            handling=handling,
            level=level,
            kept=kept,
            recall=recall if backend.dialect else None,
            losses=(*recalled.losses, *prepared.losses),
        )

    def _backend(self, route: Route) -> Backend:
        """Who answers: the back end itself, or one that tells it of tools in words."""
        backend = self.backends[route.backend]
        handling = self._handlings.get(route.backend, _PLAINLY)
        if handling.tools != "simulate":
            return backend
        return SimulatingBackend(backend, self._preparing.schemas, _manner(handling, handling.level(route.model)))

    def _listening(self, asked: _Asked) -> ListeningBackend | None:
        """Whoever looks through the text of a back end that has tools, and may write its calls there all the same."""
        backend = asked.backend
        if asked.handling.tools != "auto" or asked.level == "off" or not backend.dialect:
            return None
        if not backend.profile.writes_calls or not asked.prepared.offered or not has_tools(asked.prepared.request):
            return None
        return ListeningBackend(backend, self._preparing.schemas, _manner(asked.handling, asked.level))

    def _spoken(self, asked: _Asked) -> Spoken | None:
        listening = self._listening(asked)
        return None if listening is None else listening.spoken(asked.prepared.request)

    def _recall(self, request: Request, backend: Backend, route: Route, owner: str) -> Recall | None:
        maker = maker_of(backend, route.model) if self._vault is not None else None
        return Recall(self._vault, request, maker, owner) if self._vault is not None and maker is not None else None

    def _guarded(self, asked: _Asked, record: Record) -> tuple[Backend, Watcher | None]:
        """The back end to ask, and who looks at its calls: somebody who only watches, or one who stands before it and holds them."""
        prepared, backend = asked.prepared, asked.backend
        if asked.level == "off":
            return backend, Count(record.tally)
        state = prepared.request.state
        is_all = state is None or not (state.is_leaning or state.is_upstreams)
        is_native = asked.handling.tools != "simulate"
        wanted = Wanted() if is_native and backend.profile.has_tool_choice else wanted_of(prepared.request)
        if wanted.names is None:
            offer = Offer(prepared.offered, prepared.names, is_all=is_all)
        else:  # the model knows of all tools, and may call some of them
            allowed = [tool for tool in prepared.offered if tool.name in wanted.names]
            barred = frozenset(tool.name for tool in prepared.offered) - wanted.names
            offer = Offer(allowed, barred=barred)
        checking = Checking(offer, self._preparing.schemas, record.tally, self._preparing.decoder(prepared))
        may_call = has_tools(prepared.request)
        is_watched = asked.level == "check" and not asked.is_strict
        if not may_call or asked.is_queued_there or is_watched:
            return backend, Watch(checking, has_tools=may_call)
        words = reminder(wanted, is_native=is_native) if wanted.must_call else asked.terms.reminder
        terms = replace(asked.terms, reminder=words)
        return CorrectingBackend(self._listening(asked) or backend, checking, terms), None

    async def count(self, request: Request, owner: str = "") -> bytes:
        """How many tokens a prompt has: the back end's count where it gives one, else an estimate by length."""
        route = await self.route(request.model)
        backend = self._backend(route)
        kept = await self._kept(request, backend, owner)
        if kept is not None and kept.is_here:
            request = replace(kept.request, wire=encode(kept.request.source))
        outgoing = replace(request, model=route.model, wire=with_model(request.wire, request.model, route.model))
        counted = await backend.count(outgoing)
        if counted is not None:
            return counted.body or encode({"input_tokens": counted.tokens})
        return encode({"input_tokens": max(1, len(request.wire) // BYTES_PER_TOKEN)})

    async def route(self, model: str) -> Route:
        """Raises BadRequest (404) for a name that leads nowhere, or only to a default that cannot answer now."""
        route = await self._routed(model)
        absence = self.backends[route.backend].absence if route.is_guess else None
        if absence is not None:
            raise BadRequest(
                f"no back end lists the model {quote(model)}, and the default {quote(route.backend)} cannot answer: {absence.message}",
                status=404,
                code="model_not_found",
                where="model",
                hint=absence.hint,
            )
        return route

    async def _routed(self, model: str) -> Route:
        """Ask the back ends for their lists only when the name alone does not decide."""
        try:
            route = self.router.resolve(model)
            if not route.is_guess or (self._is_sure and (self._has_asked_default or not route.needs_list)):
                return route
        except BadRequest:
            if time.monotonic() - self._listed_at < _LIST_AGE:
                raise
            await self.models()
        else:
            await self._ask_before_guessing(route)
        return self.router.resolve(model)

    async def _ask_before_guessing(self, route: Route) -> None:
        """Once: a back end that lists a name goes before the default. Where all others answer in this process, no
        request has to wait for a list over the network, unless its name says more than the model's."""
        self._has_asked_default = self._has_asked_default or route.needs_list
        others = [backend for backend in self.backends.values() if backend.name != route.backend]
        if route.needs_list or any(backend.dialect for backend in others):
            await self.models()
        else:
            await self._ask_all(others)
        self._is_sure = True

    async def models(self) -> list[ModelLine]:
        """Every model as backend/model, and every alias; a back end that does not answer is left out, not waited for."""
        async with self._asking:
            if time.monotonic() - self._listed_at >= _LIST_AGE or not self._listing:
                self._listing = await self._ask_all(self.backends.values())
                self._listed_at = time.monotonic()
        lines = {
            f"{name}/{model.id}": ModelLine(
                id=f"{name}/{model.id}", owner=model.owner or name, created=model.created, title=model.title
            )
            for name, models in self._listing
            for model in self._told.get(name, models)  # which may be newer than the list, and is never older
        }
        for alias in self.router.aliases:
            if (route := self.router.route_or_none(alias)) is not None:
                line = lines.get(f"{route.backend}/{route.model}", ModelLine(id=alias))
                lines[alias] = ModelLine(id=alias, owner=route.backend, created=line.created, title=line.title)
        return list(lines.values())

    async def default_model(self) -> str:
        """For a request that names none: the first model of the default back end; "" where there is none."""
        start = f"{self.router.default}/"
        lines = await self.models() if self.router.default else []
        return next((line.id for line in lines if line.id.startswith(start)), "")

    def note_models(self, name: str, models: list[Model]) -> None:
        """What a back end lists from now on, told by itself. Where it has nothing left, its names still lead to it."""
        self._note(name, models)
        self._told[name] = models

    async def model(self, name: str) -> ModelLine | None:
        """The line of the model that a request for this name would get, under this name; raises as that request would."""
        lines = {line.id: line for line in await self.models()}
        if name in lines:
            return lines[name]
        route = await self.route(name)
        line = lines.get(f"{route.backend}/{route.model}")
        if line is None and route.is_alias:
            line = ModelLine(id=name, owner=route.backend)
        return None if line is None else replace(line, id=name)

    async def close(self) -> None:
        for backend in self.backends.values():
            await backend.close()

    async def _ask_all(self, backends: Iterable[Backend]) -> list[tuple[str, list[Model]]]:
        lists = await asyncio.gather(*(self._ask(backend) for backend in backends))
        for name, models in lists:
            self._note(name, self._told.get(name, models))
        return list(lists)

    def _note(self, name: str, models: list[Model]) -> None:
        if models:
            self.router.note_models(name, [known for model in models for known in (model.id, *model.also)])

    async def _ask(self, backend: Backend) -> tuple[str, list[Model]]:
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                return backend.name, await backend.models()
        except (GatewayError, TimeoutError):
            return backend.name, []

    async def keeps(self, request: Request) -> bool:
        """Whether the gateway, not the back end, is the one to remember this answer."""
        backend = self._backend(await self.route(request.model))
        return self.keeping is not None and not self.keeping.is_upstreams(backend, request.origin)

    async def remember(self, request: Request, owner: str) -> Kept | None:
        """What the memory has for this request; nobody is asked for an answer yet."""
        return await self._kept(request, self._backend(await self.route(request.model)), owner)

    async def _kept(self, request: Request, backend: Backend, owner: str) -> Kept | None:
        state = request.state
        if state is None:
            return None
        kept = None if self.keeping is None else await self.keeping.begin(request, backend, owner, new_id)
        if backend.dialect != request.origin and state.field and (state.is_upstreams or kept is None):
            raise BadRequest(f"{state.why}.", where=state.field, code="state_unsupported", details=state.refusal)
        return kept

    def _piped(self, asked: _Asked, chosen: Plan, turn: Turn, reply: WireReply | EventReply, record: Record) -> Step:
        request, kept, recall = asked.request, asked.kept, asked.recall
        encoder = DIALECTS[request.origin].encoder(
            Context(
                request=request,
                mint=new_id,
                now=int(time.time()),
                is_renamed=chosen.is_renamed,
                is_kept=kept is not None and kept.is_here,
                answer_id="" if kept is None else kept.answer_id,
            )
        )
        if isinstance(reply, EventReply):
            return Step(reply, Translator(None, turn, encoder), turn, record, kept, recall)
        wire = DIALECTS[asked.backend.dialect]
        is_stream = is_streamed(reply, request)
        fits = chosen.is_verbatim and is_stream == request.stream
        renamer = Renamer(asked.backend.dialect, request.model) if fits and chosen.is_renamed else None
        if asked.is_queued_there and not is_stream:
            renamer = Renamer(asked.backend.dialect, request.model) if chosen.is_renamed else None
            return Step(
                reply, Untouched(wire.body_decoder(request), turn, encoder, renamer), turn, record, kept, recall
            )
        if is_stream and fits:
            return Step(reply, tap_of(wire.stream_decoder(request), turn, encoder, renamer), turn, record, kept, recall)
        decoder: ResponseDecoder = wire.stream_decoder(request) if is_stream else wire.body_decoder(request)
        pipe = BodyTap(decoder, turn, encoder, renamer) if fits else Translator(decoder, turn, encoder)
        return Step(reply, pipe, turn, record, kept, recall)


class _Asked(Struct, frozen=True, kw_only=True):
    """A request on its way: as the client wrote it, and what became of it."""

    request: Request
    route: Route
    backend: Backend
    prepared: Prepared
    handling: Handling
    level: Guard
    kept: Kept | None
    recall: Recall | None
    losses: tuple[Loss, ...]

    @property
    def terms(self) -> Terms:
        """Only one answer can be corrected, and only where nobody else remembers the one that was wrong."""
        is_there = self.kept is not None and not self.kept.is_here
        is_single = self.request.sampling.choices == 1
        if self.level == "retry" and is_single and not is_there:
            return self.handling.terms
        return replace(self.handling.terms, corrections=0)

    @property
    def is_strict(self) -> bool:
        """A call must be right before it leaves, because its tool wants that and the back end cannot promise it."""
        return self.handling.tools == "simulate" and any(tool.strict for tool in self.prepared.offered)

    @property
    def is_queued_there(self) -> bool:
        """The back end keeps answers, and works on this one in its own background."""
        state = self.request.state
        is_there = self.kept is not None and not self.kept.is_here
        return is_there and state is not None and state.is_background


def _manner(handling: Handling, level: Guard) -> Manner:
    terms = handling.terms
    is_held = level in ("repair", "retry")
    return Manner(is_held=is_held, may_hold=level != "off", policy=terms.policy, unknown=terms.unknown)


def _chosen(asked: _Asked, backend: Backend) -> Plan:
    """backend: the one that is really asked, which may be one that stands before it."""
    chosen = plan(asked.prepared.request, backend.dialect, asked.handling.verbatim)
    if chosen.is_verbatim and asked.prepared.why:
        chosen = Plan(False, asked.prepared.why)
    return replace(chosen, is_renamed=asked.route.model != asked.request.model)


async def _opened(backend: Backend, asked: _Asked, chosen: Plan) -> WireReply | EventReply:
    sent, model = asked.prepared.request, asked.route.model
    try:
        wire = sent.wire
        if chosen.is_verbatim and model != sent.model:
            is_large = len(wire) > LARGE
            wire = (
                await offload(with_model, wire, sent.model, model) if is_large else with_model(wire, sent.model, model)
            )
        return await backend.open(replace(sent, model=model, wire=wire), is_verbatim=chosen.is_verbatim)
    except BadJson as fault:
        raise BadRequest(f"the request cannot be written: {fault}.", code="invalid_json") from None
