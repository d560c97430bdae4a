"""gpt-oss: messages between special tokens, each with a header that names its channel and, in a call, whom it is for.

<|channel|>analysis<|message|>...<|end|> is thinking, <|channel|>final<|message|>... the answer, and
<|channel|>commentary to=functions.name <|constrain|>json<|message|>{...}<|call|> a call; the recipient may also precede the channel,
after <|start|>assistant. Servers that do not parse this leave all of it in the text.
"""

from __future__ import annotations

import re

from .arguments import read_json
from .base import PlainText, Thought, ToolLookup
from .grammar import Grammar
from .lexer import Marks, NoCall, Steps, Tape

_START, _CHANNEL = "<|start|>assistant", "<|channel|>"
_MESSAGE = Marks("<|message|>")
_ENDS = Marks("<|end|>", "<|return|>", "<|call|>")
_STOPS = Marks(*_ENDS.texts, "<|start|>", _CHANNEL)
_LONGEST_HEADER = 120
_LONGEST_RECIPIENT = 50  # more, where a recipient is named
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_SPOKEN_TO = ("assistant", "user", "self", "all")
_NAMED_CHANNEL = re.compile(r"<\|channel\|>\s*(analysis|commentary|final)\b")


def _script(tape: Tape) -> Steps[None]:
    header, mark = yield from tape.upto(_MESSAGE, _LONGEST_HEADER)
    if not mark and _RECIPIENT.search(header):
        behind, mark = yield from tape.upto(_MESSAGE, _LONGEST_RECIPIENT)
        header += behind
    header = tape.opener + header
    if not mark or len(header.splitlines()) > 3:
        raise NoCall
    channels = _NAMED_CHANNEL.findall(header)
    recipient = _RECIPIENT.search(header)
    if recipient is not None and recipient.group(1) not in _SPOKEN_TO:
        yield from read_json(tape, _named(recipient.group(1), tape.known), _ENDS, must_end=False)
    elif channels or header == _START:
        is_thought = channels[-1:] == ["analysis"]
        yield from tape.flow(_STOPS, Thought if is_thought else PlainText)
        yield from tape.past(_ENDS)
        tape.checkpoint()
    else:
        raise NoCall


def _named(recipient: str, known: ToolLookup) -> str:
    """H116: with and without the prefix."""
    for name in (recipient.removeprefix("functions."), recipient):
        if known.tool(name) is not None:
            return name
    raise NoCall


GRAMMARS = (
    Grammar("harmony", (_CHANNEL,), _script, "line"),
    Grammar("harmony", (_START, f"<|end|>{_START}"), _script),
)
