"""What a run waits for: open calls and their ids, announced calls, and output that is deferred to the next answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from ....dialects.shared.requests import fit_id
from ....types import Text, ToolResult
from .execs import Exec, key_of

MAX_ID_LENGTH = 64
MAX_CALLS = 256  # open at a time; a model makes a handful
MAX_BYTES = 64 * 1024 * 1024  # of deferred output, and
MAX_EXECS = 1024
_OVERHEAD = 512  # memory of a deferred entry besides its message
_MAX_ANNOUNCED = 256
_ANNOUNCES = frozenset({"tool_call_started", "partial_tool_call", "tool_call_delta"})

Answer: TypeAlias = Callable[[ToolResult], list[bytes]]


class WaitingCall(Struct, kw_only=True):
    """An exec that a tool of the client answers. is_aborted: the server no longer wants the result."""

    exec: Exec
    answer: Answer
    is_aborted: bool = False


class WaitingCalls:
    """The calls of a run that wait for their results, in order, and the execs that the gateway runs itself."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._calls: dict[str, WaitingCall] = {}
        self._uses: dict[str, int] = {}  # of each id, in the whole run
        self._local: dict[tuple[int, str], Exec] = {}

    @property
    def execs(self) -> list[Exec]:
        """All execs that the server waits for."""
        return [*(call.exec for call in self._calls.values() if not call.is_aborted), *self._local.values()]

    def has(self, exec: Exec) -> bool:
        """Whether it is open already: the server may send an exec twice."""
        return key_of(exec) in self._local or any(key_of(call.exec) == key_of(exec) for call in self._calls.values())

    def add(self, exec: Exec, answer: Answer) -> str:
        """Returns the id for the client."""
        call_id = self._id_for(call_id_of(exec))
        self._calls[call_id] = WaitingCall(exec=exec, answer=answer)
        return call_id

    def start_local(self, execs: Iterable[Exec]) -> None:
        self._local.update((key_of(exec), exec) for exec in execs)

    def finish_local(self, exec: Exec) -> None:
        self._local.pop(key_of(exec), None)

    def abort(self, number: int) -> list[int]:
        """Drop the results of these calls; returns the numbers of local execs to stop."""
        for call in self._calls.values():
            call.is_aborted = call.is_aborted or call.exec.id == number
        local = [exec for exec in self._local.values() if exec.id == number]
        for exec in local:
            self.finish_local(exec)
        return [exec.id for exec in local]

    def take(self, results: Mapping[str, ToolResult]) -> list[bytes]:
        """Close all calls; returns the messages that answer them, also those without a result."""
        calls, self._calls = self._calls, {}
        sent: list[bytes] = []
        for call_id, call in calls.items():
            if not call.is_aborted:
                sent += call.answer(results.get(call_id) or _missing_result(call_id))
        return sent

    def _id_for(self, given: str) -> str:
        wanted = fit_id(given, MAX_ID_LENGTH) if given else self._new_id()
        uses = self._uses[wanted] = self._uses.get(wanted, 0) + 1
        if uses == 1:
            return wanted
        return self._id_for(f"{wanted[: MAX_ID_LENGTH - 8]}-{uses}")


class Announcements:
    """True while a call was announced whose exec or end has not come. Announcements are only hints: the exec counts."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}
        self._done: dict[str, None] = {}  # recent calls whose exec has come; the server may still send updates on them

    def __bool__(self) -> bool:
        return bool(self._open)

    def update(self, kind: str, update: Any) -> bool:
        """False if this update is no announcement."""
        if kind == "tool_call_completed":
            self._open.pop(first_line(update.call_id), None)
        elif kind in _ANNOUNCES:
            call_id = first_line(update.call_id)
            if call_id not in self._done and len(self._open) < _MAX_ANNOUNCED:
                self._open[call_id] = None
        else:
            return False
        return True

    def resolve(self, exec: Exec) -> None:
        """The exec has come. Without an id it belongs to the first announcement."""
        call_id = call_id_of(exec) or next(iter(self._open), "")
        self._open.pop(call_id, None)
        self._done[call_id] = None
        if len(self._done) > _MAX_ANNOUNCED:
            del self._done[next(iter(self._done))]


class ModelOutput(Struct, frozen=True):
    """Output of the model: an update by its name, or an exec; data is the message it came in."""

    kind: str
    value: Any
    data: bytes


class DeferredOutput:
    """Output that came while the run was parked, in order and bounded. execs: those that the server still wants."""

    def __init__(self) -> None:
        self.execs: dict[tuple[int, str], Exec] = {}
        self._entries: deque[ModelOutput] = deque()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def first(self) -> ModelOutput:
        return self._entries[0]

    def add(self, output: ModelOutput) -> bool:
        """False: it does not fit."""
        self._size += len(output.data) + _OVERHEAD
        if self._size > MAX_BYTES or len(self.execs) >= MAX_EXECS:
            return False
        self._entries.append(output)
        if output.kind == "exec":
            self.execs[key_of(output.value)] = output.value
        return True

    def drop_first(self) -> None:
        output = self._entries.popleft()
        self._size -= len(output.data) + _OVERHEAD
        if output.kind == "exec":
            self.execs.pop(key_of(output.value), None)

    def is_wanted(self, output: ModelOutput) -> bool:
        return output.kind != "exec" or self.execs.get(key_of(output.value)) is output.value

    def abort(self, number: int) -> None:
        """The server no longer wants these."""
        for key in [key for key in self.execs if key[0] == number]:
            del self.execs[key]


def call_id_of(exec: Exec) -> str:
    """The model's id is the first of possibly two lines; "" where the kind has none."""
    return first_line(getattr(exec.args, "tool_call_id", ""))


def first_line(text: str) -> str:
    return text.partition("\n")[0].strip()


def _missing_result(call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text="The client gave no result for this call."),), is_error=True)
