"""Turns calls that a model wrote into its text into calls: events of text in, events of text and of calls out.

A text part is split where a call begins. Text keeps its order around the calls; whitespace between two blocks is dropped. Parts are
renumbered, and ids are minted here: an id that the model wrote is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from ...errors import UpstreamError, quote
from ...events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted
from ...types import Loss, Reasoning, Text, ToolCall
from ...wire.exact_json import object_of
from ..parts import PartIndexes
from ..validation import ToolOffer, UnknownCall, call_text, fault_text, with_span, without_end
from .answer_object import AnswerScanner
from .formats.base import (
    CallBroken,
    CallClosed,
    CallGrew,
    CallOpened,
    Imagined,
    Piece,
    PlainText,
    Thought,
    ToolLookup,
)
from .scanner import CallScanner

UnknownTool: TypeAlias = Literal["correct", "emit", "text", "error"]

_NAMELESS = "tool_call"  # for a block in which no name can be found
_BLANKS = " \t\r\n"
_CHANGED = "a call was written into the text"
_IGNORED = "the back end did not constrain its output to the schema of text and calls"


class SplitterPolicy(Struct, frozen=True, kw_only=True):
    """What becomes of written calls. is_held: a later step validates calls before they are sent, and may ask the model again."""

    is_held: bool = False
    may_hold: bool = True  # calls of strict tools may be held
    is_single: bool = False  # at most one call in an answer
    must_call: bool = False
    is_constrained: bool = False  # the output has the schema that AnswerScanner reads
    policy: str = "text"  # for calls that cannot be read: text, or error
    unknown: UnknownTool = "correct"


class CallSplitter:
    """Splits one answer. changed: the reason why the client must not get the back end's own bytes. first: index of the first text part."""

    def __init__(
        self, known: ToolLookup, offer: ToolOffer, mint: Callable[[str], str], policy: SplitterPolicy, first: int = 0
    ) -> None:
        self.known = known
        self.policy = policy
        self.indexes = PartIndexes(first=first)
        self.calling: set[int] = set()  # choices that have called
        self._offer = offer
        self._mint = mint
        self._texts: dict[int, _TextSplitter] = {}
        self._failed = False
        self.changed = ""
        self.is_obeyed: bool | None = None  # whether all texts obey the schema; None until that is known

    def send(self, events: list[Event]) -> list[Event]:
        """The same list where nothing changes."""
        sent: list[Event] = []
        for event in events:
            if type(event) is PartDelta and self.passes(event):
                sent.append(event)
            elif not self._failed:
                sent += self._event(event)
        if not self.known.is_instructed:
            sent += [event for text in self._texts.values() for event in text.begun()]
        if sent == events:
            return events
        self.changed = self.changed or _CHANGED
        return sent

    def passes(self, delta: PartDelta) -> bool:
        """Whether the delta stays as it is, as nearly every one does. If so it is noted here, and must not be sent."""
        text = self._texts.get(delta.index)
        if text is not None:
            return text.passes(delta)
        return self.indexes.get(delta.index) == delta.index and not self._failed

    def _event(self, event: Event) -> list[Event]:
        match event:
            case PartStarted(part=Text()):
                self._texts[event.index] = _TextSplitter(self, event)
                return []
            case PartStarted():
                return [self.indexes.open(event)]
            case PartDelta(index=index) if index in self._texts:
                return self._texts[index].grown(event)
            case PartEnded(index=index) if index in self._texts:
                return self._texts.pop(index).ended(event)
            case Noted(index=int(index)) if index in self._texts:
                place = self._texts[index].place
                return [] if place is None else [replace(event, index=place)]
            case PartDelta() | PartEnded() | Noted():
                return self.indexes.forward(event)
            case Failed():  # withheld text precedes the failure
                return [*(made for text in self._texts.values() for made in text.cut()), event]
            case Finished():
                return [*(Noted(note=loss) for loss in self._last_losses()), event]
            case _:
                return [event]

    def _last_losses(self) -> list[Loss]:
        """Those that show only at the end of the answer."""
        losses: list[Loss] = []
        if self.is_obeyed is False:
            losses.append(Loss("grammar", "answer", _IGNORED))
        if self.policy.must_call and not self.policy.is_held and not self.calling:
            losses.append(Loss("tool_choice", "answer", "the model had to call a tool and did not"))
        return losses

    # For the text parts of the answer.

    def call(self, choice: int, name: str) -> ToolCall:
        self.calling.add(choice)
        return self._offer.named(ToolCall(id=self._mint("call_"), name=name, raw=""))

    def is_unknown(self, name: str) -> bool:
        return self._offer.tool(name) is None

    def note_obedience(self, is_obeyed: bool | None) -> None:
        if is_obeyed is not None and self.is_obeyed is not False:
            self.is_obeyed = is_obeyed

    def fail(self, error: UpstreamError) -> list[Event]:
        self._failed = True
        return [Failed(error=error)]


