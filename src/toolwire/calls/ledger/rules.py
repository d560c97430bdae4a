"""Whether a history keeps the rules of the ledger: one look at each part of every request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...errors import quote
from ...types import Media, Message, Opaque, Part, Reasoning, Refusal, Source, Text, ToolCall, ToolResult
from .hosted_tools import faults_in, may_be_answer

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
]


class Repair(Struct, frozen=True):
    """raw is text that was replaced, for telemetry alone: it may hold secrets, so it is in none of the other members."""

    kind: Kind
    where: str
    why: str
    raw: str = ""


class Placed(NamedTuple):
    """A message, and which one of the request's it was."""

    place: int
    message: Message

    @property
    def where(self) -> str:
        return f"messages[{self.place}]"

    def having(self, message: Message) -> Placed:
        return Placed(self.place, message)


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


ATTACHED = "[its output is attached behind the results]"


def is_loaded(result: ToolResult) -> bool:
    """Whether it failed and holds more than words."""
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
            repairs.append(Repair("media", line.where, "media of a failed result were moved behind it"))
            waiting += [part for result in results if is_loaded(result) for part in _moved(result)]
            line = line.having(line.message.with_parts(tuple(map(_in_words, line.message.parts))))
        if waiting and len(results) < len(line.message.parts):  # the user has more to say in the same message
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
    said = tuple(piece for piece in part.parts if not isinstance(piece, Media))
    return replace(part, parts=said or (Text(text=ATTACHED),))


ANSWERED_AS_FUNCTIONS = frozenset({"local_shell"})  # typed tools whose results some clients tell as a function's
_TEXTS = (Text, Refusal)  # as `X | Y` the union would be made anew for each part


class HistoryRules(NamedTuple):
    """is_run: each part of a turn is a message of its own. needs_proof: thoughts without one are refused. knows_items: so are
    items that came from a thought, without it. is_thinking: the client talks to a model that thinks. is_formal: the user must begin,
    and the last words must not end in white space; else it is enough that the user speaks at all. fails_in_words: failed results hold
    nothing else."""

    is_run: bool = False
    needs_proof: bool = False
    knows_items: bool = False
    is_thinking: bool = False
    is_formal: bool = True
    fails_in_words: bool = True


def is_valid(messages: tuple[Message, ...], asked: HistoryRules) -> bool:
    """The first fault ends it. Every request pays for this loop, so it is one, and calls nobody where all is plain."""
    is_run, is_formal, fails_in_words = asked.is_run, asked.is_formal, asked.fails_in_words
    calls: list[ToolCall] = []
    called = answered = 0  # so many calls there are, and so many of them, from the first on, have their results
    has_begun = has_asked = was_answering = is_thinking = has_opaque = False
    thoughts: list[Message] = []
    for message in messages:
        role = message.role
        if role == "assistant":
            if answered != called and not (is_run and was_answering):
                return False
            was_answering, is_thinking = True, False
            before, text = called, ""
            for part in message.parts:
                if type(part) is ToolCall:
                    calls.append(part)
                    called += 1
                elif called != before or type(part) is ToolResult:
                    return False
                elif type(part) is Text:
                    text = part.text
                    if not text:
                        return False
                else:
                    text, has_opaque = "", has_opaque or type(part) is Opaque
                    if type(part) is Reasoning:
                        thoughts.append(message)
            if called == before and (not text or text.isspace()):
                is_thinking = loose_thoughts(message.parts) > 0
                if not (is_run if is_thinking else _is_said(message)):
                    return False
        elif role == "tool" or role == "user":
            was_answering = False
            for part in message.parts:
                if type(part) is ToolResult:
                    if answered == called or not _answers(part, calls[answered], is_run, fails_in_words):
                        return False
                    answered += 1
                elif answered != called or is_blank(part):
                    return False
                else:
                    has_asked = True
                if type(part) is Opaque:
                    has_opaque, is_thinking = True, is_thinking and not may_be_answer(part)
            has_begun = has_begun or role == "user"
            if is_thinking or not message.parts or (role == "user" and answered != called):
                return False
        else:
            was_answering = was_answering and message.is_head
            if not message.is_head and (answered != called or is_thinking or _is_faulty(message, has_begun)):
                return False
            continue
        if is_formal and not has_begun:
            return False
    is_heard = has_asked or (is_formal and has_begun) or is_instructing(messages)
    if answered != called or is_thinking or not is_heard:
        return False
    return _are_callable(calls) and _holds_together(messages, asked, thoughts, has_opaque=has_opaque)


def _holds_together(
    messages: tuple[Message, ...], asked: HistoryRules, thoughts: list[Message], *, has_opaque: bool
) -> bool:
    """What one look at each part does not show."""
    if (asked.is_formal and has_loose_end(messages)) or (has_opaque and faults_in(messages)):
        return False
    return not (asked.is_run and has_copies(messages)) and _are_known(messages, asked, thoughts)


