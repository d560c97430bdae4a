"""Cursor: calls that were told and wait for their results, and the ids that the client knows them by."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from ....dialects.shared.requests import fit_id
from ....types import Text, ToolResult
from .execs import Exec, key_of

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


MOST_BYTES = 64 * 1024 * 1024
MOST_EXECS = 1024
_OVERHEAD = 512  # what an entry costs beside its message


class Said(Struct, frozen=True):
    """Something of the model's: an update by its name, or an exec; data is the message it came in."""

    kind: str
    value: Any
    data: bytes


class Kept:
    """execs are those among it that the server still wants."""

    def __init__(self) -> None:
        self.execs: dict[tuple[int, str], Exec] = {}
        self._said: deque[Said] = deque()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._said)

    @property
    def first(self) -> Said:
        return self._said[0]

    def add(self, said: Said) -> bool:
        """False: it is too much."""
        self._size += len(said.data) + _OVERHEAD
        if self._size > MOST_BYTES or len(self.execs) >= MOST_EXECS:
            return False
        self._said.append(said)
        if said.kind == "exec":
            self.execs[key_of(said.value)] = said.value
        return True

    def drop_first(self) -> None:
        said = self._said.popleft()
        self._size -= len(said.data) + _OVERHEAD
        if said.kind == "exec":
            self.execs.pop(key_of(said.value), None)

    def is_wanted(self, said: Said) -> bool:
        return said.kind != "exec" or self.execs.get(key_of(said.value)) is said.value

    def abort(self, number: int) -> None:
        """The server no longer wants these; nobody has been told of them."""
        for key in [key for key in self.execs if key[0] == number]:
            del self.execs[key]


_MOST = 256
_BEGINS = frozenset({"tool_call_started", "partial_tool_call", "tool_call_delta"})
_ENDS = "tool_call_completed"


class Announcements:
    """True while a call has been announced, and neither its exec nor its end has come."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}
        self._done: dict[str, None] = {}  # the last of those whose exec has come; more may still be shown of them

    def __bool__(self) -> bool:
        return bool(self._open)

    def heard(self, kind: str, update: Any) -> bool:
        """False if this update announces nothing."""
        if kind == _ENDS:
            self._open.pop(first_line(update.call_id), None)
        elif kind in _BEGINS:
            call_id = first_line(update.call_id)
            if call_id not in self._done and len(self._open) < _MOST:
                self._open[call_id] = None
        else:
            return False
        return True

    def came(self, exec: Exec) -> None:
        """An exec without an id is taken for the one that was announced first."""
        call_id = call_id_of(exec) or next(iter(self._open), "")
        self._open.pop(call_id, None)
        self._done[call_id] = None
        if len(self._done) > _MOST:
            del self._done[next(iter(self._done))]
