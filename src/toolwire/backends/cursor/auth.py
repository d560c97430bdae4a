"""The owner's access token, or the one that the owner's API key is exchanged for. There is no login here.

A token or key from a file is read again when it is refused, because another program may have renewed it.
"""

from __future__ import annotations

import asyncio
import binascii
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from ...config.file import BackendConfig
from ...config.secret import Secret
from ...errors import UpstreamError
from ...wire.exact_json import object_of
from ..http.connection import TransportError
from ..http.transport import Timeouts, Transport
from .transport.target import (
    EXCHANGE,
    USER_AGENT,
    bare_token,
    ignore_failure,
    read_refusal,
    url_of,
    with_owner_headers,
    with_retryable,
)

_RENEW_BEFORE = 300.0  # seconds before it expires
_MIN_SECONDS = 30.0  # that an exchanged token is used, whatever its claims are
_DEFAULT_SECONDS = 3000.0  # of a token without an expiry; an hour is the shortest that was reported
_MAX_TOKEN = 64 * 1024
_TIMEOUT = 20.0
_MAX_EXPIRY = 1 << 37
_POLICY = "sign_in_policy_violation"
_BAD_KEY = "bad_key"


class _Claims(Struct, frozen=True):
    exp: float = 0.0


class Credentials:
    """For one event loop. is_token: the key is an access token, as one that looks like a JWT; any other key is exchanged."""

    def __init__(
        self,
        transport: Transport,
        config: BackendConfig,
        key: Secret,
        *,
        is_token: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._config = config
        self._source = key
        self._key = Secret(bare_token(key.reveal()))
        self.is_exchanged = not is_token and not looks_like_token(self._key.reveal())
        self._clock = clock
        self._token = Secret()
        self._renew_at = 0.0
        self._exchanging: asyncio.Task[str] | None = None

    async def token(self) -> str:
        """Raises UpstreamError if there is none."""
        if not self._key:
            raise UpstreamError(
                "this back end has no key.",
                status=401,
                code="missing_key",
                hint="Set key to an API key of your account, or to an access token.",
            )
        if not self.is_exchanged:
            return self._key.reveal()
        if not self._token or self._clock() >= self._renew_at:
            return await self._exchange_once()
        return self._token.reveal()

    def refused(self, token: str = "") -> bool:
        """After the service refused a token: whether the next one differs. Only the current token is dropped, not a newer one."""
        if not self.is_exchanged:
            return token != self._key.reveal() or self._read_again()
        if not token or token == self._token.reveal():
            self._token = Secret()
        return True

    def _read_again(self) -> bool:
        """Whether the owner's file has a new secret."""
        self._source = self._source.read_again()
        before, self._key = self._key, Secret(bare_token(self._source.reveal()))
        return before != self._key

    async def close(self) -> None:
        if self._exchanging is not None:
            self._exchanging.cancel()
            await asyncio.wait([self._exchanging])

    async def _exchange_once(self) -> str:
        """Concurrent requests wait for the same exchange; cancelling one of them does not stop it."""
        if self._exchanging is None:
            self._exchanging = asyncio.create_task(self._exchange())
            self._exchanging.add_done_callback(ignore_failure)
        exchanging = self._exchanging
        await asyncio.wait([exchanging])
        if exchanging.cancelled():
            raise UpstreamError("this back end is closed.", status=503, code="closed")
        return exchanging.result()

    async def _exchange(self) -> str:
        try:
            token = await self._request_token()
        except TransportError as error:
            raise with_retryable(error) from None
        finally:
            self._exchanging = None
        now = self._clock()
        expires_at = expiry_of(token)
        self._token = Secret(token)
        self._renew_at = (
            now + _DEFAULT_SECONDS if expires_at is None else max(expires_at - _RENEW_BEFORE, now + _MIN_SECONDS)
        )
        return token

    async def _request_token(self) -> str:
        try:
            return token_in(*await self._post())
        except UpstreamError as error:
            if error.code != _BAD_KEY or not self._read_again():
                raise
        return token_in(*await self._post())

    async def _post(self) -> tuple[int, bytes]:
        headers = {
            "authorization": f"Bearer {self._key.reveal()}",
            "content-type": "application/json",
            "accept": "application/json",
            "user-agent": USER_AGENT,
        }
        timeouts = Timeouts(connect=self._config.connect_timeout, first_byte=_TIMEOUT, idle=_TIMEOUT)
        url = url_of(self._config, EXCHANGE)
        headers = with_owner_headers(headers, self._config)
        response = await self._transport.send("POST", url, headers, b"{}", timeouts=timeouts)
        return response.status, await read_refusal(response)


def looks_like_token(text: str) -> bool:
    return text.startswith("ey") and text.count(".") == 2


def expiry_of(token: str) -> float | None:
    """The expiry of a JWT in Unix seconds, unverified; None if there is none."""
    pieces = token.split(".") if len(token) <= _MAX_TOKEN else []
    if len(pieces) != 3:
        return None
    digits = pieces[1].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        claims = msgspec.json.decode(binascii.a2b_base64(digits + "=" * (-len(digits) % 4)), type=_Claims)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return claims.exp if 0 < claims.exp < _MAX_EXPIRY else None


def token_in(status: int, body: bytes) -> str:
    """The token in the answer of an exchange. Raises UpstreamError without any secret of the answer."""
    if status == 200:
        token = (object_of(body.decode("utf-8", "replace")) or {}).get("accessToken")
        if isinstance(token, str) and 0 < len(token) <= _MAX_TOKEN and token.isascii() and token.isprintable():
            return token
        raise UpstreamError(
            "the exchange of the API key returned no access token.",
            status=502,
            code="upstream_garbage",
            hint="Check base_url; a proxy may also have answered in its place.",
        )
    raise _refusal(status, body)


def _refusal(status: int, body: bytes) -> UpstreamError:
    if status == 403 and _POLICY.encode() in body:
        return UpstreamError(
            f"the API key was refused by the sign-in policy of its team ({_POLICY}).",
            status=403,
            code=_POLICY,
            hint="Ask the administrator of the team; trying again does not help.",
        )
    if status in (401, 403):
        return UpstreamError(
            f"the API key was refused with status {status}.",
            status=401,
            code=_BAD_KEY,
            hint="Create a new key in the settings of your account, and set it as key of this back end.",
        )
    is_retryable = status in (408, 429) or status >= 500
    return UpstreamError(
        f"the exchange of the API key failed with status {status}.",
        status=status if status == 429 else 502,
        code="rate_limited" if status == 429 else "upstream_error",
        hint="Check base_url of this back end." if status == 404 else "",
        retryable=is_retryable,
    )
