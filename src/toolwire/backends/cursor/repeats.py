"""Calls that were made before, with the same arguments, since the user last spoke: what they gave then is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...calls.signatures import print_of
from ...types import Loss, Message, ToolCall, ToolResult


class Repeats:
    """Of one conversation. A call counts once it has its result, and not if that was a failure: it may be tried again."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._results: dict[str, ToolResult] = {}
        calls: list[ToolCall] = []
        for message in messages[_last_words(messages) :]:
            calls = [part for part in message.parts if isinstance(part, ToolCall)] or calls
            self.learn(calls, [part for part in message.parts if isinstance(part, ToolResult)])

    def learn(self, calls: Iterable[ToolCall], results: Iterable[ToolResult]) -> None:
        by_id = {call.id: call for call in calls}
        for result in results:
            call = by_id.get(result.call_id)
            if call is not None and not result.is_error:
                self._results[_print(call)] = result

    def result(self, call: ToolCall) -> ToolResult | None:
        return self._results.get(_print(call))

    def loss(self, call: ToolCall) -> Loss | None:
        """For whoever counts them."""
        if self.result(call) is None:
            return None
        return Loss("repeated_call", call.name, "the same call had been made and answered before")


def _last_words(messages: Sequence[Message]) -> int:
    """Where the user last spoke."""
    for number in range(len(messages) - 1, -1, -1):
        message = messages[number]
        if message.role == "user" and any(not isinstance(part, ToolResult) for part in message.parts):
            return number
    return 0


def _print(call: ToolCall) -> str:
    return print_of((call,), lambda call_id: "")
