"""What one answer may cost: its request, and each round of the model that the gateway answers without the client.

A model that only hears from the gateway (local tools, refusals, results of repeated calls) can loop inside one answer, and each
round costs as much as a request. So each round counts as a request, with the tokens of its context. Requests of the model that
come together are one round. Besides the budget per minute an answer has limits of its own, which also end slow loops.
"""

from __future__ import annotations

from ...errors import RUNAWAY, UpstreamError
from ..budget import CODE, ConversationBudget

MAX_DECLINED = 100  # refused requests in one answer; a model that reads refusals stops after a few
MAX_DECLINED_WITHOUT_TOOLS = 10  # the same in an answer for which no tool is offered
MAX_LOCAL = 2000  # local tool runs in one answer; a long task has some hundreds
_ROUND_SECONDS = 0.25  # from the first request of a round to the last


class Runaway(UpstreamError):
    """The agent looped within one answer: a limit of the answer, not of the owner's budget."""


class Allowance:
    """Of one answer. A conversation without a name has a budget of its own for the duration of the answer."""

    def __init__(self, budget: ConversationBudget, conversation: str = "", *, max_declined: int = MAX_DECLINED) -> None:
        self._budget = budget
        self._account = budget.account(conversation)
        self._round_until = float("-inf")
        self._is_counted = True  # the context of the last round
        self._spent = 0
        self._max_declined = max_declined
        self._declined = 0
        self._local = 0

    def check_round(self, declined: int, local: int, now: float) -> None:
        """Count requests of the model that the gateway answers. Raises UpstreamError beyond the budget, Runaway beyond the answer's limits."""
        if not declined and not local:
            return
        self._declined += declined
        self._local += local
        if self._declined > self._max_declined:
            raise _runaway(f"{self._max_declined} refused requests")
        if self._local > MAX_LOCAL:
            raise _runaway(f"{MAX_LOCAL} local tool calls")
        if now >= self._round_until:
            self._budget.charge(self._account, now)
            self._round_until = now + _ROUND_SECONDS
            self._is_counted = False

    def count_context(self, tokens: int, now: float) -> None:
        """Count the tokens of the context once per round; the server may report them several times."""
        if tokens and not self._is_counted:
            self._is_counted = True
            self._count(tokens, now)

    def count_answer(self, tokens: int, now: float) -> None:
        """Count the tokens of the whole answer, without those of its rounds."""
        self._count(tokens - self._spent, now)

    def _count(self, tokens: int, now: float) -> None:
        self._budget.count(self._account, tokens, now)
        self._spent += max(0, tokens)


def _runaway(limit: str) -> Runaway:
    return Runaway(
        f"the agent reached the limit of {limit} in one answer; the run was ended.",
        status=429,
        code=CODE,
        hint="The model runs in a loop: list the available tools in the prompt, or use another model.",
        details=RUNAWAY,
    )
