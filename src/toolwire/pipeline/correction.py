"""Holds calls until they are valid: repaired where only one meaning is possible, else corrected by the model.

The client sees one answer. Text is sent as it comes, up to the first call. Calls and what follows them are sent when all calls are valid, or
when the model has used its corrections; the policy then decides about the invalid ones: "pass" sends them unchanged, "text" as text, "error"
fails the answer. A corrected call replaces the invalid one; text after the invalid call is sent before the correction.

If the server constrains its output to a schema, the first correction asks for nothing but the arguments of the invalid calls
(calls/argument_request.py). They take the place of the invalid ones, and the answer needs no other round. If the server ignores the
schema and calls tools again, those calls are the correction. Otherwise, or if that fails, the model gets the errors as results of its
calls and answers again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from msgspec.structs import replace

from ..backends.base import Backend, EventReply, WireReply
from ..calls.argument_request import ArgumentRequest
from ..calls.arguments import Invalid, Repaired
from ..calls.held_calls import HeldAnswer, HeldCall
from ..calls.ledger.repair import Recipient, repair_history
from ..calls.tools.adapter import adapt_ids, with_history_tools
from ..calls.validation import CallValidator, CutCall, UnknownCall, cut_choices
from ..config.policy import Corrections
from ..errors import GatewayError, UpstreamError, quote
from ..events import Event, Failed, Finished, Noted, PartEnded
from ..ids import new_id
from ..types import JsonObject, Loss, Message, Request, Text, Tool, ToolCall, ToolChoice, ToolResult
from ..wire.exact_json import BadJson, encode
from .answer import ReplyReader
from .grammar import GrammarSupport, no_grammar
from .simulation import ScanningBackend
from .wrapper import BackendWrapper, Rounds, added_messages, wrap_reply

_MOST_CALLS = 64  # an answer with more calls is not corrected
_NO_SCHEMAS = (400, 404, 422, 501)  # statuses of a server that does not support schemas
_SAME = 3  # failures of the same call in the same way, after which a model will not learn
_WAITING = (
    "This call was accepted and will be run together with the corrected one. Do not repeat it; "
    "only correct the calls that were refused."
)


class CorrectingBackend(BackendWrapper):
    def __init__(
        self, inner: Backend, checking: CallValidator, terms: Corrections, grammar: GrammarSupport | None = None
    ) -> None:
        super().__init__(inner)
        self._checking = checking
        self._terms = terms
        self._grammar = grammar or no_grammar()

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        reply = await self._inner.open(request, is_verbatim=False)
        answer = _CorrectedAnswer(self._inner, self._checking, self._terms, self._grammar)
        return wrap_reply(reply, answer.play(request, reply))


class _CorrectedAnswer:
    """One answer for the client, made of several rounds of the model."""

    def __init__(self, inner: Backend, checking: CallValidator, terms: Corrections, grammar: GrammarSupport) -> None:
        self._inner = inner
        self._checking = checking
        self._terms = terms
        self._grammar = grammar
        self._is_constrained = False  # arguments were requested under their schemas
        self._refused_with = 0  # the status of the last correction that the back end refused
        self._rounds = Rounds()
        self._answer: HeldAnswer | None = None  # the last complete one
        self._failures = Counter[tuple[str, str, str]]()
        self._ids: set[str] = set()
        self._item_ids: set[str] = set()
        self._held_since = 0.0

    async def play(self, request: Request, reply: WireReply | EventReply) -> AsyncIterator[list[Event]]:
        self._rounds = Rounds(reply.losses, is_bound=self._inner.profile.is_bound(request.model))
        losses: list[Event] = []
        while True:
            earlier = self._answer.right if self._answer is not None else ()
            answer = HeldAnswer(self._checking, self._rounds.place, self._rounds.starts, earlier)
            reader = ReplyReader(reply, self._inner.dialect, request)
            try:
                if losses:  # in here: a client that disconnects now must stop the new reply
                    yield losses
                async for events in reader.events():
                    if kept := answer.send(events):
                        yield self._rounds.without_proofs(kept)
                    if answer.held and not self._held_since:
                        self._held_since = time.monotonic()
                    if answer.is_over:
                        break
            except GatewayError as error:
                answer.send([Failed(error=error)])
            finally:
                await reader.release(is_over=answer.finished is not None)
            if not answer.is_over:  # the caller reports an answer without an end
                return
            again = await self._correct(request, answer) if answer.finished is not None else None
            if again is None:
                yield self._rounds.without_proofs(self._ending(answer))
                return
            request, reply = again
            self._rounds.hide()
            self._checking.tally.last_round = self._rounds.count
            losses = self._rounds.new_losses(reply.losses)

    async def _correct(self, request: Request, answer: HeldAnswer) -> tuple[Request, WireReply | EventReply] | None:
        """Send the errors to the model; None where nothing is wrong, or another round would not help or is not allowed."""
        self._identify_calls(answer)
        tally, wrong = self._checking.tally, self._correctable(answer)
        is_silent = self._is_silent(answer)
        terms = self._terms
        most = max(terms.corrections, terms.reminders) if is_silent else terms.corrections
        if not (wrong or is_silent) or answer.is_cut or tally.corrections >= most:
            return None
        if self._is_looping(wrong):
            return None
        if len(answer.calls) > _MOST_CALLS:
            self._note(
                f"the answer has {len(answer.calls)} calls; answers with more than {_MOST_CALLS} are not corrected"
            )
            return None
        next_request = self._reminded(request, answer) if is_silent else self._with_errors(request, answer)
        reply: WireReply | EventReply | None = None
        if wrong:
            reply = await self._constrain(request, answer, wrong)
            if reply is None and (not self._correctable(answer) or tally.corrections >= self._terms.corrections):
                return None
        reply = reply or await self._open(next_request)
        return None if reply is None else (next_request, reply)

    async def _open(self, request: Request) -> WireReply | EventReply | None:
        """None if the back end refuses the correction."""
        tally = self._checking.tally
        try:
            reply = await self._inner.open(request, is_verbatim=False)
        except GatewayError as error:
            tally.refused += error.status == 400
            self._refused_with = error.status
            self._note(f"the back end refused the request for it ({error.status}, {error.code})")
            return None
        except BadJson as fault:
            self._note(f"the answer of the model cannot be encoded: {fault}")
            return None
        tally.corrections += 1
        return reply

    async def _constrain(self, request: Request, answer: HeldAnswer, wrong: list[HeldCall]) -> EventReply | None:
        """Request the arguments of the invalid calls under their schemas, once, and replace the calls.

        Returns the reply if it has calls of its own, to be read like any other correction.
        """
        candidates = [self._candidates(held, request.tools) for held in wrong]
        if self._is_constrained or not self._grammar.may_constrain or not all(candidates):
            return None
        self._is_constrained = True
        asked = ArgumentRequest(candidates)
        hints = {id(held): asked.hint(index) for index, held in enumerate(wrong)}
        sent = asked.request(self._with_errors(request, answer, hints))
        if self._inner.profile.is_bound(request.model):  # its reasoning is valid only with the same tools
            sent = replace(sent, tools=request.tools, tool_choice=ToolChoice(mode="none"))
        sent = with_history_tools(sent, self._inner.profile).request
        notes = len(self._checking.notes)
        reply = await self._open(sent)
        if reply is None:
            if self._refused_with in _NO_SCHEMAS:
                del self._checking.notes[notes:]  # the errors as text are still to come
                self._grammar.record(works=False)
            return None
        events = await self._read_reply(sent, reply)
        text = _whole_text(events)
        made = asked.calls(text, [held.part for held in wrong]) if text is not None else None
        if made is None and _has_calls(called := self._with_written_calls(request, events)):
            self._grammar.record(works=False)
            return EventReply(events=_replay(called))
        self._note_end(events)
        if text is None:
            return None
        fixed = [self._replace_call(held, call) for held, call in zip(wrong, made or (), strict=False)]
        self._grammar.record(works=bool(fixed) and all(fixed))
        self._checking.tally.corrected += sum(fixed)
        return None

    def _with_written_calls(self, request: Request, events: list[Event]) -> list[Event]:
        """The events, with calls in their text as calls where this back end's models write them."""
        inner = self._inner
        return inner.splitter(request).send(events) if isinstance(inner, ScanningBackend) else events

    def _candidates(self, held: HeldCall, tools: tuple[Tool, ...]) -> list[Tool]:
        """The tools that the call may name, with the schemas that the back end accepts."""
        offer = self._checking.offer
        named = offer.tool(held.part.name) if isinstance(held.fault, Invalid) else None
        offered = [tool for tool in tools if tool.kind == "function" and offer.tool(tool.name) is not None]
        return [tool for tool in offered if named is None or tool.name == named.name] or offered

    async def _read_reply(self, request: Request, reply: WireReply | EventReply) -> list[Event]:
        """All events of a constrained answer, up to its end; those that came if it fails."""
        reader = ReplyReader(reply, self._inner.dialect, request)
        read: list[Event] = []
        is_over = False
        try:
            async for events in reader.events():
                read += events
                is_over = any(isinstance(event, Finished | Failed) for event in events)
                if is_over:
                    break
        except GatewayError as error:
            read.append(Failed(error=error))
        finally:
            await reader.release(is_over=is_over)
        return read

    def _note_end(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Failed):
                self._note(f"the correction failed ({event.error.status}, {event.error.code})")
            elif isinstance(event, Finished):
                self._rounds.add_usage(event.usage)

    def _replace_call(self, held: HeldCall, call: ToolCall) -> bool:
        """Put the call in the place of an invalid one, if it is valid itself."""
        call = self._checking.decoded(self._checking.offer.named(call))
        finding = self._checking.find(call, is_cut=False, may_repair=True)
        if isinstance(finding, Invalid | UnknownCall | CutCall):
            return False
        if isinstance(finding, Repaired):
            call = replace(call, raw=finding.raw, args=finding.args)
        held.part, held.finding = call, finding
        return True

    def _correctable(self, answer: HeldAnswer) -> list[HeldCall]:
        is_corrected = self._terms.unknown == "correct"
        return [held for held in answer.wrong if is_corrected or not isinstance(held.fault, UnknownCall)]

    def _is_silent(self, answer: HeldAnswer) -> bool:
        """The model had to call a tool, and has not in any round."""
        return bool(self._terms.reminder) and not answer.calls and not answer.accepted

    def _reminded(self, request: Request, answer: HeldAnswer) -> Request:
        said = Message(role="assistant", parts=answer.parts)
        reminder = Message(role="user", parts=(Text(text=self._terms.reminder),))
        messages = (*request.messages, *((said,) if answer.parts else ()), reminder)
        return replace(added_messages(request, self._repaired(replace(request, messages=messages))), wire=b"")

    def _identify_calls(self, answer: HeldAnswer) -> None:
        """Make ids unique, and drop valid calls that the model repeats."""
        before = self._answer
        known = {_meaning(held) for held in answer.accepted}
        for held in answer.calls:
            held.part = self._identified(held.part)
            held.is_dropped = held.fault is None and _meaning(held) in known
        if before is not None:
            new = sum(held.fault is None and not held.is_dropped for held in answer.calls)
            self._checking.tally.corrected += min(new, max(0, len(before.wrong) - len(answer.wrong)))
        self._answer = answer
        self._rounds.add_usage(answer.finished.usage if answer.finished is not None else None)

    def _identified(self, call: ToolCall) -> ToolCall:
        """Some servers start their ids again in each answer."""
        if not call.id or call.id in self._ids:
            call = replace(call, id=new_id("call_"))
        if call.item_id in self._item_ids:
            call = replace(call, item_id="")
        self._ids.add(call.id)
        self._item_ids.add(call.item_id)
        return call

    def _is_looping(self, wrong: list[HeldCall]) -> bool:
        self._failures.update({(held.part.name, held.part.raw, held.why) for held in wrong})
        return any(count >= _SAME for count in self._failures.values())

    def _with_errors(
        self, request: Request, answer: HeldAnswer, hints: Mapping[int, JsonObject] | None = None
    ) -> Request:
        """The request with the answer of the model and, for each call, a result that says what is wrong with it.

        hints: members to add to these results, by the id() of the call.
        """
        hints = hints or {}
        results = [Message(role="tool", parts=(self._result(held, hints.get(id(held), {})),)) for held in answer.calls]
        messages = (*request.messages, Message(role="assistant", parts=answer.parts), *results)
        repaired = self._repaired(replace(request, messages=messages))
        return added_messages(
            request, replace(repaired, messages=adapt_ids(repaired.messages, self._inner.profile.ids))
        )

    def _repaired(self, request: Request) -> Request:
        """The new messages in the order that providers accept; the earlier ones have passed this already."""
        return repair_history(request, Recipient(fails_in_words=self._inner.profile.has_text_failures)).request

    def _result(self, held: HeldCall, hint: JsonObject) -> ToolResult:
        call, fault = held.part, held.fault
        text = _WAITING if fault is None else encode(self._checking.feedback(call, fault) | hint).decode()
        return ToolResult(
            call_id=call.id, parts=(Text(text=text),), is_error=fault is not None, name=call.name, kind=call.kind
        )

    def _note(self, why: str) -> None:
        loss = Loss("call.correction", "answer", why)
        if loss not in self._checking.notes:
            self._checking.notes.append(loss)

    def _ending(self, last: HeldAnswer) -> list[Event]:
        """The last events. If a correction fails before its first part, the answer that it should correct is sent."""
        answer, tally = self._answer, self._checking.tally
        if self._held_since:
            tally.held_seconds += time.monotonic() - self._held_since
        if last.error is not None:
            if answer is None or last.has_sent:
                return [*last.words(), Failed(error=last.error)]
            self._note(f"the correction failed ({last.error.status}, {last.error.code})")
        assert answer is not None
        assert answer.finished is not None
        tally.exhausted += bool(answer.wrong and tally.corrections)
        notes: list[Event] = [Noted(note=note) for note in self._checking.notes]
        if (fatal := self._fatal(answer)) is not None:
            return [*answer.words(), *notes, Failed(error=fatal)]
        if self._is_silent(answer):
            notes.append(Noted(note=Loss("tool_choice", "answer", "the model had to call a tool and did not")))
        finished = replace(answer.finished, usage=self._rounds.usage)
        return [*answer.released(self._terms.policy, self._terms.unknown), *notes, finished]

    def _fatal(self, answer: HeldAnswer) -> UpstreamError | None:
        """The error in which the whole answer fails; None where it does not."""
        terms, corrections = self._terms, self._checking.tally.corrections
        for held in answer.wrong:
            is_unknown = isinstance(held.fault, UnknownCall) and terms.unknown != "correct"
            policy = terms.unknown if is_unknown else terms.policy
            if policy == "error" or (terms.is_strict and self._is_strict(held)):
                return _refusal(held, corrections)
        if terms.policy == "error" and self._is_silent(answer):
            message = "the model had to call a tool and answered with text"
            return UpstreamError(f"{message}{_tries(corrections)}.", status=502, code="tool_choice_ignored")
        return None

    def _is_strict(self, held: HeldCall) -> bool:
        """A call of an unknown tool counts as strict if any tool is strict."""
        offer = self._checking.offer
        tool = offer.tool(held.part.name)
        return tool.strict is True if tool is not None else any(tool.strict for tool in offer.tools)


