"""GLM: <tool_call>name, then <arg_key>key</arg_key><arg_value>value</arg_value> as often as needed, then </tool_call>."""

from __future__ import annotations

from .arguments import TaggedArguments, ValueEnd, named
from .grammar import Grammar
from .hermes.tagged import OPENERS, read_tag_end
from .lexer import LONGEST_NAME, Marks, NoCall, Steps, Tape, UnreadableCall

_KEY, _END = "<arg_key>", "</tool_call>"
_NEXT, _KEY_END, _VALUE_START = Marks(_KEY, _END), Marks("</arg_key>"), Marks("<arg_value>")
_VALUE = ValueEnd(("</arg_value>",), (_KEY, _END))


def _in_tag(tape: Tape) -> Steps[None]:
    yield from read_tag_end(tape)
    if not (yield from tape.ahead(1)):
        raise NoCall
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


IN_TAG = Grammar("glm", OPENERS, _in_tag, "line")
