"""The service as the back end calls it: credentials, choice of the transport, retries, and the list of models."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Sequence

from ....config.file import BackendConfig
from ....config.secret import Secret
from ....errors import UpstreamError
from ....telemetry import wire_trace
from ...http.connection import TransportError
from ...http.transport import Transport, parse_target
from ..auth import Credentials
from ..run import EMPTY
from ..wire.models import usable_models
from .channel import RunChannel
from .run_http2 import Http2Connections, open_run
from .run_sse import open_sse
from .target import RUN, USABLE_MODELS, Attempt, unary, url_of

_FALLBACK_SECONDS = 600.0  # how long HTTP/2 is not tried again after it failed
_MAX_DELAY = 2.0  # longer delays are left to the client


class Service:
    """For one event loop. clock must be monotonic."""

    def __init__(
        self, config: BackendConfig, transport: Transport, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._transport = transport
        self._clock = clock
        is_token = bool(config.token)
        self._credentials = Credentials(transport, config, config.token if is_token else config.key, is_token=is_token)
        self._connections = Http2Connections()
        self._fallback_reason = ""  # why HTTP/2 failed, and until when it is not tried again
        self._fallback_until = 0.0

    async def attempt(self, original_id: str, allowed: Sequence[str] = ()) -> Attempt:
        """The next attempt of a request. Raises UpstreamError if there is no token."""
        token = Secret(await self._credentials.token())
        transport = self._config.transport
        is_fallback = bool(self._fallback_reason) and self._clock() < self._fallback_until
        return Attempt(
            token=token,
            request_id=str(uuid.uuid4()),
            original_id=original_id,
            allowed_tools=tuple(allowed),
            is_run=transport == "run" or (transport == "auto" and not is_fallback),
        )

    async def open(self, attempt: Attempt, first: bytes) -> RunChannel:
        """A run with its first message. Raises UpstreamError."""
        if attempt.is_run:
            return await open_run(self._connections, self._config, attempt, first)
        return await open_sse(self._transport, self._config, attempt, first)

    async def models(self) -> dict[str, str]:
        """Titles by id. Raises UpstreamError."""
        attempt = await self.attempt(str(uuid.uuid4()))
        try:
            return await self._models(attempt)
        except UpstreamError as error:
            if error.status != 401 or not self.renew(attempt):
                raise
        return await self._models(await self.attempt(attempt.original_id))

    async def probe(self) -> str:
        """Which protocol would carry a run, and why not HTTP/2. Raises UpstreamError if none would."""
        if self._config.transport == "sse":
            return "HTTP/1.1"
        try:
            await self._connections.reach(parse_target(url_of(self._config, RUN)), self._config.connect_timeout)
        except UpstreamError as error:
            if self._config.transport == "run" or not _is_http2_failure(error):
                raise
            return f"HTTP/1.1, because {error.message.rstrip('.')}"
        return "HTTP/2"

    def renew(self, attempt: Attempt) -> bool:
        """After the token was refused: whether the next attempt has another one."""
        return self._credentials.refused(attempt.token.reveal())

    def fall_back(self, attempt: Attempt, error: UpstreamError) -> bool:
        """After an attempt failed before any output: whether to try HTTP/1.1 instead."""
        if self._config.transport != "auto" or not attempt.is_run or not _is_http2_failure(error):
            return False
        self._fallback_reason = error.message
        self._fallback_until = self._clock() + _FALLBACK_SECONDS
        return True

    def describe(self, channel: RunChannel) -> str:
        """The transport of a run, with the reason for a fallback."""
        is_fallback = channel.how == "sse" and self._config.transport == "auto" and self._fallback_reason
        return f"{channel.how}, because {self._fallback_reason}" if is_fallback else channel.how

    async def close(self) -> None:
        await asyncio.gather(self._credentials.close(), self._connections.close())

    async def _models(self, attempt: Attempt) -> dict[str, str]:
        if wire_trace.active:
            wire_trace.sent(self._config.name, USABLE_MODELS, None, size=0)
        answer = await unary(self._transport, self._config, attempt, USABLE_MODELS)
        if wire_trace.active:
            wire_trace.received(self._config.name, USABLE_MODELS, None, size=len(answer))
        return usable_models(answer)


class Retries:
    """Decides whether a request that failed before its first output is sent again.

    until: no attempt starts later, so that timeouts do not add up. was_empty: an attempt has already ended without output.
    """

    def __init__(self, service: Service, retries: int, until: float, *, was_empty: bool = False) -> None:
        self._service = service
        self._left = retries
        self._until = until
        self._count = 0
        self._has_renewed = False
        self._was_empty = was_empty

    def delay(self, error: UpstreamError, attempt: Attempt | None, now: float) -> float | None:
        """Seconds until the next attempt, None for no retry. attempt is None if there was no token."""
        if attempt is not None and error.status == 401 and not self._has_renewed and self._service.renew(attempt):
            self._has_renewed = True
            return 0.0
        if attempt is not None and self._service.fall_back(attempt, error):
            return 0.0
        if error.code == EMPTY:
            was_empty, self._was_empty = self._was_empty, True
            return None if was_empty else 0.0
        seconds = _delay(error, self._count)
        if not error.retryable or self._count >= self._left or seconds > _MAX_DELAY or now + seconds > self._until:
            return None
        self._count += 1
        return seconds


def _is_http2_failure(error: UpstreamError) -> bool:
    """HTTP/1.1 may work: the network has no HTTP/2, or none that works."""
    return error.code == "http2_required" or (isinstance(error, TransportError) and error.kind == "protocol")


def _delay(error: UpstreamError, count: int) -> float:
    """The server's Retry-After, else exponential from a quarter of a second, with jitter."""
    try:
        return max(0.0, float(error.headers["retry-after"]))
    except (KeyError, ValueError):
        return float(0.25 * 2**count * random.uniform(0.8, 1.2))
