"""A history written anew from its pairs: each turn, the results of its calls, and then whatever else was said."""

from __future__ import annotations

import re

from ..errors import quote
from ..types import Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .history import Placed, Repair
from .pairing import Fate, Pairs, Slot, paired
from .rules import is_blank, is_mute

_PLAIN = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_PAIRED = (ToolCall, ToolResult)
OPENING = "(The conversation begins here.)"
ENDING = "Go on."
_TOLD: dict[Fate, str] = {
    "orphan": "result of an earlier tool call that is no longer in this conversation",
    "second": "second result of an earlier tool call that had one already",
    "copy": "",
}


def rearranged(lines: list[Placed], is_run: bool, repairs: list[Repair]) -> list[Placed]:
    """The same messages where they are well."""
    pairs = paired(lines, is_run, repairs)
    written = _without_loose_thoughts(_Writer(lines, pairs, repairs).written(), is_run, repairs)
    has_plain_ids = all(_PLAIN.fullmatch(slot.call.id) for slot in pairs.calls.values())
    return written if has_plain_ids else _alike(written, is_run)


def framed(lines: list[Placed], messages: tuple[Message, ...], repairs: list[Repair]) -> tuple[Message, ...]:
    """With the user's turn at the beginning (H096), and at the end if there was one before results were moved."""
    written = [line.message for line in lines]
    before = next((message for message in reversed(messages) if _speaks(message)), None)
    first = next((number for number, message in enumerate(written) if _speaks(message)), len(written))
    if before is not None and (first == len(written) or written[first].role != "user"):
        repairs.append(Repair("opening", "messages", "the conversation did not begin with the user"))
        written.insert(first, Message(role="user", parts=(Text(text=OPENING),)))
    last = next((message for message in reversed(written) if _speaks(message)), None)
    if before is not None and before.role != "assistant" and last is not None and last.role == "assistant":
        repairs.append(Repair("ending", "messages", "what ended the conversation stands elsewhere now"))
        written.append(Message(role="user", parts=(Text(text=ENDING),)))
    return tuple(written)


class _Writer:
    def __init__(self, lines: list[Placed], pairs: Pairs, repairs: list[Repair]) -> None:
        self._lines = lines
        self._pairs = pairs
        self._repairs = repairs

    def written(self) -> list[Placed]:
        out: list[Placed] = []
        number = 0
        while number < len(self._lines):
            out += self._rest(number)
            number += 1
            if slots := self._pairs.turns.get(number - 1):
                end, is_exact = self._span(number, slots)
                if is_exact:
                    out += self._lines[number:end]
                    number = end
                else:
                    out += [self._answer(slot) for slot in slots]
        return out

    def _span(self, start: int, slots: list[Slot]) -> tuple[int, bool]:
        """Up to which line the results stand behind their turn, and whether these lines can stay as they are."""
        due = [slot for slot in slots if slot.found is not None]
        is_exact, place, number = all(map(self._is_as_found, slots)), 0, start
        while place < len(due):
            if number == len(self._lines):
                return self._moved(start)
            for position, part in enumerate(self._lines[number].message.parts):
                slot = self._pairs.answers.get((number, position))
                if slot is None and isinstance(part, ToolResult):
                    is_exact = False
                elif place < len(due) and slot is due[place]:
                    place += 1
                elif slot is not None or place < len(due):
                    return self._moved(start)
            number += 1
        return number, is_exact

    def _moved(self, start: int) -> tuple[int, bool]:
        why = "results must follow their calls at once, in their order"
        self._repairs.append(Repair("order", self._lines[start - 1].where, why))
        return start, False

    def _is_as_found(self, slot: Slot) -> bool:
        if slot.found is None:
            return False
        number, position = slot.found
        return self._lines[number].message.parts[position] is slot.result

    def _answer(self, slot: Slot) -> Placed:
        """As the client wrote it, if it wrote nothing else there."""
        assert slot.result is not None
        if slot.found is None:
            return Placed(self._lines[slot.line].place, Message(role="tool", parts=(slot.result,)))
        line = self._lines[slot.found[0]]
        is_own = line.message.role == "tool"
        if is_own and len(line.message.parts) == 1 and self._is_as_found(slot):
            return line
        extra = line.message.extra if is_own else {}
        return line.having(Message(role="tool", parts=(slot.result,), extra=extra))

    def _rest(self, number: int) -> list[Placed]:
        """A line without the results that stand elsewhere, and with others as text."""
        line = self._lines[number]
        kept: list[Part] = []
        told: list[Part] = []
        role = line.message.role
        for position, part in enumerate(line.message.parts):
            spot = (number, position)
            if isinstance(part, ToolResult):
                if spot not in self._pairs.answers:
                    (kept if role in ("user", "tool") else told).extend(self._told(part, self._pairs.loose[spot], line))
            elif not isinstance(part, ToolCall) or (slot := self._pairs.calls.get(spot)) is None:
                kept.append(part)
            elif not slot.is_gone:
                kept.append(slot.call)
        whole = (
            [line] if _is_same(kept, line.message.parts) else [line.having(_with(line.message, kept))] if kept else []
        )
        return [*whole, line.having(Message(role="user", parts=tuple(told)))] if told else whole

    def _told(self, result: ToolResult, fate: Fate, line: Placed) -> list[Part]:
        """Text of the user, media kept (H032, H041); it says that nobody speaks there."""
        if fate == "copy":
            self._repairs.append(Repair("duplicate_result", line.where, "the same result stood there twice"))
            return []
        if fate == "second":
            self._repairs.append(Repair("duplicate_result", line.where, "a second result of one call is told as text"))
        else:
            self._repairs.append(Repair("orphan_result", line.where, "a result without its call is told as text"))
        named = f", tool {quote(result.name)}" if result.name else ""
        failed = ", it failed" if result.is_error else ""
        said = [part for part in result.parts if not is_blank(part)]
        head = f"{_TOLD[fate]} (id {quote(result.call_id)}{named}{failed})"
        if not said:
            return [Text(text=f"[{head}: no output]")]
        return [Text(text=f"[{head}, as data:]"), *said, Text(text="[end of that result]")]


