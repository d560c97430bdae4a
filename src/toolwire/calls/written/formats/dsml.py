"""DeepSeek, two families of markup. V3.2 and V4 write DSML: an invoke tag for each call, a parameter tag for each argument, which says
whether it is a text. V3, R1 and V3.1 write tokens around a name and a JSON object.

The bars of both are full-width letters. Servers and models also write them twice or in ASCII, and the section as function_calls,
tool_calls or calls.
"""

from __future__ import annotations

import re
from itertools import product

from .arguments import TaggedArguments, ValueEnd, named, read_json
from .grammar import Grammar
from .lexer import LONGEST_NAME, Marks, NoCall, Steps, Tape, UnreadableCall

_BARS = ("｜", "｜｜", "|", "||")


def _tags(start: str, *names: str) -> tuple[str, ...]:
    """In all spellings."""
    return tuple(f"{start}{bar}DSML{bar}{gap}{name}" for bar, gap, name in product(_BARS, ("", " "), names))


_OPENERS = _tags("<", "")[::2]
_HEADS = Marks("function_calls>", "tool_calls>", "calls>", "invoke")
_INVOKES, _PARAMETERS = _tags("<", "invoke"), _tags("<", "parameter")
_INVOKE_ENDS, _PARAMETER_ENDS = _tags("</", "invoke>"), _tags("</", "parameter>")
_SECTION_ENDS = _tags("</", "function_calls>", "tool_calls>", "calls>")
_INVOKE, _FIRST = Marks(*_INVOKES), Marks(*_PARAMETERS, *_INVOKE_ENDS)
_BEHIND, _ENDS = Marks(*_INVOKES, *_SECTION_ENDS), Marks(*_INVOKE_ENDS)
_TAG_END = Marks(">")
_LONGEST_TAG = 2 * LONGEST_NAME
_ATTRIBUTE = re.compile(r"(\w+)\s*=\s*\"([^\"]*)\"")
_VALUE = ValueEnd(_PARAMETER_ENDS, (*_PARAMETERS, *_INVOKE_ENDS), lambda mark, before: False)


def _dsml(tape: Tape) -> Steps[None]:
    head = yield from tape.past(_HEADS)
    if not head or (head != "invoke" and not (yield from tape.past(_INVOKE))):
        raise NoCall
    mark = _INVOKES[0]
    while mark in _INVOKES:
        yield from _invoke(tape)
        mark = yield from tape.past(_BEHIND)
    if mark:
        tape.checkpoint()


def _invoke(tape: Tape) -> Steps[None]:
    name = named((yield from _attributes(tape)).get("name"), tape.known)
    if (yield from tape.ahead(1)) == "{":
        yield from read_json(tape, name, _invoke_ended)
        return
    mark = yield from tape.past(_FIRST)
    if not mark:
        raise NoCall
    arguments = TaggedArguments(tape, name)
    while mark in _PARAMETERS:
        said = yield from _attributes(tape)
        if "name" not in said:
            raise UnreadableCall("a parameter has no name")
        text, mark = yield from _VALUE.read(tape)
        arguments.add(said["name"], text, is_text={"true": True, "false": False}.get(said.get("string", "")))
    arguments.close(*([] if mark else ["unclosed"]))


def _attributes(tape: Tape) -> Steps[dict[str, str]]:
    text, _ = yield from tape.upto(_TAG_END, _LONGEST_TAG)
    return dict(_ATTRIBUTE.findall(text))


def _invoke_ended(tape: Tape) -> Steps[str]:
    return (yield from tape.past(_ENDS, strays=True))


# V3, R1, V3.1.


def _tokens(*words: str) -> tuple[str, ...]:
    """Spellings of a token; none is one of Kimi's, which are alike."""
    names = [gap.join(words) for gap in ("▁", "_", " ", "\\_")]
    return (*(f"<｜{name}｜>" for name in names), f"<|{names[0]}|>")


_SECTIONS, _CALLS = (*_tokens("tool", "calls", "begin"), "<｜tool▁calls｜>"), _tokens("tool", "call", "begin")
_CALL, _SEPARATOR, _CALL_END = Marks(*_CALLS), Marks(*_tokens("tool", "sep")), Marks(*_tokens("tool", "call", "end"))
_SECTION_END = _tokens("tool", "calls", "end")
_NEXT, _OVER = Marks(*_CALLS, *_SECTION_END), Marks(*_tokens("end", "of", "sentence"))
_FENCE, _FENCE_END = Marks("```json", "```\n"), Marks("```")


def _sections(tape: Tape) -> Steps[None]:
    if tape.opener in _SECTIONS and not (yield from tape.past(_CALL)):
        raise NoCall
    mark = _CALLS[0]
    while mark in _CALLS:
        yield from _call(tape)
        mark = yield from tape.past(_NEXT)
    if (yield from tape.past(_OVER)) or mark:
        tape.checkpoint()


def _call(tape: Tape) -> Steps[None]:
    given, mark = yield from tape.upto(_SEPARATOR, LONGEST_NAME)
    if not mark:
        raise NoCall
    if given.strip() == "function" and (yield from tape.ahead(1)) != "{":
        yield from tape.blanks()
        given = yield from tape.word()
    name = named(given.strip(), tape.known)
    yield from tape.past(_FENCE)
    yield from read_json(tape, name, _call_ended)


def _call_ended(tape: Tape) -> Steps[str]:
    yield from tape.past(_FENCE_END, strays=True)
    return (yield from tape.past(_CALL_END, strays=True))


GRAMMARS = (
    Grammar("dsml", _OPENERS, _dsml),
    Grammar("deepseek", (*_SECTIONS, *_CALLS), _sections),
)
