"""Codex app-server: decodes the messages of a turn into one answer.

A turn is the model's work until it calls no more tools. The client's tools are not run here, so an answer ends where the model has
called them, and the turn either ends too (it is interrupted, and the next request brings the whole conversation again) or stays
open until results come: then follow() reads on, as another answer.

What ends an answer with calls: the marker rawResponse/completed, where the version has it (0.145), and before that the count of
tokens, which was seen to come while the calls wait (0.89 to 0.110). Where neither comes, is_waiting stays true, and whoever has a
clock calls end_calls() when no other call has followed for a while. A call that comes still later is told at the start of the next
answer.

Codex answers some calls itself: unknown names, or arguments that are not JSON. The model gets an error and tries again; the client
sees none of it, and each is recorded as a loss. After several such calls the answer ends: with an error, or with the text so far where
no tool was offered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from ....dialects.shared.answer_in import Assembly, OpenPart
from ....errors import GatewayError, UpstreamError
from ....events import Event, Failed, Finished, Noted, Started
from ....types import Choice, JsonObject, Loss, Reason, Text, ToolCall, Usage
from ....wire.exact_json import BadJson, decode, encode
from ....wire.json_rpc import Id
from .errors import error_of, gone, incomplete_reason, stuck, unreached, unseen_calls
from .names import CodexToolNames
from .thoughts import CodexReasoning
from .usage import CodexTokenMeter

_ENDS: dict[str, Reason] = {"max_output_tokens": "length", "content_filter": "refused"}
_MOST_DECLINED = 50
_MOST_RESPONSES = 10  # of one answer without tools, where nothing says what they were for
_DECLINED = "Codex asked a person, and there is none: the answer was no"
# Calls of one answer that Codex may answer itself, by what is lost: each is another request to the provider.
_MOST_OWN = {"call.arguments": 5, "call.name": 5, "call.own": 50}


class CodexCall(Struct, kw_only=True):
    """A call that waits for its result. request_id is the server's request for it, None until that has come, and for good where
    the result takes another way. is_told: an answer has shown it to the client."""

    id: str
    name: str
    raw: str
    request_id: Id | None = None
    is_told: bool = False


class CodexTurnDecoder:
    """Takes every message of its thread and ignores those of other turns. After is_over it only records calls."""

    def __init__(
        self, thread_id: str, turn_id: str = "", *, model: str = "", names: CodexToolNames | None = None
    ) -> None:
        self.thread_id = thread_id
        self.turn_id = turn_id  # "" until turn/started tells it; items that are put into a thread are told of before, under another id
        self.is_over = False
        self.calls: dict[str, CodexCall] = {}
        self.rate_limits: JsonObject | None = None
        self.retries = 0  # that Codex made before the first part
        self._model = model
        self._names = names or CodexToolNames()
        self._assembly = Assembly()
        self._thoughts = CodexReasoning(self._assembly)
        self._texts: dict[str, OpenPart] = {}  # open ones, by item
        self._ended: set[str] = set()  # items whose text is all told
        self._raws: dict[str, JsonObject] = {}  # raw calls that may be ours, or Codex's own
        self._meter = CodexTokenMeter()
        self._losses: list[Loss] = []
        self._own_calls: Counter[str] = Counter()
        self._responses = 0  # of the model, by the count of its tokens
        self._total: JsonObject = {}
        self._fault: GatewayError | None = None
        self._has_started = False
        self._has_calls = False

    @property
    def has_output(self) -> bool:
        return self._assembly.count > 0

    @property
    def is_waiting(self) -> bool:
        """There are calls, and more may follow."""
        return self._has_calls and not self.is_over

    @property
    def usage(self) -> Usage | None:
        return self._meter.usage()

    def notify(self, method: str, params: JsonObject) -> list[Event]:
        if method == "account/rateLimits/updated":
            limits = params.get("rateLimits")
            self.rate_limits = limits if isinstance(limits, dict) else self.rate_limits
            return []
        if method == "turn/started" and not self.turn_id and params.get("threadId") == self.thread_id:
            self.turn_id = _text(_object(params, "turn"), "id")
        heard = _HEARD.get(method)
        if heard is None or self.is_over or not self._is_ours(params):
            return []
        return heard(self, params)

    def call(self, id: Id, params: JsonObject) -> list[Event] | None:
        """A request for the result of a client's tool, which stays open. None if it belongs to another turn."""
        call_id = _text(params, "callId")
        if not self._is_ours(params) or not call_id:
            return None
        events = self._add_call(call_id, self._names.client(_text(params, "tool")), params.get("arguments"))
        self.calls[call_id].request_id = id
        return events

    def declined(self, method: str, params: JsonObject) -> list[Event]:
        """A request of the server that was declined: reported with the next event."""
        if self._is_ours(params) and len(self._losses) < _MOST_DECLINED:
            self._losses.append(Loss("call.declined", method[:60], _DECLINED))
        return []

    def end_calls(self) -> list[Event]:
        """Ends the answer with the calls so far."""
        return self._finish("tool_calls") if self.is_waiting else []

    def cut(self, error: GatewayError | None = None) -> list[Event]:
        """The program or its pipe has ended."""
        return [] if self.is_over else self._fail(self._fault or error or gone())

    def follow(self) -> tuple[CodexTurnDecoder, list[Event]]:
        """The next answer of the same turn, and its first events, if there were calls that came too late for this one."""
        other = CodexTurnDecoder(self.thread_id, self.turn_id, model=self._model, names=self._names)
        other.calls, other.rate_limits = self.calls, self.rate_limits
        other._meter = self._meter.follow()
        events: list[Event] = []
        for call in list(self.calls.values()):
            if not call.is_told:
                events += other._tell(call)
        return other, events

    def _is_ours(self, params: JsonObject) -> bool:
        turn_id = params.get("turnId")
        if turn_id is None and isinstance(turn := params.get("turn"), dict):
            turn_id = turn.get("id")
        return params.get("threadId") == self.thread_id and bool(turn_id) and turn_id == self.turn_id

    def _begin(self) -> list[Event]:
        events: list[Event] = []
        if not self._has_started:
            self._has_started = True
            events.append(Started(id=self.turn_id, model=self._model))
        events += [Noted(note=loss) for loss in self._losses]
        self._losses.clear()
        return events

    def _thinking(self, events: list[Event]) -> list[Event]:
        return self._begin() + events if events else []

    def _delta(self, params: JsonObject) -> list[Event]:
        return self._text_events(_text(params, "itemId"), _text(params, "delta"))

    def _text_events(self, item_id: str, text: str) -> list[Event]:
        growing = self._texts.get(item_id)
        if growing is not None:
            return _grow(growing, text)
        if not text or item_id in self._ended:
            return []
        events = self._begin() + self._thoughts.end()
        growing, started = self._assembly.start(Text(text="", item_id=item_id))
        self._texts[item_id] = growing
        return [*events, started, *_grow(growing, text)]

    def _summary(self, params: JsonObject) -> list[Event]:
        place = (_text(params, "itemId"), "summary", _number(params, "summaryIndex"))
        return self._thinking(self._thoughts.grow(*place, _text(params, "delta")))

    def _reasoning(self, params: JsonObject) -> list[Event]:
        place = (_text(params, "itemId"), "thought", _number(params, "contentIndex"))
        return self._thinking(self._thoughts.grow(*place, _text(params, "delta")))

    def _item_done(self, params: JsonObject) -> list[Event]:
        item = _object(params, "item")
        match item.get("type"):
            case "agentMessage":
                return self._message_done(_text(item, "id"), _text(item, "text"))
            case "reasoning":
                return self._thinking(self._thoughts.complete(_text(item, "id"), item))
            case _:
                return []

    def _message_done(self, item_id: str, text: str) -> list[Event]:
        """The complete text, which may not have been streamed."""
        growing = self._texts.get(item_id)
        said = growing.content if growing is not None else ""
        events = self._text_events(item_id, text[len(said) :]) if text.startswith(said) else []
        self._ended.add(item_id)
        growing = self._texts.pop(item_id, None)
        return events if growing is None else events + self._assembly.end(growing)

    def _raw_item(self, params: JsonObject) -> list[Event]:
        item = _object(params, "item")
        match item.get("type"):
            case "function_call":
                return self._raw_call(item)
            case "function_call_output":
                return self._own_call(item)
            case "reasoning":
                return self._thinking(self._thoughts.prove(_text(item, "id"), item.get("encrypted_content")))
            case _:
                return []

    def _raw_call(self, item: JsonObject) -> list[Event]:
        """A call as the model wrote it. One that Codex cannot read, or knows no tool for, it answers itself."""
        call_id, name = _text(item, "call_id"), _text(item, "name")
        self._raws[call_id] = item
        if not call_id or name not in self._names or not _is_json(_text(item, "arguments")):
            return []
        return self._add_call(call_id, self._names.client(name), None)

    def _own_call(self, item: JsonObject) -> list[Event]:
        raw = self._raws.pop(_text(item, "call_id"), None)
        if raw is None or _text(item, "call_id") in self.calls:
            return []
        loss = _own_loss(raw, self._names.client(_text(raw, "name"))[:60], _text(item, "output"))
        self._losses.append(loss)
        self._own_calls[loss.feature] += 1
        count = self._own_calls[loss.feature]
        if count <= _MOST_OWN[loss.feature] or self._has_calls:  # an answer with calls ends by itself
            return []
        return self._fail(stuck(count, loss)) if self._names else self._calls_without_tools(raw)

    def _calls_without_tools(self, raw: JsonObject | None) -> list[Event]:
        """No tool was offered, and the model calls and calls: its text is the answer, or where it has none, the last call. A thread
        that was resumed does not tell the call (raw is None)."""
        if self._texts or self._ended:
            return self._finish("stop")
        if raw is None:
            return self._fail(unseen_calls(self._responses))
        call = CodexCall(id=_text(raw, "call_id"), name=_text(raw, "name"), raw=_text(raw, "arguments"))
        return [*self._tell(call), *self._finish("stop")]

    def _add_call(self, call_id: str, name: str, arguments: object) -> list[Event]:
        """A call of one of the client's tools, told once. Codex may have parsed the arguments; what the model wrote comes first."""
        if call_id in self.calls:
            return []
        raw = self._raws.get(call_id)
        written = _json(arguments) if raw is None else _text(raw, "arguments")
        self.calls[call_id] = CodexCall(id=call_id, name=name, raw=written)
        return [] if self.is_over else self._tell(self.calls[call_id])

    def _tell(self, call: CodexCall) -> list[Event]:
        events = self._begin() + self._thoughts.end()
        item_id = _text(self._raws.get(call.id, {}), "id")
        growing, started = self._assembly.start(ToolCall(id=call.id, name=call.name, raw="", item_id=item_id))
        call.is_told = self._has_calls = True
        return [*events, started, *_grow(growing, call.raw), *self._assembly.end(growing)]

    def _response_done(self, params: JsonObject) -> list[Event]:
        """The model has ended its response. Its calls are all known by their raw items, asked for or not."""
        self._meter.response(params.get("usage"))
        return self._finish("tool_calls") if self._has_calls else []

    def _counted(self, params: JsonObject) -> list[Event]:
        """Old versions count a response as soon as it is over, new ones (0.166) only when its calls are answered: either way no
        call can follow."""
        self._meter.thread(params.get("tokenUsage"))
        total = _object(_object(params, "tokenUsage"), "total")
        if total != self._total:
            self._total, self._responses = total, self._responses + 1
        if self._responses > _MOST_RESPONSES and not self._names and not self._own_calls:
            return self._calls_without_tools(None)
        return self.end_calls()

    def _erred(self, params: JsonObject) -> list[Event]:
        error = _object(params, "error")
        if params.get("willRetry") is not True:
            self._fault = error_of(error)
            return []
        self.retries += 1
        if self.has_output:
            return self._fail(_restarted(unreached(error) or error_of(error)))
        fault = unreached(error)
        return [] if fault is None else self._fail(fault)

    def _turn_done(self, params: JsonObject) -> list[Event]:
        turn = _object(params, "turn")
        error = _object(turn, "error")
        match turn.get("status"):
            case "completed":
                return self._finish("stop", "completed")
            case "interrupted":
                return self._fail(UpstreamError("the turn was interrupted in Codex.", code="interrupted"))
            case _ if raw := incomplete_reason(error):
                return self._finish(_ENDS.get(raw, "other"), raw)
            case _:
                return self._fail(error_of(error) if error else self._fault or gone("it gave no reason"))

    def _finish(self, reason: Reason, raw: str = "") -> list[Event]:
        events = self._begin() + self._thoughts.end() + self._assembly.end_all(is_cut=reason == "length")
        self.is_over = True
        choice = Choice(reason=reason, raw_reason=raw or reason)
        return [*events, Finished(choices=(choice,), usage=self.usage)]

    def _fail(self, error: GatewayError) -> list[Event]:
        events = self._begin()
        self.is_over = True
        return [*events, Failed(error=error)]


