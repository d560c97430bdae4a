"""<tool_call> blocks that no other grammar reads although the intention is clear.

The first grammar reads attributes or whitespace in the tag, emphasis around it, text or thinking before the JSON, the name before the
arguments, and a body that is one string. Calls of known tools with valid arguments are taken, and counted as drifted. Other blocks on lines
of their own, with a brace and a closing tag, are CallBroken. A tag that is only mentioned has no brace after it: at most a few words may
be between them, no empty line, and no code.

The second reads blocks without JSON: a call as code, as YAML or as a bare name, or nothing at all. They are CallBroken, unless the body is
only words, or words with code in them.

Both apply only where a prompt asks for such blocks, after all other grammars have failed.
"""

from __future__ import annotations

import re
from itertools import product

from .....wire.exact_json import BadJson, decode, object_of
from ..arguments import CUT, NOT_JSON, repair_object
from ..base import CallClosed, ToolLookup
from ..grammar import Grammar
from ..json_call import Envelope
from ..lexer import LONGEST_NAME, Marks, NoCall, Steps, Tape, UnreadableCall
from .tagged import MOST_UNNAMED, OPENERS, TAG_END, TOOL_CALL

_MOST_WORDS = 200
_MOST_ATTRIBUTES = 8
_EMPHASES = ("**", "*")
_OPENERS = ("<tool_call", "< tool_call", *(f"{mark}<tool_call" for mark in _EMPHASES))
_EQUALS, _QUOTES = Marks("="), Marks('"', "'")
_THOUGHTS, _THOUGHT_ENDS = Marks("<think>", "<thinking>"), Marks("</think>", "</thinking>")
_BEFORE = Marks("{", "`", "\n\n", "<tool_call", "</tool_call")
CLOSING = tuple(
    f"{start}{name}{end}"
    for start, name, end in product(
        ("</", "</ ", "< /"), ("tool_call", "Tool_Call", "TOOL_CALL", "Tool_call"), (">", " >")
    )
)
_CLOSINGS = Marks(*CLOSING)


def _block(tape: Tape) -> Steps[None]:
    emphasis = tape.opener[: tape.opener.index("<")]
    name = yield from _tag(tape)
    if emphasis:
        yield from tape.past(Marks(emphasis))
    if (yield from tape.ahead(2)) in ('"{', '"['):
        yield from tape.blanks()
        text, is_whole = yield from tape.balanced()
        text = _unquoted(text)
    else:
        words = yield from _words(tape)
        name = name or words
        text, is_whole = yield from _object(tape, name)
    is_closed = yield from _closed(tape, emphasis)
    is_over = not is_closed and not (yield from tape.ahead(1))
    calls = _calls(text, name, tape.known) if is_whole and (is_closed or is_over) else []
    for call in calls:
        tape.whole(call.name, call.raw, *call.repairs, *(["unterminated"] if is_over else []), "drifted")
    if calls:
        return
    if tape.is_exact or (not is_closed and not (yield from tape.upto(_CLOSINGS))[1]):
        raise NoCall
    is_known = bool(name) and tape.known.tool(name) is not None
    raise UnreadableCall(NOT_JSON if is_whole else CUT, *((name, text) if is_known else ()))


def _object(tape: Tape, name: str) -> Steps[tuple[str, bool]]:
    """The object, and whether it is complete."""
    if tape.is_exact and not name:  # prose with a brace in it must not be held
        before = len(tape.span)
        envelope = Envelope(tape, is_strict=True)
        yield from envelope.read(max(1, MOST_UNNAMED - tape.size))
        return tape.span[before:], envelope.status == "done"
    return (yield from tape.balanced())


def _tag(tape: Tape) -> Steps[str]:
    """Reads the tag to its end; returns its name attribute, if any."""
    if (yield from tape.word()):
        raise NoCall
    name = ""
    for _ in range(_MOST_ATTRIBUTES):
        if (yield from tape.past(TAG_END)):
            return name
        yield from tape.blanks()
        key = yield from tape.word()
        if not key or not (yield from tape.past(_EQUALS)):
            raise NoCall
        value = yield from _value(tape)
        name = value if key == "name" else name
    raise NoCall


