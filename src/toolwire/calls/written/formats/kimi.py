"""Kimi K2: <|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{...}<|tool_call_end|>, mostly in a section of its own.

The id should contain the name. But the model copies ids from the history, and where a client had rewritten them there it writes
functionsexec5, functions_get_weather_1 or call00003; for the last kind only the arguments show which tool is meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ....types import Tool
from .arguments import CUT, NOT_JSON, read_json, repair_object
from .base import ToolLookup
from .grammar import Grammar
from .lexer import LONGEST_NAME, Marks, NoCall, Steps, Tape, UnreadableCall

_SECTIONS = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_CALL = "<|tool_call_begin|>"
_CALLS = Marks(_CALL)
_ARGUMENTS = Marks("<|tool_call_argument_begin|>")
_END = Marks("<|tool_call_end|>")
_SECTION_END = Marks("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
_NEXT = Marks(_CALL, *_SECTION_END.texts)
_COUNTER = re.compile(r":\d+\Z")
_NUMBER = re.compile(r"[_.:-]?\d+\Z")
_PREFIX = re.compile(r"functions?[._:]?")
_NAMELESS = re.compile(r"(?:functions?[._]?)?(?:(?:tool_?)?call|id)?[_-]?[0-9a-f]*\d", re.IGNORECASE)


@runtime_checkable
class _Listing(Protocol):
    """Who knows tools and can name all of them."""

    @property
    def tools(self) -> Sequence[Tool]: ...


def _script(tape: Tape) -> Steps[None]:
    if tape.opener in _SECTIONS and not (yield from tape.past(_CALLS)):
        raise NoCall
    mark = _CALL
    while mark == _CALL:
        yield from _call(tape)
        mark = yield from tape.past(_NEXT)
    while mark:  # it is written twice at times
        tape.checkpoint()
        mark = yield from tape.past(_SECTION_END)


def _call(tape: Tape) -> Steps[None]:
    given, mark = yield from tape.upto(_ARGUMENTS, LONGEST_NAME)
    if not mark:
        raise NoCall
    name = _meant(given.strip(), tape.known)
    if name:
        yield from read_json(tape, name, _END)
    elif _NAMELESS.fullmatch(given.strip()):
        yield from _nameless(tape)
    else:
        raise NoCall


def _meant(given: str, known: ToolLookup) -> str:
    """H119: the name inside an id, "" where none of its readings is one."""
    whole = _COUNTER.sub("", given)
    bare = _PREFIX.sub("", whole, count=1) if _PREFIX.match(whole) else whole
    for name in (bare, whole, _NUMBER.sub("", bare), _NUMBER.sub("", whole)):
        if name and known.tool(name) is not None:
            return name
    return ""


def _nameless(tape: Tape) -> Steps[None]:
    """The one tool that accepts these arguments; NoCall where several do."""
    if (yield from tape.ahead(1)) != "{":
        raise NoCall
    yield from tape.blanks()
    text, is_whole = yield from tape.balanced()
    yield from tape.past(_END, strays=True)
    raw, _ = repair_object(text) if is_whole else ("", "")
    if not raw:
        raise UnreadableCall(NOT_JSON if is_whole else CUT, raw=text)
    tools = tape.known.tools if isinstance(tape.known, _Listing) else ()
    fitting = [tool.name for tool in tools if tape.known.fits(tool.name, text)]
    if len(fitting) != 1:
        raise NoCall
    tape.whole(fitting[0], text, "nameless")


GRAMMARS = (Grammar("kimi", (*_SECTIONS, _CALL), _script),)
