"""Reads one object that contains a call, {"name": ..., "arguments": {...}}, letter by letter: its end, its tool, its arguments.

The reader knows the brackets and strings of JSON and little more, so that it finds the end also of what is not quite JSON: other quotes,
Python's literals, missing commas. Arguments are passed on exactly as the model wrote them, with three exceptions that can be repaired while
streaming: control characters inside strings, a comma before a closer, and Python's True, False and None. Arguments are streamed as soon as
the name is known; those that do not begin like JSON are held to their end, where the loose reader may understand them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from ....types import Json
from ....wire.exact_json import BadJson, encode, object_of
from ...arguments.loose_json import Loose, NotLoose
from ...arguments.object_text import decode_loosely
from .lexer import NoCall, Steps, Tape

Status: TypeAlias = Literal["more", "done", "tag", "bad", "stranger", "several"]

_RUNS = {'"': re.compile(r'[^"\\\x00-\x1f]+'), "'": re.compile(r"[^'\\\x00-\x1f]+")}
_BLANKS = re.compile(r"\s+")
_UNSEEN = re.compile(r"[\u200b-\u200d\u2060\ufeff]+")  # no blanks to a computer, nothing at all to a reader
_WORD = re.compile(r"[^\s{}\[\],:\"<]+")
_SCALAR = re.compile(r"[\w.+-]+")
_CLOSERS = {"{": "}", "[": "]"}
_WORDS = {"True": "true", "False": "false", "None": "null"}
_EMPTY = ("", "null", "None", "[]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_COMMENTS = {"#": re.compile(r"[^\n<]*"), "//": re.compile(r"[^\n<]*"), "/*": re.compile(r"[^/<]*")}
_ARGUMENTS = ("arguments", "parameters", "args", "input", "params", "kwargs", "tool_input", "action_input")
_ROLES = {
    **dict.fromkeys(("name", "tool_name", "tool", "function_name"), "name"),
    **dict.fromkeys(_ARGUMENTS, "arguments"),
    **dict.fromkeys(("function", "tool_call", "function_call", "call"), "wrapper"),
    **dict.fromkeys(("tool_calls", "calls", "function_calls"), "list"),
    **dict.fromkeys(("id", "type", "call_id", "tool_call_id", "index"), "known"),
}
_OF_CALLS = re.compile(r"function|function_call|tool_call|tool_use|(?:call|toolu|chatcmpl)[_-].*")  # values of those


class Envelope:
    """From the opening brace to the closing one. is_bare: no tag surrounds it, so a member that no call has ends it. is_strict: so does
    anything between its own members that JSON does not have there. needs_tool: so does the name of an unknown tool, which otherwise is
    accepted from a model that is instructed to write calls.

    status: more; done; tag: a < where JSON has none; bad: brackets that do not match; stranger: not a call of a known tool; several: it
    only wraps a list of calls, which begins here.
    """

    def __init__(self, tape: Tape, *, is_bare: bool = False, is_strict: bool = False, needs_tool: bool = False) -> None:
        self._tape = tape
        self._is_bare = is_bare
        self._is_strict = is_strict
        self._may_invent = tape.is_instructed and not needs_tool
        self.status: Status = "more"
        self.name = ""
        self.is_named = False  # by a name that may be called
        self.repairs: dict[str, None] = {}
        self._stack: list[str] = []
        self._base = 1  # how deep the members of the call are: deeper inside "function": {...}
        self._at: Literal["key", "value", "next"] = "value"
        self._role = ""
        self._keys: set[str] = set()
        self._is_keyed = False  # the last member has no colon yet
        self._has_strangers = False  # there are members that no call has, or comments
        self._is_muddled = False  # there is something else between the members
        self._comment = ""
        self._quote = ""
        self._is_escaped = False
        self._word: list[str] = []
        self._comma: list[str] = []  # a comma and the blanks behind it, until it is clear that something follows
        self._kept: list[str] | None = None  # collects the letters of the current member
        self._raw: list[str] = []
        self._has_raw = False  # the arguments are there, whole
        self._sent = 0  # how many items of _raw the tape has
        self._flow: Literal["unsure", "yes", "no"] = "unsure"

    def read(self, limit: int = 0) -> Steps[bool]:
        """Reads to its end; whether all of it is there but closers. limit: letters before which it must be named. Raises NoCall."""
        tape, start = self._tape, self._tape.size
        while self.status == "more" and (yield from tape.peek()):
            is_limited = bool(limit) and not self.is_named
            if is_limited and tape.size - start >= limit:
                raise NoCall
            tape.take_by(self.feed, limit - (tape.size - start) if is_limited else None)
        return self.status == "done" or (self.status in ("more", "tag", "stranger") and self._end())

    def _end(self) -> bool:
        """Nothing follows; whether nothing but closers can be missing."""
        self._end_word()
        self._check()
        self._grow()
        return self.is_named and (self.status == "done" or (self._has_raw and len(self._stack) == self._base))

    def feed(self, text: str, position: int) -> int:
        """Reads from this position; returns that of the first letter that it did not take."""
        while position < len(text) and self.status == "more":
            if self._quote:
                position = self._in_text(text, position)
            elif self._comment:
                position = self._in_comment(text, position)
            else:
                position = self._outside(text, position)
        self._grow()
        return position

    def finish(self, repairs: Iterable[str] = (), why: str = "") -> None:
        """Reports the call, or that it cannot be read. why: the reason why it did not end."""
        tape = self._tape
        found = self.arguments()
        raw, more = found or (self.raw, ())
        if tape.name and (missing := raw[len(tape.raw) :]):
            tape.grew(missing)
        if found is None or why:
            tape.broken(
                why or ("its arguments are not a JSON object" if self.name else "it names no tool"), self.name, raw
            )
        else:
            tape.whole(self.name, raw, *dict.fromkeys((*self.repairs, *more, *repairs)))

    @property
    def raw(self) -> str:
        """The arguments as they were written."""
        return _text("".join(self._raw)) if self._has_raw else "".join(self._raw)

    def arguments(self) -> tuple[str, tuple[str, ...]] | None:
        """The arguments as JSON, and the labels of their repairs; None if there are none that can be read."""
        if not self.name:
            return None
        found = self._written_arguments()
        if found is not None and found[0] == "{}" and (self._is_muddled or not self._raw):
            return self._beside_the_name(self._tape.span)
        return found

    def _written_arguments(self) -> tuple[str, tuple[str, ...]] | None:
        text = "".join(self._raw)
        if text[:1] == "{":
            if object_of(text) is not None:
                return text, ()
            return None if self._sent or not self._has_raw else _loosely(text)
        if text[:1] in _RUNS:
            text = _text(text)
        if text.strip() in _EMPTY:
            return "{}", ()
        return (text, ()) if object_of(text) is not None else _loosely(text)

    def _beside_the_name(self, span: str) -> tuple[str, tuple[str, ...]] | None:
        """Arguments as members of the call itself, by the names that its tool gives them. "{}" only if nothing else can be meant."""
        tool = self._tape.known.tool(self.name)
        properties = (tool.schema or {}).get("properties") if tool is not None else None
        names = properties.keys() & self._keys if isinstance(properties, dict) else set()
        nothing = None if self._has_strangers or self._is_muddled else ("{}", ())
        if not names:
            return nothing
        value = object_of(span[span.find("{") : span.rfind("}") + 1])
        if value is None:
            return None
        inner = next((value[key] for key in value if _ROLES.get(key.lower()) == "wrapper"), value)
        members = inner if isinstance(inner, dict) else value
        found = {key: members[key] for key in members if _is_flat(key, members[key], names)}
        if not found:
            return nothing
        raw = encode(found).decode("utf-8")
        return (raw, ("flat",)) if self._tape.known.fits(self.name, raw) else None

    def extend(self, rest: str) -> None:
        """Text after the first error also belongs to the arguments, if they had begun and not ended."""
        if self._raw and not self._has_raw:
            for _ in range(self._base):  # closers of what is around the arguments
                rest = rest.rstrip().removesuffix("}")
            self._raw += [*self._comma, rest]

    # Inside a string.

    def _in_text(self, text: str, position: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            self._keep(text[position] if text[position] >= " " else self._control(text[position])[1:])
            return position + 1
        if found := _RUNS[self._quote].match(text, position):
            self._keep(found.group())
            return found.end()
        letter = text[position]
        if letter == self._quote:
            self._keep(letter)
            self._quote = ""
            self._ended()
        elif letter == "\\":
            self._keep(letter)
            self._is_escaped = True
        else:
            self._keep(self._control(letter))
        return position + 1

    def _control(self, letter: str) -> str:
        """H110: a raw line end inside a text is no JSON, and can only mean its own escape."""
        self.repairs["syntax.control"] = None
        return _SHORT.get(letter) or f"\\u{ord(letter):04x}"

    def _in_comment(self, text: str, position: int) -> int:
        """Up to its end, which does not belong to it but for */; a tag ends it in any case."""
        if self._comment == "/":
            self._comment += text[position]
            if self._comment not in _COMMENTS:
                self._comment = ""
                self._is_muddled = True
                return position
            return position + 1
        found = _COMMENTS[self._comment[:2]].match(text, position)
        end = found.end() if found else position
        if self._comment[:2] == "/*":
            before = text[position:end] or self._comment[2:]
            self._comment = "/*" + before[-1:]
            if end < len(text) and text[end] == "/":
                self._comment = "" if before.endswith("*") else "/*/"
                return end + 1
        if end < len(text):
            self._comment = ""
        return end

    # Between texts.

    def _outside(self, text: str, position: int) -> int:
        letter = text[position]
        if self._is_strict and self._is_foreign(text, position):
            self.status = "stranger"
            return position
        if letter in "/#" and self._is_between() and not self._word and (letter == "/" or self._at != "value"):
            self._comment = letter
            self._has_strangers = True
            return position + 1
        if not self._word and (found := _UNSEEN.match(text, position)):
            self._has_strangers = True
            self._blank(found.group())
            return found.end()
        may_be_word = letter != "'" or bool(self._word) or self._at == "next"
        if may_be_word and (found := _WORD.match(text, position)):
            self._word.append(found.group())
            return found.end()
        self._end_word()
        if found := _BLANKS.match(text, position):
            self._blank(found.group())
            return found.end()
        if letter in "{[":
            return self._open(letter, position)
        if letter in "}]":
            return self._close(letter, position)
        if letter == "<":
            self.status = "tag"
            return position
        if letter == ",":
            self._flush()
            self._comma.append(letter)
            self._at = "key" if self._stack[-1:] == ["{"] else "value"
        elif letter == ":":
            self._keep(letter)
            self._at, self._is_keyed = "value", False
        else:
            self._begin_text(letter)
        self._check()
        return position + 1

    def _is_foreign(self, text: str, position: int) -> bool:
        """Whether JSON has nothing like this among the members of the call itself."""
        letter = text[position]
        if len(self._stack) != self._base:
            return False
        if letter in "{[":
            return self._at != "value"
        if letter in "\"':" and not self._word:
            return self._at == "next" and self._is_keyed == (letter != ":")
        if letter.isspace() or letter in "}],<":
            return False
        return self._at != "value" or _SCALAR.match(text, position) is None

    def _is_between(self) -> bool:
        """Whether no member of the call is open here."""
        return len(self._stack) == self._base and self._kept is None

    def _begin_text(self, quote: str) -> None:
        self._quote = quote
        self._start_member()
        self._keep(quote)

    def _start_member(self) -> None:
        """A key or value begins: of the call's own members, some are wanted."""
        if len(self._stack) != self._base:
            return
        if self._kept is None:
            self._comma.clear()
        if self._at == "next":
            if self._quote and not self._role:
                self._at = "key"  # only the comma is missing
                self.repairs["loose"] = None
            else:
                self._is_muddled = True
        is_name = self._role in ("name", "wrapper") and bool(self._quote) and not self.name
        if self._at == "key" or (self._at == "value" and is_name):
            self._kept = []
        elif self._at == "value" and self._role == "arguments" and not self._raw:
            self._kept = self._raw

    def _ended(self) -> None:
        """A key or value is over."""
        if len(self._stack) != self._base:
            self._at = "next"
            return
        kept, self._kept = self._kept, None
        if self._at == "key":
            self._key("".join(kept or ()))
        elif self._at == "value" and self._role:
            if kept is self._raw:
                self._has_raw = True
            elif kept is not None:
                self.name = self.name or _text("".join(kept)).strip()
            self._role = ""
        self._at = "next"

    def _key(self, written: str) -> None:
        key = _text(written)
        self._role = _ROLES.get(key.lower(), "")
        self._keys.add(key)
        self._is_keyed = len(self._stack) == self._base
        self._has_strangers = self._has_strangers or not self._role
        if self._is_bare and not self._role:
            self.status = "stranger"

    def _end_word(self) -> None:
        if not self._word:
            return
        word = "".join(self._word)
        self._word.clear()
        if word == ";" and self._at == "next" and self._is_between():
            return
        if word in _WORDS and self._at == "value":
            self.repairs["syntax.literal"] = None
            word = _WORDS[word]
        self._start_member()
        self._keep(word)
        self._ended()

    def _open(self, letter: str, position: int) -> int:
        is_member = len(self._stack) == self._base and self._at == "value"
        if is_member and self._role == "list" and letter == "[" and not self.name and not self._raw:
            self.status = "several"
            return position
        self._start_member()
        self._keep(letter)
        self._stack.append(letter)
        if is_member and self._role == "wrapper" and letter == "{":
            self._base += 1
            self._role = ""
        self._at = "key" if letter == "{" else "value"
        return position + 1

    def _close(self, letter: str, position: int) -> int:
        if _CLOSERS[self._stack[-1]] != letter:
            self.status = "bad"
            return position
        if self._comma:
            self.repairs["syntax.comma"] = None
            del self._comma[0]
        self._keep(letter)
        self._stack.pop()
        if len(self._stack) < self._base:
            self._is_muddled = self._is_muddled or bool(self._role)
            self._base = max(1, self._base - 1)
            self._at, self._role, self._kept = "next", "", None
        else:
            self._at = "value"
            self._ended()
        if not self._stack:
            self.status = "done"
        self._check()
        return position + 1

    def _check(self) -> None:
        """Whether the name, once complete, is that of a known tool."""
        if self.name and not self.is_named:
            self.is_named = self._may_invent or self._tape.known.tool(self.name) is not None
            self.status = self.status if self.is_named else "stranger"

    # Where letters go.

    def _blank(self, blanks: str) -> None:
        if self._kept is not None:
            (self._comma or self._kept).append(blanks)

    def _keep(self, text: str) -> None:
        if self._kept is None:
            self._comma.clear()
            return
        if self._comma:
            self._flush()
        if self._flow == "unsure" and self._kept is self._raw:
            self._judge_start(text)
        self._kept.append(text)

    def _judge_start(self, text: str) -> None:
        """Whether arguments are JSON, and may grow outwards, shows behind their opening brace."""
        if self._raw or text != "{":
            self._flow = "yes" if self._raw and text[0] in '"}' else "no"

    def _flush(self) -> None:
        if self._kept is not None:
            self._kept += self._comma
        self._comma.clear()

    def _grow(self) -> None:
        """A call is open when its arguments have begun like JSON: what begins otherwise may still turn out to be none."""
        if self._flow == "yes" and self.is_named and self._sent < len(self._raw):
            if not self._sent:
                self._tape.opened(self.name)
            self._tape.grew("".join(self._raw[self._sent :]))
            self._sent = len(self._raw)


def _is_flat(key: str, value: Json, names: set[str]) -> bool:
    """Whether a member beside the name is an argument, and not what calls have there themselves."""
    role = _ROLES.get(key.lower(), "")
    return key in names and (not role or (role == "known" and not _OF_CALLS.fullmatch(str(value))))


def _text(written: str) -> str:
    """What is between the quotes."""
    if written[:1] not in _RUNS:
        return written
    try:
        if written[0] == "'":
            return Loose(written).text()
        text: str = json.loads(written, strict=False)
        return text
    except (NotLoose, ValueError):
        return written[1:-1]


def _loosely(text: str) -> tuple[str, tuple[str, ...]] | None:
    """H130: single quotes and the like, where only one meaning is left."""
    try:
        value = decode_loosely(text)
        return (encode(value).decode("utf-8"), ("loose",)) if isinstance(value, dict) else None
    except (NotLoose, BadJson):
        return None
