"""Back end for the user's own Codex: each request is a thread with one turn, or continues a turn that waits for results."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...config.file import BackendConfig
from ...errors import UpstreamError
from ...events import Event
from ...profiles import CODEX
from ...types import Loss, Request
from ..base import Backend, EventReply, Model, ParkedRuns, ToolsUnsupported
from ..continuation import ResumePoint, resume_point_after
from ..http.refusals import check_tools
from ..sessions import AnswerTimeouts, BackgroundTasks, Delivery, Parking, RunReply, SessionLost
from .host import CodexHost, Program
from .pool import Lease, died
from .stored_threads import MAX_THREADS, STORED_SECONDS, StoredThread, places_of, take_thread
from .turn import CodexTurn
from .wire.errors import UnseenCalls
from .wire.request_out import losses_of, offered, opening
from .wire.settings import ThreadSetup
from .wire.usage import rate_limit_headers
from .worker import RequestRefused

_MODELS_CACHED = 300.0  # seconds
_LIST_SECONDS = 15.0  # 0.89 first tries for 5 s to reach its maker
_MAX_PAGES = 20
_CLOSE_SECONDS = 5.0  # to stop turns in order at shutdown
_MAX_PAUSE = 2.0  # seconds before a retry; after a longer pause the client should retry


class CodexBackend(Backend):
    """Answers in events. Belongs to one event loop."""

    profile = CODEX

    def __init__(
        self, config: BackendConfig, environ: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        self.name = config.name
        self.host = CodexHost(config, os.environ if environ is None else environ, folder)
        self._config = config
        self._timeouts = AnswerTimeouts(first=config.first_byte_timeout, idle=config.idle_timeout)
        self._parking: Parking[CodexTurn] = Parking(self._leave)
        self._stored: Parking[StoredThread] = Parking(self._drop, seconds=STORED_SECONDS, most=MAX_THREADS)
        self._cleanup = BackgroundTasks()
        self._is_closing = False
        self._listing = asyncio.Lock()
        self._models: list[Model] = []
        self._listed_at = 0.0

    @property
    def parked_runs(self) -> ParkedRuns:
        return self._parking

    async def program(self) -> Program:
        """The version and how tools are called with it; starts Codex if necessary. Raises GatewayError with details for the owner."""
        try:
            lease = await self.host.pool.lease()
        except UpstreamError as error:
            raise self.host.with_details(error) from None
        try:
            return self.host.program(lease.worker)
        finally:
            lease.release(is_good=True)

    async def models(self) -> list[Model]:
        if self._config.models:
            return [Model(id=name, owner=self.name) for name in self._config.models]
        async with self._listing:
            if not self._models or time.monotonic() - self._listed_at > _MODELS_CACHED:
                self._models = await self._list_models()
                self._listed_at = time.monotonic()
        return self._models

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        """Raises GatewayError before the first part; temporary failures are retried until then."""
        check_tools(request, self.profile)
        if (reply := await self._continue(request)) is not None:
            return reply
        try:
            return await self._open_with_retries(request)
        except UpstreamError as error:
            is_unseen = isinstance(error, UnseenCalls)
            if not is_unseen and (error.status != 401 or not self.host.renew()):
                raise
        return await self._open_with_retries(request, may_resume=not is_unseen)

    async def close(self) -> None:
        """Stops every turn and process. Safe to call twice."""
        self._is_closing = True
        await asyncio.gather(self._parking.close(), self._stored.close())
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._cleanup.wait()
        await self.host.close()
        await self._cleanup.wait()

    async def _open_with_retries(self, request: Request, *, may_resume: bool = True) -> EventReply:
        for attempt in range(self._config.retries + 1):
            try:
                return await self._open_once(request, may_resume)
            except UpstreamError as error:
                pause = _pause(error, attempt)
                if not error.retryable or attempt == self._config.retries or pause > _MAX_PAUSE:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("the loop returns or raises")

    async def _open_once(self, request: Request, may_resume: bool) -> EventReply:
        lease = await self.host.pool.lease()
        # Shielded: a cancelled request must not lose a turn that Codex has already started.
        starting = asyncio.create_task(self._start(lease, request, may_resume))
        try:
            turn, losses = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._cleanup.start(self._leave_started(starting))
            raise
        try:
            first = await turn.first()
        except BaseException:
            self._abandon(turn)
            raise
        return self._reply(turn, request, first, losses)

    async def _start(self, lease: Lease, request: Request, may_resume: bool) -> tuple[CodexTurn, tuple[Loss, ...]]:
        turn: CodexTurn | None = None
        try:
            program = self.host.program(lease.worker)
            if not program.tier.is_native and offered(request):
                raise no_tools(program)
            setup = self._setup(lease, program, may_resume)
            begun = opening(request, program.tier, program.abilities, setup)
            places = places_of(begun, request) if begun.is_reusable else []
            lease, thread = await self._stored_thread(places, lease)
            turn = CodexTurn(lease, program, self._timeouts, self.host.home)
            turn.place = places[0] if places else None
            await turn.begin(begun, request, thread)
        except BaseException:
            if turn is None:
                lease.release(is_good=True)
            else:
                self._abandon(turn)
            raise
        return turn, begun.losses

    def _setup(self, lease: Lease, program: Program, may_resume: bool) -> ThreadSetup:
        return ThreadSetup(
            cwd=self.host.work,
            base_instructions=self.host.base_instructions,
            settings=self.host.thread_settings(program),
            has_built_ins=self.host.has_built_ins,
            skipped=lease.worker.channel.skipped_tools(),
            is_stored=self.host.stores_threads and lease.worker.can_store,
            may_resume=may_resume,
        )

    async def _stored_thread(self, places: list[ResumePoint], lease: Lease) -> tuple[Lease, StoredThread | None]:
        """The stored thread of an earlier request of this conversation, with a lease of its worker in place of this one."""
        found = take_thread(self._stored, places) if len(self._stored) else None
        if found is None:
            return lease, None
        its_lease = self.host.pool.lease_of(found.worker)
        if its_lease is not None and await found.revert():
            lease.release(is_good=True)
            return its_lease, found
        if its_lease is not None:
            its_lease.release(is_good=True)
        self._cleanup.start(self._drop(found))
        return lease, None

    async def _drop(self, stored: StoredThread) -> None:
        """Deletes the thread in Codex."""
        await asyncio.wait([stored.stopping])
        stored.worker.drop(stored.thread)
        if stored.worker.is_alive and not self._is_closing:
            with suppress(SessionLost, RequestRefused, TimeoutError):
                await stored.worker.ask("thread/delete", {"threadId": stored.thread.id}, _LIST_SECONDS)
        if self.host.home is not None:
            self.host.home.delete_thread(stored.thread.id)

    async def _continue(self, request: Request) -> EventReply | None:
        """The next answer of a turn that waits for these results; None if there is none, or it cannot continue."""
        if (resumed := self._parking.resume(request)) is None:
            return None
        turn, found = resumed
        try:
            if turn.is_alive:
                events = await turn.give(request, found.by_call())
                events += [] if turn.is_over else await turn.first()
                return self._reply(turn, request, events, (*found.losses, *losses_of(request)))
        except UpstreamError:
            pass  # the request has the whole conversation, so a new thread can answer it
        except BaseException:
            self._abandon(turn)
            raise
        self._abandon(turn)
        return None

    def _reply(self, turn: CodexTurn, request: Request, first: list[Event], losses: Sequence[Loss]) -> RunReply:
        delivery = Delivery(turn, lambda turn: self._finish(turn, request), self._abandon)
        return RunReply(
            events=delivery.events(first),
            losses=turn.losses(losses),
            headers=rate_limit_headers(turn.limits),
            how=str(turn.program),
            stop=delivery.stop,
        )

    def _finish(self, turn: CodexTurn, request: Request) -> None:
        """After an answer: parks a turn that waits for results, stores its thread, or stops it."""
        if turn.is_waiting and turn.program.tier.is_held:
            self._parking.park(turn, resume_point_after(request, turn.calls))
        elif turn.place is not None and (thread := turn.store(self._cleanup)) is not None:
            self._stored.park(thread, turn.place)
        else:
            self._abandon(turn)

    def _abandon(self, turn: CodexTurn) -> None:
        self._cleanup.start(self._leave(turn))

    async def _leave(self, turn: CodexTurn) -> None:
        await turn.leave()

    async def _leave_started(self, starting: asyncio.Task[tuple[CodexTurn, tuple[Loss, ...]]]) -> None:
        """Stops a turn whose request was cancelled while it started."""
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await self._leave(starting.result()[0])

    async def _list_models(self) -> list[Model]:
        lease = await self.host.pool.lease()
        found: list[Model] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                for _ in range(_MAX_PAGES):
                    page = await lease.worker.ask("model/list", {"cursor": cursor} if cursor else {}, _LIST_SECONDS)
                    found += _models_in(page, self.name)
                    cursor = page.get("nextCursor") if isinstance(page, dict) else None
                    if not cursor:
                        break
        except SessionLost as error:
            raise died(error) from None
        except (RequestRefused, TimeoutError) as error:
            why = str(error) or f"nothing came within {_LIST_SECONDS:.0f} seconds"
            raise UpstreamError(
                f"Codex gave no list of its models: {why}.",
                code="codex_refused",
                hint="Name them in models of this back end.",
            ) from None
        finally:
            lease.release(is_good=lease.worker.is_alive)
        return found


def no_tools(program: Program) -> ToolsUnsupported:
    return ToolsUnsupported(
        f"Codex {program.version} takes no tools of clients.",
        status=400,
        code="tools_unsupported",
        hint='Set tools = "simulate" for this back end, or install Codex 0.92 or newer.',
    )


def _models_in(page: Any, owner: str) -> list[Model]:
    data = page.get("data") if isinstance(page, dict) else None
    lines = [line for line in data if isinstance(line, dict)] if isinstance(data, list) else []
    return [
        Model(id=str(line["model"]), owner=owner, title=str(line.get("displayName") or ""))
        for line in lines
        if isinstance(line.get("model"), str) and not line.get("hidden")
    ]


def _pause(error: UpstreamError, attempt: int) -> float:
    """The provider's Retry-After, else exponential backoff from a quarter of a second, with jitter."""
    try:
        return max(0.0, float(error.headers["retry-after"]))
    except (KeyError, ValueError):
        return float(0.25 * 2**attempt * random.uniform(0.8, 1.2))
