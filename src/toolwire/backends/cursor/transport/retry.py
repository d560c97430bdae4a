"""When a request that failed before its first word is sent again: by another token, by the other transport, after a pause, or once
because the run ended without any output."""

from __future__ import annotations

import random

from ....errors import UpstreamError
from ..turn import EMPTY
from .service import Service, Way

_LONGEST_WAIT = 2.0  # a longer pause is the client's to make


class Tries:
    """Of one request. until: no try begins later, so that limits of time do not add up. was_empty: a try without output came before."""

    def __init__(self, service: Service, retries: int, until: float, *, was_empty: bool = False) -> None:
        self._service = service
        self._left = retries
        self._until = until
        self._count = 0
        self._has_renewed = False
        self._was_empty = was_empty

    def pause(self, error: UpstreamError, way: Way | None, now: float) -> float | None:
        """Seconds until the next try; None: there is none, and the error is told. way is None where there was no token."""
        if way is not None and error.status == 401 and not self._has_renewed and self._service.renew(way):
            self._has_renewed = True
            return 0.0
        if way is not None and self._service.fall_back(way, error):
            return 0.0
        if error.code == EMPTY:
            was_empty, self._was_empty = self._was_empty, True
            return None if was_empty else 0.0
        seconds = _pause(error, self._count)
        if not error.retryable or self._count >= self._left or seconds > _LONGEST_WAIT or now + seconds > self._until:
            return None
        self._count += 1
        return seconds


def _pause(error: UpstreamError, count: int) -> float:
    """What the service asks for, else a quarter of a second, doubled each time, with a little chance in it."""
    try:
        return max(0.0, float(error.headers["retry-after"]))
    except (KeyError, ValueError):
        return float(0.25 * 2**count * random.uniform(0.8, 1.2))
