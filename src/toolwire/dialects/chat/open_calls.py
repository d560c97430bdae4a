"""Chat Completions: which call a fragment belongs to, when its id, index or name is missing, repeated or wrong.

A fragment is placed by what it carries, in this order: an id that is known, an index that is known, else the last call. A header (an id or a
name) where the arguments are complete begins another call or repeats this one, for complete arguments cannot go on; which of the two it is
shows when its own arguments are complete: equal ones under the same id are a copy (H015, H049), any others a call. Until then such a
doubtful call waits. A call starts once its name is one that was offered, or once its arguments begin, for names may come in pieces.
"""

from __future__ import annotations

import re

from ...types import CallKind, Extra, JsonObject, ToolCall
from ...wire.exact import object_of
from ..assembly import Growing
from .shapes import NAME, Call

_MARKS = re.compile(r'["\\{}\[\]]')


class Balance:
    """Whether the text so far is one closed JSON value; each character is looked at once."""

    __slots__ = ("_depth", "_is_escaped", "_is_text", "is_closed", "is_spoilt")

    def __init__(self) -> None:
        self._depth = 0
        self._is_text = False
        self._is_escaped = False
        self.is_closed = False
        self.is_spoilt = False  # something came behind the end

    def read(self, text: str) -> None:
        if self.is_closed:
            self.is_spoilt = self.is_spoilt or bool(text.strip())
            return
        skipped = 1 if self._is_escaped and text else 0
        for match in _MARKS.finditer(text, skipped):
            at, mark = match.start(), match.group()
            if at < skipped:
                continue
            if self._is_text:
                if mark == "\\":
                    skipped = at + 2
                self._is_text = mark != '"'
            elif mark == '"':
                self._is_text = True
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    self.is_closed = True
                    self.is_spoilt = bool(text[at + 1 :].strip())
                    return
        self._is_escaped = skipped > len(text) if text else self._is_escaped


class OpenCall:
    """One call under construction; twin is the one that it may only repeat."""

    __slots__ = (
        "_balance",
        "_unread",
        "_value",
        "growing",
        "id",
        "is_custom",
        "members",
        "name",
        "places",
        "size",
        "twin",
        "waiting",
    )

    def __init__(self, call_id: str, name: str, *, is_custom: bool, twin: OpenCall | None = None) -> None:
        self.id = call_id
        self.name = name
        self.is_custom = is_custom
        self.members: JsonObject = {}
        self.twin = twin
        self.size = 0
        self.places: list[int] = []  # where a doubtful one stands instead of its twin
        self.waiting: list[str] = []  # arguments that came before the start
        self.growing: Growing | None = None
        self._balance: Balance | None = None
        self._unread: list[str] = []
        self._value: JsonObject | None = None

    def add(self, arguments: str) -> None:
        self.waiting.append(arguments)
        self.count(arguments)

    def count(self, arguments: str) -> None:
        self._unread.append(arguments)
        self.size += len(arguments)

    @property
    def value(self) -> JsonObject | None:
        """Its arguments, once they are complete; parsed once."""
        if self.is_custom:
            return None
        balance = self._balance
        if balance is None:
            balance = self._balance = Balance()
        was_closed = balance.is_closed
        for piece in self._unread:
            balance.read(piece)
        self._unread.clear()
        if balance.is_spoilt:
            self._value = None
        elif balance.is_closed and not was_closed:
            self._value = object_of(self._content)
        return self._value

    def start(self) -> ToolCall:
        """As it is told when it begins."""
        kind: CallKind = "custom" if self.is_custom else "function"
        return ToolCall(id=self.id, name=self.name, raw="", kind=kind, extra=self._extra)

    @property
    def _extra(self) -> Extra:
        return {NAME: dict(self.members)} if self.members else {}

    @property
    def is_whole(self) -> bool:
        return self.value is not None

    @property
    def is_blank(self) -> bool:
        return not self.is_custom and not self._content.strip()

    @property
    def _content(self) -> str:
        return (self.growing.content if self.growing is not None else "") + "".join(self.waiting)


class OpenCalls:
    """The calls of one choice, in order, and how to find them."""

    __slots__ = ("_by_id", "_by_index", "_current", "all", "doubtful")

    def __init__(self) -> None:
        self.all: list[OpenCall] = []
        self.doubtful: dict[OpenCall, None] = {}
        self._by_id: dict[str, OpenCall] = {}
        self._by_index: dict[int, OpenCall] = {}
        self._current: OpenCall | None = None

    def going_on(self, index: int | None) -> Growing | None:
        """Where a plain fragment goes, if its call has started: the usual case, and the quick one."""
        found = self._by_index.get(index) if index is not None else None
        self._current = found
        return found.growing if found is not None else None

    def grow(self, arguments: str) -> None:
        """More of the call that was found last."""
        found = self._current
        if found is not None and found.growing is not None:
            found.growing.pieces.append(arguments)
            found.count(arguments)

    def find(self, call: Call, name: str) -> OpenCall | None:
        """The call this fragment goes on with; None: it begins one."""
        at_index = self._by_index.get(call.index) if call.index is not None else None
        if call.id:
            return self._by_header(call, name, call.id, at_index)
        if at_index is not None:
            return None if name and at_index.name and at_index.is_whole else at_index
        last = self.all[-1] if self.all else None
        if name and last is not None and last.name and not _goes_on(last, name):
            return None
        return None if last is None else last

    def _by_header(self, call: Call, name: str, call_id: str, at_index: OpenCall | None) -> OpenCall | None:
        known = self._by_id.get(call_id)
        if known is not None and (known is at_index or call.index is None or not name):
            return known
        if at_index is None:
            return self.all[-1] if not name and known is None and call.index is None and self.all else None
        if not at_index.id or not name or _goes_on(at_index, name):  # another id for the same call
            return at_index
        return None

    def begin(self, call: Call, name: str) -> OpenCall:
        opened = OpenCall(call.id or "", name, is_custom=call.is_custom)
        self.all.append(opened)
        return opened

    def doubt(self, call: Call, name: str, known: OpenCall) -> OpenCall:
        """A header where the arguments are complete: a call of its own, or a copy."""
        opened = OpenCall(call.id or known.id, name or known.name, is_custom=call.is_custom, twin=known)
        self.doubtful[opened] = None
        return opened

    def note(self, call: Call, found: OpenCall) -> None:
        """What comes under this index or id belongs to it."""
        if call.index is not None and self._by_index.get(call.index) is not found:
            self._by_index[call.index] = found
            found.places.append(call.index)
        if call.id:
            self._by_id.setdefault(call.id, found)
        if found.twin is not None:
            self._by_id[found.id] = found

    def settle(self, doubted: OpenCall, *, is_last: bool = False) -> OpenCall | None:
        """The call that a doubtful one has turned out to be; None while that is open, and where it was a copy."""
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
    """Whether a header with this name may stand in the middle of this call."""
    return name == call.name and call.size > 0 and not call.is_whole
