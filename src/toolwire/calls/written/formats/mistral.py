"""Mistral: [TOOL_CALLS] with a list of JSON objects behind it, or from v11 on with name[ARGS]{...}, as many as there are calls.

Between the two, servers that drop special tokens leave name{...}name{...}, and v13 has [CALL_ID] between name and arguments.
"""

from __future__ import annotations

from .arguments import named, read_envelope, read_json
from .grammar import Grammar
from .lexer import Marks, NoCall, Steps, Tape

_OPENER = "[TOOL_CALLS]"
_LIST, _NEXT_IN_LIST = Marks("["), Marks(",", "]")
_IDS, _ARGUMENTS = Marks("[CALL_ID]", "[ARGS]"), Marks("[ARGS]")
_END = "</s>"
_BEHIND = Marks(_OPENER, _END)


def _script(tape: Tape) -> Steps[None]:
    while True:
        first = yield from tape.ahead(1)
        if first == "[":
            yield from _list(tape)
        elif first == "{":
            yield from read_envelope(tape)
        else:
            yield from _call(tape)
        mark = yield from tape.past(_BEHIND)
        if mark == _END:
            tape.checkpoint()
        if mark == _END or (not mark and not (yield from _goes_on(tape))):
            return


def _list(tape: Tape) -> Steps[None]:
    yield from tape.past(_LIST)
    mark = ","
    while mark == ",":
        yield from read_envelope(tape)
        mark = yield from tape.past(_NEXT_IN_LIST)
    tape.checkpoint()


def _call(tape: Tape) -> Steps[None]:
    yield from tape.blanks()
    name = named((yield from tape.word()), tape.known)
    mark = yield from tape.past(_IDS)
    if mark == "[CALL_ID]":
        yield from tape.blanks()
        yield from tape.word()
        mark = yield from tape.past(_ARGUMENTS)
    if not mark and (yield from tape.ahead(1)) != "{":
        raise NoCall
    yield from read_json(tape, name, must_end=False)


def _goes_on(tape: Tape) -> Steps[bool]:
    """Whether a letter follows at once, which may begin the next name."""
    first = yield from tape.ahead(1)
    return first.isalpha() or first == "_"


GRAMMARS = (Grammar("mistral", (_OPENER,), _script),)
