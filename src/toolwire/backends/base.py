"""The interface of a back end: it answers one request at a time, as events or as the bytes of a dialect.

A back end is a subclass of `Backend` that an entry point of the group `toolwire.backends` names. Only `open` is required; see
docs/backend-plugin.md for a complete one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Protocol, Self

from msgspec import Struct

from ..errors import UpstreamError
from ..events import Event
from ..profiles import PLAIN, Profile
from ..types import Loss, Request

if TYPE_CHECKING:  # so that commands that only read the configuration start quickly
    from ..calls.validation import LocalCall
    from ..config.values import BackendConfig
    from .continuation import ResumePoint
    from .http.transport import Transport


class Model(Struct, frozen=True, kw_only=True):
    """One entry of a model list. also: other names of the same model, which get no entry of their own. context: the largest number of
    tokens of a conversation; 0 if it is unknown."""

    id: str
    owner: str = ""
    created: int = 0
    title: str = ""
    also: tuple[str, ...] = ()
    context: int = 0


class TokenCount(Struct, frozen=True):
    """tokens: of the whole prompt. body: the back end's own response, if it is in the dialect of the request."""

    tokens: int
    body: bytes = b""


class Confinement(Struct, frozen=True, kw_only=True):
    """What commands that a remote service chooses can do on this machine. is_refused: none can run, and hint says what would allow it."""

    text: str
    is_refused: bool = False
    hint: str = ""


class WireReply(Protocol):
    """An answer in the bytes of a dialect, which a decoder of that dialect turns into events."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the back end that the client may see: rate limits, the request id."""

    @property
    def content_type(self) -> str: ...

    @property
    def losses(self) -> tuple[Loss, ...]: ...

    @property
    def is_complete(self) -> bool:
        """Whether the last byte has been received, read or not."""

    async def read(self) -> bytes:
        """The bytes received since the last read; b"" at the end. Raises UpstreamError when the answer is cut or stalls."""

    def abort(self) -> None:
        """Stop the back end now, because the client disconnected. Safe to call at any time, also twice."""


class EventReply(Struct):
    """An answer made in this process. how: the means, for the debug report. local: tools that the gateway ran for it, a list that grows
    while the answer is read."""

    events: AsyncIterator[list[Event]]
    losses: tuple[Loss, ...] = ()
    headers: Mapping[str, str] = {}
    how: str = ""
    local: list[LocalCall] = []

    async def close(self) -> None:
        """Stop the producer now instead of when it is garbage collected."""
        if isinstance(self.events, AsyncGenerator):
            await self.events.aclose()


class ParkedRuns(Protocol):
    """Runs that wait in this process for the results of their calls. on_park is called with the place and the seconds of each new one."""

    on_park: Callable[[ResumePoint, float], None] | None

    def holds(self, point: ResumePoint) -> bool:
        """Whether a run waits at this place."""


class ToolsUnsupported(UpstreamError):
    """Raised by open() for a request with tools, where only the running program shows that it takes none.

    The gateway then describes the tools of this and later requests as text, unless the owner wants native tools.
    """


class Backend(ABC):
    """Answers requests. One instance per configured back end, used by one event loop.

    name: as in the configuration. dialect: the wire format of its replies, "" if it answers in events. profile: quirks that requests are
    adapted to. tool_kinds: the kinds of tools of its dialect that it accepts beside functions.
    """

    name: str
    dialect: str = ""
    profile: Profile = PLAIN
    tool_kinds: frozenset[str] = frozenset()
    is_single_process: bool = False  # it holds connections of other programs, which only one worker process can have

    @classmethod
    def from_config(cls, config: BackendConfig, transport: Transport) -> Self:
        """Build it from its table of the configuration. transport: the HTTP client that all back ends of this process share."""
        return cls(config)  # type: ignore[call-arg]  # what most constructors take

    @classmethod
    def confinement(cls, config: BackendConfig) -> Confinement | None:
        """For `serve` and `doctor`. Optional: None if no command of a remote service runs here. Raises ConfigError."""
        return None

    @abstractmethod
    async def open(self, request: Request, *, is_verbatim: bool) -> WireReply | EventReply:
        """Send the request and return its answer, which is read afterwards. Raises UpstreamError if the back end refuses it.

        is_verbatim: `request.wire` is the body to send as it is; only for back ends with a dialect. When the reply is aborted or closed,
        also before its first token, the model must stop.
        """

    async def models(self) -> list[Model]:
        """The models that it offers now. Optional: a request may name any model as NAME/MODEL."""
        return []

    async def count(self, request: Request) -> TokenCount | None:
        """How many tokens the prompt has. Optional: None makes the gateway estimate it by length."""
        return None

    async def embed(self, request: Request) -> bytes | None:
        """Embeddings as OpenAI returns them, for the body `request.wire` in the form of OpenAI. Optional: None if it has none."""
        return None

    async def relay(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> WireReply | None:
        """Forward a request without a body for something that the back end stores. Optional: None if it stores nothing."""
        return None

    @property
    def parked_runs(self) -> ParkedRuns | None:
        """Optional: runs that only this process can continue. In a cluster, the other processes forward their continuations to it."""
        return None

    @property
    def absence(self) -> UpstreamError | None:
        """Why it cannot answer any request now. Optional: None if it can, or if only a request tells."""
        return None

    async def close(self) -> None:
        """Release what it holds: processes, connections, tasks. The shared transport is closed by its owner."""
        return
