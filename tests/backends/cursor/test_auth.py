from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.cursor.http1_server import Http1Server, HttpRequest
from tests.backends.cursor.http2_server import config
from toolwire.backends.cursor.auth import Credentials, expiry_of, looks_like_token, token_in
from toolwire.backends.http.transport import Transport
from toolwire.config.secret import Secret
from toolwire.errors import UpstreamError

KEY = "key_0123456789abcdef"
TARGET = config(base_url="https://service.test")


def jwt(payload: object) -> str:
    return "eyJh." + base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=") + ".sig"


class Exchange:
    """Tokens that say when they end, told apart by a number."""

    def __init__(self, life: float | None = 3600.0) -> None:
        self.now = 1_000_000.0
        self.life = life
        self.count = 0
        self.refusals: list[tuple[int, bytes]] = []
        self.delay = 0.0

    async def __call__(self, request: HttpRequest) -> None:
        assert request.path == "/auth/exchange_user_api_key"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body == b"{}"
        await asyncio.sleep(self.delay)
        if self.refusals:
            status, body = self.refusals.pop(0)
            request.answer(body, status, "application/json")
            return
        self.count += 1
        payload = {"n": self.count} | ({} if self.life is None else {"exp": self.now + self.life})
        request.answer(json.dumps({"accessToken": jwt(payload), "refreshToken": "r"}).encode(), 200, "application/json")


