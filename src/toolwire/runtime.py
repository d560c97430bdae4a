"""The only loop: one model turn, from a client's request to the bytes of its answer."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from .backends.base import Backend, EventReply, Model, WireReply, is_streamed
from .backends.searching import Searching
from .calls.kinds import Lowered, lower
from .calls.turn import BYTES_PER_TOKEN, Turn
from .dialects import DIALECTS
from .dialects.base import Context, ModelLine, ResponseDecoder, garbage, shown
from .dialects.effort import with_effort
from .dialects.renaming import Renamer
from .errors import BadRequest, GatewayError, InternalError, UpstreamError
from .keeping import Keeping, Kept
from .router import Route, Router
from .telemetry import Record
from .types import Loss, Request
from .verbatim import BodyTap, Plan, Translator, Untouched, plan, tap_of, with_model
from .wire.exact import BadJson, encode

Write: TypeAlias = Callable[[bytes], Awaitable[None]]

_LIST_SECONDS = 5.0
_LIST_AGE = 60.0
_LAST_BYTES = 0.2
_MAX_ANSWER = 256 << 20
_NO_KINDS: frozenset[str] = frozenset()


def mint(prefix: str) -> str:
    """A new id. It need be unique, not secret, and Python's own generator is seeded anew in every process."""
    return f"{prefix}{random.getrandbits(96):024x}"


class Step:
    """One turn under way: the back end has accepted; its answer is read as the client takes it."""

    def __init__(
        self, reply: WireReply | EventReply, pipe: Translator, turn: Turn, record: Record, kept: Kept | None = None
    ) -> None:
        self._kept = kept
        self._reply = reply
        self._pipe = pipe
        self._turn = turn
        self._record = record
        self._is_read = False
        self._size = 0
        self._opening = b""
        self.losses: list[Loss] = list(reply.losses)
        self.headers: Mapping[str, str] = reply.headers

    @property
    def error(self) -> GatewayError | None:
        """The error the answer ended in; a caller that has sent nothing yet can still say it properly."""
        return self._pipe.error

    @property
    def is_over(self) -> bool:
        """Whether what was written last is the end of the answer."""
        return self._pipe.is_over

    @property
    def has_content(self) -> bool:
        return self._pipe.has_content

    async def run(self, write: Write) -> None:
        """Hand the answer to write() in the client's dialect, piece by piece; is_over tells which piece is the last.

        It always ends in order: a failure ends it in the dialect's own error.
        """
        if self._kept is not None:
            write = self._saving(self._kept, write)
        if isinstance(self._reply, EventReply):
            await self._from_events(self._reply, write)
        else:
            await self._from_wire(self._reply, write)

    def _saving(self, kept: Kept, write: Write) -> Write:
        """The same, but the answer is kept before its end leaves. A memory that fails costs nobody the answer."""

        async def save_first(wire: bytes) -> None:
            try:
                if kept.is_awaited and self._pipe.begun:
                    await kept.begun(self._pipe.begun)
                if self._pipe.is_over and (answer := self._pipe.final()) is not None:
                    await kept.save(answer, mint)
            except GatewayError as error:
                self.losses.append(Loss("store", "store", f"the answer could not be kept: {error.message}"))
            await write(wire)

        return save_first

    def fail(self, error: GatewayError) -> bytes:
        """End it here, with the dialect's own error; nothing if it has ended already."""
        return self._pipe.fail(error).wire

    async def release(self) -> None:
        """The client has its answer, or is gone. The last bytes of a complete answer are awaited for a moment, because a
        connection read to its end serves the next request; anything else is stopped."""
        self._note()
        if isinstance(self._reply, EventReply):
            await self._reply.close()
            return
        if self._is_read or self._reply.is_complete:
            return
        try:
            if self._pipe.is_over and self._pipe.error is None:
                async with asyncio.timeout(_LAST_BYTES):
                    while await self._reply.read():
                        pass
        except (TimeoutError, UpstreamError):
            pass
        finally:
            self._reply.abort()

    async def _from_wire(self, reply: WireReply, write: Write) -> None:
        pipe = self._pipe
        while not pipe.is_over:
            try:
                data = await reply.read()
            except UpstreamError as error:
                await write(pipe.fail(error).wire)
                return
            self._is_read = not data
            if wire := self._digested(data):
                await write(wire)
            if not data:
                return
        if wire := pipe.close().wire:  # a stream has ended, and the client wants its answer whole
            await write(wire)

    def _digested(self, data: bytes) -> bytes:
        """What one read means for the client; b"" is the end."""
        pipe = self._pipe
        self._opening = self._opening or data[:300]
        self._size += len(data)
        try:
            if self._size > _MAX_ANSWER:
                return pipe.fail(garbage(f"the back end's answer is larger than {_MAX_ANSWER >> 20} MB.")).wire
            batch = pipe.feed(data) if data else pipe.close()
        except Exception as fault:
            return pipe.fail(_our_fault(fault)).wire
        if data:
            return batch.wire
        error = pipe.error
        if error is not None and error.code == "upstream_cut" and self._opening and not pipe.has_content:
            error.message += f" It was no stream; it began with {shown(self._opening)}."
        return batch.wire

    async def _from_events(self, reply: EventReply, write: Write) -> None:
        pipe = self._pipe
        try:
            async for events in reply.events:
                if wire := pipe.send(events).wire:
                    await write(wire)
                if pipe.is_over:
                    break
        except GatewayError as error:
            await write(pipe.fail(error).wire)
        except Exception as fault:
            await write(pipe.fail(_our_fault(fault)).wire)
        if wire := pipe.close().wire:
            await write(wire)

    def _note(self) -> None:
        record, turn = self._record, self._turn
        record.took_over = self._pipe.took_over if record.is_verbatim else ""
        record.calls, record.invalid_calls, record.usage = turn.calls, turn.invalid, turn.usage
        self.losses += turn.losses
        record.losses = self.losses
        if self._pipe.error is not None:
            record.outcome, record.error = "error", self._pipe.error.code


