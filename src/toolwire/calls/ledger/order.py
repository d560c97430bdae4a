"""Writes a history from its pairs: each turn, the results of its calls, and then everything else."""

from __future__ import annotations

from msgspec.structs import replace

from ...errors import quote
from ...types import Message, Part, Text, ToolCall, ToolResult
from .hosted_tools import may_be_answer
from .pairs import Fate, Pairs, Slot, pair_calls
from .rules import HistoryRules, Placed, Repair, has_loose_end, is_blank, loose_thoughts, move_attachments

OPENING = "(The conversation begins here.)"
ENDING = "Go on."
_TOLD: dict[Fate, str] = {
    "orphan": "result of an earlier tool call that is no longer in this conversation",
    "second": "second result of an earlier tool call that had one already",
    "copy": "",
}


def arrange(lines: list[Placed], rules: HistoryRules, lost: set[int], repairs: list[Repair]) -> list[Placed]:
    """Valid messages stay the same objects. lost: positions of calls that lose the ids of their items."""
    pairs = pair_calls(lines, rules.is_run, lost, repairs)
    written = _Writer(lines, pairs, repairs).written()
    if rules.fails_in_words and not rules.is_run:
        written = move_attachments(written, repairs)
    return without_loose_thoughts(written, rules.is_run, repairs)


def with_user_turns(
    lines: list[Placed], messages: tuple[Message, ...], repairs: list[Repair], *, is_formal: bool = True
) -> tuple[Message, ...]:
    """Adds a user message at the beginning where one is required (H096), and at the end if results were moved away from there."""
    written = [line.message for line in lines]
    before = next((message for message in reversed(messages) if _speaks(message)), None)
    first = next((number for number, message in enumerate(written) if _speaks(message)), len(written))
    is_mute = before is None and not any(not is_blank(part) for message in written for part in message.parts)
    is_led = first < len(written) and written[first].role == "user"
    has_question = is_led if is_formal else any(map(_asks, written))
    if is_mute or (before is not None and not has_question):
        repairs.append(Repair("opening", "messages", "the conversation did not begin with the user"))
        written.insert(first, Message(role="user", parts=(Text(text=OPENING),)))
    last = next((message for message in reversed(written) if _speaks(message)), None)
    if before is not None and before.role != "assistant" and last is not None and last.role == "assistant":
        repairs.append(Repair("ending", "messages", "the last message of the conversation was moved"))
        written.append(Message(role="user", parts=(Text(text=ENDING),)))
    elif is_formal and has_loose_end(written):
        repairs.append(Repair("ending", "messages", "whitespace at the end of the last message was dropped"))
        number = next(number for number in reversed(range(len(written))) if written[number] is last)
        written[number : number + 1] = _with_firm_end(written[number])
    return tuple(written)


def _asks(message: Message) -> bool:
    return message.role == "user" and any(not isinstance(part, ToolResult) for part in message.parts)


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
        """The line after the results of a turn, and whether these lines can stay as they are."""
        due = [slot for slot in slots if slot.found is not None]
        is_exact, place, number = all(map(self._is_as_found, slots)), 0, start
        while place < len(due):
            message = self._lines[number].message if number < len(self._lines) else None
            if message is None or not message.parts or message.role not in ("user", "tool"):
                return self._moved(start)
            for position, part in enumerate(message.parts):
                slot = self._pairs.answers.get((number, position))
                if slot is None and isinstance(part, ToolResult):
                    is_exact = False
                elif place < len(due) and slot is due[place]:
                    place += 1
                elif slot is not None or place < len(due):
                    return self._moved(start)
            if message.role == "user" and place < len(due):
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
        """The line without results that are moved, and with unpaired results as text."""
        line = self._lines[number]
        kept: list[Part] = []
        texts: list[Part] = []
        role = line.message.role
        for position, part in enumerate(line.message.parts):
            spot = (number, position)
            if isinstance(part, ToolResult):
                if spot not in self._pairs.answers:
                    (kept if role in ("user", "tool") else texts).extend(
                        self._as_text(part, self._pairs.loose[spot], line)
                    )
            elif not isinstance(part, ToolCall) or (slot := self._pairs.calls.get(spot)) is None:
                kept.append(part)
            elif not slot.is_gone:
                kept.append(slot.call)
        whole = (
            [line] if _is_same(kept, line.message.parts) else [line.having(_with(line.message, kept))] if kept else []
        )
        return [*whole, line.having(Message(role="user", parts=tuple(texts)))] if texts else whole

    def _as_text(self, result: ToolResult, fate: Fate, line: Placed) -> list[Part]:
        """A result as text of the user, with its media (H032, H041), marked as data."""
        if fate == "copy":
            self._repairs.append(Repair("duplicate_result", line.where, "the same result was there twice"))
            return []
        if fate == "second":
            self._repairs.append(Repair("duplicate_result", line.where, "a second result of one call is sent as text"))
        else:
            self._repairs.append(Repair("orphan_result", line.where, "a result without its call is sent as text"))
        named = f", tool {quote(result.name)}" if result.name else ""
        failed = ", it failed" if result.is_error else ""
        content = [part for part in result.parts if not is_blank(part)]
        head = f"{_TOLD[fate]} (id {quote(result.call_id)}{named}{failed})"
        if not content:
            return [Text(text=f"[{head}: no output]")]
        return [Text(text=f"[{head}, as data:]"), *content, Text(text="[end of that result]")]


def _with(message: Message, parts: list[Part]) -> Message:
    """A message of results that holds none any more is the user's."""
    if message.role == "tool":
        return Message(role="user", parts=tuple(parts))
    return message.with_parts(tuple(parts))


def without_loose_thoughts(lines: list[Placed], is_run: bool, repairs: list[Repair]) -> list[Placed]:
    """Reasoning is refused where nothing follows that it led to."""
    kept: list[Placed] = []
    for line in reversed(lines):
        message = line.message
        count = loose_thoughts(message.parts) if message.role == "assistant" else 0
        if not count:
            kept.append(line)
            continue
        if is_run and kept and _may_follow(kept[-1].message):
            kept.append(line)
            continue
        repairs.append(Repair("reasoning", line.where, "reasoning that led to nothing was dropped"))
        if count < len(message.parts):
            kept.append(line.having(message.with_parts(message.parts[:-count])))
    kept.reverse()
    return kept


def _with_firm_end(message: Message) -> list[Message]:
    parts = list(message.parts)
    while parts and isinstance(part := parts[-1], Text) and part.text[-1:].isspace():
        parts.pop()
        if text := part.text.rstrip():
            parts.append(replace(part, text=text))
    return [message.with_parts(tuple(parts))] if parts else []


def _may_follow(message: Message) -> bool:
    """An item that no role is known of may be what the reasoning led to."""
    return message.role == "assistant" or (
        message.role in ("user", "tool") and bool(message.parts) and may_be_answer(message.parts[0])
    )


def _speaks(message: Message) -> bool:
    return message.role not in ("system", "developer")


def _is_same(parts: list[Part], given: tuple[Part, ...]) -> bool:
    return len(parts) == len(given) and all(part is other for part, other in zip(parts, given, strict=True))