_Heard: TypeAlias = Callable[[CodexTurnDecoder, JsonObject], list[Event]]
_HEARD: dict[str, _Heard] = {
    "item/completed": CodexTurnDecoder._item_done,
    "item/agentMessage/delta": CodexTurnDecoder._delta,
    "item/reasoning/summaryPartAdded": CodexTurnDecoder._summary,
    "item/reasoning/summaryTextDelta": CodexTurnDecoder._summary,
    "item/reasoning/textDelta": CodexTurnDecoder._reasoning,
    "rawResponseItem/completed": CodexTurnDecoder._raw_item,
    "rawResponse/completed": CodexTurnDecoder._response_done,
    "thread/tokenUsage/updated": CodexTurnDecoder._counted,
    "error": CodexTurnDecoder._erred,
    "turn/completed": CodexTurnDecoder._turn_done,
}


def _own_loss(raw: JsonObject, name: str, output: str) -> Loss:
    if not _is_json(_text(raw, "arguments")):
        return Loss("call.arguments", name, "they were no JSON; Codex told the model, which went on")
    if output.startswith("unsupported call"):
        return Loss("call.name", name, "no tool has it; Codex told the model, which went on")
    return Loss("call.own", name, "Codex ran one of its own tools")


def _restarted(error: UpstreamError) -> UpstreamError:
    """Codex would stream the text a second time, and sent text cannot be withdrawn."""
    return UpstreamError(
        f"the provider's answer broke off, and what was sent of it cannot be taken back: {error.message}",
        status=502,
        code="upstream_cut",
    )


def _grow(growing: OpenPart, text: str) -> list[Event]:
    return [growing.grow(text)] if text else []


def _json(value: object) -> str:
    """null stands for what nests so deep that it could be read and cannot be written: wrong arguments, as whoever checks them sees."""
    try:
        return encode(value).decode()
    except BadJson:
        return "null"


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except BadJson:
        return False
    return True


def _object(owner: JsonObject, key: str) -> JsonObject:
    value = owner.get(key)
    return value if isinstance(value, dict) else {}


def _text(owner: JsonObject, key: str) -> str:
    value = owner.get(key)
    return value if isinstance(value, str) else ""


def _number(owner: JsonObject, key: str) -> int:
    value = owner.get(key)
    return value if isinstance(value, int) else 0