class Runtime:
    """Back ends by name, the router, and the policy of each back end for the verbatim path."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        router: Router,
        policies: Mapping[str, str],
        keeping: Keeping | None = None,
        searching: Searching | None = None,
    ) -> None:
        self.backends = dict(backends)
        self.router = router
        self.keeping = keeping
        self._searching = searching
        self._policies = dict(policies)
        self._listed_at = -_LIST_AGE
        self._listing: list[tuple[str, list[Model]]] = []
        self._asking = asyncio.Lock()
        self._is_sure = False
        self._has_asked_default = False

    async def step(self, request: Request, record: Record, owner: str = "") -> Step:
        """Send it to the back end its model names. Raises GatewayError while nothing of an answer has come."""
        route = await self.route(request.model)
        request = with_effort(request, route.effort)
        backend = self.backends[route.backend]
        record.backend, record.sent_model = backend.name, route.model[:100]
        kept = await self._kept(request, backend, owner)
        sent = request if kept is None else kept.request
        if self._searching is not None:
            backend, sent = self._searching.around(backend, sent)
        is_own = backend.dialect == request.origin
        lowered = lower(sent, backend.tool_kinds if is_own else _NO_KINDS, is_own=is_own)
        chosen = plan(sent, backend.dialect, self._policies.get(backend.name, "auto"))
        if lowered.names is not None:
            chosen = Plan(False, "the back end does not know all kinds of its tools")
        chosen = msgspec.structs.replace(chosen, is_renamed=route.model != request.model)
        record.is_verbatim = chosen.is_verbatim
        try:
            outgoing = _outgoing(lowered.request, route, chosen)
            reply = await backend.open(outgoing, is_verbatim=chosen.is_verbatim)
        except BadJson as fault:
            raise BadRequest(f"the request cannot be written: {fault}.", code="invalid_json") from None
        return self._started(_Asked(request, backend, chosen, lowered, kept), reply, record)

    async def count(self, request: Request, owner: str = "") -> bytes:
        """How many tokens a prompt has: the back end's count where it gives one, else an estimate by length."""
        route = await self.route(request.model)
        kept = await self._kept(request, self.backends[route.backend], owner)
        if kept is not None and kept.is_here:
            request = msgspec.structs.replace(kept.request, wire=encode(kept.request.source))
        ask = getattr(self.backends[route.backend], "count", None)
        outgoing = msgspec.structs.replace(
            request, model=route.model, wire=with_model(request.wire, request.model, route.model)
        )
        counted: bytes | None = await ask(outgoing) if ask is not None else None
        return counted or encode({"input_tokens": max(1, len(request.wire) // BYTES_PER_TOKEN)})

    async def route(self, model: str) -> Route:
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
            for model in models
        }
        for alias in self.router.aliases:
            if (route := self.router.route_or_none(alias)) is not None:
                line = lines.get(f"{route.backend}/{route.model}", ModelLine(id=alias))
                lines[alias] = ModelLine(id=alias, owner=route.backend, created=line.created, title=line.title)
        return list(lines.values())

    async def model(self, name: str) -> ModelLine | None:
        """The line of the model that a request for this name would get, under this name; raises as that request would."""
        lines = {line.id: line for line in await self.models()}
        if name in lines:
            return lines[name]
        route = await self.route(name)
        line = lines.get(f"{route.backend}/{route.model}")
        if line is None and route.is_alias:
            line = ModelLine(id=name, owner=route.backend)
        return None if line is None else msgspec.structs.replace(line, id=name)

    async def close(self) -> None:
        for backend in self.backends.values():
            await backend.close()

    async def _ask_all(self, backends: Iterable[Backend]) -> list[tuple[str, list[Model]]]:
        lists = await asyncio.gather(*(self._ask(backend) for backend in backends))
        for name, models in lists:
            if models:
                self.router.note_models(name, [model.id for model in models])
        return list(lists)

    async def _ask(self, backend: Backend) -> tuple[str, list[Model]]:
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                return backend.name, await backend.models()
        except (GatewayError, TimeoutError):
            return backend.name, []

    async def keeps(self, request: Request) -> bool:
        """Whether the gateway, not the back end, is the one to remember this answer."""
        backend = self.backends[(await self.route(request.model)).backend]
        return self.keeping is not None and not self.keeping.is_upstreams(backend, request.origin)

    async def remember(self, request: Request, owner: str) -> Kept | None:
        """What the memory has for this request; nobody is asked for an answer yet."""
        return await self._kept(request, self.backends[(await self.route(request.model)).backend], owner)

    async def _kept(self, request: Request, backend: Backend, owner: str) -> Kept | None:
        state = request.state
        if state is None:
            return None
        kept = None if self.keeping is None else await self.keeping.begin(request, backend, owner, mint)
        if backend.dialect != request.origin and state.field and (state.is_upstreams or kept is None):
            raise BadRequest(f"{state.why}.", where=state.field, code="state_unsupported", details=state.refusal)
        return kept

    def _started(self, asked: _Asked, reply: WireReply | EventReply, record: Record) -> Step:
        step = self._piped(asked, reply, record)
        step.losses += asked.lowered.losses
        return step

    def _piped(self, asked: _Asked, reply: WireReply | EventReply, record: Record) -> Step:
        request, chosen, kept = asked.request, asked.chosen, asked.kept
        encoder = DIALECTS[request.origin].encoder(
            Context(
                request=request,
                mint=mint,
                now=int(time.time()),
                is_renamed=chosen.is_renamed,
                is_kept=kept is not None and kept.is_here,
                answer_id="" if kept is None else kept.answer_id,
            )
        )
        turn = Turn(request, mint, asked.lowered.names)
        if isinstance(reply, EventReply):
            return Step(reply, Translator(None, turn, encoder), turn, record, kept)
        wire = DIALECTS[asked.backend.dialect]
        is_stream = is_streamed(reply, request)
        fits = chosen.is_verbatim and is_stream == request.stream
        renamer = Renamer(asked.backend.dialect, request.model) if fits and chosen.is_renamed else None
        if asked.is_queued_there and not is_stream:
            renamer = Renamer(asked.backend.dialect, request.model) if chosen.is_renamed else None
            return Step(reply, Untouched(wire.body_decoder(request), turn, encoder, renamer), turn, record, kept)
        if is_stream and fits:
            return Step(reply, tap_of(wire.stream_decoder(request), turn, encoder, renamer), turn, record, kept)
        decoder: ResponseDecoder = wire.stream_decoder(request) if is_stream else wire.body_decoder(request)
        pipe = BodyTap(decoder, turn, encoder, renamer) if fits else Translator(decoder, turn, encoder)
        return Step(reply, pipe, turn, record, kept)


class _Asked(msgspec.Struct, frozen=True):
    """A request on its way: as the client wrote it, and what became of it."""

    request: Request
    backend: Backend
    chosen: Plan
    lowered: Lowered
    kept: Kept | None

    @property
    def is_queued_there(self) -> bool:
        """The back end keeps answers, and works on this one in its own background."""
        state = self.request.state
        is_there = self.kept is not None and not self.kept.is_here
        return is_there and state is not None and state.is_background


def _our_fault(fault: Exception) -> InternalError:
    """It keeps the exception as its cause, for the log."""
    error = InternalError("something went wrong inside the gateway while it read the answer; its log says what.")
    error.__cause__ = fault
    return error


def _outgoing(request: Request, route: Route, chosen: Plan) -> Request:
    if not chosen.is_verbatim:
        return msgspec.structs.replace(request, model=route.model)
    wire = with_model(request.wire, request.model, route.model)
    return msgspec.structs.replace(request, model=route.model, wire=wire)
