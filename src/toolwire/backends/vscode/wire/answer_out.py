"""VS Code bridge: encodes an answer of the gateway as parts for VS Code.

Text and reasoning are streamed, a call is sent whole. Arguments that are not an object are never sent as an empty one, which a tool
would run with: the answer fails, and VS Code shows why.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from ....dialects.shared.answer_out import Seams
from ....errors import GatewayError, UpstreamError, quote
from ....events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from ....types import Loss, Media, Opaque, Part, Reasoning, Refusal, Text, ToolCall, ToolResult, Usage
from ....wire.exact_json import object_of
from .errors import refused
from .frames import DIGITS, loses_digits
from .images import is_plain
from .shapes import AnswerPart, CallPart, DataPart, End, Parts, Refused, TextPart, ThinkingPart
from .usage import usage_part

_MAX_TEXT = 1_000_000  # characters in one part; as JSON each takes at most six bytes
_MAX_RAW = 8_000_000  # characters of a call's arguments


class _Pieces(Struct):
    """Text or reasoning of one part that is sent together."""

    index: int
    part: Text | Refusal | Reasoning
    texts: list[str] = field(default_factory=list)


class PartsEncoder:
    """One answer: the first choice, because VS Code has no others. losses are for the log."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.is_over = False
        self.losses: list[Loss] = []
        self._seq = 0
        self._open: dict[int, Part] = {}
        self._waiting: list[AnswerPart] = []
        self._pieces: _Pieces | None = None
        self._seams = Seams(is_strict=True)

    def send(self, events: Sequence[Event]) -> list[Parts | End | Refused]:
        """The frames for these events; text that they hold together is one part."""
        frames: list[Parts | End | Refused] = []
        for event in events:
            if not self.is_over:
                frames += self._event(event)
        return frames if self.is_over else [*frames, *self._flush()]

    def fail(self, error: GatewayError) -> list[Parts | End | Refused]:
        """Ends the answer with this error."""
        if self.is_over:
            return []
        self.is_over = True
        return [*self._flush(), refused(self.id, error)]

    def _event(self, event: Event) -> list[Parts | End | Refused]:
        match event:
            case PartStarted(choice=0):
                self._open[event.index] = event.part
                self._seams.begin(event)
            case PartDelta():
                self._grow(event)
            case PartEnded(choice=0):
                return self._ended(event)
            case Finished():
                return self._finish(event.usage)
            case Failed():
                return self.fail(event.error)
            case Started() | Noted() | PartStarted() | PartEnded():
                pass
        return []

    def _grow(self, delta: PartDelta) -> None:
        part = self._open.get(delta.index)
        if not isinstance(part, Text | Refusal | Reasoning) or not delta.text:
            return
        if self._pieces is None or self._pieces.index != delta.index:
            self._gather()
            self._pieces = _Pieces(delta.index, part)
        self._pieces.texts += [self._seams.before(delta), delta.text]

    def _ended(self, event: PartEnded) -> list[Parts | End | Refused]:
        self._open.pop(event.index, None)
        self._seams.end(event)
        match event.part:
            case ToolCall():
                return self._call(event.part)
            case Opaque(dialect="vscode", value={"mime": str(mime), "data": str(data)}) if is_plain(data):
                self._add(DataPart(mime=mime, data=data))
            case Media(data=str(data), mime=mime) if is_plain(data):
                self._add(DataPart(mime=mime, data=data))
            case Text() | Refusal() | Reasoning() | Opaque() | Media() | ToolResult():
                pass
        return []

    def _call(self, call: ToolCall) -> list[Parts | End | Refused]:
        args = call.args if call.args is not None else object_of(call.raw or "{}")
        if args is None:
            return self.fail(_broken(call))
        if len(call.raw) > _MAX_RAW:
            size = f"with {len(call.raw)} characters of arguments; {_MAX_RAW} is the most"
            return self.fail(
                UpstreamError(f"the model called {quote(call.name)} {size}.", code="invalid_tool_arguments")
            )
        if loses_digits(args):
            self.losses.append(Loss("call.integer", call.name[:60], DIGITS))
        self._add(CallPart(id=call.id, name=call.name, input=args))
        return []

    def _finish(self, usage: Usage | None) -> list[Parts | End | Refused]:
        if usage is not None:
            self._add(usage_part(usage))
        self.is_over = True
        return [*self._flush(), End(id=self.id, cancelled=False)]

    def _add(self, part: AnswerPart) -> None:
        self._gather()
        self._waiting.append(part)

    def _gather(self) -> None:
        pieces, self._pieces = self._pieces, None
        if pieces is None:
            return
        text = "".join(pieces.texts)
        for start in range(0, len(text), _MAX_TEXT):
            piece = text[start : start + _MAX_TEXT]
            is_thought = isinstance(pieces.part, Reasoning)
            self._waiting.append(
                ThinkingPart(text=piece, id=pieces.part.item_id) if is_thought else TextPart(text=piece)
            )

    def _flush(self) -> list[Parts]:
        """One frame, or more if the parts are too large for one."""
        self._gather()
        frames: list[Parts] = []
        held, size = list[AnswerPart](), 0
        for part in self._waiting:
            more = _size(part)
            if held and size + more > _MAX_TEXT:
                frames.append(self._frame(held))
                held, size = [], 0
            held.append(part)
            size += more
        self._waiting = []
        return [*frames, self._frame(held)] if held else frames

    def _frame(self, parts: list[AnswerPart]) -> Parts:
        frame = Parts(id=self.id, seq=self._seq, parts=tuple(parts))
        self._seq += 1
        return frame


def _size(part: AnswerPart) -> int:
    """Approximate; a call has a frame of its own."""
    match part:
        case TextPart() | ThinkingPart():
            return len(part.text)
        case DataPart():
            return len(part.data)
        case CallPart():
            return _MAX_TEXT


def _broken(call: ToolCall) -> UpstreamError:
    return UpstreamError(
        f"the model called {quote(call.name)} with arguments that are no JSON object: {quote(call.raw)}.",
        code="invalid_tool_arguments",
        hint='Try again, or set guard = "retry" for this back end: the model then gets the error and corrects them.',
    )
