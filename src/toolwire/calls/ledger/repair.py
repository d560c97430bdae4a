"""The ledger: before a request is sent, every call in its history has its result, and every result its call.

Clients interrupt, compact, merge and replay histories, and then providers refuse the conversation for good. These are the rules of all
providers together; a history that meets them stays the same object:

- A turn with calls is followed at once by their results: one each, in the order of the calls, with nothing between or before them.
- An id belongs to one call of the conversation, and to one item. It is never empty, and the arguments of a call are an object.
- Calls are last in their message. Reasoning is followed by what it led to. No message is empty. Failed results contain only text.
- A use of a tool that the provider ran is present with its outcome or not at all, unless the provider still works on it.
- The conversation begins with the user. It ends with the assistant only if the client ended it so, and not in whitespace.
- A provider that signs reasoning gets none without its signature, and no item by its id if its reasoning is lost.

Repairs lose no text: a result without a call becomes text of the user, a call without a result gets one that states so, and what was
between them moves after them. A request that refers to what its provider stores is not changed, because only that provider can see
the whole history.

A turn is one message, or a run of messages in a dialect whose messages are single items. is_valid() below decides, in one pass, whether
anything is wrong; `messages` repairs single messages, `hosted_tools` the provider's own tools, `pairs` finds what belongs together, and
`order` writes the history again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from ...types import Loss, Message, Opaque, Part, Reasoning, Request, Text, ToolCall, ToolResult
from .hosted_tools import faults_in, may_be_answer
from .messages import repair_messages
from .order import arrange, with_user_turns, without_loose_thoughts
from .rules import (
    HistoryRules,
    Kind,
    Repair,
    answers,
    has_content,
    has_copies,
    has_loose_end,
    has_lost,
    is_blank,
    is_loaded,
    is_proven,
    is_void,
    loose_thoughts,
    thoughtless,
    unproven,
    without_copies,
    without_lost,
)

_TRIES = 3  # one is enough, unless text that was added for the user separates what belonged together
_ITEMS = frozenset({"interactions", "responses"})  # dialects in which each part of a turn is a message of its own
_NO_REPAIRS: tuple[Repair, ...] = ()


class RepairedRequest(Struct, frozen=True):
    """The same request, or one whose history any provider accepts, without the client's bytes."""

    request: Request
    repairs: tuple[Repair, ...] = ()


class Recipient(Struct, frozen=True, kw_only=True):
    """The back end that gets the request. is_strict: the provider of the client's dialect, which refuses its own reasoning and items
    without their proof. may_sign: a provider of that dialect that does so once it has signed something. is_formal and
    fails_in_words: see HistoryRules."""

    is_strict: bool = False
    may_sign: bool = False
    is_formal: bool = True
    fails_in_words: bool = True


_ANY = Recipient()


def repair_history(request: Request, recipient: Recipient = _ANY) -> RepairedRequest:
    """Linear in the history, and idempotent."""
    state = request.state
    repairs: list[Repair] = []
    if request.repaired:
        repairs += [Repair(_kind_of(loss), loss.where, loss.why) for loss in request.repaired]
        request = replace(request, repaired=(), wire=b"")
    if state is not None and (state.previous or state.conversation or state.references or state.is_upstreams):
        return RepairedRequest(request, tuple(repairs) if repairs else _NO_REPAIRS)
    rules, messages = _rules_for(request, recipient), request.messages
    for _ in range(_TRIES):
        if is_valid(messages, rules):
            break
        messages = _repair(messages, rules, repairs)
    if messages is not request.messages:
        request = replace(request, messages=messages, wire=b"")
    thinking = request.thinking
    if thinking is not None and thinking.mode == "on" and _cannot_think(messages, rules, recipient):
        why = "the open turn does not begin with reasoning, so none can follow (H075)"
        repairs.append(Repair("thinking", "thinking", why))
        request = replace(request, thinking=replace(thinking, mode="off"), wire=b"")
    return RepairedRequest(request, tuple(repairs) if repairs else _NO_REPAIRS)


def losses_of(repairs: tuple[Repair, ...]) -> tuple[Loss, ...]:
    """One for each kind of repair, with the first of its places."""
    counts = Counter[str](repair.kind for repair in repairs)
    first: dict[str, Repair] = {}
    for repair in repairs:
        first.setdefault(repair.kind, repair)
    return tuple(
        Loss(f"history.{kind}", repair.where, repair.why + (f" ({counts[kind]} times)" if counts[kind] > 1 else ""))
        for kind, repair in first.items()
    )


def _kind_of(loss: Loss) -> Kind:
    """Of a repair that the decoder has made: it names them as losses_of() does."""
    return cast(Kind, loss.feature.partition(".")[2])


