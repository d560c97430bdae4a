"""The address of the service, the headers of a request, and unary calls over HTTP/1.1."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from .... import __version__
from ....config.file import BackendConfig
from ....config.secret import Secret
from ....errors import ConfigError, UpstreamError, quote
from ....wire.connect import BadConnectStream, ConnectDecoder, ConnectEnd, ConnectFrame
from ...http.connection import TransportError
from ...http.transport import Response, Timeouts, Transport
from ..wire.errors import error_of, error_of_status
from .channel import bad_stream

RUN = "/agent.v1.AgentService/Run"
RUN_SSE = "/agent.v1.AgentService/RunSSE"
APPEND = "/aiserver.v1.BidiService/BidiAppend"
USABLE_MODELS = "/agent.v1.AgentService/GetUsableModels"
EXCHANGE = "/auth/exchange_user_api_key"

_RUNS = frozenset({RUN, RUN_SSE, APPEND})  # the messages of one run go to one host

USER_AGENT = f"toolwire/{__version__}"

Shape: TypeAlias = Literal["run", "stream", "unary"]

# The form of a browser's cookie: the user's id, "::" in either spelling, and the token.
_PREFIX = re.compile(r"[^.\s]{1,200}?(?:::|%3A%3A)", re.IGNORECASE)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT = re.compile(r"[^\t\x20-\x7e]")


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt of a request: request_id is its own, original_id is the same in all attempts. is_run: over HTTP/2."""

    token: Secret
    request_id: str
    original_id: str = ""
    allowed_tools: Sequence[str] = ()
    is_run: bool = True


def url_of(config: BackendConfig, path: str) -> str:
    base = config.agent_url if path in _RUNS else ""
    return (base or config.base_url).rstrip("/") + path


def headers_of(config: BackendConfig, attempt: Attempt, shape: Shape) -> dict[str, str]:
    """Names in lower case. Raises ConfigError for an invalid header, without its value."""
    headers = {
        "authorization": f"Bearer {bare_token(attempt.token.reveal())}",
        "content-type": "application/proto" if shape == "unary" else "application/connect+proto",
        "connect-protocol-version": "1",
        "user-agent": USER_AGENT,
        "x-ghost-mode": "true" if config.privacy else "false",
        "x-request-id": attempt.request_id,
        "x-original-request-id": attempt.original_id or attempt.request_id,
    }
    if config.client_type:
        headers["x-cursor-client-type"] = config.client_type
    if config.client_version:
        headers["x-cursor-client-version"] = config.client_version
    if attempt.allowed_tools:
        headers["x-cursor-agent-allowed-tools"] = ",".join(attempt.allowed_tools)
    if shape != "unary":
        headers["connect-accept-encoding"] = "gzip"
    if shape == "stream":
        headers["x-cursor-streaming"] = "true"
    if shape == "run":
        headers["te"] = "trailers"
    return with_owner_headers(headers, config)


def with_owner_headers(headers: dict[str, str], config: BackendConfig) -> dict[str, str]:
    """The headers with the owner's, which take precedence; in lower case and validated."""
    headers |= {name.lower(): value for name, value in config.headers.items()}
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or _UNFIT.search(value):
            raise ConfigError(
                f"the header {quote(name)} has an invalid name or value; expected one line of ASCII.",
                hint="Correct it in headers, or the key, of this back end.",
            )
    return headers


def bare_token(text: str) -> str:
    """The token without the user's id that precedes it in a browser's cookie."""
    text = text.strip()
    found = _PREFIX.match(text)
    return text[found.end() :] if found else text


_MAX_ANSWER = 8 << 20
MAX_REFUSAL = 64 * 1024
_SECONDS = 30.0
_ENVELOPE = 4  # a smaller first byte is the flags of an envelope: field numbers start at 1
_RETRYABLE = frozenset({"refused", "dns", "connect_timeout", "first_byte_timeout", "idle_timeout", "cut"})
FOREIGN_TYPES = ("text/html", "text/plain", "application/json")


async def unary(
    transport: Transport,
    config: BackendConfig,
    attempt: Attempt,
    path: str,
    message: bytes = b"",
    *,
    seconds: float = _SECONDS,
) -> bytes:
    """The message of the answer, bare or in an envelope. Raises UpstreamError."""
    headers = headers_of(config, attempt, "unary")
    timeouts = Timeouts(connect=config.connect_timeout, first_byte=seconds, idle=seconds)
    try:
        response = await transport.send("POST", url_of(config, path), headers, message, timeouts=timeouts)
        await check_response(response)
        return unwrap(await response.read_all(_MAX_ANSWER))
    except TransportError as error:
        raise with_retryable(error) from None


async def check_response(response: Response) -> None:
    """Raises UpstreamError for a refusal, whose body it reads, and for a reply that is not from the service."""
    kind = response.headers.get("content-type", "").lower()
    if response.status == 200 and not kind.startswith(FOREIGN_TYPES):
        return
    if response.status != 200:
        raise error_of_status(response.status, await read_refusal(response), response.headers)
    response.abort()
    raise UpstreamError(
        f"the service answered with the content type {quote(kind)}; expected a Connect message.",
        status=502,
        code="upstream_garbage",
        hint="Check base_url; a proxy may also have answered in its place.",
    )


async def read_refusal(response: Response) -> bytes:
    """The start of a refusal; a long one is not read to its end, and one that breaks off is no error."""
    pieces = bytearray()
    try:
        while len(pieces) < MAX_REFUSAL and (piece := await response.read()):
            pieces += piece
    except TransportError:
        return bytes(pieces)
    if not response.is_complete:
        response.abort()
    return bytes(pieces[:MAX_REFUSAL])


def unwrap(data: bytes) -> bytes:
    """Raises UpstreamError for an envelope with an error."""
    if not data or data[0] >= _ENVELOPE:
        return data
    decoder = ConnectDecoder()
    try:
        items: list[ConnectFrame | ConnectEnd] = [*decoder.feed(data), *decoder.close()]
    except BadConnectStream as broken:
        raise bad_stream(broken) from None
    frames = [item.data for item in items if isinstance(item, ConnectFrame)]
    if frames:
        return frames[0]
    fault = next((item.fault for item in items if isinstance(item, ConnectEnd)), None)
    if fault is not None:
        raise error_of(fault, has_seen_output=False)
    return b""


def with_retryable(error: TransportError) -> TransportError:
    """The error with retryable for a run: whether a retry is safe depends on the output that was seen, not on what was sent."""
    error.retryable = error.kind in _RETRYABLE
    return error


def ignore_failure(task: asyncio.Task[Any]) -> None:
    """Retrieves the error of a task that no request awaits any more, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
