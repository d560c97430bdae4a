"""Cursor: calls that were told and wait for their results, and the ids that the client knows them by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from .....dialects.shared.call_ids import fit_id
from .....types import Text, ToolResult
from ..execs import Exec, key_of

LONGEST_ID = 64
MOST_CALLS = 256  # that wait at a time; a model makes a handful
_UNANSWERED = "The client gave no result for this call."

Answer: TypeAlias = Callable[[ToolResult], list[bytes]]


class Call(Struct, kw_only=True):
    """An exec that the client's tool answers. is_aborted: the server no longer wants to know."""

    id: str
    exec: Exec
    answer: Answer
    is_aborted: bool = False


class Waiting:
    """The calls of a run, in the order they were told, until their results are given."""

    def __init__(self, mint: Callable[[], str]) -> None:
        self._mint = mint
        self._calls: dict[str, Call] = {}
        self._keys: set[tuple[int, str]] = set()
        self._uses: dict[str, int] = {}  # of each id, in the whole run
        self._local: dict[tuple[int, str], Exec] = {}  # what the gateway runs itself

    @property
    def execs(self) -> list[Exec]:
        """All that the server still wants to hear of."""
        return [*(call.exec for call in self._calls.values() if not call.is_aborted), *self._local.values()]

    def has(self, exec: Exec) -> bool:
        """The server may say a thing twice; it is done once."""
        return key_of(exec) in self._keys or key_of(exec) in self._local

    def add(self, exec: Exec, answer: Answer) -> str:
        """The id that the client is told."""
        call_id = self._id_for(call_id_of(exec))
        self._keys.add(key_of(exec))
        self._calls[call_id] = Call(id=call_id, exec=exec, answer=answer)
        return call_id

    def run(self, execs: Iterable[Exec]) -> None:
        self._local.update((key_of(exec), exec) for exec in execs)

    def ran(self, exec: Exec) -> None:
        self._local.pop(key_of(exec), None)

    def abort(self, number: int) -> list[int]:
        """The results of these are dropped; given back is what the gateway runs itself and can stop."""
        for call in self._calls.values():
            call.is_aborted = call.is_aborted or call.exec.id == number
        local = [exec for exec in self._local.values() if exec.id == number]
        for exec in local:
            self.ran(exec)
        return [exec.id for exec in local]

    def take(self, results: Mapping[str, ToolResult]) -> list[bytes]:
        """The messages that answer every call; nothing is left waiting, also where a result is missing."""
        calls, self._calls = self._calls, {}
        self._keys.clear()
        sent: list[bytes] = []
        for call in calls.values():
            if not call.is_aborted:
                sent += call.answer(results.get(call.id) or _unanswered(call.id))
        return sent

    def _id_for(self, given: str) -> str:
        wanted = fit_id(given, LONGEST_ID) if given else self._mint()
        uses = self._uses[wanted] = self._uses.get(wanted, 0) + 1
        if uses == 1:
            return wanted
        return self._id_for(f"{wanted[: LONGEST_ID - 8]}-{uses}")


def call_id_of(exec: Exec) -> str:
    """Two ids may stand there, each on a line; the first is the model's. "" where the kind has none."""
    return first_line(getattr(exec.args, "tool_call_id", ""))


def first_line(text: str) -> str:
    return text.partition("\n")[0].strip()


def _unanswered(call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text=_UNANSWERED),), is_error=True)
