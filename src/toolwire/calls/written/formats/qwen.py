"""Qwen3-Coder: <tool_call><function=name><parameter=key>value</parameter></function></tool_call>, the outer tag often left out.

Values carry no types and are not escaped: the tool's schema defines their types. Llama 3.1 writes the same opener with a JSON
object behind it, <function=name>{...}</function>, so what follows the name decides.
"""

from __future__ import annotations

from .arguments import TaggedArguments, ValueEnd, named, read_json
from .grammar import Grammar
from .hermes.tagged import OPENERS, read_tag_end
from .lexer import LONGEST_NAME, Marks, NoCall, Steps, Tape, UnreadableCall

_OPENER = "<function="
_PARAMETER, _FUNCTION_END = "<parameter=", "</function>"
_FUNCTIONS, _ENDS, _TAG_END = Marks(_OPENER), Marks(_FUNCTION_END), Marks("</tool_call>")
_FIRST = Marks(_PARAMETER, _FUNCTION_END)
_NAME_END = Marks(">")


def _in_tag(tape: Tape) -> Steps[None]:
    yield from read_tag_end(tape)
    if not (yield from tape.past(_FUNCTIONS)):
        raise NoCall
    yield from _function(tape)


def _function(tape: Tape) -> Steps[None]:
    given, _ = yield from tape.upto(_NAME_END, LONGEST_NAME)
    name = named(_unquoted(given), tape.known)
    if (yield from tape.ahead(1)) == "{":
        yield from read_json(tape, name, _ended)
    else:
        yield from _parameters(tape, name)
    if (yield from tape.past(_TAG_END)):
        tape.checkpoint()


def _parameters(tape: Tape, name: str) -> Steps[None]:
    mark = yield from tape.past(_FIRST)
    if not mark:
        raise NoCall
    arguments = TaggedArguments(tape, name)
    while mark == _PARAMETER:
        key, mark = yield from tape.upto(_NAME_END, LONGEST_NAME)
        if not mark or "<" in key:
            raise UnreadableCall("the name of a parameter does not end")
        text, mark = yield from _VALUE.read(tape)
        arguments.add(_unquoted(key), _without_line_ends(text))
    arguments.close(*([] if mark else ["unclosed"]))


def _ended(tape: Tape) -> Steps[str]:
    return (yield from tape.past(_ENDS, strays=True))


def _is_next(mark: str, before: str) -> bool:
    """A parameter that begins a line ends one that was not closed; inside a line it is quoted."""
    return mark == _FUNCTION_END or before.endswith("\n")


def _unquoted(name: str) -> str:
    return name.strip().strip("\"'")


def _without_line_ends(text: str) -> str:
    """Without the one at each end that belongs to the tags."""
    text = text[2:] if text.startswith("\r\n") else text.removeprefix("\n")
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


_VALUE = ValueEnd(
    ("</parameter>",), (_PARAMETER, _FUNCTION_END), _is_next, (_PARAMETER, _OPENER, "<tool_call>", "</tool_call>")
)

IN_TAG = Grammar("qwen", OPENERS, _in_tag, "line")
GRAMMARS = (Grammar("qwen", (_OPENER,), _function, "line"),)
