"""The vocabulary of the ledger: repairs, the rules of a back end, and what a part or message means under them.

Items: in some dialects each part of a turn is an item with an id that its provider knows. The provider refuses a history that has an id
twice, and an item that it made after reasoning if the reasoning is missing: clients that drop reasoning keep the ids of what it led to.
An item without its id counts as a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...errors import quote
from ...types import Media, Message, Opaque, Part, Reasoning, Refusal, Source, Text, ToolCall, ToolResult

Kind: TypeAlias = Literal[
    "missing_result",
    "orphan_result",
    "duplicate_result",
    "duplicate_call",
    "duplicate_id",
    "duplicate_item",
    "order",
    "kind",
    "media",
    "arguments",
    "empty",
    "reasoning",
    "thinking",
    "hosted",
    "opening",
    "ending",
    "form",
    "role",
    "item_id",
    "tool_choice",
]


class Repair(Struct, frozen=True):
    """raw: replaced text, for telemetry only. It may hold secrets, so no other member repeats it."""

    kind: Kind
    where: str
    why: str
    raw: str = ""


class Placed(NamedTuple):
    """A message, and its position in the request."""

    place: int
    message: Message

    @property
    def where(self) -> str:
        return f"messages[{self.place}]"

    def having(self, message: Message) -> Placed:
        return Placed(self.place, message)


_NAMELESS = (Opaque, Media)  # parts without a member for the id of their item; isinstance() would cost half of all


def item_id(message: Message) -> str:
    """The provider's id of the item, "" if it has none."""
    if not message.parts:
        return ""
    part = message.parts[0]
    return _id_of(part) if isinstance(part, Opaque) else str(getattr(part, "item_id", ""))


def has_copies(messages: tuple[Message, ...]) -> bool:
    """Whether two items have one id."""
    firsts = [message.parts[0] for message in messages if message.parts]
    ids = [part.item_id for part in firsts if type(part) not in _NAMELESS and part.item_id]  # type: ignore[union-attr] # see there
    ids += [known for part in firsts if type(part) is Opaque and (known := _id_of(part))]
    return len(set(ids)) != len(ids)


def has_lost(messages: tuple[Message, ...]) -> bool:
    """Whether an item has an id and no reasoning before it."""
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
    """Positions of items with ids whose turn has no reasoning before them, or had some that was removed."""
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
    """Drops copies of reasoning and of opaque items, and the ids of other duplicates. Calls are handled with their results."""
    seen: dict[str, Message] = {}
    kept: list[Placed] = []
    for line in lines:
        known = item_id(line.message)
        if not known or known not in seen or isinstance(line.message.parts[0], ToolCall):
            kept.append(line)
        elif _is_copy(line.message, seen[known]):
            repairs.append(Repair("duplicate_item", line.where, "the same item was there twice"))
        else:
            repairs.append(Repair("duplicate_item", line.where, "two items had one id"))
            kept.append(line.having(_without_id(line.message)))
        seen.setdefault(known, line.message)
    return kept


def without_lost(lines: list[Placed], lost: set[int], repairs: list[Repair]) -> list[Placed]:
    """Removes the ids of items whose reasoning is lost. Calls are handled with their results."""
    kept = list(lines)
    for number, line in enumerate(lines):
        if line.place in lost and item_id(line.message) and not isinstance(line.message.parts[0], ToolCall):
            repairs.append(Repair("reasoning", line.where, LOST_THOUGHT))
            kept[number] = line.having(_without_id(line.message))
    return kept


LOST_THOUGHT = "the reasoning before an item is lost, so it is sent without its id"


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
    """Also in its source."""
    source = message.source
    if source is not None:
        source = Source(source.dialect, {key: value for key, value in source.value.items() if key != "id"})
    return replace(message, parts=tuple(_new(part) for part in message.parts), source=source)


def _new(part: Part) -> Part:
    if isinstance(part, Opaque):
        return replace(part, value={key: value for key, value in part.value.items() if key != "id"})
    return replace(part, item_id="") if getattr(part, "item_id", "") else part


ATTACHED = "[its output is attached behind the results]"


def is_loaded(result: ToolResult) -> bool:
    """Whether it failed and holds media. Some providers refuse that, so the media follow the results of the turn."""
    return result.is_error and any(isinstance(part, Media) for part in result.parts)


