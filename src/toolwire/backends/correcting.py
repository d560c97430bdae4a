"""Calls that must be right before they leave: repaired where one meaning is left, else the model is told and tries again.

All of it is one answer to the client. Text leaves as it comes; calls leave when all of them are right, or when the model has had its
tries and the policy says what becomes of them: "pass" as they are, "text", or "error".
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator

from msgspec import Struct
from msgspec.structs import replace

from ..calls.arguments import Invalid
from ..calls.checking import Checking, Unknown, reason_of
from ..calls.holding import Held, Holding
from ..calls.ledger import settle
from ..errors import GatewayError, UpstreamError, quote
from ..events import Event, Failed, Finished, Noted
from ..types import Loss, Message, Request, Text, ToolCall, ToolResult
from ..wire.exact import encode
from .base import Backend, EventReply, Model, WireReply
from .reading import Reading
from .rounds import Rounds
from .synthesis import new_id

_SAME = 3  # the same call failing in the same way so many times: it will not learn
_WAITING = (
    "This call was accepted and will be run together with the corrected one. Do not repeat it; "
    "only correct the calls that were refused."
)


class Terms(Struct, frozen=True, kw_only=True):
    """How often a model may try again, and what becomes of calls that are wrong to the end."""

    corrections: int = 2
    policy: str = "pass"


class CorrectingBackend:
    """The back end of one request: its answer is made here, of all that the real one says."""

    dialect = ""
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, inner: Backend, checking: Checking, terms: Terms) -> None:
        self.name = inner.name
        self.profile = inner.profile
        self._inner = inner
        self._checking = checking
        self._terms = terms

    async def models(self) -> list[Model]:
        return await self._inner.models()

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        reply = await self._inner.open(request, is_verbatim=False)
        turn = CorrectingTurn(self._inner, self._checking, self._terms)
        return EventReply(events=turn.play(request, reply), losses=reply.losses, headers=reply.headers)

    async def close(self) -> None:
        """The inner one belongs to somebody else."""


class CorrectingTurn:
    """One answer for the client out of several of the model."""

    def __init__(self, inner: Backend, checking: Checking, terms: Terms) -> None:
        self._inner = inner
        self._checking = checking
        self._terms = terms
        self._rounds = Rounds()
        self._kept: list[Held] = []  # calls of earlier rounds that are right, and wait for the others
        self._failures = Counter[tuple[str, str, str]]()
        self._ids: set[str] = set()
        self._wrong = 0  # in the last round
        self._held_since = 0.0

    async def play(self, request: Request, reply: WireReply | EventReply) -> AsyncIterator[list[Event]]:
        self._rounds = Rounds(reply.losses)
        while True:
            answer = Holding(self._checking, self._rounds.place, self._rounds.starts)
            reading = Reading(reply, self._inner.dialect, request)
            try:
                async for events in reading.events():
                    if kept := answer.send(events):
                        yield kept
                    if not self._held_since and answer.calls:
                        self._held_since = time.monotonic()
                    if answer.is_over:
                        break
                await reading.finish()
            finally:
                await reading.release()
            if answer.finished is None:  # it has failed, or has no end
                return
            self._rounds.add_usage(answer.finished.usage)
            wrong = self._looked_through(answer)
            again = await self._again(request, answer, wrong) if wrong else None
            if again is None:
                yield self._ending(answer, wrong)
                return
            request, reply = again
            if losses := self._rounds.new_losses(reply.losses):
                yield losses

    def _looked_through(self, answer: Holding) -> list[Held]:
        """The calls that are wrong; a right one that the model repeats though it was told not to is dropped."""
        wrong = [held for held in answer.calls if held.is_wrong]
        self._checking.tally.corrected += max(0, self._wrong - len(wrong))
        self._wrong = len(wrong)
        known = {_said(held) for held in self._kept}
        for held in answer.calls:
            held.is_dropped = not held.is_wrong and _said(held) in known
            held.part = self._identified(held.part)
        return wrong

    def _identified(self, call: object) -> ToolCall:
        """One id, one call: some servers count them anew in each answer."""
        assert isinstance(call, ToolCall)
        named = replace(call, id=new_id("call_")) if not call.id or call.id in self._ids else call
        self._ids.add(named.id)
        return named

    async def _again(
        self, request: Request, answer: Holding, wrong: list[Held]
    ) -> tuple[Request, WireReply | EventReply] | None:
        """Tell the model and ask once more; None where that would not help, or is no longer allowed."""
        tally = self._checking.tally
        if answer.is_cut or tally.corrections >= self._terms.corrections or self._is_looping(wrong):
            return None
        told = self._told(request, answer)
        try:
            reply = await self._inner.open(told, is_verbatim=False)
        except GatewayError as error:
            self._checking.notes.append(
                Loss("call.correction", "answer", f"it could not be asked for: {error.message}")
            )
            return None
        tally.corrections += 1
        self._kept += [held for held in answer.calls if not held.is_wrong and not held.is_dropped]
        return told, reply

    def _is_looping(self, wrong: list[Held]) -> bool:
        for held in wrong:
            assert isinstance(held.part, ToolCall)
            assert isinstance(held.finding, Invalid | Unknown)
            self._failures[(held.part.name, held.part.raw, reason_of(held.finding))] += 1
        return any(count >= _SAME for count in self._failures.values())

    def _told(self, request: Request, answer: Holding) -> Request:
        """The next request: what was said, and for each call what is wrong with it."""
        results = [Message(role="tool", parts=(self._result(held),)) for held in answer.calls]
        messages = (*request.messages, Message(role="assistant", parts=answer.said), *results)
        return settle(replace(request, messages=messages)).request

    def _result(self, held: Held) -> ToolResult:
        call, finding = held.part, held.finding
        assert isinstance(call, ToolCall)
        text = _WAITING
        if isinstance(finding, Invalid | Unknown):
            text = encode(self._checking.feedback(call, finding)).decode()
        return ToolResult(call_id=call.id, parts=(Text(text=text),), is_error=held.is_wrong, name=call.name)

    def _ending(self, answer: Holding, wrong: list[Held]) -> list[Event]:
        assert answer.finished is not None
        tally = self._checking.tally
        if self._held_since:
            tally.held_seconds += time.monotonic() - self._held_since
        tally.exhausted += bool(wrong and self._terms.corrections)
        if wrong and self._terms.policy == "error":
            return [Failed(error=self._refusal(wrong[0], tally.corrections))]
        events = [event for held in self._kept for event in answer.let_go(held)]
        events += answer.released(self._terms.policy)
        events += [Noted(note=note) for note in self._checking.notes]
        return [*events, _counted(answer.finished, self._rounds)]

    def _refusal(self, held: Held, corrections: int) -> UpstreamError:
        assert isinstance(held.part, ToolCall)
        assert isinstance(held.finding, Invalid | Unknown)
        tries = f" after {corrections} corrections" if corrections else ""
        is_unknown = isinstance(held.finding, Unknown)
        return UpstreamError(
            f"the model called {quote(held.part.name)}, {reason_of(held.finding)}{tries}.",
            status=502,
            code="unknown_tool" if is_unknown else "invalid_tool_arguments",
        )


def _said(held: Held) -> tuple[str, bytes]:
    call = held.part
    assert isinstance(call, ToolCall)
    return call.name, encode(call.args) if call.args is not None else call.raw.encode("utf-8", "surrogatepass")


def _counted(finished: Finished, rounds: Rounds) -> Finished:
    """The end of all of it, with what all of it took."""
    return finished if rounds.usage is finished.usage else replace(finished, usage=rounds.usage)
