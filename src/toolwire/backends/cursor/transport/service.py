"""The service as the back end asks it: who asks, by which transport, and what else is asked beside runs."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Sequence

from msgspec import Struct

from ....config.file import BackendConfig
from ....config.secret import Secret
from ....errors import UpstreamError
from ....telemetry import wire_trace
from ...http.connection import TransportError
from ...http.transport import Transport
from ..auth import Credentials
from ..run import EMPTY
from ..wire.models import Usable, usable
from .channel import Channel
from .run_http2 import Connections, open_run
from .run_sse import open_sse
from .target import USABLE_MODELS, Attempt, Target, unary
from .trace import traced

_REMEMBERED = 600.0  # seconds that Run is not tried again where it did not get through


class Way(Struct, frozen=True):
    """How one try goes: with which token, and over Run or not."""

    token: Secret
    is_run: bool


class Service:
    """For one event loop. clock is one that never goes back."""

    def __init__(
        self, config: BackendConfig, transport: Transport, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._transport = transport
        self._clock = clock
        self._target = Target(
            base_url=config.base_url,
            agent_url=config.agent_url,
            client_type=config.client_type,
            client_version=config.client_version,
            is_private=config.privacy,
            headers=config.headers,
            connect_timeout=config.connect_timeout,
            first_byte_timeout=config.first_byte_timeout,
            idle_timeout=config.idle_timeout,
        )
        is_token = bool(config.token)
        self._credentials = Credentials(
            transport, self._target, config.token if is_token else config.key, kind="token" if is_token else "auto"
        )
        self._lines = Connections()
        self._why_not_run = ""  # that it did not get through, and until when that is believed
        self._until = 0.0

    async def way(self) -> Way:
        """For the next try. Raises UpstreamError where no token can be had."""
        return Way(Secret(await self._credentials.token()), self._is_run)

    async def open(self, way: Way, first: bytes, original_id: str, allowed: Sequence[str]) -> Channel:
        """A run with its first message. Raises Gone."""
        attempt = _attempt(way, original_id, allowed)
        if way.is_run:
            channel = await open_run(self._lines, self._target, attempt, first)
        else:
            channel = await open_sse(self._transport, self._target, attempt, first)
        return traced(channel, self._config.name, first)

    async def models(self) -> list[Usable]:
        """Raises UpstreamError."""
        way = await self.way()
        try:
            return await self._models(way)
        except UpstreamError as error:
            if error.status != 401 or not self.renew(way):
                raise
        return await self._models(await self.way())

    async def carrier(self) -> str:
        """What would carry a run, tried without one, and why not the other. Raises UpstreamError where nothing would."""
        if self._config.transport == "sse":
            return "HTTP/1.1"
        try:
            await self._lines.reach(self._target.agent_url or self._target.base_url, self._target.connect_timeout)
        except UpstreamError as error:
            if self._config.transport == "run" or not _is_of_http2(error):
                raise
            return f"HTTP/1.1, because {error.message.rstrip('.')}"
        return "HTTP/2"

    def renew(self, way: Way) -> bool:
        """The token was refused: whether the next one will be another."""
        return self._credentials.refused(way.token.reveal())

    def fall_back(self, way: Way, error: UpstreamError) -> bool:
        """Run did not get through, and nothing was seen of it: whether the other transport is to be tried."""
        if self._config.transport != "auto" or not way.is_run or not _is_of_http2(error):
            return False
        self._why_not_run = error.message
        self._until = self._clock() + _REMEMBERED
        return True

    def how(self, channel: Channel) -> str:
        """What carries a run, and why not the other."""
        is_second = channel.how == "sse" and self._config.transport == "auto"
        return f"{channel.how}, because {self._why_not_run}" if is_second and self._why_not_run else channel.how

    async def close(self) -> None:
        await asyncio.gather(self._credentials.close(), self._lines.close())

    @property
    def _is_run(self) -> bool:
        wanted = self._config.transport
        return wanted == "run" or (wanted == "auto" and not (self._why_not_run and self._clock() < self._until))

    async def _models(self, way: Way) -> list[Usable]:
        attempt = _attempt(way, str(uuid.uuid4()), ())
        if wire_trace.active:
            wire_trace.sent(self._config.name, USABLE_MODELS, None, size=0)
        answer = await unary(self._transport, self._target, attempt, USABLE_MODELS)
        if wire_trace.active:
            wire_trace.received(self._config.name, USABLE_MODELS, None, size=len(answer))
        return usable(answer)


def _attempt(way: Way, original_id: str, allowed: Sequence[str]) -> Attempt:
    return Attempt(token=way.token, request_id=str(uuid.uuid4()), original_id=original_id, allowed_tools=tuple(allowed))


def _is_of_http2(error: UpstreamError) -> bool:
    """The other transport may do better: the way to the server has no HTTP/2, or none that works."""
    return error.code == "http2_required" or (isinstance(error, TransportError) and error.kind == "protocol")


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
