"""The ledger: before a request leaves, every call in its history has its result, and every result its call.

Clients interrupt, compact, merge and replay histories, and then providers refuse the conversation for ever. The rules that
all of them together demand are these, and a history that keeps them stays the same object:

- A turn with calls is followed at once by their results: one each, in the order of the calls, nothing between or before them.
- An id belongs to one call of the conversation, is never empty, and the arguments of a call are an object.
- Calls stand last in their message. Reasoning is followed by what it led to. Nobody says nothing.
- A use of a tool that the provider ran is there with its outcome or not at all, unless the provider is still at it.
- The conversation begins with the user, and ends with the assistant only if the client ended it so.

What breaks a rule is repaired without losing a word: a result without a call becomes text of the user, a call without a result
gets one that says so, whatever stood between moves behind. A request that leans on what its provider remembers is left alone,
because only that provider can see whether it keeps the rules.

A turn is one message, or in a dialect whose messages are single items a run of them. rules.py looks, and costs next to nothing;
tidying.py mends single messages, hosted.py the provider's own tools, pairing.py finds what belongs together, ordering.py writes
the history anew.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from ..types import Loss, Message, Request
from .history import Repair
from .ordering import framed, rearranged
from .rules import is_settled
from .tidying import tidied

_ITEMS = frozenset({"responses"})  # dialects in which each part of a turn is a message of its own


class Settled(Struct, frozen=True):
    """The same request, or one whose history any provider takes; where it was changed its bytes no longer say what is meant."""

    request: Request
    repairs: tuple[Repair, ...] = ()


def settle(request: Request) -> Settled:
    """Linear in the history, and idempotent."""
    is_run = request.origin in _ITEMS
    if _is_leaning(request) or is_settled(request.messages, is_run):
        return Settled(request)
    repairs: list[Repair] = []
    messages = _repaired(request.messages, is_run, repairs)
    return Settled(replace(request, messages=messages, wire=b""), tuple(repairs))


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


def _repaired(messages: tuple[Message, ...], is_run: bool, repairs: list[Repair]) -> tuple[Message, ...]:
    return framed(rearranged(tidied(messages, repairs), is_run, repairs), messages, repairs)


def _is_leaning(request: Request) -> bool:
    state = request.state
    return state is not None and bool(state.previous or state.conversation or state.references or state.is_upstreams)
