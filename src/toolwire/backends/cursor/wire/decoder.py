"""Decodes the messages of one run into the events of its answers.

A run is one turn of the model on one stream. Where the model calls tools of the client the answer ends and the run waits: it is
parked until resume() brings the results, and what follows is another answer of the same run.

Three kinds of messages come. Housekeeping (blobs, context, permissions, questions to a person) is answered at once in any state,
because the server waits for it. ModelOutput of the model (text, thoughts, execs) becomes events of the current answer; while the run is
parked there is none, so output is deferred in order: a call that comes late belongs to the next answer. All other messages
(heartbeats, counts, announcements) only change what is known.

No message says that a model's calls are complete. The owner of the decoder has the clock: it looks at is_waiting and expects_more,
and calls end_calls().

Some runs never end their turn. Runs were seen whose text came only as blobs after the results of calls and then sent only
heartbeats, and runs whose stream ended without turn_ended. heartbeats counts those since the last progress; end_stalled() and
end() then end the answer with the text there is.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.message import DecodeError
from msgspec import Struct

from ....dialects.base import garbage
from ....errors import GatewayError, UpstreamError
from ....events import Event
from ....types import Loss, ToolCall, ToolResult
from ....wire.connect import ConnectFault
from ....wire.exact_json import encode
from . import agent
from .answer import OUTPUT, AnswerEvents
from .blobs import Blobs
from .errors import error_of
from .exec_routing import ExecPlan, RunContext, answer_housekeeping, describe_exec, plan_exec
from .execs import Exec, answer_query, exec_of, heartbeat, key_of, rejected
from .pending import MAX_CALLS, Announcements, DeferredOutput, ModelOutput, WaitingCalls, call_id_of


class DecoderReply(Struct):
    """Results of one message: events for the client and messages for the server, in order.

    local: execs for the gateway to run; aborted: numbers of those to stop. declined: requests of the model that were refused. used:
    tokens of the context, if the server reported them.
    """

    events: list[Event] = []
    send: list[bytes] = []
    local: list[Exec] = []
    aborted: list[int] = []
    declined: int = 0
    used: int = 0


class RunDecoder:
    """One run. progress counts messages other than heartbeats, heartbeats those since the last progress. is_ended: the run gives
    no further answers. has_seen_output: the model has begun, so the request must not be sent again. answer is the current answer, or
    the last one if none is open."""

    def __init__(self, context: RunContext) -> None:
        self.is_ended = False
        self.progress = 0
        self.heartbeats = 0
        self.has_seen_output = False
        self._context = context
        self.blobs = Blobs(context.opening.blobs)
        self.answer = AnswerEvents(context.model, self.blobs)
        self._calls = WaitingCalls(context.new_call_id)
        self._announced = Announcements()
        self._deferred = DeferredOutput()
        self._error: GatewayError | None = None  # that came while no answer was open
        self._last_declined = ""  # description of the model's last refused call

    @property
    def calls(self) -> list[ToolCall]:
        """Of the current answer, or of the one that the run is parked after."""
        return self.answer.parts.calls

    @property
    def is_over(self) -> bool:
        return self.answer.is_over

    @property
    def is_waiting(self) -> bool:
        """The answer has calls, and more may come."""
        return bool(self.calls) and not self.is_over

    @property
    def expects_more(self) -> bool:
        """A call was announced whose exec has not come yet, and the answer has room for it."""
        return bool(self._announced) and (self._context.is_parallel or not self.calls)

    def receive(self, data: bytes) -> DecoderReply:
        """One AgentServerMessage."""
        reply = DecoderReply()
        try:
            message = agent.AgentServerMessage.FromString(data)
        except DecodeError:
            reply.events += self._break(f"the Cursor back end sent {len(data)} bytes that are none of its messages.")
            return reply
        match message.WhichOneof("message"):
            case "interaction_update":
                self._update(message.interaction_update, data, reply)
            case "exec_server_message":
                self._exec(message.exec_server_message, data, reply)
            case "conversation_checkpoint_update":
                self._count_progress()
                details = message.conversation_checkpoint_update.token_details
                self.answer.meter.checkpoint(details)
                reply.used = max(0, details.used_tokens)
            case "kv_server_message":
                self._count_progress()
                reply.send.append(self.blobs.answer(message.kv_server_message))
                if self.answer.turn is not None and not self.is_over and self.blobs.unsent:
                    reply.events += self.answer.finish()
            case "exec_server_control_message" if message.exec_server_control_message.HasField("abort"):
                number = message.exec_server_control_message.abort.id
                reply.aborted += self._calls.abort(number)
                self._deferred.abort(number)
            case "interaction_query":
                self._count_progress()
                self.has_seen_output = True
                reply.declined += 1
                reply.send.append(answer_query(message.interaction_query))
        return reply

    def end(self, fault: ConnectFault | None) -> list[Event]:
        """The stream has ended. Calls that were sent are complete; so is text if the stream ended without a fault."""
        self.is_ended = True
        self._error = self._error or self._error_of(fault)
        events: list[Event] = []
        if fault is None and not self.is_over and not self.calls and self.answer.turn is None:
            events = self.answer.end_unfinished(
                "the service ended the stream and not the turn; the text may be incomplete"
            )
        return events + self._conclude(self._error)

    def end_stalled(self) -> list[Event]:
        """End the answer with the text that was stored as a blob. Without such text there are no events."""
        if self.is_over or self.is_waiting or not self.blobs.unsent:
            return []
        return self.answer.end_unfinished("the service never ended the turn; its text was taken from a blob")

    def end_calls(self) -> list[Event]:
        """No more calls are expected: the answer ends with those that came."""
        return self.answer.finish() if self.is_waiting else []

    def end_runaway(self, why: str) -> list[Event]:
        """The model keeps making calls that are refused: the answer ends with the text there is, or with a description of the last
        call. Without either there are no events."""
        if self.is_over or self.calls or not (self.answer.has_text or self.blobs.unsent or self._last_declined):
            return []
        return self.answer.end_runaway(self._last_declined, why)

    def fail(self, error: GatewayError) -> list[Event]:
        """The run is gone. The answer fails with error, unless it has complete calls or the turn had ended."""
        self.is_ended = True
        return self._conclude(error)

    def resume(self, results: Mapping[str, ToolResult]) -> DecoderReply:
        """The results of the last answer's calls start the next answer, with the deferred output."""
        reply = DecoderReply()
        if not self.is_over or not self.calls:
            return reply
        self.heartbeats = 0
        reply.send += self._calls.take(results)
        reply.events += self.answer.start_next()
        deferred = self._deferred
        while deferred and (not deferred.is_wanted(deferred.first) or self._apply(deferred.first, reply)):
            deferred.drop_first()
        if self.is_ended:
            reply.events += self._conclude(self._error or self._error_of(None))
        return reply

    def finish_local(self, exec: Exec) -> None:
        """A local exec of a reply has been answered, and needs no more heartbeats."""
        self._calls.finish_local(exec)

    def exec_heartbeats(self) -> list[bytes]:
        """For all execs that the server waits for, including deferred ones."""
        execs = [*self._calls.execs, *self._deferred.execs.values()]
        return [heartbeat(number) for number in dict.fromkeys(exec.id for exec in execs)]

    def _count_progress(self) -> None:
        self.progress += 1
        self.heartbeats = 0

    def _exec(self, message: agent.ExecServerMessage, data: bytes, reply: DecoderReply) -> None:
        self._count_progress()
        exec = exec_of(message)
        housekeeping = answer_housekeeping(exec, self._context)
        if housekeeping is not None:
            messages, is_declined = housekeeping
            reply.send += messages
            reply.declined += is_declined
            return
        self.has_seen_output = True
        self._announced.resolve(exec)
        self.blobs.unsent.add_call(call_id_of(exec))
        if not self._calls.has(exec) and key_of(exec) not in self._deferred.execs:
            self._handle(ModelOutput("exec", exec, data), reply)

    def _update(self, message: agent.InteractionUpdate, data: bytes, reply: DecoderReply) -> None:
        kind = message.WhichOneof("message")
        if kind == "heartbeat":
            self.heartbeats += 1
        if kind is None or kind == "heartbeat":
            return
        self._count_progress()
        value = getattr(message, kind)
        is_text = kind == "thinking_delta" or (kind == "text_delta" and not value.is_server_notice)
        self.has_seen_output = self.has_seen_output or (is_text and bool(value.text))
        if self._announced.update(kind, value):
            self.has_seen_output = True
        elif kind == "routed_model":
            self.answer.routed_model = value.display_name
        elif kind in OUTPUT:
            self._handle(ModelOutput(kind, value, data), reply)
        self.is_ended = self.is_ended or kind == "turn_ended"

    def _handle(self, output: ModelOutput, reply: DecoderReply) -> None:
        """Apply output to the current answer, or defer it to the next one; drop it where no answer will follow."""
        if self.is_over and (self.is_ended or not self.calls):
            if output.kind == "exec":
                reply.send += rejected(output.value, "The answer is over; this is no longer needed.")
        elif (self.is_over or self._deferred or not self._apply(output, reply)) and not self._deferred.add(output):
            reply.events += self._break("the Cursor back end sent too much while its run waited for results.")

    def _apply(self, output: ModelOutput, reply: DecoderReply) -> bool:
        """False: the answer has no room for it."""
        if self.is_over:
            return True  # the turn ended before this
        if output.kind == "exec":
            return self._apply_exec(plan_exec(output.value, output.data, self._context), reply)
        reply.events += self.answer.update(output.kind, output.value)
        return True

    def _apply_exec(self, plan: ExecPlan, reply: DecoderReply) -> bool:
        if plan.answer is not None and self.calls and not self._context.is_parallel:
            return False
        reply.events += self.answer.end_step()
        if plan.answer is None:
            reply.send += plan.send
            reply.local += plan.local
            self._calls.start_local(plan.local)
            if plan.loss is not None:
                reply.declined += 1
                self._last_declined = describe_exec(plan.exec)
                reply.events += self.answer.note(plan.loss)
        elif len(self.calls) >= MAX_CALLS:
            reply.send += rejected(plan.exec, f"No more than {MAX_CALLS} calls can wait at a time.")
            reply.declined += 1
            reply.events += self.answer.note(Loss("call.number", plan.name[:60], "too many calls at a time"))
        else:
            call_id = self._calls.add(plan.exec, plan.answer)
            reply.events += self.answer.call(call_id, plan.name, encode(plan.args).decode())
        return True

    def _conclude(self, error: GatewayError) -> list[Event]:
        """No more messages will come: the open answer ends as well as it can."""
        if self.is_over:
            return []
        if self.answer.turn is not None:
            return self.answer.finish()
        return self.end_calls() or self.answer.fail(error)

    def _break(self, message: str) -> list[Event]:
        """The rest of the stream cannot be trusted."""
        self.is_ended = True
        self._error = self._error or garbage(message)
        return [] if self.is_over else self.answer.fail(self._error)

    def _error_of(self, fault: ConnectFault | None) -> GatewayError:
        if fault is not None:
            return error_of(fault, has_seen_output=self.has_seen_output)
        message = "the stream of the Cursor back end ended before the model's turn did."
        return UpstreamError(message, code="upstream_cut", retryable=not self.has_seen_output)
