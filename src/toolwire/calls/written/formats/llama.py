"""Llama 3: <|python_tag|> with {"name": ..., "parameters": {...}} behind it, or name.call(...); several are parted by semicolons.

Its third form, <function=name>{...}</function>, begins as Qwen's calls do and is read there. A bare JSON object that is the whole message
is no matter of one model.
"""

from __future__ import annotations

from .arguments import named, read_envelope
from .grammar import Grammar
from .lexer import Marks, NoCall, Steps, Tape
from .pythonic import read_call

_MORE, _CALL = Marks(";"), Marks("(")
_ENDS = Marks("<|eom_id|>", "<|eot_id|>")


def _script(tape: Tape) -> Steps[None]:
    mark = ";"
    while mark:
        if (yield from tape.ahead(1)) == "{":
            yield from read_envelope(tape)
        else:
            yield from _written(tape)
        mark = yield from tape.past(_MORE)
    if (yield from tape.past(_ENDS)):
        tape.checkpoint()


def _written(tape: Tape) -> Steps[None]:
    yield from tape.blanks()
    name = named((yield from tape.word()).removesuffix(".call"), tape.known)
    if not (yield from tape.past(_CALL)):
        raise NoCall
    yield from read_call(tape, name)


GRAMMARS = (Grammar("llama", ("<|python_tag|>",), _script),)
