"""One simulated run: checks the first message, fetches blobs and context, and plays the model up to the end frame."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from typing import Any

from google.protobuf.message import DecodeError
from msgspec import Struct

from ..wire import agent
from .checks import (
    blob_missing,
    check_blob_id,
    check_headers,
    check_history,
    check_opening,
    message_in,
    model_of,
    offered,
    rules_in,
    seen_by,
)
from .http1 import HttpExchange, HungUp
from .journal import Journal, Run
from .pending import Pending
from .player import Player, TurnEnd
from .run_writer import RunWriter, StreamBroken
from .script import ClientResult, Seen, SimulatedModel, Step
from .settings import ERRORS, Error, RunRefused, Settings, SimulatorFaults, refused


class SimulatorState(Struct):
    """State that all runs of one simulator share."""

    settings: Settings
    model: SimulatedModel
    journal: Journal
    poisoned: set[str] = set()


class SimulatedRun:
    """receive() and half_close() take the client's messages; serve() answers until the end."""

    def __init__(self, exchange: HttpExchange, run: Run, state: SimulatorState, faults: SimulatorFaults) -> None:
        self.run = run
        self._exchange = exchange
        self._state = state
        self._writer = RunWriter(exchange, faults)
        self._pending = Pending(run, state.journal, needs_close=state.settings.needs_close)
        self._player = Player(self._writer, self._pending, run, state.journal, state.settings)
        loop = asyncio.get_running_loop()
        self._opening: asyncio.Future[Any] = loop.create_future()
        self._broken: asyncio.Future[None] = loop.create_future()  # set when the client breaks the run
        self.is_over = False

    def receive(self, data: bytes) -> None:
        """One AgentClientMessage."""
        try:
            message = agent.AgentClientMessage.FromString(data)
        except DecodeError:
            return self.refuse(refused("invalid_argument", "cannot decode the message"))
        kind = message.WhichOneof("message") or "nothing"
        self.run.received[kind] += 1
        if not self._opening.done():
            return self._open(kind, message, data)
        match kind:
            case "exec_client_message":
                self._pending.exec(message.exec_client_message)
            case "exec_client_control_message":
                self._pending.control(message.exec_client_control_message)
            case "kv_client_message":
                answer = message.kv_client_message
                kind = (answer.WhichOneof("message") or "").removesuffix("_result")
                result = answer.get_blob_result if kind == "get_blob" else answer.set_blob_result
                self._pending.other(kind, answer.id, result)
            case "interaction_response":
                response = message.interaction_response
                self._pending.other("query", response.id, response)
            case "client_heartbeat":
                self.run.heartbeats.append(self._state.journal.now)
                self._state.journal.note("heartbeat", self.run)
            case "conversation_action" if message.conversation_action.HasField("cancel_action"):
                self.refuse(RunRefused(ERRORS["canceled"]))
            case _:
                self._state.journal.offence(f"{kind} in the middle of a run", self.run)
        return None

    def half_close(self) -> None:
        """The client sends no more, so open requests will not be answered."""
        if not self.is_over and not self._writer.failure:
            self._state.journal.offence("half closed before the end", self.run)
            self.refuse(refused("internal", "No exec result"))

    async def serve(self) -> None:
        """Runs until the end frame, or until the client disconnects."""
        journal = self._state.journal
        tasks = [asyncio.create_task(self._play()), asyncio.create_task(self._beat())]
        try:
            await self._writer.start()
            await asyncio.wait({tasks[0], self._broken}, return_when=asyncio.FIRST_COMPLETED)
            first = self._broken if self._broken.done() else tasks[0]
            error = first.exception()
            await _cancel(tasks)
            self.is_over = True
            await self._end(error)
        except (asyncio.CancelledError, HungUp):
            made = self._writer.failure
            journal.close(self.run, "cut" if made else "gone", made)
            raise
        finally:
            self.is_over = True
            await _cancel(tasks)

    async def _end(self, error: BaseException | None) -> None:
        journal = self._state.journal
        match error:
            case None | TurnEnd():
                await self._writer.end()
                journal.close(self.run, "ended")
            case RunRefused():
                refusal = error.error
                journal.close(self.run, "refused", f"{refusal.code}: {refusal.message} {refusal.name}".strip())
                await self._writer.end(refusal)
            case StreamBroken():
                journal.close(self.run, "cut", str(error))
            case HungUp():
                raise error
            case _:
                journal.close(self.run, "refused", f"the model failed: {error!r}")
                journal.note("model_failed", self.run, error=repr(error))
                await self._writer.end(Error(code="internal", message=f"the model failed: {error!r}"[:500]))

    async def _play(self) -> None:
        request = await self._opening
        self._record(request)
        check_headers(self._exchange.headers, self._state.settings)
        check_opening(request, self._state.settings)
        if self._writer.faults.poison or request.conversation_id in self._state.poisoned:
            self._state.poisoned.add(request.conversation_id)
            raise RunRefused(ERRORS["bare"])
        await self._player.at("open")
        if request.action.user_message_action.HasField("conversation_history"):
            await self._writer.fail("stall")
        await self._fetch()
        context = await self._context()
        seen = seen_by(request, context, self.run, self._exchange.headers)
        self._player.tools = seen.tools
        await self._follow(seen)

    def _open(self, kind: str, message: Any, data: bytes) -> None:
        if kind == "run_request":
            self.run.opening = data
            self._opening.set_result(message.run_request)
        elif kind == "client_heartbeat":
            self.run.heartbeats.append(self._state.journal.now)
        elif kind != "prewarm_request":
            self.refuse(refused("invalid_argument", "First message must be run_request"))

    def _record(self, request: Any) -> None:
        run = self.run
        run.request = request
        run.conversation_id = request.conversation_id
        run.action = request.action.WhichOneof("action") or ""
        run.model = model_of(request)
        run.roots = [bytes(root) for root in request.conversation_state.root_prompt_messages_json]
        run.user_text = request.action.user_message_action.user_message.text
        detail = {"action": run.action, "model": run.model, "roots": len(run.roots), "text": run.user_text[:500]}
        self._state.journal.note("opened", run, transport=run.transport, http=run.http, **detail)

    async def _fetch(self) -> None:
        for root in self.run.roots:
            check_blob_id(root)
            data = await self._player.blob(root)
            if not data:
                raise blob_missing(root)
            message = message_in(root, data)
            self.run.messages.append(message)
            self._state.journal.note("root", self.run, message=message)
        check_history(self.run.messages)
        # The server's checkpoint leaves the user's entries blank.
        pairs = zip(self.run.roots, self.run.messages, strict=True)
        self._player.roots = [b"" if message["role"] == "user" else root for root, message in pairs]

    async def _context(self) -> Any:
        result = await self._player.ask("request_context", {})
        if not result.messages or not result.messages[0].HasField("success"):
            raise refused("internal", "Request context failed")
        context = result.messages[0].success.request_context
        listed = self.run.request.mcp_tools.mcp_tools
        offered(listed)
        self.run.tools = [tool.name for tool in offered(context.tools or listed)]
        if sorted(tool.name for tool in listed) != sorted(tool.name for tool in context.tools):
            self._state.journal.offence("mcp_tools and the tools of the context differ", self.run)
        self.run.rules = list(rules_in(context))
        return context

    async def _follow(self, seen: Seen) -> None:
        """Play the model's steps, and pass the results back to it."""
        steps = self._state.model.start(seen)
        results: list[ClientResult] | None = None
        try:
            while (step := await _next(steps, results)) is not None:
                results = await self._player.play(step)
        finally:
            if isinstance(steps, Generator):
                steps.close()
            else:
                await steps.aclose()
        await self._player.finish()

    def refuse(self, error: RunRefused) -> None:
        """End the run with this error."""
        if not self._broken.done():
            self._broken.set_exception(error)
            self._broken.exception()  # retrieved, because the run may be over

    async def _beat(self) -> None:
        beat: Any = {"heartbeat": {}}
        with contextlib.suppress(HungUp):
            while True:
                await asyncio.sleep(self._state.settings.heartbeat)
                if not self._writer.is_silent and self.run.request is not None:
                    await self._writer.send(agent.AgentServerMessage(interaction_update=beat))


async def _next(
    steps: Generator[Step, list[ClientResult], None] | AsyncGenerator[Step, list[ClientResult]],
    results: list[ClientResult] | None,
) -> Step | None:
    """The next step, None at the end. results is None at the start."""
    try:
        if isinstance(steps, Generator):
            return next(steps) if results is None else steps.send(results)
        return await (anext(steps) if results is None else steps.asend(results))
    except (StopIteration, StopAsyncIteration):
        return None


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
