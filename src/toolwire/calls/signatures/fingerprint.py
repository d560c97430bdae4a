"""Whether a turn that comes back in a history is the one that was answered: its calls, and where ids say little, what led to it.

Clients write ids, key order, spacing and numbers in their own way; that is no edit. Another name, value, id or order is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any, TypeAlias

from ...types import Message, Part, Refusal, Text, ToolCall, ToolResult

NameOf: TypeAlias = Callable[[str], str]  # a call's id in the one form that all dialects can carry

_RUN = re.compile(r"[A-Za-z0-9]{9,}")
_DIFFERENT = 6
_EXACT = 2**53  # whole numbers up to here are the same in every language
_OPENING = 20  # messages among which the user's first words are
_END = 200  # characters at either end that tell a long text
_LONG = 1000
_LONGEST = 200  # of an id that is looked at


def print_of(calls: Iterable[ToolCall], name_of: NameOf) -> str:
    """Equal for the same calls in the same order."""
    digest = blake2b(digest_size=16)
    for call in calls:
        for piece in (name_of(call.id), call.name, _arguments(call)):
            data = piece.encode("utf-8", "surrogatepass")
            digest.update(b"%d " % len(data) + data)
    return digest.hexdigest()


def text_print(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() if text else ""


def is_random(call_id: str, name: str) -> bool:
    """Whether no other call has this id. Some servers count calls in every conversation alike, or use the tool's name."""
    rest = call_id.replace(name, "") if name else call_id
    return any(
        len(set(found)) >= _DIFFERENT and any(map(str.isdigit, found)) for found in _RUN.findall(rest[:_LONGEST])
    )


class Leading:
    """What led to the turns of a history: the user's first words, and what was said last before each."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._first: str | None = None

    def print_of(self, start: int) -> str:
        """For the turn that begins here."""
        messages = self._messages
        if self._first is None:
            user = next((message for message in messages[:_OPENING] if message.role == "user"), None)
            self._first = "" if user is None else "".join(map(_said, user.parts))
        while start and messages[start - 1].role == "assistant":
            start -= 1
        before = messages[start - 1] if start else None
        last = "" if before is None else before.role + "".join(map(_said, before.parts))
        return blake2b(f"{self._first}\0{last}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _said(part: Part) -> str:
    if isinstance(part, (Text, Refusal)):
        text = part.text
    elif isinstance(part, ToolResult):
        text = "".join([piece.text for piece in part.parts if isinstance(piece, Text)])
    else:
        return type(part).__name__
    return f"{len(text)} {text if len(text) < _LONG else text[:_END] + text[-_END:]} "


def _arguments(call: ToolCall) -> str:
    if call.args is None:
        return call.raw
    try:
        return json.dumps(call.args, sort_keys=True, default=_plain)
    except (RecursionError, ValueError):  # nested too deep, or a whole number of thousands of digits
        return call.raw


def _plain(number: Any) -> int | float:
    """1.0 and 1 are the same to many clients."""
    assert isinstance(number, Decimal)
    is_whole = abs(number) < _EXACT and number == number.to_integral_value()
    return int(number) if is_whole else float(number)
