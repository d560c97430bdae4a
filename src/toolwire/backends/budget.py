"""Rate limits for each conversation: an agent in an endless loop gets an error instead of a large bill (H167).

A conversation is identified by its owner, its model, the first text of the user and the first turn after it. A request without such a turn
is never refused.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b

from msgspec import Struct

from ..calls.signatures import Leading, print_of
from ..errors import RUNAWAY, UpstreamError
from ..types import Request, ToolCall

CODE = "budget_exceeded"
_WINDOW = 60.0
_MOST = 4096  # conversations in memory, evicted least recently used first


class Account(Struct):
    """Requests and tokens of the last minute, as of the last call."""

    requests: deque[float]
    tokens: deque[tuple[float, int]]
    total: int = 0


class ConversationBudget:
    """0 is no limit. Times are of one monotonic clock."""

    def __init__(self, requests: int, tokens: int) -> None:
        self._requests = requests
        self._tokens = tokens
        self._accounts: dict[str, Account] = {}
        self.refused = 0

    def ask(self, conversation: str, now: float) -> None:
        """Count a request. Raises UpstreamError if it exceeds the limit."""
        if conversation:
            self.charge(self.account(conversation), now)

    def account(self, conversation: str) -> Account:
        """The account of a conversation; a new one if it has no name."""
        if not conversation or not (self._requests or self._tokens):
            return Account(deque(), deque())
        account = self._accounts.pop(conversation, None) or Account(deque(), deque())
        self._accounts[conversation] = account
        if len(self._accounts) > _MOST:
            del self._accounts[next(iter(self._accounts))]
        return account

    def charge(self, account: Account, now: float) -> None:
        """Count a request, or something as expensive. Raises UpstreamError if it exceeds the limit."""
        if not (self._requests or self._tokens):
            return
        _forget(account, now - _WINDOW)
        if self._requests and len(account.requests) >= self._requests:
            raise self._too_much(f"{self._requests} requests", "max_requests_per_minute", account.requests[0], now)
        if self._tokens and account.total >= self._tokens:
            raise self._too_much(f"{self._tokens} tokens", "max_tokens_per_minute", account.tokens[0][0], now)
        account.requests.append(now)

    def count(self, account: Account, tokens: int, now: float) -> None:
        if self._tokens and tokens > 0:
            account.tokens.append((now, tokens))
            account.total += tokens

    def _too_much(self, what: str, key: str, since: float, now: float) -> UpstreamError:
        self.refused += 1
        wait = max(1, round(since + _WINDOW - now))
        return UpstreamError(
            f"this conversation has had {what} within a minute, the limit of {key}.",
            status=429,
            code=CODE,
            hint=f"See whether the agent runs in circles; go on in {wait} seconds, or raise {key} of this back end.",
            headers={"retry-after": str(wait)},
            details=RUNAWAY,
        )


def conversation_of(request: Request) -> str:
    """Its name, "" where it has only begun."""
    start = next((n for n, message in enumerate(request.messages) if message.role == "assistant"), -1)
    if start < 0:
        return ""
    calls = [part for part in request.messages[start].parts if isinstance(part, ToolCall)]
    pieces = (request.owner, request.model, Leading(request.messages).print_of(start), print_of(calls, str))
    return blake2b("\0".join(pieces).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _forget(account: Account, before: float) -> None:
    while account.requests and account.requests[0] <= before:
        account.requests.popleft()
    while account.tokens and account.tokens[0][0] <= before:
        account.total -= account.tokens.popleft()[1]