def _value(tape: Tape) -> Steps[str]:
    quote = yield from tape.past(_QUOTES)
    if not quote:
        return (yield from tape.word())
    value, mark = yield from tape.upto(Marks(quote), LONGEST_NAME)
    if not mark:
        raise NoCall
    return value


def _words(tape: Tape) -> Steps[str]:
    """Reads the text before the object; inside a sentence none is allowed."""
    if not tape.is_instructed and (yield from tape.ahead(1)) != "{":
        raise NoCall
    if (yield from tape.past(_THOUGHTS)) and not (yield from tape.upto(_THOUGHT_ENDS, _MOST_WORDS))[1]:
        raise NoCall
    text, mark = yield from tape.upto(_BEFORE, _MOST_WORDS)
    words = text.strip()
    is_apart = text.startswith("\n") or text.rstrip(" \t").endswith(("\n", ":"))
    if mark != "{" or (words and not is_apart):
        raise NoCall
    tape.put_back(mark)
    return words


def _closed(tape: Tape, emphasis: str) -> Steps[str]:
    marks = Marks(*CLOSING, *(emphasis + closing for closing in CLOSING)) if emphasis else _CLOSINGS
    mark = yield from tape.past(marks, strays=True)
    if mark and emphasis:
        yield from tape.past(Marks(emphasis))
    return mark


def _calls(text: str, name: str, known: ToolLookup) -> list[CallClosed]:
    """The calls in the text, read as a block of the usual form or as the arguments of a tool that was named before."""
    read = TOOL_CALL.begin(OPENERS[0], known, is_exact=True).feed(f">{text}</tool_call>")
    if read.status == "done" and not read.rest:
        return [piece for piece in read.pieces if isinstance(piece, CallClosed)]
    if not name or known.tool(name) is None:
        return []
    raw = text if object_of(text) is not None else repair_object(text)[0]
    return [CallClosed(name=name, raw=raw)] if raw and known.fits(name, raw) else []


def _unquoted(text: str) -> str:
    try:
        found = decode(text)
    except BadJson:
        return text
    return found if isinstance(found, str) else text


SLIPPED = Grammar("slipped", _OPENERS, _block, "line")


_WHY = "it holds no JSON object"
_LONGEST = 1 << 16  # letters that are held for a closing tag once a tool is named
_ENDS = Marks(*CLOSING, *OPENERS)
_NOTHING = ("", "null", "None")
_FORM = re.compile(r"[(\[{:=]")
_NAME = re.compile(r"\w[\w.-]*")
_BEGINS = re.compile(r"\S|[^\S\n]*\n")  # right after the tag, or on the next line: a sentence continues after a space
_FENCES = ("```", "~~~")


def _block_without_json(tape: Tape) -> Steps[None]:
    if not tape.is_instructed or not (yield from tape.past(TAG_END)):
        raise NoCall
    body, mark = yield from tape.upto(_ENDS, MOST_UNNAMED)
    if not mark and _BEGINS.match(body) and _names_tool(body, tape.known):
        more, mark = yield from tape.upto(_ENDS, _LONGEST)
        body += more
    if mark not in CLOSING or not _is_meant(body.strip(), tape.known) or not (yield from tape.ends_line()):
        raise NoCall
    raise UnreadableCall(_WHY)


def _is_meant(body: str, known: ToolLookup) -> bool:
    if "`" in body and not body.startswith(_FENCES):
        return False
    return body in _NOTHING or _FORM.search(body) is not None or _names_tool(body[:MOST_UNNAMED], known)


def _names_tool(text: str, known: ToolLookup) -> bool:
    return any(known.tool(name.rstrip(".-")) is not None for name in _NAME.findall(text))


UNREAD = Grammar("unread", OPENERS, _block_without_json, "line")
