"""Where the agent service is, and the headers that say who calls. Ours say what we are; the rest is the owner's configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from .... import __version__
from ....config.secret import Secret
from ....errors import ConfigError, quote

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


class Target(Struct, frozen=True, kw_only=True):
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
        return f"Target({quote(self.base_url)}, {self.client_type} {self.client_version}, {list(self.headers)})"


class Attempt(Struct, frozen=True, kw_only=True):
    """One try of a request: request_id is its own, original_id stays the same over all tries."""

    token: Secret
    request_id: str
    original_id: str = ""
    allowed_tools: Sequence[str] = ()


def headers_of(target: Target, attempt: Attempt, shape: Shape) -> dict[str, str]:
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


def with_owners(headers: dict[str, str], target: Target) -> dict[str, str]:
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
