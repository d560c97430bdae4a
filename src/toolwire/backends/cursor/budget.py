"""So much and no more a minute, for each conversation: an agent that runs in circles costs its user a refusal, not a fortune (H167).

A conversation is known by whose it is, its model, the user's first words and the first turn that answered them. A request without
such a turn is no conversation yet, and is never refused.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b

from msgspec import Struct

from ...calls.sameness import Leading, print_of
from ...errors import UpstreamError
from ...types import Request, ToolCall

_WINDOW = 60.0
_MOST = 4096  # conversations that are watched; the one that has been silent for longest goes first


class _Spent(Struct):
    requests: deque[float]
    tokens: deque[tuple[float, int]]
    total: int = 0


class Budget:
    """0 is no limit. Times are those of one clock that never goes back."""

    def __init__(self, requests: int, tokens: int) -> None:
        self._requests = requests
        self._tokens = tokens
        self._spent: dict[str, _Spent] = {}
        self.refused = 0

    def ask(self, conversation: str, now: float) -> None:
        """One more request. Raises UpstreamError where that is one too many."""
        if not conversation or not (self._requests or self._tokens):
            return
        spent = self._of(conversation)
        _forget(spent, now - _WINDOW)
        if self._requests and len(spent.requests) >= self._requests:
            raise self._too_much(f"{self._requests} requests", "max_requests_per_minute", spent.requests[0], now)
        if self._tokens and spent.total >= self._tokens:
            raise self._too_much(f"{self._tokens} tokens", "max_tokens_per_minute", spent.tokens[0][0], now)
        spent.requests.append(now)

    def spend(self, conversation: str, tokens: int, now: float) -> None:
        if conversation and self._tokens and tokens > 0:
            spent = self._of(conversation)
            spent.tokens.append((now, tokens))
            spent.total += tokens

    def _of(self, conversation: str) -> _Spent:
        spent = self._spent.pop(conversation, None) or _Spent(deque(), deque())
        self._spent[conversation] = spent
        if len(self._spent) > _MOST:
            del self._spent[next(iter(self._spent))]
        return spent

    def _too_much(self, what: str, key: str, since: float, now: float) -> UpstreamError:
        self.refused += 1
        wait = max(1, round(since + _WINDOW - now))
        return UpstreamError(
            f"this conversation has had {what} within a minute, which is all that {key} allows.",
            status=429,
            code="budget_exceeded",
            hint=f"See whether the agent runs in circles; go on in {wait} seconds, or raise {key} of this back end.",
            headers={"retry-after": str(wait)},
        )


def conversation_of(request: Request) -> str:
    """Its name, "" where it has only begun."""
    start = next((n for n, message in enumerate(request.messages) if message.role == "assistant"), -1)
    if start < 0:
        return ""
    calls = [part for part in request.messages[start].parts if isinstance(part, ToolCall)]
    pieces = (request.owner, request.model, Leading(request.messages).print_of(start), print_of(calls, str))
    return blake2b("\0".join(pieces).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _forget(spent: _Spent, before: float) -> None:
    while spent.requests and spent.requests[0] <= before:
        spent.requests.popleft()
    while spent.tokens and spent.tokens[0][0] <= before:
        spent.total -= spent.tokens.popleft()[1]