class _TextSplitter:
    """One text part of the back end, and the parts that it becomes."""

    def __init__(self, answer: CallSplitter, event: PartStarted) -> None:
        assert isinstance(event.part, Text)
        self._answer = answer
        self._choice = event.choice
        self._start = event.part
        self._scanner = AnswerScanner(answer.known) if answer.policy.is_constrained else CallScanner(answer.known)
        self.place: int | None = None  # index of the open text
        self._blanks: list[str] = []  # withheld: a text may begin behind them
        self._written: list[str] = []
        self._has_grown = False
        self._is_split = False
        self._thinking: int | None = None  # index of the open thought
        self._thoughts: list[str] = []
        self._call: ToolCall | None = None
        self._call_place = 0
        self._fate: Literal["call", "held", "dropped"] = "call"
        self._is_over = False  # the rest of the text is dropped

    def passes(self, event: PartDelta) -> bool:
        if self.place != event.index or self._call is not None or not self._scanner.passes(event.text):
            return False
        self._written.append(event.text)
        return True

    def begun(self) -> list[Event]:
        """The start of a text that may pass verbatim is sent at once."""
        return [] if self._has_grown or self.place is not None else self._open()

    def grown(self, event: PartDelta) -> list[Event]:
        self._has_grown = True
        pieces = self._scanner.feed(event.text)
        is_plain = len(pieces) == 1 and isinstance(pieces[0], PlainText) and pieces[0].text == event.text
        if is_plain and self._thinking is None:
            return self._text(event.text, event)
        return [made for piece in pieces for made in self._piece(piece)]

    def ended(self, event: PartEnded) -> list[Event]:
        made = [made for piece in self._scanner.close() for made in self._piece(piece)] + self._thought_ended()
        if isinstance(self._scanner, AnswerScanner):
            self._answer.note_obedience(self._scanner.is_obeyed)
        if self._is_split or (self.place is None and self._choice in self._answer.calling):
            return made + self._close()
        if self.place is None:
            made += self._open()
        if self._blanks:
            blanks = self._let_go()
            self._written.append(blanks)
            made.append(PartDelta(self._placed(), blanks))
        assert isinstance(event.part, Text)
        text = "".join(self._written)
        part = event.part if text == event.part.text else replace(self._start, text=text)  # without markup
        return [*made, replace(event, index=self._placed(), part=part)]

    def cut(self) -> list[Event]:
        """The answer fails here: what may have become a call is text."""
        held = [piece for piece in self._scanner.close() if isinstance(piece, PlainText | CallBroken)]
        if self._call is not None or self._thinking is not None:
            return []
        return [made for piece in held if piece.text for made in self._text(piece.text)]

    def _piece(self, piece: Piece) -> list[Event]:
        if self._is_over:
            return []
        if self._thinking is not None and not isinstance(piece, Thought):
            return [*self._thought_ended(), *self._piece(piece)]
        match piece:
            case PlainText():
                return self._text(piece.text)
            case CallOpened():
                return self._opened(piece.name)
            case CallGrew():
                return [PartDelta(self._call_place, piece.text)] if self._fate == "call" else []
            case CallClosed():
                begun = self._opened(piece.name, piece.raw) if self._call is None else []
                return begun + self._closed(piece)
            case CallBroken():
                return self._broken(piece)
            case Thought():
                return self._thought(piece.text)
            case Imagined():
                self._is_over = True
                why = "the model went on to imagine the result of its own call; that is left out"
                return [Noted(note=Loss("answer.imagined_result", "answer", why))]
            case _:
                assert_never(piece)

    def _text(self, text: str, event: PartDelta | None = None) -> list[Event]:
        if self.place is None:
            may_wait = self._answer.known.is_instructed or self._is_split or self._choice in self._answer.calling
            if may_wait and not text.strip(_BLANKS):
                self._blanks.append(text)
                return []
            opened = self._open()
        else:
            opened = []
        if self._blanks:
            text, event = self._let_go() + text, None
        self._written.append(text)
        logprobs = None if event is None else event.logprobs
        return [*opened, PartDelta(self._placed(), text, logprobs)]

    def _thought(self, text: str) -> list[Event]:
        events: list[Event] = []
        if self._thinking is None:
            events += self._close()
            self._thinking = self._answer.indexes.allocate()
            events.append(PartStarted(index=self._thinking, part=Reasoning(text=""), choice=self._choice))
        self._thoughts.append(text)
        return [*events, PartDelta(self._thinking, text)]

    def _thought_ended(self) -> list[Event]:
        if self._thinking is None:
            return []
        place, text = self._thinking, "".join(self._thoughts)
        self._thinking = None
        self._thoughts.clear()
        return [PartEnded(index=place, part=Reasoning(text=text), choice=self._choice)]

    def _open(self) -> list[Event]:
        self.place = self._answer.indexes.allocate()
        if self._is_split:  # a text of its own
            self._start = replace(self._start, item_id="", is_continuation=False)
        return [PartStarted(index=self.place, part=self._start, choice=self._choice)]

    def _placed(self) -> int:
        assert self.place is not None
        return self.place

    def _let_go(self) -> str:
        blanks = "".join(self._blanks)
        self._blanks.clear()
        return blanks

    def _close(self) -> list[Event]:
        """End the open text; withheld whitespace is dropped."""
        self._blanks.clear()
        self._is_split = True
        if self.place is None:
            return []
        place, text = self.place, "".join(self._written)
        self.place = None
        self._written.clear()
        return [PartEnded(index=place, part=replace(self._start, text=text), choice=self._choice)]

    def _opened(self, name: str, raw: str = "") -> list[Event]:
        answer, policy = self._answer, self._answer.policy
        if policy.is_single and self._choice in answer.calling:
            self._fate = "dropped"
            self._blanks.clear()
            self._call = ToolCall(id="", name=name, raw="")
            return []
        self._call = answer.call(self._choice, name)
        may_judge = not policy.is_held and policy.unknown in ("text", "error")
        self._fate = "held" if may_judge and answer.is_unknown(name) else "call"
        closed = self._close()
        if self._fate == "held":
            return closed
        self._call_place = answer.indexes.allocate()
        begun: list[Event] = [PartStarted(index=self._call_place, part=self._call, choice=self._choice)]
        return [*closed, *begun, PartDelta(self._call_place, raw)] if raw else [*closed, *begun]

    def _closed(self, piece: CallClosed) -> list[Event]:
        assert self._call is not None
        call = replace(self._call, raw=piece.raw, args=object_of(piece.raw))
        self._call = None
        notes = [
            Noted(note=Loss(f"call.{repair}", "answer", _REPAIRS.get(repair, _REPAIR))) for repair in piece.repairs
        ]
        match self._fate:
            case "dropped":
                why = "one call was asked for, and the model made more; those behind the first are left out"
                return [Noted(note=Loss("call.parallel", "answer", why))]
            case "held":
                return self._unknown_call(call)
            case "call":
                part = without_end(call) if "unclosed" in piece.repairs else call
                return [PartEnded(index=self._call_place, part=part, choice=self._choice), *notes]

    def _unknown_call(self, call: ToolCall) -> list[Event]:
        """A call of a tool that was not offered, where the configuration does not let it pass."""
        fault = fault_text(UnknownCall())
        if self._answer.policy.unknown == "error":
            message = f"the model called {quote(call.name)}, {fault}."
            return self._answer.fail(UpstreamError(message, status=502, code="unknown_tool"))
        note = Loss("call.unknown_tool", "answer", "the model called a tool that was not offered; it is sent as text")
        return [*self._text(call_text(call, fault)), Noted(note=note)]

    def _broken(self, piece: CallBroken) -> list[Event]:
        """What can only be a call and cannot be read as one."""
        call, self._call = self._call, None
        if call is not None:
            if self._fate == "dropped":
                return []
            part = with_span(replace(call, raw=piece.raw), piece.text, piece.why)
            if self._fate == "held":
                return self._text(piece.text)
            return [PartEnded(index=self._call_place, part=part, choice=self._choice)]
        if self._answer.policy.is_held:
            begun = self._opened(piece.name or _NAMELESS, piece.raw)
            return begun + self._broken(piece)
        if self._answer.policy.policy == "error":
            message = f"the model wrote a call that cannot be read: {piece.why}."
            return self._answer.fail(UpstreamError(message, status=502, code="unreadable_call"))
        note = Loss("call.unreadable", "answer", f"the model wrote a call that cannot be read: {piece.why}")
        return [*self._text(piece.text), Noted(note=note)]


_REPAIR = "a written call was out of form, and was understood"
_REPAIRS = {
    "drifted": "a call stood in another envelope than the one asked for",
    "unterminated": "the end of a block was missing",
    "unclosed": "the end of a call was missing",
    "flat": "arguments stood beside the name of the tool",
    "nameless": "a call had a number in place of its tool's name, and its arguments fit one tool only",
}
