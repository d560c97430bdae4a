"""Where the agent service is, and the headers that say who calls. Ours say what we are; the rest is the owner's configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from .... import __version__
from ....config.secret import Secret
from ....errors import ConfigError, UpstreamError, quote
from ....wire.connect import BadConnectStream, ConnectDecoder, ConnectEnd, ConnectFrame
from ...http.connection import TransportError
from ...http.transport import Response, Timeouts, Transport
from ..wire.errors import error_of, error_of_status

RUN = "/agent.v1.AgentService/Run"
RUN_SSE = "/agent.v1.AgentService/RunSSE"
APPEND = "/aiserver.v1.BidiService/BidiAppend"
USABLE_MODELS = "/agent.v1.AgentService/GetUsableModels"
EXCHANGE = "/auth/exchange_user_api_key"

_RUNS = frozenset({RUN, RUN_SSE, APPEND})  # the messages of one run, which one host must get

USER_AGENT = f"toolwire/{__version__}"

Shape: TypeAlias = Literal["run", "stream", "unary"]

_TYPES: dict[Shape, str] = {
    "run": "application/connect+proto",
    "stream": "application/connect+proto",
    "unary": "application/proto",
}
# As a browser's cookie has it: the user's id, "::" in either spelling, and the token proper.
_PREFIX = re.compile(r"[^.\s]{1,200}?(?:::|%3A%3A)", re.IGNORECASE)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT = re.compile(r"[^\t\x20-\x7e]")


class ServiceTarget(Struct, frozen=True, kw_only=True):
    """agent_url is where runs go, if they have a host of their own; "" is base_url. headers are the owner's, and win."""

    base_url: str
    agent_url: str = ""
    client_type: str = ""
    client_version: str = ""
    is_private: bool = True
    headers: dict[str, str] = {}
    connect_timeout: float = 10.0
    first_byte_timeout: float = 600.0
    idle_timeout: float = 300.0

    def url(self, path: str) -> str:
        base = self.agent_url if path in _RUNS else ""
        return (base or self.base_url).rstrip("/") + path

    def __repr__(self) -> str:
        return f"ServiceTarget({quote(self.base_url)}, {self.client_type} {self.client_version}, {list(self.headers)})"


class Attempt(Struct, frozen=True, kw_only=True):
    """One try of a request: request_id is its own, original_id stays the same over all tries."""

    token: Secret
    request_id: str
    original_id: str = ""
    allowed_tools: Sequence[str] = ()


def headers_of(target: ServiceTarget, attempt: Attempt, shape: Shape) -> dict[str, str]:
    """Names in lower case. Raises ConfigError for one that no request can carry, without its value."""
    headers = {
        "authorization": f"Bearer {bare_token(attempt.token.reveal())}",
        "content-type": _TYPES[shape],
        "connect-protocol-version": "1",
        "user-agent": USER_AGENT,
        "x-ghost-mode": "true" if target.is_private else "false",
        "x-request-id": attempt.request_id,
        "x-original-request-id": attempt.original_id or attempt.request_id,
    }
    if target.client_type:
        headers["x-cursor-client-type"] = target.client_type
    if target.client_version:
        headers["x-cursor-client-version"] = target.client_version
    if attempt.allowed_tools:
        headers["x-cursor-agent-allowed-tools"] = ",".join(attempt.allowed_tools)
    if shape != "unary":
        headers["connect-accept-encoding"] = "gzip"
    if shape == "stream":
        headers["x-cursor-streaming"] = "true"
    if shape == "run":
        headers["te"] = "trailers"
    return with_owners(headers, target)


def with_owners(headers: dict[str, str], target: ServiceTarget) -> dict[str, str]:
    """These with the owner's over them, all in lower case and checked."""
    headers |= {name.lower(): value for name, value in target.headers.items()}
    for name, value in headers.items():
        _check(name, value)
    return headers


def bare_token(text: str) -> str:
    """The token without the user's id that stands before it where it was copied out of a browser."""
    text = text.strip()
    found = _PREFIX.match(text)
    return text[found.end() :] if found else text


def _check(name: str, value: str) -> None:
    if _NAME.fullmatch(name) and not _UNFIT.search(value):
        return
    raise ConfigError(
        f"the header {quote(name)} has a name or a value that no request can carry; expected one line of ASCII.",
        hint="Correct it in headers, or the key, of this back end.",
    )


_MAX_ANSWER = 8 << 20
_MAX_REFUSAL = 64 * 1024
_SECONDS = 30.0
_ENVELOPE = 4  # a message never begins with a smaller byte: field numbers start at 1
_PASSING = frozenset({"refused", "dns", "connect_timeout", "first_byte_timeout", "idle_timeout", "cut"})
_FOREIGN = ("text/html", "text/plain", "application/json")


async def unary(
    transport: Transport,
    target: ServiceTarget,
    attempt: Attempt,
    path: str,
    message: bytes = b"",
    *,
    seconds: float = _SECONDS,
) -> bytes:
    """The answer's message, whether the server sent it bare or in an envelope. Raises UpstreamError."""
    headers = headers_of(target, attempt, "unary")
    timeouts = Timeouts(connect=target.connect_timeout, first_byte=seconds, idle=seconds)
    try:
        response = await transport.send("POST", target.url(path), headers, message, timeouts=timeouts)
        await check(response)
        return unwrapped(await response.read_all(_MAX_ANSWER))
    except TransportError as error:
        raise judged(error) from None


async def check(response: Response) -> None:
    """Raises UpstreamError for a reply that is none of the service's, or its refusal; reads that first."""
    kind = response.headers.get("content-type", "").lower()
    if response.status == 200 and not kind.startswith(_FOREIGN):
        return
    if response.status != 200:
        raise error_of_status(response.status, await beginning(response), response.headers)
    response.abort()
    raise UpstreamError(
        f"the service answered with the content type {quote(kind)}; expected a Connect message.",
        status=502,
        code="upstream_garbage",
        hint="Check base_url; a proxy in between may also have answered in its place.",
    )


async def beginning(response: Response) -> bytes:
    """As much of a refusal as says why; a long one is left there, and so is one that breaks off."""
    pieces = bytearray()
    try:
        while len(pieces) < _MAX_REFUSAL and (piece := await response.read()):
            pieces += piece
    except TransportError:
        return bytes(pieces)
    if not response.is_complete:
        response.abort()
    return bytes(pieces[:_MAX_REFUSAL])


def unwrapped(data: bytes) -> bytes:
    """Raises UpstreamError for the error that an envelope may hold."""
    if not data or data[0] >= _ENVELOPE:
        return data
    decoder = ConnectDecoder()
    try:
        items: list[ConnectFrame | ConnectEnd] = [*decoder.feed(data), *decoder.close()]
    except BadConnectStream as broken:
        raise garbage(broken) from None
    frames = [item.data for item in items if isinstance(item, ConnectFrame)]
    if frames:
        return frames[0]
    fault = next((item.fault for item in items if isinstance(item, ConnectEnd)), None)
    if fault is not None:
        raise error_of(fault, has_seen_output=False)
    return b""


def garbage(broken: BadConnectStream) -> UpstreamError:
    return UpstreamError(
        f"the answer is no Connect stream: {broken}",
        status=502,
        code="upstream_garbage",
        hint="Check base_url; a proxy in between may also have changed the answer.",
    )


def judged(error: TransportError) -> TransportError:
    """Retryable as a run sees it: whether it is safe is judged by what was seen of the model, not by what was sent."""
    error.retryable = error.kind in _PASSING
    return error
