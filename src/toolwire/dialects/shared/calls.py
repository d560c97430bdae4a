"""Calls in dialects whose arguments are objects, and whose calls and results may have no id."""

from __future__ import annotations

from collections.abc import Callable

from ...types import JsonObject, ToolCall, numbered_id
from ...wire.exact_json import object_of


class CallPairs:
    """Pairs calls with results in the order of a history.

    A call without an id gets one that depends on its position alone, so that it is the same in every request of a conversation. A result
    answers the open call with its id, else the first open call with its name; without both, the first open call. If another call
    of the history has its id, it stays that call's: the ledger moves it there.

    is_call: whether a call of the whole history has this id.
    """

    __slots__ = ("_count", "_is_call", "_open")

    def __init__(self, is_call: Callable[[str], bool] = lambda call_id: False) -> None:
        self._count = 0
        self._is_call = is_call
        self._open: list[ToolCall] = []  # calls without a result so far

    @property
    def count(self) -> int:
        """How many calls there were."""
        return self._count

    def next_id(self) -> str:
        """The id of the next call, if it has none of its own."""
        return numbered_id(self._count + 1)

    def add(self, call: ToolCall) -> ToolCall:
        self._count += 1
        self._open.append(call)
        return call

    def answered(self, call_id: str, name: str) -> str:
        """The id of the call that a result with this id and this name answers; each may be ""."""
        by_id = [call for call in self._open if call.id == call_id] if call_id else []
        by_name = [call for call in self._open if call.name == name or not name]
        call = next(iter(by_id or by_name), None)
        if call is None or (call_id and not by_id and self._is_call(call_id)):
            return call_id or f"unknown_{name}"
        self._open.remove(call)
        return call.id


def arguments_of(call: ToolCall) -> JsonObject:
    """The arguments as an object; text that is no object becomes the member _raw and is never dropped (H024)."""
    if call.kind == "custom":
        return {"input": call.raw}
    arguments = call.args if call.args is not None else object_of(call.raw or "{}")
    return arguments if arguments is not None else {"_raw": call.raw}
