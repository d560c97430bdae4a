"""The only loop: one model turn, from a client's request to the bytes of its answer."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from .backends.base import Backend, EventReply, Model, WireReply
from .calls.turn import BYTES_PER_TOKEN, Turn
from .dialects import DIALECTS
from .dialects.base import Context, ModelLine, ResponseDecoder, garbage, shown
from .errors import BadRequest, GatewayError, InternalError, UpstreamError
from .router import Route, Router
from .telemetry import Record
from .types import Loss, Request
from .verbatim import BodyTap, Plan, Tap, Translator, plan, with_model
from .wire.exact import BadJson, encode

Write: TypeAlias = Callable[[bytes], Awaitable[None]]

_LIST_SECONDS = 5.0
_LIST_AGE = 60.0
_LAST_BYTES = 0.2
_MAX_ANSWER = 256 << 20


def mint(prefix: str) -> str:
    """A new id. It need be unique, not secret, and Python's own generator is seeded anew in every process."""
    return f"{prefix}{random.getrandbits(96):024x}"


class Step:
    """One turn under way: the back end has accepted; its answer is read as the client takes it."""

    def __init__(self, reply: WireReply | EventReply, pipe: Translator, turn: Turn, record: Record) -> None:
        self._reply = reply
        self._pipe = pipe
        self._turn = turn
        self._record = record
        self._is_read = False
        self._size = 0
        self._opening = b""
        self.losses: list[Loss] = list(reply.losses)
        self.headers: Mapping[str, str] = {} if isinstance(reply, EventReply) else reply.headers

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
        if isinstance(self._reply, EventReply):
            await self._from_events(self._reply, write)
        else:
            await self._from_wire(self._reply, write)

    def fail(self, error: GatewayError) -> bytes:
        """End it here, with the dialect's own error; nothing if it has ended already."""
        return self._pipe.fail(error).wire

    async def release(self) -> None:
        """The client has its answer, or is gone. The last bytes of a complete answer are awaited for a moment, because a
        connection read to its end serves the next request; anything else is stopped."""
        self._note()
        if isinstance(self._reply, EventReply) or self._is_read or self._reply.is_complete:
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

    def __init__(self, backends: Mapping[str, Backend], router: Router, policies: Mapping[str, str]) -> None:
        self.backends = dict(backends)
        self.router = router
        self._policies = dict(policies)
        self._listed_at = -_LIST_AGE
        self._listing: list[tuple[str, list[Model]]] = []
        self._asking = asyncio.Lock()
        self._is_sure = False

    async def step(self, request: Request, record: Record) -> Step:
        """Send it to the back end its model names. Raises GatewayError while nothing of an answer has come."""
        route = await self.route(request.model)
        backend = self.backends[route.backend]
        record.backend = backend.name
        self._check_state(request, backend)
        chosen = plan(request, backend.dialect, self._policies.get(backend.name, "auto"))
        record.is_verbatim = chosen.is_verbatim
        try:
            outgoing = _outgoing(request, route, chosen)
            reply = await backend.open(outgoing, is_verbatim=chosen.is_verbatim)
        except BadJson as fault:
            raise BadRequest(f"the request cannot be written: {fault}.", code="invalid_json") from None
        return self._started(request, backend, reply, chosen, record)

    async def count(self, request: Request) -> bytes:
        """How many tokens a prompt has: the back end's count where it gives one, else an estimate by length."""
        route = await self.route(request.model)
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
            if not route.is_guess or self._is_sure:
                return route
        except BadRequest:
            if time.monotonic() - self._listed_at < _LIST_AGE:
                raise
            await self.models()
        else:
            await self._ask_before_guessing(route.backend)
        return self.router.resolve(model)

    async def _ask_before_guessing(self, default: str) -> None:
        """Once: a back end that lists a name goes before the default. Where all others answer in this process, no
        request has to wait for a list over the network."""
        others = [backend for backend in self.backends.values() if backend.name != default]
        if any(backend.dialect for backend in others):
            await self.models()
        else:
            await self._ask_all(others)
        self._is_sure = True

    async def models(self) -> list[ModelLine]:
        """Every model as backend/model; a back end that does not answer is left out, not waited for."""
        async with self._asking:
            if time.monotonic() - self._listed_at >= _LIST_AGE or not self._listing:
                self._listing = await self._ask_all(self.backends.values())
                self._listed_at = time.monotonic()
        return [
            ModelLine(id=f"{name}/{model.id}", owner=model.owner or name, created=model.created, title=model.title)
            for name, models in self._listing
            for model in models
        ]

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

    def _check_state(self, request: Request, backend: Backend) -> None:
        state = request.state
        if state is not None and backend.dialect != request.origin:
            raise BadRequest(f"{state.why}.", where=state.field, code="state_unsupported", details=state.refusal)

    def _started(
        self, request: Request, backend: Backend, reply: WireReply | EventReply, chosen: Plan, record: Record
    ) -> Step:
        dialect = DIALECTS[request.origin]
        encoder = dialect.encoder(Context(request=request, mint=mint, now=int(time.time())))
        turn = Turn(request, mint)
        if isinstance(reply, EventReply):
            return Step(reply, Translator(None, turn, encoder), turn, record)
        wire = DIALECTS[backend.dialect]
        content_type = reply.content_type.lower()
        is_stream = "event-stream" in content_type or (request.stream and "json" not in content_type)
        fits = chosen.is_verbatim and is_stream == request.stream
        if is_stream and fits:
            return Step(reply, Tap(wire.stream_decoder(request), turn, encoder), turn, record)
        decoder: ResponseDecoder = wire.stream_decoder(request) if is_stream else wire.body_decoder(request)
        pipe = BodyTap(decoder, turn, encoder) if fits else Translator(decoder, turn, encoder)
        return Step(reply, pipe, turn, record)


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
