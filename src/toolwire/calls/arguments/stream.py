"""Decides how much of a call's arguments can be sent while the model still writes them.

A repair must start with the bytes that the client already has. So text is only sent when no repair can change it any more:

- The content of a free string (any string is valid there) is sent as it comes, from its opening quote on.
- Everything else waits until the next value has begun and looks right: names that the schema has, the right type, one of the fixed values.
  A closing quote waits, too: if no comma or bracket follows it, it was a quote inside the string.
- In the first characters of a string, a comma or bracket at the end of what has come waits for the next character, with the blanks around
  it. If a quote follows, it may not belong to the string: the quote that ends it was forgotten.
- A string that begins like the name of the tool waits, because the arguments may be wrapped: {"name": ..., "arguments": {...}}. So does
  an item of a list that begins like the name of a member: the bracket that ends the list may be missing.
- From the first doubt on, everything waits for the end of the call.
- The end waits as well: whether the arguments are valid shows at their last bracket.

The scanner reads each character once.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ...events import PartDelta
from ...types import Json
from ...wire.exact_json import BadJson, decode
from ..schemas.shape import ValueShape

_MOST_HELD = 4096  # characters that wait without a doubt
_DEEPEST = 64
_CAREFUL = 256  # characters of a string in which a forgotten quote is expected

_TEXT = re.compile(
    r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*+'
)
_ESCAPE_BEGUN = re.compile(r"\\(?:u(?:[0-9a-fA-F]{0,4}|[dD][89abAB][0-9a-fA-F]{2}\\(?:u[0-9a-fA-F]{0,4})?))?")
_MEMBER = re.compile(r'[ \t\r\n]*+("[^"\\\x00-\x1f]*+")[ \t\r\n]*+:')  # a name with its colon, where both have come
_BLANKS = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^,\]}\s]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LITERALS = {"true": True, "false": False, "null": None}
_TAIL = re.compile(r"[ \t\r\n]*+[,}\]][ \t\r\n,}\]]*\Z")
_MAY_END = frozenset(" \t\r\n,}]")  # characters that may be behind the end of a string


# What the scanner expects next.
_VALUE = 0
_FIRST_NAME = 1  # or the end of the object
_NAME = 2
_COLON = 3
_FIRST_ITEM = 4  # or the end of the list
_SEPARATOR = 5  # after a value
_INSIDE_TEXT = 6
_INSIDE_SCALAR = 7
_NOTHING = 8  # after the last bracket


class _Container:
    """An open object or list."""

    def __init__(self, shape: ValueShape, is_object: bool) -> None:
        self.shape = shape
        self.is_object = is_object
        self.names: set[str] = set()
        self.count = 0

    def next_item(self) -> ValueShape:
        self.count += 1
        return self.shape.members.get(self.count - 1) or self.shape.member(self.count - 1)


class ArgumentStream:
    """The arguments of one call. index: of its part in the answer. doubt: why the rest of the call is held, "" while it is not."""

    def __init__(self, shape: ValueShape, tool_name: str = "", index: int = 0) -> None:
        self._index = index
        self._tool_name = tool_name
        self._shape = shape  # of the value that is expected or read
        self._stack: list[_Container] = []
        self._expects = _VALUE
        self._sent: list[str] = []
        self._waiting: list[str] = []  # after a doubt
        self._text = ""  # received and not sent
        self._position = 0  # of the scanner in it
        self._start = 0  # of the value or name that is read; below 0 if its start has been sent
        self._is_name = False
        self._is_free = False  # the string that is read is sent as it comes
        self._length = 0  # of the free string, as far as it was read
        self._names: Collection[str] = ()  # that the string may be instead
        self.doubt = ""

    @property
    def sent(self) -> str:
        return "".join(self._sent)

    @property
    def is_waiting(self) -> bool:
        """Some of the text has not been sent."""
        return bool(self._text or self._waiting)

    def passes(self, delta: PartDelta) -> bool:
        """Whether the delta only extends a free string and nothing waits, or belongs to another part. If so it counts as sent."""
        text = delta.text
        if delta.index != self._index:
            return not self._text and not self._waiting
        if self._text or not self._is_free or self.doubt:
            return False
        is_plain = text.isprintable() and '"' not in text and "\\" not in text  # half the cost of the expression
        if not is_plain and _TEXT.fullmatch(text) is None:
            return False
        if self._length < _CAREFUL:
            if self._length < self._shape.least_length or (text[-1:] in _MAY_END and _TAIL.search(text)):
                return False
            self._length += len(text)
        self._sent.append(text)
        return True

    def feed(self, text: str) -> str:
        """What can be sent now."""
        if self.doubt:
            self._waiting.append(text)
            return ""
        self._text += text
        safe = self._scan()
        ready, self._text = self._text[:safe], self._text[safe:]
        self._position -= safe
        self._start -= safe
        if ready:
            self._sent.append(ready)
        if len(self._text) > _MOST_HELD:
            self.hold("much of it cannot be checked before it is complete")
        return ready

    def hold(self, why: str) -> None:
        """Send nothing more before the end of the call."""
        self.doubt = self.doubt or why

    def rest(self) -> str:
        """What was received and not sent."""
        return self._text + "".join(self._waiting)

    def _scan(self) -> int:
        """Read on to the end of the text. Returns how much of it can be sent."""
        safe = 0
        while self._position < len(self._text) and not self.doubt:
            before, expects = self._position, self._expects
            if expects == _INSIDE_TEXT:
                safe = self._read_text(safe)
            elif expects == _INSIDE_SCALAR:
                self._read_scalar()
            elif expects in (_NAME, _FIRST_NAME) and (member := _MEMBER.match(self._text, before)):
                self._position = member.end()
                self._end_name(member[1])
                if not self.doubt:
                    self._expects = _VALUE
                continue
            else:
                self._position = _BLANKS.match(self._text, before).end()  # type: ignore[union-attr] # always matches
                if self._position < len(self._text):
                    safe = self._read_token(self._text[self._position], safe)
                continue
            if self._position == before and self._expects == expects:  # more is needed
                break
        return safe

    def _read_token(self, character: str, safe: int) -> int:
        expects, at = self._expects, self._position
        self._position += 1
        if expects == _VALUE:
            return self._begin(character, at, safe)
        if expects == _SEPARATOR:
            self._separate(character)
        elif expects == _COLON and character == ":":
            self._expects = _VALUE
        elif expects in (_NAME, _FIRST_NAME) and character == '"':
            self._expects, self._start, self._is_name, self._is_free = _INSIDE_TEXT, at, True, False
        elif (expects == _FIRST_NAME and character == "}") or (expects == _FIRST_ITEM and character == "]"):
            self._close()
        elif expects == _FIRST_ITEM:
            self._shape = self._stack[-1].next_item()
            return self._begin(character, at, safe)
        else:
            self.hold("it is not JSON")
        return safe

    def _separate(self, character: str) -> None:
        inner = self._stack[-1]
        if character == ",":
            if inner.is_object:
                self._expects = _NAME
            else:
                self._shape, self._expects = inner.next_item(), _VALUE
        elif character == ("}" if inner.is_object else "]"):
            self._close()
        else:
            self.hold("it is not JSON")

    def _begin(self, character: str, at: int, safe: int) -> int:
        """A value begins. If it looks right, all before it can be sent."""
        shape = self._shape
        self._start = at
        if character in "{[":
            is_object = character == "{"
            kind = "object" if is_object else "array"
            if (shape.types and kind not in shape.types) or len(self._stack) == _DEEPEST:
                self.hold("a value has another type")
                return safe
            self._stack.append(_Container(shape, is_object))
            self._expects = _FIRST_NAME if is_object else _FIRST_ITEM
        elif not self._stack:
            self.hold("it is not an object")
        elif character == '"':
            if shape.types and "string" not in shape.types:
                self.hold("a value has another type")
                return safe
            self._is_name, self._length = False, 0
            self._is_free = shape.is_free_text and not shape.is_text_union
            self._expects = _INSIDE_TEXT
            self._names = self._other_names()
            return safe if self._names else at
        else:
            self._expects, self._position = _INSIDE_SCALAR, at
            return safe  # its type is known at its end
        return at

    def _read_text(self, safe: int) -> int:
        """Read a string up to its end or the end of the text."""
        text, begun = self._text, self._position
        if begun == self._start + 1 and not self._is_name and self._shape.is_text_union:
            self._is_free = self._shape.is_free_text and text[begun] not in '[{ \t\r\n"\\'
        self._position = end = _TEXT.match(text, begun).end()  # type: ignore[union-attr] # always matches
        self._length += end - begun
        if self._is_free and self._length >= self._shape.least_length:
            safe = self._safe_text(end, safe)
        if end == len(text):
            return safe
        if text[end] == '"':
            self._position += 1
            self._end_text(text[max(self._start, 0) : end + 1])
        elif text[end] != "\\":
            self.hold("a string has a control character")
        elif _ESCAPE_BEGUN.fullmatch(text, end) is None:
            self.hold("a string has an invalid escape")
        return safe

    def _other_names(self) -> Collection[str]:
        """What the string that begins here may be, if it is not a value."""
        inner = self._stack[-1]
        if inner.is_object:
            return (self._tool_name,) if len(self._stack) == 1 else ()
        around = next((outer for outer in reversed(self._stack) if outer.is_object), inner)
        return around.shape.names - around.names

    def _safe_text(self, end: int, safe: int) -> int:
        if self._names:
            begun = self._text[self._start + 1 : end]
            for name in self._names:
                if name.startswith(begun):
                    return safe
            self._names = ()
        if self._length > _CAREFUL:
            return end
        tail = _TAIL.search(self._text, max(0, self._start + 1), end)
        return tail.start() if tail is not None else end

    def _end_text(self, written: str) -> None:
        if self._is_name:
            self._end_name(written)
            return
        if self._names and written[1:-1] == self._tool_name:
            self.hold("a value may be the name of the tool")
        if not self._is_free:
            self._check(written)
            if self._shape.is_text_union:
                self.hold("a string may hold JSON")
        self._is_free = False
        self._expects = _SEPARATOR

    def _end_name(self, written: str) -> None:
        inner = self._stack[-1]
        name = written[1:-1] if "\\" not in written else _value(written)
        known = inner.shape.names
        is_known = name in known if known else isinstance(name, str) and inner.shape.takes_name(name)
        if not isinstance(name, str) or not is_known or name in inner.names:
            self.hold("a member has an unknown name, or one that was used before")
            return
        inner.names.add(name)
        self._shape, self._expects = inner.shape.members.get(name) or inner.shape.member(name), _COLON

    def _read_scalar(self) -> None:
        end = _SCALAR.match(self._text, self._position).end()  # type: ignore[union-attr] # always matches
        self._position = end
        if end == len(self._text):
            return
        self._check(self._text[self._start : end])
        self._expects = _SEPARATOR

    def _check(self, written: str) -> None:
        is_json = written[:1] == '"' or written in _LITERALS or _NUMBER.fullmatch(written) is not None
        try:
            is_right = is_json and self._shape.takes_value(decode(written))
        except BadJson:
            is_right = False
        if not is_right:
            self.hold("a value does not fit")

    def _close(self) -> None:
        closed = self._stack.pop()
        if not self._stack:
            self._expects = _NOTHING
        elif closed.is_object and not closed.shape.required <= closed.names:
            self.hold("a member is missing")
        else:
            self._expects = _SEPARATOR


def _value(written: str) -> Json:
    try:
        return decode(written)
    except BadJson:
        return None
