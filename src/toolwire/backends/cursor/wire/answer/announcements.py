"""Cursor: calls that the server shows while the model still writes them. Only hints: what counts is the exec that follows."""

from __future__ import annotations

from typing import Any

from ..execs import Exec
from .open_calls import call_id_of, first_line

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
