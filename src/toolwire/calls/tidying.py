"""The rules of the ledger that concern a message alone: no empty texts, arguments that are objects, calls last."""

from __future__ import annotations

from msgspec.structs import replace

from ..types import Message, Part, Reasoning, Text, ToolCall
from ..wire.exact import encode
from .history import Placed, Repair
from .hosted import halves
from .rules import is_blank, is_mute

RAW = "_raw"  # the member that keeps what was no object (H022, H024)
EMPTY = "(empty message)"
_INSTRUCTIONS = ("system", "developer")


def tidied(messages: tuple[Message, ...], repairs: list[Repair]) -> list[Placed]:
    """What is well stays the same object; a message of which nothing is left is gone, unless it is the user's turn."""
    tidying = _Tidying(halves(messages), repairs)
    lines: list[Placed] = []
    for place, message in enumerate(messages):
        lines += tidying.lines(Placed(place, message))
    return lines


class _Tidying:
    def __init__(self, wrong: set[tuple[int, int]], repairs: list[Repair]) -> None:
        self._wrong = wrong
        self._repairs = repairs
        self._has_begun = False

    def lines(self, line: Placed) -> list[Placed]:
        role = line.message.role
        if role in _INSTRUCTIONS and (line.message.is_head or not self._has_begun):
            return [line]
        self._has_begun = True
        if self._wrong:
            whole = self._without_halves(line)
            if whole is not line and not whole.message.parts:
                return []
            line = whole
        if role == "assistant":
            return self._answer(line)
        if role in _INSTRUCTIONS:
            return self._instruction(line)
        return [self._asked(line)]

    def _without_halves(self, line: Placed) -> Placed:
        kept = tuple(part for number, part in enumerate(line.message.parts) if (line.place, number) not in self._wrong)
        if len(kept) == len(line.message.parts):
            return line
        self._repairs.append(
            Repair("hosted", line.where, "half of what the provider's own tool did was left out, the other is lost")
        )
        return line.having(line.message.with_parts(kept))

    def _asked(self, line: Placed) -> Placed:
        parts = line.message.parts
        kept = tuple(part for part in parts if not is_blank(part))
        if kept and len(kept) == len(parts):
            return line
        self._repairs.append(Repair("empty", line.where, "a text without a word was left out"))
        return line.having(line.message.with_parts(kept or (Text(text=EMPTY),)))

    def _instruction(self, line: Placed) -> list[Placed]:
        parts = line.message.parts
        kept = tuple(part for part in parts if not is_blank(part))
        if len(kept) == len(parts):
            return [line]
        self._repairs.append(Repair("empty", line.where, "an instruction without a word was left out"))
        return [line.having(line.message.with_parts(kept))] if kept else []

    def _answer(self, line: Placed) -> list[Placed]:
        given = line.message.parts
        if _is_tidy(given) or (not given and line.message.extra):  # a recording is no part, it is told by its id
            return [line]
        kept = [part for part in given if not (isinstance(part, Text) and not part.text)]
        if all(map(is_mute, kept)) and any(map(is_blank, kept)):
            kept = []
        if len(kept) < len(given) or not given:
            self._repairs.append(Repair("empty", line.where, "a text without a word was left out"))
        parts = [self._readable(part, line) if isinstance(part, ToolCall) else part for part in kept]
        pieces = self._calls_last(parts, line)
        if given and len(pieces) == 1 and len(pieces[0]) == len(given) and all(map(_is_same, pieces[0], given)):
            return [line]
        return [line.having(line.message.with_parts(tuple(piece))) for piece in pieces if piece]

    def _readable(self, call: ToolCall, line: Placed) -> ToolCall:
        if call.args is not None or call.kind == "custom":
            return call
        why = f"the arguments of a call were no JSON object; they are in its member {RAW} now"
        self._repairs.append(Repair("arguments", line.where, why, call.raw))
        args = {RAW: call.raw}
        return as_function(replace(call, raw=encode(args).decode("utf-8", "surrogatepass"), args=args))

    def _calls_last(self, parts: list[Part], line: Placed) -> list[list[Part]]:
        """Texts behind a call go before it (H034). Reasoning behind one began a new turn: its place is part of its proof, so
        the message is split there (H080), unless it led to no call."""
        pieces: list[list[Part]] = [[]]
        calls: list[list[Part]] = [[]]
        for part in parts:
            if isinstance(part, ToolCall):
                calls[-1].append(part)
                continue
            if isinstance(part, Reasoning) and calls[-1]:
                pieces.append([])
                calls.append([])
            pieces[-1].append(part)
        if len(calls) > 1 and not calls[-1]:
            rest, _ = pieces.pop(), calls.pop()
            pieces[-1] += [part for part in rest if not isinstance(part, Reasoning)]
            self._repairs.append(Repair("reasoning", line.where, "reasoning that stood behind its call was left out"))
        whole = [[*piece, *called] for piece, called in zip(pieces, calls, strict=True)]
        if len(whole) > 1 or not all(map(_is_same, whole[0], parts)):
            self._repairs.append(Repair("order", line.where, "calls must be the last parts of their message"))
        return whole


def as_function(call: ToolCall) -> ToolCall:
    """A typed call's own item holds only what its tool takes; one that was changed is told as the function it stands for."""
    return replace(call, kind="function", item_id="", extra={}) if call.kind == "typed" else call


def _is_tidy(parts: tuple[Part, ...]) -> bool:
    """Something is said, and then there are calls, or not."""
    has_called = has_said = False
    for part in parts:
        if isinstance(part, ToolCall):
            if part.args is None and part.kind != "custom":
                return False
            has_called = True
        elif has_called or (isinstance(part, Text) and not part.text):
            return False
        elif not is_mute(part):
            has_said = True
    return has_called or has_said


def _is_same(part: Part, other: Part) -> bool:
    return part is other
