"""VS Code bridge: decodes the parts that a window sends into one answer.

Consecutive texts are one part, however they were split. So is consecutive reasoning, whatever ids it has: some servers give every
piece another id. A call comes whole. VS Code sends no finish
reason: it is derived from calls, and an answer without the usage that is certain to come was cut at its limit. A cut call has an empty
object as arguments (Copilot 0.67), like a call without arguments, so such a call stays open until something else follows.
"""

from __future__ import annotations

from ....dialects.base import garbage
from ....dialects.shared.answer_in import Assembly, OpenPart
from ....dialects.shared.requests import fit_id
from ....errors import GatewayError
from ....events import Event, Failed, Finished, Noted, Started
from ....types import Choice, Json, Loss, Opaque, Reason, Reasoning, Refusal, Text, ToolCall, Usage
from ....wire.exact_json import BadJson, encode
from .errors import cancelled, error_of, is_cancelled, is_too_long, refusal_in, window_lost
from .frames import DIGITS, loses_digits
from .shapes import NAME, AnswerPart, CallPart, DataPart, End, Failure, Parts, TextPart, ThinkingPart
from .usage import MIMES, usage_in

_LONGEST_ID = 40  # letters of an id that every provider takes
_DONE = ("vscode_reasoning_done", "vscode_reasoning_summary_part_done")  # either ends a thought


class AnswerDecoder:
    """Ignores frames of other requests. After is_over there are no more events.

    sends_usage: a complete answer certainly ends with its usage (see usage.sends_usage).
    """

    def __init__(self, id: str, *, model: str = "", sends_usage: bool = False) -> None:
        self.id = id
        self.is_over = False
        self.usage: Usage | None = None
        self.has_usage = False  # a data part with usage came, readable or not
        self._model = model
        self._sends_usage = sends_usage
        self._assembly = Assembly()
        self._open: OpenPart | None = None  # a text, a thought, or a call without arguments
        self._seq = 0
        self._has_started = False
        self._ids: set[str] = set()

    @property
    def has_output(self) -> bool:
        return self._assembly.count > 0

    @property
    def has_calls(self) -> bool:
        return bool(self._ids)

    def parts(self, frame: Parts) -> list[Event]:
        if self.is_over or frame.id != self.id:
            return []
        if frame.seq != self._seq:
            return self.fail(garbage(f"frame {frame.seq} of the answer came from VS Code; expected frame {self._seq}."))
        self._seq += 1
        events = self._begin()
        for part in frame.parts:
            events += self._part(part)
        return events

    def end(self, frame: End) -> list[Event]:
        if self.is_over or frame.id != self.id:
            return []
        if frame.cancelled:
            return self.fail(cancelled())
        if self._sends_usage and not self.has_usage:
            return self._finish("length", "no usage was sent")
        reason: Reason = "tool_calls" if self.has_calls else "stop"
        return self._finish(reason, reason)

    def error(self, frame: Failure) -> list[Event]:
        if self.is_over or frame.id != self.id:
            return []
        if not is_cancelled(frame.code, frame.name, frame.message):
            if is_too_long(frame.message):
                return self._finish("length", "response too long")
            if reason := refusal_in(frame.message):
                return self._refuse(reason)
        return self.fail(error_of(frame.code, frame.name, frame.message, refused_by_user=frame.refused_by_user))

    def cut(self, error: GatewayError | None = None) -> list[Event]:
        """The window has disconnected."""
        return [] if self.is_over else self.fail(error or window_lost())

    def fail(self, error: GatewayError) -> list[Event]:
        if self.is_over:
            return []
        events = self._begin()
        self.is_over = True
        return [*events, Failed(error=error)]

    def _begin(self) -> list[Event]:
        if self._has_started:
            return []
        self._has_started = True
        return [Started(id=self.id, model=self._model)]

    def _part(self, part: AnswerPart) -> list[Event]:
        match part:
            case TextPart():
                return self._text(part.text)
            case ThinkingPart():
                return self._reasoning(part)
            case CallPart():
                return self._call(part)
            case DataPart():
                return self._data(part)

    def _text(self, text: str) -> list[Event]:
        if not text:
            return []
        events: list[Event] = []
        if self._open is None or not isinstance(self._open.part, Text):
            events += self._end_open()
            self._open, started = self._assembly.start(Text(text=""))
            events.append(started)
        return [*events, *_grow(self._open, text)]

    def _reasoning(self, part: ThinkingPart) -> list[Event]:
        """Only the text: other members are for the provider, and cannot be sent back."""
        is_thinking = self._open is not None and isinstance(self._open.part, Reasoning)
        if not is_thinking and not part.text:
            return []
        events: list[Event] = []
        if self._open is None or not is_thinking:
            events += self._end_open()
            self._open, started = self._assembly.start(Reasoning(text="", extra={NAME: {}}))
            events.append(started)
        events += _grow(self._open, part.text)
        return events + self._end_open() if any(part.meta.get(key) is True for key in _DONE) else events

    def _call(self, part: CallPart) -> list[Event]:
        events = self._end_open()
        if loses_digits(part.input):
            events.append(Noted(note=Loss("call.integer", part.name[:60], DIGITS)))
        growing, started = self._assembly.start(ToolCall(id=self._call_id(part.id), name=part.name, raw=""))
        if part.input == {}:
            self._open = growing
            return [*events, started]
        return [*events, started, *_grow(growing, _raw(part.input)), *self._assembly.end(growing)]

    def _call_id(self, given: str) -> str:
        """A unique id; a provider may send none."""
        call_id = given
        if not call_id or call_id in self._ids:
            call_id = fit_id(f"call_{self.id[-20:]}_{len(self._ids)}", _LONGEST_ID)
        while call_id in self._ids:
            call_id = fit_id(f"{call_id}'", _LONGEST_ID)
        self._ids.add(call_id)
        return call_id

    def _data(self, part: DataPart) -> list[Event]:
        """Data of the provider is sent back with the next request."""
        if part.mime in MIMES:
            self.usage, self.has_usage = usage_in(part) or self.usage, True
            return []
        events = self._end_open()
        opaque = Opaque(dialect=NAME, value={"type": "data", "mime": part.mime, "data": part.data})
        growing, started = self._assembly.start(opaque)
        return [*events, started, *self._assembly.end(growing)]

    def _end_open(self, *, is_cut: bool = False) -> list[Event]:
        growing, self._open = self._open, None
        return [] if growing is None else self._assembly.end(growing, is_cut=is_cut)

    def _refuse(self, reason: str) -> list[Event]:
        """The text so far is the answer; without any, the provider's reason."""
        if self.has_output:
            return self._finish("refused", reason)
        events = self._begin()
        growing, started = self._assembly.start(Refusal(text="", extra={NAME: {}}))
        events += [started, *_grow(growing, f"The provider ended the answer: {reason}."), *self._assembly.end(growing)]
        return events + self._finish("refused", reason)

    def _finish(self, reason: Reason, raw: str) -> list[Event]:
        events = self._begin() + self._end_open(is_cut=reason in ("length", "refused"))
        self.is_over = True
        return [*events, Finished(choices=(Choice(reason=reason, raw_reason=raw),), usage=self.usage)]


def _grow(growing: OpenPart, text: str) -> list[Event]:
    return [growing.grow(text)] if text else []


def _raw(value: Json) -> str:
    """A string is the model's own text, which was no object. null if the value nests too deep to be written."""
    if isinstance(value, str):
        return value
    try:
        return encode(value).decode()
    except BadJson:
        return "null"
