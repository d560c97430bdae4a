"""Qwen3-Coder: <tool_call><function=name><parameter=key>value</parameter></function></tool_call>, the outer tag often left out.

Values carry no types and are not escaped: the tool's schema defines their types. Llama 3.1 writes the same opener with a JSON
object behind it, <function=name>{...}</function>, so what follows the name decides.
"""

from __future__ import annotations

from .arguments import ElementForm, ValueEnd
from .grammar import Grammar
from .hermes.tagged import OPENERS, read_tag_end
from .lexer import Marks, NoCall, Steps, Tape

_OPENER = "<function="
_PARAMETER, _FUNCTION_END = "<parameter=", "</function>"
_FUNCTIONS, _TAG_END = Marks(_OPENER), Marks("</tool_call>")


def _in_tag(tape: Tape) -> Steps[None]:
    yield from read_tag_end(tape)
    if not (yield from tape.past(_FUNCTIONS)):
        raise NoCall
    yield from _function(tape)


def _function(tape: Tape) -> Steps[None]:
    yield from _FORM.read(tape)
    if (yield from tape.past(_TAG_END)):
        tape.checkpoint()


def _is_next(mark: str, before: str) -> bool:
    """A parameter that begins a line ends one that was not closed; inside a line it is quoted."""
    return mark == _FUNCTION_END or before.endswith("\n")


def _name(text: str) -> dict[str, str]:
    return {} if "<" in text else {"name": text.strip().strip("\"'")}


def _without_line_ends(text: str) -> str:
    """Without the one at each end that belongs to the tags."""
    text = text[2:] if text.startswith("\r\n") else text.removeprefix("\n")
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


_FORM = ElementForm(
    argument=(_PARAMETER,),
    ends=(_FUNCTION_END,),
    value=ValueEnd(
        ("</parameter>",), (_PARAMETER, _FUNCTION_END), _is_next, (_PARAMETER, _OPENER, "<tool_call>", "</tool_call>")
    ),
    attributes=_name,
    value_text=_without_line_ends,
)

IN_TAG = Grammar("qwen", OPENERS, _in_tag, "line")
GRAMMARS = (Grammar("qwen", (_OPENER,), _function, "line"),)