def _answers(result: ToolResult, call: ToolCall, is_run: bool, fails_in_words: bool) -> bool:
    if result.call_id != call.id:
        return False
    return fits(call, result) if is_run else not (result.is_error and fails_in_words and is_loaded(result))


def is_instructing(messages: tuple[Message, ...]) -> bool:
    """Whether nobody but whoever instructs has spoken, and that in words."""
    return all(message.role in ("system", "developer") for message in messages) and not is_silent(messages)


def is_silent(messages: tuple[Message, ...]) -> bool:
    """Whether nobody says a word, not even an instruction; or an instruction where only they speak has none."""
    return all(is_blank(part) for message in messages for part in message.parts) or any(
        is_void(message) or any(map(is_blank, message.parts)) for message in messages if not message.is_head
    )


def is_blank(part: Part) -> bool:
    return isinstance(part, _TEXTS) and (not part.text or part.text.isspace())


def is_mute(part: Part) -> bool:
    """Nobody hears it: a message of such parts alone says nothing."""
    return isinstance(part, Reasoning) or is_blank(part)


def has_content(parts: tuple[Part, ...]) -> bool:
    """Whether an answer without calls says something to everybody: what other dialects do not know is no word beside white space."""
    said = [part for part in parts if not is_mute(part)]
    if any(map(is_blank, parts)):
        return any(not isinstance(part, Opaque) for part in said)
    return bool(said)


def fits(call: ToolCall, result: ToolResult) -> bool:
    """Where results are items, each kind of call has its own."""
    return result.kind == call.kind or (call.name in ANSWERED_AS_FUNCTIONS and result.kind == "function")


def has_loose_end(messages: Sequence[Message]) -> bool:
    """Whether the last words are the assistant's and end in white space: whoever goes on from there must not be led so."""
    last = next((message for message in reversed(messages) if message.role not in ("system", "developer")), None)
    if last is None or last.role != "assistant" or not last.parts:
        return False
    part = last.parts[-1]
    return isinstance(part, Text) and part.text[-1:].isspace()


def unproven(message: Message, is_run: bool) -> set[int]:
    """Places of thoughts that nothing proves to their provider; of an item, the proof of one part is that of all."""
    thoughts = [number for number, part in enumerate(message.parts) if type(part) is Reasoning]
    bare = {number for number in thoughts if not is_proven(message.parts[number])}
    return set() if is_run and len(bare) < len(thoughts) else bare


def loose_thoughts(parts: tuple[Part, ...]) -> int:
    """So many parts at the end are thoughts, with nothing behind them but white space: what they led to must come next."""
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


def _is_said(message: Message) -> bool:
    """Without parts it may say something that is none: a recording, by its id."""
    return has_content(message.parts) if message.parts else bool(message.extra)


def lacks_thought(messages: tuple[Message, ...], is_thought: Callable[[Part], bool]) -> bool:
    """Whether the turn that is still open, results of its calls included, begins without a thought."""
    is_open = False
    for number in reversed(range(len(messages))):
        message = messages[number]
        if message.role == "assistant":
            is_open = True
            is_first = number == 0 or messages[number - 1].role != "assistant"  # two of them in a row are read as one
            if is_first and message.parts and is_thought(message.parts[0]):
                return False
        elif message.role not in ("system", "developer") and not _is_results(message):
            break
    return is_open


def _is_results(message: Message) -> bool:
    return all(isinstance(part, ToolResult) for part in message.parts)


def is_void(message: Message) -> bool:
    """An instruction that says nothing and declares no tools."""
    source = message.source
    if message.parts or message.declares_tools or source is None:
        return False
    return source.value.get("content", ...) in ("", [])


def is_proven(part: Part) -> bool:
    return type(part) is Reasoning and bool(part.signature or part.redacted or part.encrypted)


def _is_faulty(message: Message, has_begun: bool) -> bool:
    """Before the conversation begins instructions are as their client wants them."""
    if not message.parts:
        return has_begun and is_void(message)
    return any(isinstance(part, ToolResult) or (has_begun and is_blank(part)) for part in message.parts)


def _are_known(messages: tuple[Message, ...], asked: HistoryRules, thoughts: list[Message]) -> bool:
    """To the provider that made them."""
    if asked.needs_proof and any(unproven(message, asked.is_run) for message in thoughts):
        return False
    return not (asked.knows_items and (thoughts or asked.is_thinking) and has_lost(messages))


def _are_callable(calls: list[ToolCall]) -> bool:
    """Each with an id of its own, and arguments."""
    ids = {call.id for call in calls}
    items = [call.item_id for call in calls if call.item_id]
    if len(ids) != len(calls) or "" in ids or len(set(items)) != len(items):
        return False
    return not [call for call in calls if call.args is None and call.kind != "custom"]