def _whole_text(events: list[Event]) -> str | None:
    """The text of an answer; None if it failed or is cut."""
    finished = next((event for event in events if isinstance(event, Finished)), None)
    if finished is None or cut_choices(finished):
        return None
    parts = [event.part for event in events if isinstance(event, PartEnded) and event.choice == 0]
    return "".join(part.text for part in parts if isinstance(part, Text))


def _has_calls(events: list[Event]) -> bool:
    return any(isinstance(event, PartEnded) and isinstance(event.part, ToolCall) for event in events)


async def _replay(events: list[Event]) -> AsyncIterator[list[Event]]:
    yield events


def _refusal(held: HeldCall, corrections: int) -> UpstreamError:
    return UpstreamError(
        f"the model called {quote(held.part.name)}, {held.why}{_tries(corrections)}.",
        status=502,
        code="unknown_tool" if isinstance(held.fault, UnknownCall) else "invalid_tool_arguments",
    )


def _tries(corrections: int) -> str:
    return f" after {corrections} correction{'s' if corrections > 1 else ''}" if corrections else ""


def _meaning(held: HeldCall) -> tuple[str, str, bytes]:
    """Equal for two calls that mean the same."""
    call = held.part
    meant = encode(call.args) if call.args is not None else call.raw.encode("utf-8", "surrogatepass")
    return call.namespace, call.name, meant