def move_attachments(lines: list[Placed], repairs: list[Repair]) -> list[Placed]:
    written: list[Placed] = []
    waiting: list[Part] = []
    for line in lines:
        results = [part for part in line.message.parts if isinstance(part, ToolResult)]
        if waiting and not results:
            written.append(line.having(Message(role="user", parts=tuple(waiting))))
            waiting = []
        if any(map(is_loaded, results)):
            repairs.append(Repair("media", line.where, "media of a failed result were moved after it"))
            waiting += [part for result in results if is_loaded(result) for part in _moved(result)]
            line = line.having(line.message.with_parts(tuple(map(_in_words, line.message.parts))))
        if waiting and len(results) < len(line.message.parts):  # the message also has text of the user
            rest = [part for part in line.message.parts if not isinstance(part, ToolResult)]
            line = line.having(line.message.with_parts((*map(_in_words, results), *waiting, *rest)))
            waiting = []
        written.append(line)
    return [*written, Placed(lines[-1].place, Message(role="user", parts=tuple(waiting)))] if waiting else written


def _moved(result: ToolResult) -> list[Part]:
    head = Text(text=f"Attachment(s) of failed tool result {quote(result.call_id)}:")
    return [head, *(part for part in result.parts if isinstance(part, Media))]


def _in_words(part: Part) -> Part:
    if not isinstance(part, ToolResult) or not is_loaded(part):
        return part
    content = tuple(piece for piece in part.parts if not isinstance(piece, Media))
    return replace(part, parts=content or (Text(text=ATTACHED),))


ANSWERED_AS_FUNCTIONS = frozenset({"local_shell"})  # typed tools whose results some clients send as a function's
_TEXTS = (Text, Refusal)  # a constant: `X | Y` would build the union for each part


class HistoryRules(NamedTuple):
    """What a back end demands. is_run: each part of a turn is a message of its own. needs_proof: reasoning needs its signature.
    knows_items: items that followed reasoning are refused without it. is_thinking: the model reasons. is_formal: the user must begin,
    and the last text must not end in whitespace; otherwise one message of the user is enough. fails_in_words: failed results
    contain only text."""

    is_run: bool = False
    needs_proof: bool = False
    knows_items: bool = False
    is_thinking: bool = False
    is_formal: bool = True
    fails_in_words: bool = True


def is_blank(part: Part) -> bool:
    return isinstance(part, _TEXTS) and (not part.text or part.text.isspace())


def is_mute(part: Part) -> bool:
    """A message of such parts alone is empty."""
    return isinstance(part, Reasoning) or is_blank(part)


def has_content(parts: tuple[Part, ...]) -> bool:
    """Whether an answer without calls has content in every dialect: beside whitespace, an opaque part does not count."""
    content = [part for part in parts if not is_mute(part)]
    if any(map(is_blank, parts)):
        return any(not isinstance(part, Opaque) for part in content)
    return bool(content)


def answers(call: ToolCall, result: ToolResult) -> bool:
    """Whether the result is of the call's kind, where results are items."""
    return result.kind == call.kind or (call.name in ANSWERED_AS_FUNCTIONS and result.kind == "function")


def has_loose_end(messages: Sequence[Message]) -> bool:
    """Whether the last message is the assistant's and ends in whitespace, which a provider refuses to continue."""
    last = next((message for message in reversed(messages) if message.role not in ("system", "developer")), None)
    if last is None or last.role != "assistant" or not last.parts:
        return False
    part = last.parts[-1]
    return isinstance(part, Text) and part.text[-1:].isspace()


def unproven(message: Message, is_run: bool) -> set[int]:
    """Positions of reasoning without a proof. In an item, the proof of one part covers all parts."""
    thoughts = [number for number, part in enumerate(message.parts) if type(part) is Reasoning]
    bare = {number for number in thoughts if not is_proven(message.parts[number])}
    return set() if is_run and len(bare) < len(thoughts) else bare


def loose_thoughts(parts: tuple[Part, ...]) -> int:
    """How many parts at the end are reasoning followed by nothing but whitespace: what it led to must come next."""
    if len(parts) == 1:
        return int(type(parts[0]) is Reasoning)
    count, last = 0, 0
    for part in reversed(parts):
        if not is_mute(part):
            break
        count += 1
        if isinstance(part, Reasoning):
            last = count
    return last and count


def is_void(message: Message) -> bool:
    """An instruction without text that declares no tools."""
    source = message.source
    if message.parts or message.declares_tools or source is None:
        return False
    return source.value.get("content", ...) in ("", [])


def is_proven(part: Part) -> bool:
    return type(part) is Reasoning and bool(part.signature or part.redacted or part.encrypted)
