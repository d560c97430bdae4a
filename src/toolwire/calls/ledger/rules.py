"""Whether a history keeps the rules of the ledger: one look at each part of every request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...types import Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall, ToolResult
from .attachments import is_loaded
from .hosted_tools import faults_in, may_be_answer
from .item_ids import has_copies, has_lost

ANSWERED_AS_FUNCTIONS = frozenset({"local_shell"})  # typed tools whose results some clients tell as a function's
_TEXTS = (Text, Refusal)  # as `X | Y` the union would be made anew for each part


class Asked(NamedTuple):
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


def is_settled(messages: tuple[Message, ...], asked: Asked) -> bool:
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


def _holds_together(messages: tuple[Message, ...], asked: Asked, thoughts: list[Message], *, has_opaque: bool) -> bool:
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


def is_telling(parts: tuple[Part, ...]) -> bool:
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
    return is_telling(message.parts) if message.parts else bool(message.extra)


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


def _are_known(messages: tuple[Message, ...], asked: Asked, thoughts: list[Message]) -> bool:
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
