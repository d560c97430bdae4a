"""The ledger: before a request leaves, every call in its history has its result, and every result its call.

Clients interrupt, compact, merge and replay histories, and then providers refuse the conversation for ever. The rules that
all of them together demand are these, and a history that keeps them stays the same object:

- A turn with calls is followed at once by their results: one each, in the order of the calls, nothing between or before them.
- An id belongs to one call of the conversation, and to one item; it is never empty, and the arguments of a call are an object.
- Calls stand last in their message. Reasoning is followed by what it led to. Nobody says nothing. A failed result is in words.
- A use of a tool that the provider ran is there with its outcome or not at all, unless the provider is still at it.
- The conversation begins with the user, and ends with the assistant only if the client ended it so, and not in white space.
- The provider that signs thoughts gets none without its signature, and no item whose thought is lost by its id.

What breaks a rule is repaired without losing a word: a result without a call becomes text of the user, a call without a result
gets one that says so, whatever stood between moves behind. A request that leans on what its provider remembers is left alone,
because only that provider can see whether it keeps the rules.

A turn is one message, or in a dialect whose messages are single items a run of them. rules.py looks, and costs next to nothing;
tidying.py mends single messages, hosted.py the provider's own tools, items.py ids of items, pairing.py finds what belongs together,
ordering.py writes the history anew, attaching.py puts media behind results that must not hold them.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from ...types import Loss, Message, Reasoning, Request
from .messages import repair_messages
from .order import arrange, with_user_turns, without_loose_thoughts
from .rules import HistoryRules, Repair, is_proven, is_valid, lacks_thought, thoughtless, without_copies, without_lost

_TRIES = 3  # one is enough, unless what is told as the user's words parts what belonged together
_ITEMS = frozenset({"responses"})  # dialects in which each part of a turn is a message of its own


class RepairedRequest(Struct, frozen=True):
    """The same request, or one whose history any provider takes; where it was changed its bytes no longer say what is meant."""

    request: Request
    repairs: tuple[Repair, ...] = ()


class Recipient(Struct, frozen=True, kw_only=True):
    """Who gets the request. is_strict: the provider whose dialect the client speaks, which knows its own thoughts and items and
    refuses them without their proof. may_sign: one of that dialect that may do so, which shows by what it has signed. is_formal and
    fails_in_words: see rules.Asked."""

    is_strict: bool = False
    may_sign: bool = False
    is_formal: bool = True
    fails_in_words: bool = True


_ANYBODY = Recipient()


def repair_history(request: Request, reader: Recipient = _ANYBODY) -> RepairedRequest:
    """Linear in the history, and idempotent."""
    if _is_leaning(request):
        return RepairedRequest(request)
    asked, repairs, messages = _asked(request, reader), list[Repair](), request.messages
    for _ in range(_TRIES):
        if is_valid(messages, asked):
            break
        messages = _repaired(messages, asked, repairs)
    if messages is not request.messages:
        request = replace(request, messages=messages, wire=b"")
    thinking = request.thinking
    if thinking is not None and thinking.mode == "on" and _cannot_think(messages, asked, reader):
        repairs.append(
            Repair("thinking", "thinking", "the open turn does not begin with a thought, so none can follow (H075)")
        )
        request = replace(request, thinking=replace(thinking, mode="off"), wire=b"")
    return RepairedRequest(request, tuple(repairs))


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


def _repaired(messages: tuple[Message, ...], asked: HistoryRules, repairs: list[Repair]) -> tuple[Message, ...]:
    lines = repair_messages(messages, asked, repairs)
    lost: set[int] = set()
    if asked.is_run:
        lines = without_copies(without_loose_thoughts(lines, asked.is_run, repairs), repairs)
    if asked.knows_items and (asked.is_thinking or _has_thoughts(messages)):
        lost = thoughtless(lines, messages)
        lines = without_lost(lines, lost, repairs)
    ordered = arrange(lines, asked, lost, repairs)
    return with_user_turns(ordered, messages, repairs, is_formal=asked.is_formal)


def _asked(request: Request, reader: Recipient) -> HistoryRules:
    """A provider that keeps what is said finds a thought by its id."""
    is_run, is_kept = request.origin in _ITEMS, request.state is not None and request.state.is_kept
    needs_proof = reader.is_strict and not (is_run and is_kept)
    if reader.may_sign and not needs_proof:
        needs_proof = any(is_proven(part) for message in request.messages for part in message.parts)
    return HistoryRules(
        is_run=is_run,
        needs_proof=needs_proof,
        knows_items=reader.is_strict and is_run,
        is_thinking=request.thinking is not None,
        is_formal=reader.is_formal,
        fails_in_words=reader.fails_in_words,
    )


def _cannot_think(messages: tuple[Message, ...], asked: HistoryRules, reader: Recipient) -> bool:
    """Who does not sign takes any thought for one; but where none stands before a call, the next may be refused."""
    if asked.needs_proof:
        return lacks_thought(messages, is_proven)
    return reader.may_sign and lacks_thought(messages, lambda part: isinstance(part, Reasoning))


def _has_thoughts(messages: tuple[Message, ...]) -> bool:
    return any(isinstance(part, Reasoning) for message in messages for part in message.parts)


def _is_leaning(request: Request) -> bool:
    state = request.state
    return state is not None and bool(state.previous or state.conversation or state.references or state.is_upstreams)
