"""Ids of items, in dialects where each part of a turn is one: no two are alike, and none asks for a thought that is not there.

A provider knows its items by their ids. It refuses a history that has one twice, and also an item that it made after thinking if
the thought is left out: clients that drop reasoning keep the ids of what it led to. An item without its id is a new one, and
nothing is asked of it.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...types import Media, Message, Opaque, Part, Reasoning, Source, ToolCall
from .report import Placed, Repair

_NAMELESS = (Opaque, Media)  # parts without a member for the id of their item; isinstance() would cost half of all


def item_id(message: Message) -> str:
    """The id that the item has for its provider, "" if it has none."""
    if not message.parts:
        return ""
    part = message.parts[0]
    return _id_of(part) if isinstance(part, Opaque) else str(getattr(part, "item_id", ""))


def has_copies(messages: tuple[Message, ...]) -> bool:
    """Whether two items have one id. Every request of such a dialect pays for this look."""
    firsts = [message.parts[0] for message in messages if message.parts]
    ids = [part.item_id for part in firsts if type(part) not in _NAMELESS and part.item_id]  # type: ignore[union-attr] # see there
    ids += [known for part in firsts if type(part) is Opaque and (known := _id_of(part))]
    return len(set(ids)) != len(ids)


def has_lost(messages: tuple[Message, ...]) -> bool:
    """Whether there is any that is thoughtless."""
    has_thought = False
    for message in messages:
        if message.role != "assistant":
            has_thought = False
        elif not has_thought and message.parts:
            part = message.parts[0]
            if type(part) is Reasoning:
                has_thought = True
            elif type(part) not in _NAMELESS and part.item_id:  # type: ignore[union-attr] # see there
                return True
    return False


def thoughtless(lines: list[Placed], messages: tuple[Message, ...]) -> set[int]:
    """Places of items with ids before which no thought stands in their turn, or one that is not among the lines any more."""
    kept = {line.place for line in lines}
    gone = (number for number, message in enumerate(messages) if number not in kept and _is_thought(message))
    found: set[int] = set()
    has_thought, next_gone = False, next(gone, len(messages))
    for place, message in lines:
        while next_gone < place:
            has_thought, next_gone = False, next(gone, len(messages))
        if message.role != "assistant":
            has_thought = False
        elif _is_thought(message):
            has_thought = True
        elif not has_thought and item_id(message) and not isinstance(message.parts[0], Opaque):
            found.add(place)
    return found


def without_copies(lines: list[Placed], repairs: list[Repair]) -> list[Placed]:
    """Copies of thoughts and of what is not interpreted are gone, others have no id; calls are left to those who know their
    results."""
    seen: dict[str, Message] = {}
    kept: list[Placed] = []
    for line in lines:
        known = item_id(line.message)
        if not known or known not in seen or isinstance(line.message.parts[0], ToolCall):
            kept.append(line)
        elif _is_copy(line.message, seen[known]):
            repairs.append(Repair("duplicate_item", line.where, "the same item stood there twice"))
        else:
            repairs.append(Repair("duplicate_item", line.where, "two items had one id"))
            kept.append(line.having(_without_id(line.message)))
        seen.setdefault(known, line.message)
    return kept


def without_lost(lines: list[Placed], lost: set[int], repairs: list[Repair]) -> list[Placed]:
    """What stands at the lost places goes on without its id; calls again are left to others."""
    kept = list(lines)
    for number, line in enumerate(lines):
        if line.place in lost and item_id(line.message) and not isinstance(line.message.parts[0], ToolCall):
            repairs.append(Repair("reasoning", line.where, LOST_THOUGHT))
            kept[number] = line.having(_without_id(line.message))
    return kept


LOST_THOUGHT = "the thought before an item is lost, so it goes on without its id"


def _id_of(part: Opaque) -> str:
    known = part.value.get("id")
    return known if isinstance(known, str) else ""


def _is_thought(message: Message) -> bool:
    return bool(message.parts) and isinstance(message.parts[0], Reasoning)


def _is_copy(message: Message, other: Message) -> bool:
    if isinstance(message.parts[0], Reasoning):
        return True
    return isinstance(message.parts[0], Opaque) and message.parts == other.parts


def _without_id(message: Message) -> Message:
    """The same item otherwise, also in the client's own words."""
    source = message.source
    if source is not None:
        source = Source(source.dialect, {key: value for key, value in source.value.items() if key != "id"})
    return replace(message, parts=tuple(_new(part) for part in message.parts), source=source)


def _new(part: Part) -> Part:
    if isinstance(part, Opaque):
        return replace(part, value={key: value for key, value in part.value.items() if key != "id"})
    return replace(part, item_id="") if getattr(part, "item_id", "") else part
