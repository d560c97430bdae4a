"""Other forms that models use in long conversations, and calls without any envelope.

No prompt asks for these forms, so each is a call only if it names a known tool and its arguments validate, and is counted as drifted;
otherwise it stays text, unchanged (H123, H125).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

from ..arguments import TaggedArguments, ValueEnd, named, read_json
from ..base import Block, CallClosed, ToolLookup
from ..lexer import LONGEST_NAME, Marks, NoCall, ScriptBlock, Steps, Tape, UnreadableCall
from .inline import ExactTools, ValidatedBlock
from .tagged import TaggedBlock

Place: TypeAlias = Literal["start", "line", "anywhere"]


class OtherTag(Struct):
    """Another tag around the same JSON; only where the prompt asks for a tag."""

    openers: tuple[str, ...]
    name: str = "drifted"
    place: Place = "line"

    def begin(self, opener: str, known: ToolLookup) -> Block:
        return ValidatedBlock(TaggedBlock(opener, ExactTools(known)), known, "drifted")


class BareJson(Struct):
    """JSON without a tag, perhaps in a code fence."""

    openers: tuple[str, ...]
    place: Place
    name: str = "bare"

    def begin(self, opener: str, known: ToolLookup) -> Block:
        return ValidatedBlock(TaggedBlock("", ExactTools(known), is_bare=True), known, "drifted", opener)


class JsonLine(Struct):
    """A JSON object of type tool_call on a line of its own or after a sentence. Nothing else may follow on its line."""

    openers: tuple[str, ...]
    name: str = "line"
    place: Place = "line"

    def begin(self, opener: str, known: ToolLookup) -> Block:
        return ValidatedBlock(ScriptBlock(_line, "", ExactTools(known)), known, "drifted", opener)


class Invoke(Struct):
    """<invoke name="..."> with a tag for each parameter, or with JSON inside."""

    openers: tuple[str, ...]
    name: str = "invoke"
    place: Place = "line"

    def begin(self, opener: str, known: ToolLookup) -> Block:
        return ValidatedBlock(ScriptBlock(_invokes, opener, ExactTools(known)), known, "drifted")


_SECTIONS = ("<function_calls>", "<tool_calls>", "<minimax:tool_call>")
_INVOKE, _PARAMETER = "<invoke", "<parameter"
_ENDS = ("</invoke>",)
_SECTION_ENDS = ("</function_calls>", "</tool_calls>", "</minimax:tool_call>")
_TAG_END = Marks(">")
_ATTRIBUTE_ROOM = 32  # letters around the name
_ATTRIBUTE = re.compile(r"\bname\s*=\s*[\"']?([^\"'>]+)")
_VALUE = ValueEnd(("</parameter>",), (_PARAMETER, *_ENDS), lambda mark, before: False)


def _line(tape: Tape) -> Steps[None]:
    text, is_whole = yield from tape.balanced()
    if not is_whole or not (yield from tape.ends_line()):
        raise NoCall
    read = ValidatedBlock(TaggedBlock("<tool_call", ExactTools(tape.known)), tape.known).feed(f">{text}</tool_call>")
    if read.status != "done" or read.rest:
        raise NoCall
    for piece in read.pieces:
        if isinstance(piece, CallClosed):
            tape.whole(piece.name, piece.raw, *piece.repairs)


def _invokes(tape: Tape) -> Steps[None]:
    if tape.opener.lower() in _SECTIONS and not (yield from tape.past(Marks(_INVOKE))):
        raise NoCall
    mark = _INVOKE
    while mark == _INVOKE:
        yield from _invoke(tape)
        mark = yield from tape.past(Marks(_INVOKE, *_SECTION_ENDS))
    tape.settle()


def _invoke(tape: Tape) -> Steps[None]:
    name = named((yield from _attribute(tape)), tape.known)
    if (yield from tape.ahead(1)) == "{":
        yield from read_json(tape, name, _ended)
        return
    mark = yield from tape.past(Marks(_PARAMETER, *_ENDS))
    if not mark:
        raise NoCall
    arguments = TaggedArguments(tape, name)
    while mark == _PARAMETER:
        key = yield from _attribute(tape)
        if not key:
            raise UnreadableCall("a parameter has no name")
        text, mark = yield from _VALUE.read(tape)
        arguments.add(key, text)
    arguments.close(*([] if mark else ["unclosed"]))


def _attribute(tape: Tape) -> Steps[str]:
    text, _ = yield from tape.upto(_TAG_END, LONGEST_NAME + _ATTRIBUTE_ROOM)
    found = _ATTRIBUTE.search(text)
    return found.group(1).strip() if found else ""


def _ended(tape: Tape) -> Steps[str]:
    return (yield from tape.past(Marks(*_ENDS), strays=True))


_TAGS = (
    "tool_calls",
    "tool-call",
    "tool-calls",
    "toolcall",
    "toolcalls",
    "function_call",
    "function_calls",
    "function-call",
)

DRIFTED = OtherTag(
    (
        *(f"<{tag}" for tag in _TAGS),
        "<<<tool_call",
        "<<tool_call",
        "TOOL_CALL_BLOCK",
        "[tool_call",
        "[tool-call",
        "[function_call",
    )
)
INVOKE = Invoke((_INVOKE, *_SECTIONS))
WRAPPED = BareJson(
    tuple(f'{{{gap}"{key}"' for gap in ("", " ") for key in ("tool_call", "tool_calls", "function_call")), place="line"
)
LINE = JsonLine(
    tuple(
        f'{{{gap}"type":{space}"{kind}"'
        for gap in ("", " ")
        for space in ("", " ")
        for kind in ("tool_call", "function_call", "tool_use")
    )
)
WHOLE = BareJson(("{", "[", "```", "~~~"), place="start")
