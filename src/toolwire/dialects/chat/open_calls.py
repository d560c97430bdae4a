"""Chat Completions: which call a fragment belongs to, when its id, index or name is missing, repeated or wrong.

A fragment is placed by what it carries, in this order: an id that is known, an index that is known, else the last call; a name under a new
index begins a call. A header (an id or a name) where the arguments are complete begins another call or repeats this one, for complete
arguments cannot go on; which of the two it is shows when its own arguments are complete: equal ones under the same id are a copy (H015,
H049), any others a call. Until then such a doubtful call waits. A call starts once its name is one that was offered, or once its arguments
begin, for names may come in pieces.
"""

from __future__ import annotations

from ...events import PartDelta
from ...types import CallKind, Extra, JsonObject, ToolCall
from ..shared.answer_in import OpenCallPart, OpenPart
from .shapes import NAME, CallDelta

_NO_PART = ToolCall(id="", name="", raw="")


class OpenCall:
    """One call under construction; twin is the one that it may only repeat.

    Its arguments live in one place: in a detached part until the call starts, and in the attached part after that.
    """

    __slots__ = ("_arguments", "id", "is_custom", "is_started", "members", "name", "places", "twin")

    def __init__(self, call_id: str, name: str, *, is_custom: bool, twin: OpenCall | None = None) -> None:
        self.id = call_id
        self.name = name
        self.is_custom = is_custom
        self.is_started = False
        self.members: JsonObject = {}
        self.twin = twin
        self.places: list[int] = []  # indexes at which a doubtful call replaces its twin
        self._arguments: OpenPart | None = None

    def opening(self) -> ToolCall:
        """The part at its start, without arguments."""
        kind: CallKind = "custom" if self.is_custom else "function"
        extra: Extra = {NAME: dict(self.members)} if self.members else {}
        return ToolCall(id=self.id, name=self.name, raw="", kind=kind, extra=extra)

    def start(self, growing: OpenPart) -> list[PartDelta]:
        """Attach the part; returns deltas for the arguments that came before the start."""
        early, self._arguments = self._arguments, growing
        self.is_started = True
        return [] if early is None else [growing.grow(piece) for piece in early.pieces]

    def add(self, arguments: str) -> None:
        """Buffer arguments until the call has started."""
        if self._arguments is None:
            self._arguments = (OpenPart if self.is_custom else OpenCallPart)(-1, _NO_PART, 0)
        self._arguments.grow(arguments)

    @property
    def growing(self) -> OpenPart | None:
        """The attached part; None before the start."""
        return self._arguments if self.is_started else None

    @property
    def has_arguments(self) -> bool:
        return self._arguments is not None and not self._arguments.is_empty

    @property
    def value(self) -> JsonObject | None:
        """Its arguments, once they are complete."""
        return None if self._arguments is None else self._arguments.value

    @property
    def is_whole(self) -> bool:
        return self.value is not None

    @property
    def is_blank(self) -> bool:
        return not self.is_custom and (self._arguments is None or not self._arguments.content.strip())

    def is_followed_by(self, name: str) -> bool:
        """Whether a header without an id and with this name, under the same index, is that of another call."""
        return bool(self.name) and (self.is_whole or (self.is_started and name != self.name))


class OpenCalls:
    """The calls of one choice, in order, and how to find them. current: the one that took the last fragment."""

    __slots__ = ("_are_ids_stable", "_by_id", "_by_index", "all", "current", "doubtful")

    def __init__(self) -> None:
        self.all: list[OpenCall] = []
        self.doubtful: dict[OpenCall, None] = {}
        self._by_id: dict[str, OpenCall] = {}
        self._by_index: dict[int, OpenCall] = {}
        self.current: OpenCall | None = None
        self._are_ids_stable: bool | None = None  # whether a call has one id; None while that is not known

    def at(self, index: int | None) -> OpenCall | None:
        """Where a fragment without a header goes by its index: the usual case, and the quick one."""
        return self._by_index.get(index) if index is not None else None

    def find(self, call: CallDelta, name: str) -> OpenCall | None:
        """The call that this fragment continues; None: it begins one."""
        at_index = self.at(call.index)
        if call.id:
            return self._by_header(call, name, call.id, at_index)
        if at_index is not None:
            return None if name and at_index.is_followed_by(name) else at_index
        last = self.all[-1] if self.all else None
        if name and last is not None and last.name and (call.index is not None or not _goes_on(last, name)):
            return None
        return last

    def _by_header(self, call: CallDelta, name: str, call_id: str, at_index: OpenCall | None) -> OpenCall | None:
        known = self._by_id.get(call_id)
        if known is not None and (known is at_index or call.index is None or not name):
            return known
        if at_index is None:
            return self.all[-1] if not name and known is None and call.index is None and self.all else None
        if not at_index.id or not name or (_goes_on(at_index, name) and self._is_renamed(call)):
            return at_index
        return None

    def _is_renamed(self, call: CallDelta) -> bool:
        """Whether a new id in the middle of a call is another id of that call: some servers make one for each fragment. Those that
        repeat ids do not, and before either is known, arguments that begin an object begin a call."""
        if self._are_ids_stable is None:
            arguments = (call.function.arguments if call.function else None) or ""
            if arguments.lstrip().startswith("{"):
                return False
            self._are_ids_stable = False
        return not self._are_ids_stable

    def begin(self, call: CallDelta, name: str) -> OpenCall:
        opened = OpenCall(call.id or "", name, is_custom=call.is_custom)
        self.all.append(opened)
        return opened

    def doubt(self, call: CallDelta, name: str, known: OpenCall) -> OpenCall:
        """A header where the arguments are complete: a call of its own, or a copy."""
        opened = OpenCall(call.id or known.id, name or known.name, is_custom=call.is_custom, twin=known)
        self.doubtful[opened] = None
        return opened

    def note(self, call: CallDelta, found: OpenCall) -> None:
        """What comes under this index or id belongs to it."""
        if call.index is not None and self._by_index.get(call.index) is not found:
            self._by_index[call.index] = found
            found.places.append(call.index)
        if call.id and call.id in self._by_id:
            self._are_ids_stable = True
        elif call.id:
            self._by_id[call.id] = found
        if found.twin is not None:
            self._by_id[found.id] = found

    def resolve(self, doubted: OpenCall, *, is_last: bool = False) -> OpenCall | None:
        """Decide whether a doubtful call is a call of its own, and return it; None while undecided, and for a copy."""
        twin = doubted.twin
        is_copy = twin is not None and (
            doubted.value == twin.value if doubted.is_whole else is_last and doubted.is_blank
        )
        if twin is None or not (is_copy or doubted.is_whole or is_last):
            return None
        del self.doubtful[doubted]
        if is_copy:
            self._by_id[doubted.id] = twin
            self._by_index.update(dict.fromkeys(doubted.places, twin))
            return None
        doubted.twin = None
        self.all.append(doubted)
        return doubted


def _goes_on(call: OpenCall, name: str) -> bool:
    """Whether a header with this name can occur in the middle of this call."""
    return name == call.name and call.has_arguments and not call.is_whole