def _repair(messages: tuple[Message, ...], rules: HistoryRules, repairs: list[Repair]) -> tuple[Message, ...]:
    lines = repair_messages(messages, rules, repairs)
    lost: set[int] = set()
    if rules.is_run:
        lines = without_copies(without_loose_thoughts(lines, rules.is_run, repairs), repairs)
    has_thoughts = any(isinstance(part, Reasoning) for message in messages for part in message.parts)
    if rules.knows_items and (rules.is_thinking or has_thoughts):
        lost = thoughtless(lines, messages)
        lines = without_lost(lines, lost, repairs)
    ordered = arrange(lines, rules, lost, repairs)
    return with_user_turns(ordered, messages, repairs, is_formal=rules.is_formal)


def _rules_for(request: Request, recipient: Recipient) -> HistoryRules:
    """A provider that stores the conversation finds reasoning by its id, without a proof."""
    is_run, is_stored = request.origin in _ITEMS, request.state is not None and request.state.is_kept
    needs_proof = recipient.is_strict and not (is_run and is_stored)
    if recipient.may_sign and not needs_proof:
        needs_proof = any(is_proven(part) for message in request.messages for part in message.parts)
    return HistoryRules(
        is_run=is_run,
        needs_proof=needs_proof,
        knows_items=recipient.is_strict and is_run,
        is_thinking=request.thinking is not None,
        is_formal=recipient.is_formal,
        fails_in_words=recipient.fails_in_words,
    )


def _cannot_think(messages: tuple[Message, ...], rules: HistoryRules, recipient: Recipient) -> bool:
    """A provider that does not sign accepts any reasoning; but where none precedes a call, the next may be refused."""
    if rules.needs_proof:
        return lacks_thought(messages, is_proven)
    return recipient.may_sign and lacks_thought(messages, lambda part: isinstance(part, Reasoning))


def is_valid(messages: tuple[Message, ...], rules: HistoryRules) -> bool:
    """Whether a history meets all rules. Every request runs this one loop, which calls no function for ordinary parts."""
    is_run, is_formal, fails_in_words = rules.is_run, rules.is_formal, rules.fails_in_words
    calls: list[ToolCall] = []
    called = answered = 0  # calls so far, and how many of them, from the first on, have their results
    has_begun = has_input = was_answering = is_thinking = has_opaque = False
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
                if not (is_run if is_thinking else _has_content(message)):
                    return False
        elif role == "tool" or role == "user":
            was_answering = False
            for part in message.parts:
                if type(part) is ToolResult:
                    if answered == called or not _answers(part, calls[answered], is_run, fails_in_words):
                        return False
                    answered += 1
                elif answered != called or (
                    (type(part) is not Text or not part.text or part.text.isspace()) and is_blank(part)
                ):
                    return False
                else:
                    has_input = True
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
    if answered != called or is_thinking or not (has_input or (is_formal and has_begun) or is_instructing(messages)):
        return False
    return not (calls and not _are_callable(calls)) and _is_consistent(messages, rules, thoughts, has_opaque=has_opaque)


def _is_consistent(
    messages: tuple[Message, ...], rules: HistoryRules, thoughts: list[Message], *, has_opaque: bool
) -> bool:
    """Rules that concern several messages."""
    if (rules.is_formal and has_loose_end(messages)) or (has_opaque and faults_in(messages)):
        return False
    if rules.is_run and has_copies(messages):
        return False
    if rules.needs_proof and any(unproven(message, rules.is_run) for message in thoughts):
        return False
    return not (rules.knows_items and (thoughts or rules.is_thinking) and has_lost(messages))


def _answers(result: ToolResult, call: ToolCall, is_run: bool, fails_in_words: bool) -> bool:
    if result.call_id != call.id:
        return False
    return answers(call, result) if is_run else not (result.is_error and fails_in_words and is_loaded(result))


def is_instructing(messages: tuple[Message, ...]) -> bool:
    """Whether the conversation has only instructions, and they have text."""
    return all(message.role in ("system", "developer") for message in messages) and not is_silent(messages)


def is_silent(messages: tuple[Message, ...]) -> bool:
    """Whether no message has text; or, where there are only instructions, one of them has none."""
    return all(is_blank(part) for message in messages for part in message.parts) or any(
        is_void(message) or any(map(is_blank, message.parts)) for message in messages if not message.is_head
    )


def _has_content(message: Message) -> bool:
    """A message without parts may refer to content by id: a recording."""
    return has_content(message.parts) if message.parts else bool(message.extra)


def lacks_thought(messages: tuple[Message, ...], is_thought: Callable[[Part], bool]) -> bool:
    """Whether the open turn, with the results of its calls, begins without reasoning."""
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


def _is_faulty(message: Message, has_begun: bool) -> bool:
    """Instructions before the first other message are left as the client wrote them."""
    if not message.parts:
        return has_begun and is_void(message)
    return any(isinstance(part, ToolResult) or (has_begun and is_blank(part)) for part in message.parts)


def _are_callable(calls: list[ToolCall]) -> bool:
    """Whether each call has an id of its own, and arguments."""
    ids = {call.id for call in calls}
    items = [call.item_id for call in calls if call.item_id]
    if len(ids) != len(calls) or "" in ids or len(set(items)) != len(items):
        return False
    return not [call for call in calls if call.args is None and call.kind != "custom"]
