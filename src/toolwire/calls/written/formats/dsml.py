"""DeepSeek, two families of markup. V3.2 and V4 write DSML: an invoke tag for each call, a parameter tag for each argument, which says
whether it is a text. V3, R1 and V3.1 write tokens around a name and a JSON object.

The bars of both are full-width letters. Servers and models also write them twice or in ASCII, and the section as function_calls,
tool_calls or calls.
"""

from __future__ import annotations

from itertools import product

from .arguments import ElementForm, ValueEnd, attributes, named, read_json
from .grammar import Grammar
from .lexer import LONGEST_NAME, Marks, NoCall, Steps, Tape

_BARS = ("｜", "｜｜", "|", "||")


def _tags(start: str, *names: str) -> tuple[str, ...]:
    """In all spellings."""
    return tuple(f"{start}{bar}DSML{bar}{gap}{name}" for bar, gap, name in product(_BARS, ("", " "), names))


_OPENERS = _tags("<", "")[::2]
_HEADS = Marks("function_calls>", "tool_calls>", "calls>", "invoke")
_INVOKES, _PARAMETERS = _tags("<", "invoke"), _tags("<", "parameter")
_INVOKE_ENDS, _PARAMETER_ENDS = _tags("</", "invoke>"), _tags("</", "parameter>")
_SECTION_ENDS = _tags("</", "function_calls>", "tool_calls>", "calls>")
_INVOKE, _BEHIND = Marks(*_INVOKES), Marks(*_INVOKES, *_SECTION_ENDS)
_FORM = ElementForm(
    argument=_PARAMETERS,
    ends=_INVOKE_ENDS,
    value=ValueEnd(_PARAMETER_ENDS, (*_PARAMETERS, *_INVOKE_ENDS)),
    attributes=attributes,
)


def _dsml(tape: Tape) -> Steps[None]:
    head = yield from tape.past(_HEADS)
    if not head or (head != "invoke" and not (yield from tape.past(_INVOKE))):
        raise NoCall
    mark = _INVOKES[0]
    while mark in _INVOKES:
        yield from _FORM.read(tape)
        mark = yield from tape.past(_BEHIND)
    if mark:
        tape.checkpoint()


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
    yield from read_json(tape, name, _FENCE_END, _CALL_END)


GRAMMARS = (
    Grammar("dsml", _OPENERS, _dsml),
    Grammar("deepseek", (*_SECTIONS, *_CALLS), _sections),
)
