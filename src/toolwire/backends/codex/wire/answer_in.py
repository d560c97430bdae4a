"""Codex app-server: decodes the messages of a turn into one answer.

A turn lasts until the model calls no more tools. The client's tools do not run here, so an answer ends after the model's calls. The
turn is then interrupted, and the next request has the whole conversation, or it stays open until results arrive, and follow() decodes
the next answer.

An answer with calls ends at the marker rawResponse/completed, if the version has it (0.145), and before that at the token count, which
was seen to arrive while the calls wait (0.89 to 0.110). If neither arrives, is_waiting stays true, and the caller, who has a clock, calls
end_calls() when no other call has followed for a while. A call that arrives still later is part of the next answer.

Codex answers some calls itself: those with unknown names, or with arguments that are not JSON. The model gets an error and tries again;
the client sees only a loss for each. After several such calls the answer ends: with an error, or with the text so far if no tool was
offered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from ....dialects.shared.answer_in import Assembly, OpenPart
from ....errors import GatewayError, UpstreamError
from ....events import Event, Failed, Finished, Noted, Started
from ....types import Choice, JsonObject, Loss, Reason, Text, ToolCall
from ....wire.exact_json import BadJson, decode, encode
from ....wire.json_rpc import Id
from .errors import error_of, gone, incomplete_reason, stuck, unreached, unseen_calls
from .names import CodexToolNames
from .thoughts import CodexReasoning
from .usage import CodexTokenMeter

_ENDS: dict[str, Reason] = {"max_output_tokens": "length", "content_filter": "refused"}
_MAX_DECLINED = 50
_MAX_RESPONSES = 10  # of one answer without tools, if their calls are not reported
_DECLINED = "Codex asked for the approval of a person, and the gateway declined it"
# Calls of one answer that Codex may answer itself, by loss: each is another request to the provider.
_MAX_OWN_CALLS = {"call.arguments": 5, "call.name": 5, "call.own": 50}


class CodexCall(Struct, kw_only=True):
    """A call that waits for its result. request_id: of Codex's request for it, None until it arrives. is_sent: it is part of an answer."""

    id: str
    name: str
    raw: str
    request_id: Id | None = None
    is_sent: bool = False


