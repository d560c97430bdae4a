"""When an answer with calls is complete: Codex waits for their results, and not every version says that no more calls will come.

Seen by running them: 0.145 and later have a marker, which the decoder reads. 0.89 to 0.130 count the thread's tokens when a response
is complete, while its calls wait. 0.144 counts them when all results are there, and so tells nothing; silence has to do.
"""

from __future__ import annotations

from ...types import JsonObject
from .wire import Abilities, Version

COUNT = "thread/tokenUsage/updated"
SILENCE = 0.15  # seconds after a call in which another one would have begun
LONG_SILENCE = 3.0  # where the end is told, should it not be: some providers count no tokens
_COUNTS_FIRST = Version(0, 130)  # the last that was seen to


class Ending:
    """For one turn; begin() for each of its answers. is_raw: raw items are told, and with them all calls of a response; a thread that
    was resumed has none, and tells a call only when the one before it has its result."""

    def __init__(self, version: Version, abilities: Abilities, *, is_raw: bool = True) -> None:
        self._counts_first = not abilities.marker and version[:2] <= _COUNTS_FIRST[:2]
        self._is_told = is_raw and (abilities.marker or self._counts_first)
        self._is_counted = False
        self._total: object = None

    @property
    def silence(self) -> float:
        """So long another message is awaited, once there are calls."""
        if self._is_counted:
            return 0.0
        return LONG_SILENCE if self._is_told else SILENCE

    def begin(self) -> None:
        self._is_counted = False

    def hear(self, method: str, params: JsonObject) -> None:
        """A count is told again when the next response begins; only a new one means that a response has ended."""
        if method != COUNT or not self._counts_first:
            return
        usage = params.get("tokenUsage")
        total = usage.get("total") if isinstance(usage, dict) else None
        if total != self._total:
            self._total = total
            self._is_counted = True
