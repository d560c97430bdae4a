"""Calls of several rounds: a server of protocol 2026-07-28 may answer a call with questions, and the client repeats the call with answers.

Older servers send the same questions as requests of their own while the call runs; the SDK passes both to the same callback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from mcp import types
from pydantic import TypeAdapter

from ...types import JsonObject
from .target import ServerFault, Target

# The message and the JSON schema of a question -> the answer, None to decline.
Elicit: TypeAlias = Callable[[str, JsonObject], Awaitable[JsonObject | None]]

MOST_ROUNDS = 10
RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
_MAX_QUESTION = 2000  # characters
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.25  # seconds before a repetition that has no answers
_log = logging.getLogger("toolwire.tools.mcp")


def elicitation_callback(elicit: Elicit) -> Any:
    """For the SDK. A server that wants the user to open a page of its choice is declined."""

    async def ask(context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        if params.mode != "form":
            return types.ElicitResult(action="decline")
        try:
            answer = await elicit(params.message[:_MAX_QUESTION], dict(params.requested_schema))
            return (
                types.ElicitResult(action="decline")
                if answer is None
                else types.ElicitResult(action="accept", content=answer)
            )
        except Exception as error:  # of the program that embeds us; the server only learns that it failed
            _log.warning("The answer to a question of an MCP server failed: %s.", type(error).__name__, exc_info=error)
            return types.ErrorData(code=types.INTERNAL_ERROR, message="the client failed to answer")

    return ask


class InputRounds:
    """The rounds of one call. answer passes one question to the SDK's callbacks."""

    def __init__(self, target: Target, answer: Callable[[str, Any], Awaitable[Any]], *, can_ask: bool) -> None:
        self._target = target
        self._answer = answer
        self._can_ask = can_ask
        self._count = 0
        self._pause = _FIRST_PAUSE

    async def answers(self, result: types.InputRequiredResult) -> dict[str, Any] | None:
        """The answers for the next round; None for a server that only wants the call repeated. Raises ServerFault."""
        self._count += 1
        if self._count > MOST_ROUNDS:
            raise ServerFault(
                f"{self._target.title} asked for input more than {MOST_ROUNDS} times; the call was given up."
            )
        if not result.input_requests:
            await asyncio.sleep(self._pause)
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            return None
        self._pause = _FIRST_PAUSE
        return {key: await self._answered(key, request) for key, request in result.input_requests.items()}

    async def _answered(self, key: str, request: Any) -> Any:
        if not self._can_ask or not isinstance(request, types.ElicitRequest):
            message = getattr(request.params, "message", None)
            asked = (
                f"asks {self._target.quote(message)}" if message else f"requests {self._target.quote(request.method)}"
            )
            raise ServerFault(f"{self._target.title} {asked}, which this program cannot answer; the call was given up.")
        answer = await self._answer(key, request)
        if isinstance(answer, types.ErrorData):
            raise ServerFault(
                f"A question of {self._target.title} was not answered: {self._target.quote(answer.message)}."
            )
        return answer
