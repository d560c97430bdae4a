"""GLM: <tool_call>name, then <arg_key>key</arg_key><arg_value>value</arg_value> as often as needed, then </tool_call>.

The opener is that of the JSON form, so this grammar has none of its own: the block of <tool_call> delegates to it.
"""

from __future__ import annotations

from .arguments import TaggedArguments, ValueEnd, named
from .base import Block, Grammar, ToolLookup
from .lexer import LONGEST_NAME, Marks, NoCall, ScriptBlock, Steps, Tape, UnreadableCall

_KEY, _END = "<arg_key>", "</tool_call>"
_NEXT, _KEY_END, _VALUE_START = Marks(_KEY, _END), Marks("</arg_key>"), Marks("<arg_value>")
_VALUE = ValueEnd(("</arg_value>",), (_KEY, _END), lambda mark, before: False)


def in_tag(opener: str, known: ToolLookup) -> Block:
    """The block after <tool_call>, where a name may follow."""
    return ScriptBlock(_script, opener, known)


def _script(tape: Tape) -> Steps[None]:
    yield from tape.blanks()
    given = yield from tape.word()
    mark = yield from tape.past(_NEXT)
    if not mark:
        raise NoCall
    arguments = TaggedArguments(tape, named(given, tape.known))
    while mark == _KEY:
        key, _ = yield from tape.upto(_KEY_END, LONGEST_NAME)
        if not (yield from tape.past(_VALUE_START)):
            raise UnreadableCall("a key has no value")
        text, mark = yield from _VALUE.read(tape)
        arguments.add(key.strip(), text)
    arguments.close(*([] if mark else ["unclosed"]))


GRAMMARS: tuple[Grammar, ...] = ()