def with_credentials(exchange: Exchange, test: Callable[[Credentials], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Http1Server(exchange) as server:
            transport = Transport(environ={})
            credentials = Credentials(transport, server.target, Secret(KEY), clock=lambda: exchange.now)
            try:
                await test(credentials)
            finally:
                await credentials.close()
                await transport.close()

    asyncio.run(main())


def test_a_token_is_used_as_it_is_without_the_user_before_it() -> None:
    async def main() -> None:
        transport = Transport(environ={})
        for text in ("eyJa.b.c", "user_01ABC%3A%3AeyJa.b.c", "user_01ABC::eyJa.b.c", " eyJa.b.c\n"):
            credentials = Credentials(transport, config(base_url="http://127.0.0.1:9"), Secret(text))
            assert await credentials.token() == "eyJa.b.c"
            assert not credentials.is_exchanged
            credentials.refused()
            assert await credentials.token() == "eyJa.b.c"
        await transport.close()

    asyncio.run(main())


def test_a_key_is_exchanged_once_and_renewed_before_its_token_ends() -> None:
    exchange = Exchange()

    async def test(credentials: Credentials) -> None:
        first = await credentials.token()
        assert await credentials.token() == first
        exchange.now += 3600 - 301
        assert await credentials.token() == first
        exchange.now += 2
        assert await credentials.token() != first
        assert exchange.count == 2

    with_credentials(exchange, test)


@pytest.mark.parametrize(("life", "lasts"), [(None, 2999.0), (10.0, 29.0), (-5000.0, 29.0)])
def test_a_token_that_says_nothing_or_nonsense_lasts_a_while(life: float | None, lasts: float) -> None:
    exchange = Exchange(life)

    async def test(credentials: Credentials) -> None:
        first = await credentials.token()
        exchange.now += lasts
        assert await credentials.token() == first
        exchange.now += 2
        assert await credentials.token() != first

    with_credentials(exchange, test)


def test_waiting_requests_share_one_exchange_and_a_cancelled_one_stops_no_other() -> None:
    exchange = Exchange()
    exchange.delay = 0.03

    async def test(credentials: Credentials) -> None:
        waiting = [asyncio.create_task(credentials.token()) for _ in range(20)]
        await asyncio.sleep(0.01)
        waiting[0].cancel()
        tokens = await asyncio.gather(*waiting[1:])
        assert len(set(tokens)) == 1
        assert exchange.count == 1

    with_credentials(exchange, test)


def test_a_refused_token_is_exchanged_again_once_however_many_say_so() -> None:
    exchange = Exchange()

    async def test(credentials: Credentials) -> None:
        old = await credentials.token()
        credentials.refused(old)
        new = await credentials.token()
        assert new != old
        credentials.refused(old)
        assert await credentials.token() == new
        credentials.refused()
        assert await credentials.token() != new
        assert exchange.count == 3

    with_credentials(exchange, test)


@pytest.mark.parametrize(
    ("status", "body", "expected", "code", "retryable"),
    [
        (401, b"{}", 401, "bad_key", False),
        (403, b"no", 401, "bad_key", False),
        (403, b'{"error":"sign_in_policy_violation"}', 403, "sign_in_policy_violation", False),
        (404, b"", 502, "upstream_error", False),
        (429, b"", 429, "rate_limited", True),
        (500, b"", 502, "upstream_error", True),
        (503, b"", 502, "upstream_error", True),
        (200, b"{}", 502, "upstream_garbage", False),
        (200, b'{"accessToken":7}', 502, "upstream_garbage", False),
        (200, b'{"accessToken":"a\\nb"}', 502, "upstream_garbage", False),
        (200, b"\xff[", 502, "upstream_garbage", False),
    ],
)
def test_a_failed_exchange_says_who_must_act(
    status: int, body: bytes, expected: int, code: str, retryable: bool
) -> None:
    exchange = Exchange()
    exchange.refusals.append((status, body))

    async def test(credentials: Credentials) -> None:
        with pytest.raises(UpstreamError) as caught:
            await credentials.token()
        error = caught.value
        assert (error.status, error.code, error.retryable) == (expected, code, retryable)
        assert KEY not in error.sentence()
        assert await credentials.token()  # it is tried again by the next one

    with_credentials(exchange, test)


def test_an_unreachable_server_can_be_retried_and_a_missing_key_cannot() -> None:
    async def main() -> None:
        async with Http1Server(Exchange()) as server:
            target = server.target
        transport = Transport(environ={})
        with pytest.raises(UpstreamError) as caught:
            await Credentials(transport, target, Secret(KEY)).token()
        assert caught.value.retryable
        with pytest.raises(UpstreamError) as caught:
            await Credentials(transport, target, Secret()).token()
        assert (caught.value.code, caught.value.retryable) == ("missing_key", False)
        await transport.close()

    asyncio.run(main())


def test_a_token_from_a_file_is_read_again_when_it_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("user_1::first\n")

    async def main() -> None:
        credentials = Credentials(Transport(environ={}), TARGET, Secret("user_1::first", file), is_token=True)
        assert await credentials.token() == "first"
        assert not credentials.refused("first")  # the file still has the same
        file.write_text("user_1::second\n")
        assert credentials.refused("first")
        assert await credentials.token() == "second"
        assert credentials.refused("first")  # by another run, a moment later
        assert await credentials.token() == "second"
        file.unlink()
        assert not credentials.refused("second")
        assert await credentials.token() == "second"

    asyncio.run(main())


def test_a_key_from_a_file_is_read_again_when_it_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    seen: list[str] = []

    async def exchange(request: HttpRequest) -> None:
        seen.append(request.headers["authorization"])
        if seen[-1] == "Bearer old":
            request.answer(b"{}", 401, "application/json")
        else:
            request.answer(json.dumps({"accessToken": jwt({})}).encode(), 200, "application/json")

    async def main() -> None:
        async with Http1Server(exchange) as server:
            transport = Transport(environ={})
            credentials = Credentials(transport, server.target, Secret("old", file))
            assert await credentials.token() == jwt({})
            await credentials.close()
            await transport.close()

    asyncio.run(main())
    assert seen == ["Bearer old", f"Bearer {KEY}"]


def test_closing_ends_an_exchange_for_those_who_wait() -> None:
    exchange = Exchange()
    exchange.delay = 5.0

    async def test(credentials: Credentials) -> None:
        waiting = asyncio.create_task(credentials.token())
        await asyncio.sleep(0.02)
        await credentials.close()
        with pytest.raises(UpstreamError):
            await waiting

    with_credentials(exchange, test)


def test_no_secret_shows() -> None:
    credentials = Credentials(Transport(environ={}), config(base_url="http://127.0.0.1:9"), Secret(KEY))
    assert KEY not in f"{credentials!r} {vars(credentials)!r}"


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (jwt({"exp": 5}), 5.0),
        (jwt({"exp": 1.5e9}), 1.5e9),
        (jwt({"exp": True}), None),
        (jwt({"exp": "5"}), None),
        (jwt({"exp": 10**400}), None),
        (jwt({"exp": -1}), None),
        (jwt({}), None),
        (jwt([]), None),
        ("a.b", None),
        ("a.!!!.c", None),
        ("", None),
        ("a." + "A" * 100_000 + ".c", None),
        ("a." + base64.b64encode(b"[" * 40_000).decode() + ".c", None),
        ("a." + base64.b64encode(b'{"exp":NaN}').decode() + ".c", None),
    ],
)
def test_the_end_of_a_token_is_read_or_it_is_not(token: str, expected: float | None) -> None:
    assert expiry_of(token) == expected


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: f"a.{base64.b64encode(data).decode()}.b"))
def test_reading_the_end_never_raises(token: str) -> None:
    found = expiry_of(token)
    assert found is None or found > 0


@given(st.integers(100, 999), st.binary(max_size=100))
def test_whatever_an_exchange_answers_is_a_token_or_an_error(status: int, body: bytes) -> None:
    try:
        found: str | UpstreamError = token_in(status, body)
    except UpstreamError as error:
        found = error
    assert 400 <= found.status < 600 if isinstance(found, UpstreamError) else found


def test_what_looks_like_a_token() -> None:
    assert looks_like_token("eyJa.b.c")
    assert not looks_like_token("key_abc")
    assert not looks_like_token("")
