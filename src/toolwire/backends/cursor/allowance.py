"""What one answer may cost: its request, and each step of the model's that is answered here, without the client.

A model that only ever hears from the gateway (its tools on this machine, refusals, results of calls that it had made before) can
run in circles inside one answer, and each round costs what a request costs. So a round is counted as one, with the tokens of its context. What
the model wants together is one round, as the results are that a client sends together. Beside the minute's budget an answer
has bounds of its own: a slow circle, or one that has no budget, ends too, with the text there is.
"""

from __future__ import annotations

from ...errors import RUNAWAY, UpstreamError
from ..budget import CODE, Budget

MOST_DECLINED = 100  # wishes in one answer that nobody did anything about; who reads refusals stops after a few
MOST_UNOFFERED = 10  # the same in an answer for which nothing at all is offered: a client that wants the last word
MOST_DONE = 2000  # and tools that ran here: a long task has some hundreds
_TOGETHER = 0.25  # seconds from the first wish of a round to the last


class Runaway(UpstreamError):
    """The agent ran in circles within one answer: a bound of the answer, and not of the owner's budget."""


class Allowance:
    """Of one answer. A conversation without a name has a budget of its own for as long as the answer lasts."""

    def __init__(self, budget: Budget, conversation: str = "", *, most_declined: int = MOST_DECLINED) -> None:
        self._budget = budget
        self._account = budget.account(conversation)
        self._round_until = float("-inf")
        self._is_counted = True  # whether the context of the last round has been
        self._spent = 0
        self._most_declined = most_declined
        self._declined = 0
        self._done = 0

    def answered(self, declined: int, done: int, now: float) -> None:
        """So many requests of the model are about to be answered here. Raises UpstreamError where that is too much, Runaway for the
        bounds of the answer."""
        if not declined and not done:
            return
        self._declined += declined
        self._done += done
        if self._declined > self._most_declined:
            raise _runaway(f"{self._most_declined} times in one answer for what nobody here can do")
        if self._done > MOST_DONE:
            raise _runaway(f"{MOST_DONE} times in one answer for tools of the gateway's")
        if now >= self._round_until:
            self._budget.charge(self._account, now)
            self._round_until = now + _TOGETHER
            self._is_counted = False

    def used(self, tokens: int, now: float) -> None:
        """The context has so many: several such messages may come for one round, which is counted once."""
        if tokens and not self._is_counted:
            self._is_counted = True
            self._count(tokens, now)

    def ended(self, tokens: int, now: float) -> None:
        """The answer has cost so many in all; those of its rounds are among them."""
        self._count(tokens - self._spent, now)

    def _count(self, tokens: int, now: float) -> None:
        self._budget.count(self._account, tokens, now)
        self._spent += max(0, tokens)


def _runaway(how_often: str) -> Runaway:
    return Runaway(
        f"the agent asked {how_often}; the run was ended.",
        status=429,
        code=CODE,
        hint="It runs in circles: say in the prompt which tools there are, or use another model.",
        details=RUNAWAY,
    )
