"""Finds which result answers which call, in a history where anything may be missing, twice, late or early.

A result answers the last turn before it that has an open call of its id, and there the first such call. Otherwise it is a second result of
an answered call; or it came too early, and its call follows before the next user message; or its call is lost. The first result of a
call is used, because the assistant's next message is based on it.

If only one of the two has an id, a result answers the first open call before it, of its name if it has one, up to the user's next
message.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from ...types import Message, Opaque, Text, ToolCall, ToolResult
from .messages import as_function
from .rules import LOST_THOUGHT, Placed, Repair, answers

INTERRUPTED = (
    "Interrupted: no result of this call was recorded. The tool may have run completely, in part, or not at all; "
    "check before relying on it or calling it again."
)
Fate: TypeAlias = Literal["orphan", "second", "copy"]
Spot: TypeAlias = tuple[int, int]  # number of the line, number of the part
_BASE = 30  # what stays of an id that gets a number behind it, so that it fits everywhere


class Slot:
    """One call: as received, as sent, and its result as sent, which may be a generated one."""

    __slots__ = ("call", "exchange", "found", "given", "is_gone", "line", "result", "run", "turn")

    def __init__(self, call: ToolCall, line: int, turn: int, run: int, exchange: int) -> None:
        self.given = self.call = call
        self.line = line
        self.turn = turn
        self.run = run
        self.exchange = exchange
        self.found: Spot | None = None
        self.result: ToolResult | None = None
        self.is_gone = False

    def take(self, spot: Spot, result: ToolResult) -> None:
        self.found, self.result = spot, result

    @property
    def key(self) -> tuple[int, str, str, str, str, str]:
        call = self.given
        return self.run, call.id, call.name, call.raw, call.kind, call.namespace


class Pairs(NamedTuple):
    """Turns by their last line; calls and results by position."""

    turns: dict[int, list[Slot]]
    calls: dict[Spot, Slot]
    answers: dict[Spot, Slot]
    loose: dict[Spot, Fate]


def pair_calls(lines: list[Placed], is_run: bool, lost: set[int], repairs: list[Repair]) -> Pairs:
    """Every call of the pairs that is not gone has a result, and an id of its own."""
    matcher = _Matcher(lines, is_run)
    matcher.match()
    slots = list(matcher.calls.values())
    _drop_copies(slots, lines, repairs)
    slots = [slot for slot in slots if not slot.is_gone]
    _rename(slots, lines, repairs)
    for slot in slots:
        if slot.call.item_id and lines[slot.line].place in lost:
            slot.call = as_function(replace(slot.call, item_id=""))
            repairs.append(Repair("reasoning", lines[slot.line].where, LOST_THOUGHT))
    for slot in slots:
        _complete(slot, lines[slot.line].where, is_run, repairs)
    turns: dict[int, list[Slot]] = {}
    for slot in slots:
        turns.setdefault(matcher.ends[slot.turn], []).append(slot)
    return Pairs(turns, matcher.calls, matcher.answers, matcher.loose)


class _Early(NamedTuple):
    spot: Spot
    exchange: int
    result: ToolResult


def _may_answer(early: _Early, slot: Slot) -> bool:
    """Whether a result may be that of a call before it, if one of them has no id."""
    call, result = slot.call, early.result
    if (call.id and result.call_id) or slot.line >= early.spot[0]:
        return False
    return not result.name or result.name == call.name


class _Matcher:
    def __init__(self, lines: list[Placed], is_run: bool) -> None:
        self._lines = lines
        self._is_run = is_run
        self.calls: dict[Spot, Slot] = {}
        self.answers: dict[Spot, Slot] = {}
        self.loose: dict[Spot, Fate] = {}
        self.ends: list[int] = []  # the last line of each turn
        self._open: dict[str, list[deque[Slot]]] = {}  # calls by id, turn by turn
        self._answered: dict[str, Slot] = {}
        self._early: dict[str, deque[_Early]] = {}

    def match(self) -> None:
        run, exchange, was_answering = 0, 0, False
        for number, (_, message) in enumerate(self._lines):
            is_answering = message.role == "assistant"
            if is_answering:
                run += not was_answering
                if self._is_run and was_answering:
                    self.ends[-1] = number
                else:
                    self.ends.append(number)
            elif message.role == "user" and _speaks(message):
                exchange += 1
            was_answering = is_answering
            for position, part in enumerate(message.parts):
                if isinstance(part, ToolCall) and is_answering:
                    slot = Slot(part, number, len(self.ends) - 1, run, exchange)
                    self.calls[number, position] = slot
                    self._note(slot)
                elif isinstance(part, ToolResult):
                    self._result(part, (number, position), exchange)
        for slot in self.calls.values():
            if slot.result is None:
                self._take_early(slot)
        left = sorted((one for queue in self._early.values() for one in queue), key=lambda early: early.spot)
        if left:
            self._match_by_order(left)

    def _match_by_order(self, left: list[_Early]) -> None:
        """Results that no id leads to a call, in order."""
        waiting: dict[int, list[Slot]] = {}
        for slot in self.calls.values():
            if slot.result is None:
                waiting.setdefault(slot.exchange, []).append(slot)
        for early in left:
            slots = waiting.get(early.exchange, [])
            found = next((slot for slot in slots if _may_answer(early, slot)), None)
            if found is None:
                self.loose[early.spot] = "orphan"
            else:
                slots.remove(found)
                self._answer(found, early.spot, early.result)

    def _note(self, slot: Slot) -> None:
        turns = self._open.setdefault(slot.call.id, [])
        if turns and turns[-1] and turns[-1][0].turn == slot.turn:
            turns[-1].append(slot)
        else:
            turns.append(deque([slot]))

    def _result(self, result: ToolResult, spot: Spot, exchange: int) -> None:
        before = self._answered.get(result.call_id)
        turns = self._open.get(result.call_id, [])
        while turns and not turns[-1]:
            turns.pop()
        is_later = before is not None and not (turns and turns[-1][0].turn >= before.turn)
        if before is not None and is_later and _says_same(before.result, result):
            self.loose[spot] = "copy"
        elif turns:
            self._answer(turns[-1].popleft(), spot, result)
        elif before is not None:
            self.loose[spot] = "second"
        else:
            self._early.setdefault(result.call_id, deque()).append(_Early(spot, exchange, result))

    def _take_early(self, slot: Slot) -> None:
        """Ids are used again, so a result is no call's that the model made only after the user had spoken."""
        queue = self._early.get(slot.call.id)
        while queue and queue[0].exchange <= slot.exchange:
            early = queue.popleft()
            if early.exchange == slot.exchange:
                self._answer(slot, early.spot, early.result)
                return
            self.loose[early.spot] = "orphan"

    def _answer(self, slot: Slot, spot: Spot, result: ToolResult) -> None:
        slot.take(spot, result)
        self.answers[spot] = slot
        self._answered[result.call_id] = slot