class CodexTurnDecoder:
    """Takes every message of its thread and ignores those of other turns. After is_over it only records calls."""

    def __init__(
        self, thread_id: str, turn_id: str = "", *, model: str = "", names: CodexToolNames | None = None
    ) -> None:
        self.thread_id = thread_id
        self.turn_id = turn_id  # "" until turn/started; injected items are reported before it, under another id
        self.is_over = False
        self.calls: dict[str, CodexCall] = {}
        self._model = model
        self._names = names or CodexToolNames()
        self._assembly = Assembly()
        self._thoughts = CodexReasoning(self._assembly)
        self._texts: dict[str, OpenPart] = {}  # open ones, by item
        self._ended: set[str] = set()  # items whose text is complete
        self._raws: dict[str, JsonObject] = {}  # raw calls, of the client's tools or of Codex's own
        self._meter = CodexTokenMeter()
        self._losses: list[Loss] = []
        self._own_calls: Counter[str] = Counter()
        self._responses = 0  # of the model, according to its token counts
        self._total: JsonObject = {}
        self._fault: GatewayError | None = None
        self._has_started = False
        self._has_calls = False

    @property
    def is_waiting(self) -> bool:
        """There are calls, and more may follow."""
        return self._has_calls and not self.is_over

    def notify(self, method: str, params: JsonObject) -> list[Event]:
        if method == "turn/started" and not self.turn_id and params.get("threadId") == self.thread_id:
            self.turn_id = _text(_object(params, "turn"), "id")
        handler = _HANDLERS.get(method)
        return [] if handler is None or self.is_over or not self._is_ours(params) else handler(self, params)

    def call(self, id: Id, params: JsonObject) -> list[Event] | None:
        """A request for the result of a client's tool, which stays open. None if it belongs to another turn."""
        call_id = _text(params, "callId")
        if not self._is_ours(params) or not call_id:
            return None
        events = self._add_call(call_id, self._names.client(_text(params, "tool")), params.get("arguments"))
        self.calls[call_id].request_id = id
        return events

    def declined(self, method: str, params: JsonObject) -> list[Event]:
        """A request of Codex that was declined; reported with the next event."""
        if self._is_ours(params) and len(self._losses) < _MAX_DECLINED:
            self._losses.append(Loss("call.declined", method[:60], _DECLINED))
        return []

    def end_calls(self) -> list[Event]:
        """Ends the answer with the calls so far."""
        return self._finish("tool_calls") if self.is_waiting else []

    def cut(self, error: GatewayError | None = None) -> list[Event]:
        """The program or its output has ended."""
        return [] if self.is_over else self._fail(self._fault or error or gone())

    def follow(self) -> tuple[CodexTurnDecoder, list[Event]]:
        """The decoder of the next answer of the same turn, and its first events, if calls came too late for this one."""
        other = CodexTurnDecoder(self.thread_id, self.turn_id, model=self._model, names=self._names)
        other.calls = self.calls
        other._meter = self._meter.follow()
        events: list[Event] = []
        for call in list(self.calls.values()):
            if not call.is_sent:
                events += other._send_call(call)
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
        sent = growing.content if growing is not None else ""
        events = self._text_events(item_id, text[len(sent) :]) if text.startswith(sent) else []
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
        """A call as the model wrote it. Codex answers it itself if it cannot parse it or has no such tool."""
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
        if count <= _MAX_OWN_CALLS[loss.feature] or self._has_calls:  # an answer with calls ends by itself
            return []
        return self._fail(stuck(count, loss)) if self._names else self._calls_without_tools(raw)

    def _calls_without_tools(self, raw: JsonObject | None) -> list[Event]:
        """No tool was offered, and the model keeps calling: its text is the answer, or the last call if it has none. raw is None in a
        resumed thread, which does not report calls."""
        if self._texts or self._ended:
            return self._finish("stop")
        if raw is None:
            return self._fail(unseen_calls(self._responses))
        call = CodexCall(id=_text(raw, "call_id"), name=_text(raw, "name"), raw=_text(raw, "arguments"))
        return [*self._send_call(call), *self._finish("stop")]

    def _add_call(self, call_id: str, name: str, arguments: object) -> list[Event]:
        """A call of a client's tool. Its arguments are the model's own text, if Codex reports it, else what Codex has parsed."""
        if call_id in self.calls:
            return []
        raw = self._raws.get(call_id)
        written = _json(arguments) if raw is None else _text(raw, "arguments")
        self.calls[call_id] = CodexCall(id=call_id, name=name, raw=written)
        return [] if self.is_over else self._send_call(self.calls[call_id])

    def _send_call(self, call: CodexCall) -> list[Event]:
        events = self._begin() + self._thoughts.end()
        item_id = _text(self._raws.get(call.id, {}), "id")
        growing, started = self._assembly.start(ToolCall(id=call.id, name=call.name, raw="", item_id=item_id))
        call.is_sent = self._has_calls = True
        return [*events, started, *_grow(growing, call.raw), *self._assembly.end(growing)]

    def _response_done(self, params: JsonObject) -> list[Event]:
        """The model has ended its response. All its calls are known by their raw items."""
        self._meter.response(params.get("usage"))
        return self._finish("tool_calls") if self._has_calls else []

    def _counted(self, params: JsonObject) -> list[Event]:
        """Old versions count a response at its end, new ones (0.166) after the results of its calls: in both cases no call follows."""
        self._meter.thread(params.get("tokenUsage"))
        total = _object(_object(params, "tokenUsage"), "total")
        if total != self._total:
            self._total, self._responses = total, self._responses + 1
        if self._responses > _MAX_RESPONSES and not self._names and not self._own_calls:
            return self._calls_without_tools(None)
        return self.end_calls()

    def _error(self, params: JsonObject) -> list[Event]:
        error = _object(params, "error")
        if params.get("willRetry") is not True:
            self._fault = error_of(error)
            return []
        fault = unreached(error)
        if self._assembly.count:
            # Codex would stream the text a second time, and sent text cannot be withdrawn.
            why = (fault or error_of(error)).message
            message = f"the provider's answer broke off, and what was sent of it cannot be taken back: {why}"
            return self._fail(UpstreamError(message, code="upstream_cut"))
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
        return [*events, Finished(choices=(choice,), usage=self._meter.usage())]

    def _fail(self, error: GatewayError) -> list[Event]:
        events = self._begin()
        self.is_over = True
        return [*events, Failed(error=error)]


_Handler: TypeAlias = Callable[[CodexTurnDecoder, JsonObject], list[Event]]
_HANDLERS: dict[str, _Handler] = {
    "item/completed": CodexTurnDecoder._item_done,
    "item/agentMessage/delta": CodexTurnDecoder._delta,
    "item/reasoning/summaryPartAdded": CodexTurnDecoder._summary,
    "item/reasoning/summaryTextDelta": CodexTurnDecoder._summary,
    "item/reasoning/textDelta": CodexTurnDecoder._reasoning,
    "rawResponseItem/completed": CodexTurnDecoder._raw_item,
    "rawResponse/completed": CodexTurnDecoder._response_done,
    "thread/tokenUsage/updated": CodexTurnDecoder._counted,
    "error": CodexTurnDecoder._error,
    "turn/completed": CodexTurnDecoder._turn_done,
}


def _own_loss(raw: JsonObject, name: str, output: str) -> Loss:
    if not _is_json(_text(raw, "arguments")):
        return Loss("call.arguments", name, "they were no JSON; Codex reported that to the model")
    if output.startswith("unsupported call"):
        return Loss("call.name", name, "no tool has this name; Codex reported that to the model")
    return Loss("call.own", name, "Codex ran one of its own tools")


def _grow(growing: OpenPart, text: str) -> list[Event]:
    return [growing.grow(text)] if text else []


def _json(value: object) -> str:
    """null if it nests too deep to be written; such arguments then fail the validation."""
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
