"""<tool_call> blocks that hold no JSON: a call written as code, as YAML or by its name, or nothing at all. None can be read; each was meant.

Only where the model was told to write such blocks, on lines of their own, up to their own closing tag. All other grammars have been tried
before. Who talks about the tags writes the same letters, so a block is text if its body is words only, or words with code in them. What
is held is let go soon unless a tool is named in it.
"""

from __future__ import annotations

import re

from ..base import Grammar, Known
from ..lexer import Marks, NoCall, Scripted, Steps, Tape, Unreadable
from .inline import MOST_UNNAMED
from .malformed import CLOSING
from .tagged import OPENERS

_WHY = "it holds no JSON object"
_LONGEST = 1 << 16  # letters that are held for a closing tag once a tool is named
_TAG_END, _ENDS = Marks(">"), Marks(*CLOSING, *OPENERS)
_NOTHING = ("", "null", "None")
_FORM = re.compile(r"[(\[{:=]")
_NAME = re.compile(r"\w[\w.-]*")
_BEGINS = re.compile(r"\S|[^\S\n]*\n")  # right behind the tag, or on the next line: a sentence goes on behind a blank
_FENCES = ("```", "~~~")


def _block(tape: Tape) -> Steps[None]:
    if not tape.known.is_told or not (yield from tape.past(_TAG_END)):
        raise NoCall
    body, mark = yield from tape.upto(_ENDS, MOST_UNNAMED)
    if not mark and _BEGINS.match(body) and _names_tool(body, tape.known):
        more, mark = yield from tape.upto(_ENDS, _LONGEST)
        body += more
    if mark not in CLOSING or not _is_meant(body.strip(), tape.known) or not (yield from tape.ends_line()):
        raise NoCall
    raise Unreadable(_WHY)


def _is_meant(body: str, known: Known) -> bool:
    if "`" in body and not body.startswith(_FENCES):
        return False
    return body in _NOTHING or _FORM.search(body) is not None or _names_tool(body[:MOST_UNNAMED], known)


def _names_tool(text: str, known: Known) -> bool:
    return any(known.tool(name.rstrip(".-")) is not None for name in _NAME.findall(text))


UNREAD: Grammar = Scripted("unread", OPENERS, _block, "line")
