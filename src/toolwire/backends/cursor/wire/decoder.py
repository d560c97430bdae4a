"""Cursor: the answers that a run gives, out of the messages of its stream.

A run is one turn of the model's, over one stream. Where it calls tools of the client's the answer ends, and the run waits: it is
parked until give() brings the results, and what follows is another answer of the same run.

Three kinds of messages come. Housekeeping (blobs, context, permissions, questions to a person) is answered at once, whatever the
state, since the server stops until it is. What the model says and wants makes the events of the present answer; while the run is
parked there is none, so it is kept, in order, and told when the next one begins: a call that comes late is that answer's, never lost
and never told twice. The rest (heartbeats, counts, announcements) changes what is known, and says nothing.

No message says that a model's calls are complete. is_waiting and expects_more are what there is to go by; whoever has a clock calls
settle().

Nor does every run say that its turn is over. Runs were seen whose text came only as blobs after the results of calls, then nothing but
heartbeats, and others whose stream ended in order without turn_ended. heartbeats counts those without progress, and conclude() ends
the answer with the text there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError

from ....dialects.base import garbage
from ....errors import GatewayError, UpstreamError
from ....events import Event
from ....types import Loss, ToolCall, ToolResult
from ....wire.connect import ConnectFault
from ....wire.exact_json import encode
from . import agent
from .answer import SAID, Telling
from .blobs import Blobs
from .errors import error_of
from .exec_routing import Outlook, Reply, Wanted, housekeeping, in_words, wanted
from .execs import Exec, answer_query, exec_of, heartbeat, key_of, rejected
from .pending import MOST_CALLS, Announcements, Kept, Said, Waiting, call_id_of

_TOO_LATE = "The answer is over; nobody waits for this any more."


class TurnDecoder:
    """One run. progress counts what was more than a sign of life, heartbeats those since the last progress; is_ended: the run gives
    no further answers."""

    def __init__(self, outlook: Outlook) -> None:
        self.is_ended = False
        self.progress = 0
        self.heartbeats = 0
        self._outlook = outlook
        self._blobs = Blobs(outlook.opening.blobs)
        self._telling = Telling(outlook.model, self._blobs)
        self._waiting = Waiting(outlook.mint)
        self._announced = Announcements()
        self._kept = Kept()
        self._error: GatewayError | None = None  # that came while nobody was told
        self._declined = ""  # a description of the model's last refused call

    @property
    def has_text(self) -> bool:
        """The present answer has text, or the last one if none is open."""
        return self._telling.has_text

    @property
    def has_unsent_text(self) -> bool:
        """A blob may hold text that the client has not got."""
        return bool(self._blobs.untold)

    @property
    def has_output(self) -> bool:
        """The present answer has any part, or the last one if none is open."""
        return self._telling.speech.has_parts

    @property
    def calls(self) -> list[ToolCall]:
        """Of the present answer, or of the one that the run is parked after."""
        return self._telling.speech.calls

    @property
    def has_spoken(self) -> bool:
        """Something of the model was seen: the request must not be sent again."""
        return self._telling.has_spoken

    @property
    def is_over(self) -> bool:
        return self._telling.is_over

    @property
    def is_waiting(self) -> bool:
        """Calls are out, and it is not known whether more will come."""
        return bool(self.calls) and not self.is_over

    @property
    def expects_more(self) -> bool:
        """A call was announced whose exec has not come yet, and the answer has room for it."""
        return bool(self._announced) and (self._outlook.is_parallel or not self.calls)

    def receive(self, data: bytes) -> Reply:
        """One AgentServerMessage."""
        reply = Reply()
        try:
            message = agent.AgentServerMessage.FromString(data)
        except DecodeError:
            reply.events += self._break(f"the Cursor back end sent {len(data)} bytes that are none of its messages.")
            return reply
        member = message.WhichOneof("message")
        if member is not None:
            _HEARD[member](self, getattr(message, member), data, reply)
        return reply

    def end(self, fault: ConnectFault | None) -> list[Event]:
        """The stream has ended. Calls that are out are whole, and with them the answer; so is text where it ended in order."""
        self.is_ended = True
        self._error = self._error or self._error_of(fault)
        is_whole = bool(self.calls) or self._telling.turn is not None
        events: list[Event] = []
        if fault is None and not self.is_over and not is_whole:
            events = self._telling.conclude("the service ended the stream and not the turn; the text may be incomplete")
        return events + self._conclude(self._error)

    def stall(self) -> list[Event]:
        """Only heartbeats come: the answer ends with the text that has come as a blob, and goes on where there is none."""
        if self.is_over or self.is_waiting or not self._blobs.untold:
            return []
        return self._telling.conclude("the service never ended the turn; its text was taken from a blob")

    def settle(self) -> list[Event]:
        """No more calls are awaited: the answer ends with those that came."""
        return self._telling.finish() if self.is_waiting else []

    def exhaust(self, why: str) -> list[Event]:
        """The model keeps making calls that are refused: the answer ends with the text there is, or with a description of its last
        call. Without either there are no events."""
        if self.is_over or self.calls or not (self.has_text or self._blobs.untold or self._declined):
            return []
        return self._telling.exhaust(self._declined, why)

    def cut(self, error: GatewayError) -> list[Event]:
        """Nothing more can be had of this run, or is wanted; error is what the answer fails with, unless it has calls, which are
        whole, or the turn had ended."""
        self.is_ended = True
        return self._conclude(error)

    def give(self, results: Mapping[str, ToolResult]) -> Reply:
        """The results of the last answer's calls; then the next one begins, with what was kept for it."""
        reply = Reply()
        if not self.is_over or not self.calls:
            return reply
        self.heartbeats = 0
        reply.send += self._waiting.take(results)
        reply.events += self._telling.next()
        while self._kept and (not self._kept.is_wanted(self._kept.first) or self._tell(self._kept.first, reply)):
            self._kept.drop_first()
        if self.is_ended:
            reply.events += self._conclude(self._error or self._error_of(None))
        return reply

    def ran(self, exec: Exec) -> None:
        """One of a reply's local ones has been answered, and needs no more heartbeats."""
        self._waiting.ran(exec)

    def exec_heartbeats(self) -> list[bytes]:
        """For all that the server waits for, also what is still to be told."""
        execs = [*self._waiting.execs, *self._kept.execs.values()]
        return [heartbeat(number) for number in dict.fromkeys(exec.id for exec in execs)]

    def _move(self) -> None:
        self.progress += 1
        self.heartbeats = 0

    def _blob(self, message: agent.KvServerMessage, data: bytes, reply: Reply) -> None:
        self._move()
        reply.send.append(self._blobs.answer(message))
        if self._telling.turn is not None and not self.is_over and self._blobs.untold:
            reply.events += self._telling.finish()

    def _query(self, message: agent.InteractionQuery, data: bytes, reply: Reply) -> None:
        self._move()
        self._telling.has_spoken = True
        reply.declined += 1
        reply.send.append(answer_query(message))

    def _checkpoint(self, message: agent.ConversationStateStructure, data: bytes, reply: Reply) -> None:
        self._move()
        self._telling.meter.checkpoint(message.token_details)
        reply.used = max(0, message.token_details.used_tokens)

    def _control(self, message: agent.ExecServerControlMessage, data: bytes, reply: Reply) -> None:
        if message.WhichOneof("message") == "abort":
            reply.aborted += self._waiting.abort(message.abort.id)
            self._kept.abort(message.abort.id)

    def _exec(self, message: agent.ExecServerMessage, data: bytes, reply: Reply) -> None:
        self._move()
        exec = exec_of(message)
        kept = housekeeping(exec, self._outlook)
        if kept is not None:
            reply.send += kept.send
            reply.declined += kept.is_declined
            return
        self._telling.has_spoken = True
        self._announced.came(exec)
        self._blobs.untold.called(call_id_of(exec))
        if not self._waiting.has(exec) and key_of(exec) not in self._kept.execs:
            self._hear(Said("exec", exec, data), reply)

    def _update(self, message: agent.InteractionUpdate, data: bytes, reply: Reply) -> None:
        kind = message.WhichOneof("message")
        if kind == "heartbeat":
            self.heartbeats += 1
        if kind is None or kind == "heartbeat":
            return
        self._move()
        value = getattr(message, kind)
        if self._announced.heard(kind, value):
            self._telling.has_spoken = True
        elif kind == "routed_model":
            self._telling.routed = value.display_name
        elif kind in SAID:
            self._hear(Said(kind, value, data), reply)
        self.is_ended = self.is_ended or kind == "turn_ended"

    def _hear(self, said: Said, reply: Reply) -> None:
        """Told now, or kept for the next answer; where none will be there is nothing to keep it for."""
        if self.is_over and (self.is_ended or not self.calls):
            if said.kind == "exec":
                reply.send += rejected(said.value, _TOO_LATE)
        elif (self.is_over or self._kept or not self._tell(said, reply)) and not self._kept.add(said):
            reply.events += self._break("the Cursor back end sent too much while its run waited for results.")

    def _tell(self, said: Said, reply: Reply) -> bool:
        """False: the answer has no room for it."""
        if self.is_over:
            return True  # the turn ended before this
        if said.kind == "exec":
            return self._want(wanted(said.value, said.data, self._outlook), reply)
        reply.events += self._telling.say(said.kind, said.value)
        return True

    def _want(self, want: Wanted, reply: Reply) -> bool:
        if want.answer is not None and self.calls and not self._outlook.is_parallel:
            return False
        reply.events += self._telling.end_step()
        if want.answer is None:
            reply.send += want.send
            reply.local += want.local
            reply.declined += want.loss is not None
            self._declined = in_words(want.exec) if want.loss is not None else self._declined
            reply.events += self._telling.note(want.loss)
            self._waiting.run(want.local)
        elif len(self.calls) >= MOST_CALLS:
            reply.send += rejected(want.exec, f"No more than {MOST_CALLS} calls can wait at a time.")
            reply.declined += 1
            reply.events += self._telling.note(Loss("call.number", want.name[:60], "too many calls at a time"))
        else:
            call_id = self._waiting.add(want.exec, want.answer)
            raw = encode(want.args).decode()
            reply.events += self._telling.after_begin(self._telling.speech.call(call_id, want.name, raw))
        return True

    def _conclude(self, error: GatewayError) -> list[Event]:
        """There will be no more messages: the answer that is under way ends as well as it can."""
        if self.is_over:
            return []
        if self._telling.turn is not None:
            return self._telling.finish()
        return self.settle() or self._telling.fail(error)

    def _break(self, message: str) -> list[Event]:
        """The rest of the stream cannot be relied on."""
        self.is_ended = True
        self._error = self._error or garbage(message)
        return [] if self.is_over else self._telling.fail(self._error)

    def _error_of(self, fault: ConnectFault | None) -> GatewayError:
        if fault is not None:
            return error_of(fault, has_spoken=self.has_spoken)
        message = "the stream of the Cursor back end ended before the model's turn did."
        return UpstreamError(message, code="upstream_cut", retryable=not self.has_spoken)


_Hears: TypeAlias = Callable[[TurnDecoder, Any, bytes, Reply], None]

_HEARD: dict[str, _Hears] = {
    "interaction_update": TurnDecoder._update,
    "exec_server_message": TurnDecoder._exec,
    "conversation_checkpoint_update": TurnDecoder._checkpoint,
    "kv_server_message": TurnDecoder._blob,
    "exec_server_control_message": TurnDecoder._control,
    "interaction_query": TurnDecoder._query,
}


__all__ = ["Outlook", "Reply", "TurnDecoder"]