def _with(message: Message, parts: list[Part]) -> Message:
    """A message of results that holds none any more is the user's."""
    if message.role == "tool":
        return Message(role="user", parts=tuple(parts))
    return message.with_parts(tuple(parts))


def _without_loose_thoughts(lines: list[Placed], is_run: bool, repairs: list[Repair]) -> list[Placed]:
    """Reasoning is refused where nothing follows that it led to."""
    kept: list[Placed] = []
    for line in reversed(lines):
        message = line.message
        if message.role != "assistant" or not message.parts or not isinstance(message.parts[-1], Reasoning):
            kept.append(line)
            continue
        if is_run and kept and _may_follow(kept[-1].message):
            kept.append(line)
            continue
        repairs.append(Repair("reasoning", line.where, "reasoning that led to nothing was left out"))
        count = len(message.parts)
        while count and isinstance(message.parts[count - 1], Reasoning):
            count -= 1
        if not all(map(is_mute, message.parts[:count])):
            kept.append(line.having(message.with_parts(message.parts[:count])))
    kept.reverse()
    return kept


def _alike(lines: list[Placed], is_run: bool) -> list[Placed]:
    """An encoder fits an id that its dialect does not allow, but leaves what a client of that dialect wrote as it is. Of a turn with
    such ids, calls and results go the same way: if one was written anew, then all."""
    written = list(lines)
    group: list[int] = []
    was_answering = False
    for number, (_, message) in enumerate(lines):
        is_answering = message.role == "assistant"
        if is_answering and not (is_run and was_answering):
            _write_alike(written, group)
            group = []
        was_answering = is_answering
        if any(isinstance(part, _PAIRED) for part in message.parts):
            group.append(number)
    _write_alike(written, group)
    return written


def _write_alike(lines: list[Placed], group: list[int]) -> None:
    messages = [lines[number].message for number in group]
    sources = sum(1 for message in messages if message.source is not None)
    if sources in (0, len(messages)) or all(map(_has_plain_ids, messages)):
        return
    for number in group:
        lines[number] = lines[number].having(lines[number].message.with_parts(lines[number].message.parts))


def _has_plain_ids(message: Message) -> bool:
    return all(_PLAIN.fullmatch(part.id) for part in message.parts if isinstance(part, ToolCall)) and all(
        _PLAIN.fullmatch(part.call_id) for part in message.parts if isinstance(part, ToolResult)
    )


def _may_follow(message: Message) -> bool:
    """An item that no role is known of may be what the reasoning led to."""
    return message.role == "assistant" or (
        message.role in ("user", "tool") and bool(message.parts) and isinstance(message.parts[0], Opaque)
    )


def _speaks(message: Message) -> bool:
    return message.role not in ("system", "developer")


def _is_same(parts: list[Part], given: tuple[Part, ...]) -> bool:
    return len(parts) == len(given) and all(part is other for part, other in zip(parts, given, strict=True))
