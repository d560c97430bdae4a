"""Repairs single messages: no empty texts, arguments that are objects, calls last."""

from __future__ import annotations

from msgspec.structs import replace

from ...types import Message, Opaque, Part, Reasoning, Text, ToolCall
from ...wire.exact_json import encode
from .hosted_tools import HostedFaults, faults_in
from .rules import HistoryRules, Placed, Repair, has_content, is_blank, is_mute, is_void, unproven

RAW = "_raw"  # the member for arguments that are no object (H022, H024)
EMPTY = "(empty message)"
HALF = "half of what the provider's own tool did was dropped, the other is lost"
_NONE: set[int] = set()
_INSTRUCTIONS = ("system", "developer")


def repair_messages(messages: tuple[Message, ...], rules: HistoryRules, repairs: list[Repair]) -> list[Placed]:
    """Valid messages stay the same objects. An empty message is dropped, unless it is the user's turn."""
    is_silent = all(message.role in _INSTRUCTIONS for message in messages)
    repair = _MessageRepair(faults_in(messages), rules, is_silent, repairs)
    lines: list[Placed] = []
    for place, message in enumerate(messages):
        lines += repair.lines(Placed(place, message))
    return lines


class _MessageRepair:
    def __init__(self, faults: HostedFaults, rules: HistoryRules, is_silent: bool, repairs: list[Repair]) -> None:
        self._halves, self._strays = _by_message(faults.halves), _by_message(faults.strays)
        self._rules = rules
        self._repairs = repairs
        self._has_begun = is_silent

    def lines(self, line: Placed) -> list[Placed]:
        role = line.message.role
        if role in _INSTRUCTIONS and (line.message.is_head or not self._has_begun):
            return [line]
        self._has_begun = True
        whole, moved = self._without_faults(line)
        if self._rules.needs_proof:
            whole = self._without_bare_thoughts(whole)
        if whole is not line and not whole.message.parts:
            return moved
        return [*self._tidy(whole), *moved]

    def _tidy(self, line: Placed) -> list[Placed]:
        role = line.message.role
        if role == "assistant":
            return self._answer(line)
        if role in _INSTRUCTIONS:
            return self._instruction(line)
        return [self._input(line)]

    def _without_faults(self, line: Placed) -> tuple[Placed, list[Placed]]:
        """Without halves. Parts of the other role become text of the user: in place, or after an answer."""
        halves, strays = self._halves.get(line.place, _NONE), self._strays.get(line.place, _NONE)
        if halves:
            self._repairs.append(Repair("hosted", line.where, HALF))
        if strays:
            self._repairs.append(Repair("order", line.where, "a part of the other side's messages is sent as text"))
        if not halves and not strays:
            return line, []
        if line.message.role != "assistant":
            parts = [_as_text(part) if number in strays else part for number, part in enumerate(line.message.parts)]
            kept = (part for number, part in enumerate(parts) if number not in halves)
            return line.having(line.message.with_parts(tuple(kept))), []
        moved = tuple(_as_text(line.message.parts[number]) for number in sorted(strays))
        whole = line.having(_without(line.message, halves | strays))
        return whole, [line.having(Message(role="user", parts=moved))] if moved else []

    def _without_bare_thoughts(self, line: Placed) -> Placed:
        bare = unproven(line.message, self._rules.is_run)
        if not bare:
            return line
        self._repairs.append(Repair("reasoning", line.where, "reasoning without its proof was dropped"))
        return line.having(_without(line.message, bare))

    def _input(self, line: Placed) -> Placed:
        parts = line.message.parts
        kept = tuple(part for part in parts if not is_blank(part))
        if kept and len(kept) == len(parts):
            return line
        self._repairs.append(Repair("empty", line.where, "an empty text was dropped"))
        return line.having(line.message.with_parts(kept or (Text(text=EMPTY),)))

    def _instruction(self, line: Placed) -> list[Placed]:
        parts = line.message.parts
        kept = tuple(part for part in parts if not is_blank(part))
        if len(kept) == len(parts) and not is_void(line.message):
            return [line]
        self._repairs.append(Repair("empty", line.where, "an empty instruction was dropped"))
        return [line.having(line.message.with_parts(kept))] if kept else []

    def _answer(self, line: Placed) -> list[Placed]:
        given = line.message.parts
        if _is_tidy(given) or (
            not given and line.message.extra
        ):  # a recording is referred to by its id, and has no part
            return [line]
        kept = [part for part in given if not (isinstance(part, Text) and not part.text)]
        if not any(isinstance(part, ToolCall) for part in kept) and not has_content(tuple(kept)):
            kept = [part for part in kept if not is_blank(part)]
            kept = kept if any(not is_mute(part) for part in kept) or len(kept) == len(given) else []
        if len(kept) < len(given) or not given:
            self._repairs.append(Repair("empty", line.where, "an empty text was dropped"))
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
        args = {RAW: call.raw} if call.raw.strip() else {}
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
            self._repairs.append(Repair("reasoning", line.where, "reasoning after its call was dropped"))
        whole = [[*piece, *called] for piece, called in zip(pieces, calls, strict=True)]
        if len(whole) > 1 or not all(map(_is_same, whole[0], parts)):
            self._repairs.append(Repair("order", line.where, "calls must be the last parts of their message"))
        return whole


def _by_message(places: set[tuple[int, int]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for index, number in places:
        found.setdefault(index, set()).add(number)
    return found


def _without(message: Message, places: set[int]) -> Message:
    return message.with_parts(tuple(part for number, part in enumerate(message.parts) if number not in places))


def _as_text(part: Part) -> Part:
    if not isinstance(part, Opaque):
        return part
    return Text(text=f"[{encode(part.value).decode('utf-8', 'surrogatepass')}]")


def as_function(call: ToolCall) -> ToolCall:
    """A changed typed call becomes a function call: its own item cannot express the change."""
    return replace(call, kind="function", item_id="", extra={}) if call.kind == "typed" else call


def _is_tidy(parts: tuple[Part, ...]) -> bool:
    """Whether content comes first and calls, if any, last."""
    has_called = False
    for part in parts:
        if isinstance(part, ToolCall):
            if part.args is None and part.kind != "custom":
                return False
            has_called = True
        elif has_called or (isinstance(part, Text) and not part.text):
            return False
    return has_called or has_content(parts)


def _is_same(part: Part, other: Part) -> bool:
    return part is other