def _speaks(message: Message) -> bool:
    return any(not isinstance(part, (ToolResult, Opaque)) for part in message.parts)


def _says_same(before: ToolResult | None, result: ToolResult) -> bool:
    return before is not None and before.parts == result.parts and before.is_error == result.is_error


def _drop_copies(slots: list[Slot], lines: list[Placed], repairs: list[Repair]) -> None:
    """Drops calls that repeat another call of their turn and have no result of their own (H049)."""
    known = {slot.key for slot in slots if slot.result is not None}
    for slot in slots:
        if slot.result is not None:
            continue
        if slot.key in known:
            slot.is_gone = True
            repairs.append(Repair("duplicate_call", lines[slot.line].where, "the same call was there twice"))
        known.add(slot.key)


def _rename(slots: list[Slot], lines: list[Placed], repairs: list[Repair]) -> None:
    """The first call keeps its id, later ones get a number: always the same one, so that the prompt stays cached (H048)."""
    known = {slot.call.id for slot in slots}
    taken: set[str] = {""}
    items: set[str] = set()
    numbers: dict[str, int] = {}
    for slot in slots:
        call = slot.call
        if call.id in taken:
            base = call.id[:_BASE] or "call"
            number = numbers.get(base, 1) + 1
            while f"{base}_{number}" in known:
                number += 1
            numbers[base] = number
            known.add(f"{base}_{number}")
            slot.call = as_function(replace(call, id=f"{base}_{number}", item_id=""))
        elif call.item_id in items:
            slot.call = as_function(replace(call, item_id=""))
        if slot.call is not call:
            repairs.append(Repair("duplicate_id", lines[slot.line].where, "two calls had one id, or one had none"))
        taken.add(slot.call.id)
        if slot.call.item_id:
            items.add(slot.call.item_id)


def _complete(slot: Slot, where: str, is_run: bool, repairs: list[Repair]) -> None:
    if slot.result is None:
        slot.call = as_function(slot.call)
        words = (Text(text=INTERRUPTED),)
        slot.result = ToolResult(
            call_id=slot.call.id, parts=words, is_error=True, name=slot.call.name, kind=slot.call.kind
        )
        repairs.append(Repair("missing_result", where, "a call had no result; it got one that states so"))
        return
    result = slot.result
    if (
        is_run and slot.call.kind == "typed" and not answers(slot.call, result)
    ):  # its own item has no result of that kind
        slot.call = as_function(slot.call)
    if is_run and not answers(slot.call, result):
        if answers(slot.given, result):
            result = replace(result, extra={}, item_id="")
        else:
            repairs.append(Repair("kind", where, "the result was one of another kind of call"))
        result = replace(result, kind="function" if slot.call.kind == "typed" else slot.call.kind)
    if result.call_id != slot.given.id:
        repairs.append(
            Repair("duplicate_id", where, "a result and its call did not have one id, and were paired by order")
        )
    if result.call_id != slot.call.id:
        result = replace(result, call_id=slot.call.id, item_id="")
    slot.result = result
