"""Other forms that models use in long conversations, and calls without any envelope.

No prompt asks for these forms, so each is a call only if it names a known tool and its arguments validate, and is counted as drifted;
otherwise it stays text, unchanged (H123, H125).
"""

from __future__ import annotations

from itertools import product

from ..arguments import ElementForm, ValueEnd, attributes
from ..grammar import Grammar
from ..lexer import Marks, NoCall, Steps, Tape
from .tagged import read_bare, read_line, read_tagged

_SECTIONS = ("<function_calls>", "<tool_calls>", "<minimax:tool_call>")
_INVOKE, _PARAMETER = "<invoke", "<parameter"
_ENDS = ("</invoke>",)
_SECTION_ENDS = ("</function_calls>", "</tool_calls>", "</minimax:tool_call>")
_FORM = ElementForm(
    argument=(_PARAMETER,),
    ends=_ENDS,
    value=ValueEnd(("</parameter>",), (_PARAMETER, *_ENDS)),
    attributes=attributes,
)


def _invokes(tape: Tape) -> Steps[None]:
    if tape.opener.lower() in _SECTIONS and not (yield from tape.past(Marks(_INVOKE))):
        raise NoCall
    mark = _INVOKE
    while mark == _INVOKE:
        yield from _FORM.read(tape)
        mark = yield from tape.past(Marks(_INVOKE, *_SECTION_ENDS))
    tape.checkpoint()


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

_GAPS = ("", " ")

DRIFTED = Grammar(
    "drifted",
    (
        *(f"<{tag}" for tag in _TAGS),
        "<<<tool_call",
        "<<tool_call",
        "TOOL_CALL_BLOCK",
        "[tool_call",
        "[tool-call",
        "[function_call",
    ),
    read_tagged,
    "line",
    "drifted",
)
INVOKE = Grammar("invoke", (_INVOKE, *_SECTIONS), _invokes, "line", "drifted")
# Without a tag, perhaps in a code fence.
_WRAPPERS = tuple(f'{{{gap}"{key}"' for gap in _GAPS for key in ("tool_call", "tool_calls", "function_call"))
WRAPPED = Grammar("bare", _WRAPPERS, read_bare, "line", "drifted", reads_opener=True)
WHOLE = Grammar("bare", ("{", "[", "```", "~~~"), read_bare, "start", "drifted", reads_opener=True)
# A JSON object of type tool_call on a line of its own or after a sentence. Nothing else may follow on its line.
_TYPES = product(_GAPS, _GAPS, ("tool_call", "function_call", "tool_use"))
_TYPED = tuple(f'{{{gap}"type":{space}"{kind}"' for gap, space, kind in _TYPES)
LINE = Grammar("line", _TYPED, read_line, "line", "drifted", reads_opener=True)
