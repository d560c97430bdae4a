from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from h2.errors import ErrorCodes

from tests.backends.cursor.stage import QUICK, Stage, next_request, on_stage, request, text_of
from toolwire.backends.cursor.simulator.script import MakeCall, Say, play
from toolwire.backends.cursor.simulator.settings import API_KEY, TOKEN, Settings, SimulatorFaults
from toolwire.backends.cursor.transport.service import Retries, Service
from toolwire.backends.cursor.transport.target import Attempt
from toolwire.backends.http.connection import TransportError
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.config.secret import Secret
from toolwire.errors import UpstreamError

pytestmark = pytest.mark.slow

HELLO = play(Say("Hello."))
ROUTE = Attempt(token=Secret(TOKEN), request_id="r")


def service(url: str = "http://127.0.0.1:1", *, clock: Callable[[], float] = time.monotonic, **more: Any) -> Service:
    config = BackendConfig(name="c", kind="cursor", base_url=url, **{"token": Secret(TOKEN)} | more)
    return Service(config, Transport(environ={}), clock=clock)


def test_run_is_not_tried_again_for_ten_minutes_where_it_did_not_get_through() -> None:
    async def main() -> None:
        now = 1000.0
        made = service(clock=lambda: now)
        assert (await made.attempt("o")).is_run
        assert made.fall_back(ROUTE, UpstreamError("only HTTP/1.1 here.", code="http2_required"))
        assert not (await made.attempt("o")).is_run
        now += 599.0
        assert not (await made.attempt("o")).is_run
        now += 2.0
        assert (await made.attempt("o")).is_run
        await made.close()

    asyncio.run(main())


def test_everybody_whose_run_failed_may_fall_back_also_the_second() -> None:
    async def main() -> None:
        made = service()
        error = UpstreamError("only HTTP/1.1 here.", code="http2_required")
        assert [made.fall_back(ROUTE, error), made.fall_back(ROUTE, error)] == [True, True]
        await made.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "is_fit"),
    [
        (UpstreamError("x", code="http2_required"), True),
        (TransportError("protocol", "broke the rules", sent=True), True),
        (TransportError("cut", "closed", sent=True), False),
        (UpstreamError("x", code="upstream_garbage"), False),
        (UpstreamError("x", status=401), False),
    ],
)
def test_only_what_http2_is_to_blame_for_makes_it_fall_back(error: UpstreamError, is_fit: bool) -> None:
    async def main() -> None:
        for transport, may in (("auto", is_fit), ("run", False), ("sse", False)):
            made = service(transport=transport)
            assert made.fall_back(ROUTE, error) is may
            assert (await made.attempt("o")).is_run is (transport == "run" or (transport == "auto" and not may))
            await made.close()

    asyncio.run(main())


def test_a_balancer_that_wants_http2_and_does_not_get_it_is_gone_around() -> None:
    async def main() -> None:
        async with on_stage(HELLO, faults=[SimulatorFaults(status=464)]) as stage:
            reply = await stage.open(request("hi"))
            await reply.close()
            assert reply.how.startswith("sse, because Cursor accepts a run over HTTP/2 only")
            assert text_of(await stage.ask(request("hi"))) == "Hello."
            assert [run.transport for run in stage.runs] == ["run", "sse", "sse"]

    asyncio.run(main())


def test_many_at_once_all_fall_back() -> None:
    async def main() -> None:
        async with on_stage(HELLO, faults=[SimulatorFaults(status=464)] * 5, retries=0) as stage:
            answers = await asyncio.gather(*(stage.ask(request("hi")) for _ in range(5)))
            assert [text_of(answer) for answer in answers] == ["Hello."] * 5

    asyncio.run(main())


@asynccontextmanager
async def in_front_of(stage: Stage, refuse: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server that refuses HTTP/2 in its own way, and hands HTTP/1.1 on to the simulator."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            ahead = await reader.read(65536)
            if ahead.startswith(b"PRI "):
                await refuse(writer)
                return
            inner, outer = await asyncio.open_connection("127.0.0.1", stage.simulator.port)
            outer.write(ahead)
            await asyncio.gather(_pumped(reader, outer), _pumped(inner, writer))
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def bad_request(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    await writer.drain()


def not_found(writer: asyncio.StreamWriter) -> Awaitable[None]:
    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
    return writer.drain()


async def goodbye(writer: asyncio.StreamWriter) -> None:
    """Settings, then GOAWAY: nothing was taken, HTTP/1.1 is wanted."""
    writer.write(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
    payload = b"\x00\x00\x00\x00" + int(ErrorCodes.HTTP_1_1_REQUIRED).to_bytes(4, "big")
    writer.write(len(payload).to_bytes(3, "big") + b"\x07\x00\x00\x00\x00\x00" + payload)
    await writer.drain()
    await asyncio.sleep(0.05)


@pytest.mark.parametrize("refuse", [bad_request, not_found, goodbye])
def test_a_server_that_has_only_http1_is_asked_over_http1(refuse: Any) -> None:
    async def main() -> None:
        async with on_stage(HELLO, is_alone=False) as stage, in_front_of(stage, refuse) as url:
            transport = Transport(environ={})
            config = BackendConfig(
                name="c", kind="cursor", base_url=url, token=Secret(TOKEN), client_version="cli-2026.01.09"
            )
            other = Stage(stage.simulator, type(stage.backend)(config, transport, limits=QUICK))
            reply = await other.open(request("hi"))
            assert reply.how.startswith("sse, because ")
            await reply.close()
            await other.backend.close()
            await transport.close()

    asyncio.run(main())


def test_behind_a_proxy_a_run_goes_by_the_transport_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")

    async def main() -> None:
        made = service("https://agent.invalid")
        with pytest.raises(UpstreamError) as caught:
            await made.open(ROUTE, b"")
        error = caught.value
        assert (error.code, error.retryable) == ("http2_required", False)
        assert made.fall_back(ROUTE, error)
        await made.close()

    asyncio.run(main())


def test_a_token_from_a_key_that_is_revoked_is_renewed_once_and_the_run_starts_again() -> None:
    model = play(MakeCall("look", {"city": "Rome"}), Say("Sunny."))

    async def main() -> None:
        async with on_stage(model, key=Secret(API_KEY), token=Secret()) as stage:
            current = request("hi")
            answer = await stage.ask(current)
            assert stage.simulator.journal.exchanges == 1
            stage.simulator.revoke(await stage.backend.service._credentials.token())
            await stage.backend.parking.close()
            stage.backend.parking._is_closed = False
            assert text_of(await stage.ask(next_request(current, answer))) == "Sunny."
            assert stage.simulator.journal.exchanges == 2
            assert (len(stage.runs), stage.runs[1].state) == (3, "refused")
            first, second = (run.headers for run in stage.runs[1:])
            assert first["x-original-request-id"] == second["x-original-request-id"]

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 1.5])
def test_a_token_that_is_revoked_while_a_run_waits_costs_no_more_than_a_fresh_run(seconds: float) -> None:
    """Over two halves every message shows the token; it is refused with a heartbeat, or with the results themselves."""
    model = play(MakeCall("look", {"city": "Rome"}), Say("Sunny."))

    async def main() -> None:
        async with on_stage(model, key=Secret(API_KEY), token=Secret(), transport="sse") as stage:
            current = request("hi")
            answer = await stage.ask(current)
            stage.simulator.revoke(await stage.backend.service._credentials.token())
            await asyncio.sleep(seconds)
            assert len(stage.backend.parking) == (0 if seconds else 1)
            assert text_of(await stage.ask(next_request(current, answer))) == "Sunny."
            assert stage.simulator.journal.exchanges == 2
            assert sum(call.answers for run in stage.runs for call in run.calls) == 0

    asyncio.run(main())


@pytest.mark.parametrize("transport", ["run", "sse"])
def test_many_whose_token_was_refused_share_one_exchange(transport: str) -> None:
    async def main() -> None:
        async with on_stage(HELLO, key=Secret(API_KEY), token=Secret(), transport=transport) as stage:
            stage.simulator.revoke(await stage.backend.service._credentials.token())
            answers = await asyncio.gather(*(stage.ask(request("hi")) for _ in range(8)))
            assert [text_of(answer) for answer in answers] == ["Hello."] * 8
            assert stage.simulator.journal.exchanges == 2

    asyncio.run(main())


def test_a_token_that_is_refused_twice_is_a_401() -> None:
    refusing = [SimulatorFaults(at={"open": "error:unauthorized"})] * 9

    async def main() -> None:
        async with on_stage(HELLO, faults=refusing, key=Secret(API_KEY), token=Secret()) as stage:
            with pytest.raises(UpstreamError) as caught:
                await stage.ask(request("hi"))
            assert (caught.value.status, caught.value.code) == (401, "authentication_failed")
            assert (stage.simulator.journal.exchanges, len(stage.runs)) == (2, 2)
            assert API_KEY not in caught.value.sentence()

    asyncio.run(main())


def test_a_token_of_the_owners_own_is_not_renewed() -> None:
    async def main() -> None:
        async with on_stage(HELLO) as stage:
            stage.simulator.revoke(TOKEN)
            for _ in range(2):
                with pytest.raises(UpstreamError) as caught:
                    await stage.ask(request("hi"))
                assert caught.value.status == 401
            with pytest.raises(UpstreamError) as caught:
                await stage.backend.models()
            assert caught.value.status == 401
            assert (len(stage.runs), stage.simulator.journal.exchanges) == (2, 0)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("settings", "key", "expected"),
    [
        (Settings(), "key_of_nobody", (401, "bad_key")),
        (Settings(is_sign_in_barred=True), API_KEY, (403, "sign_in_policy_violation")),
    ],
)
def test_a_key_that_is_refused_is_asked_about_once(settings: Settings, key: str, expected: tuple[int, str]) -> None:
    async def main() -> None:
        async with on_stage(HELLO, settings=settings, key=Secret(key), token=Secret()) as stage:
            with pytest.raises(UpstreamError) as caught:
                await stage.ask(request("hi"))
            assert (caught.value.status, caught.value.code) == expected
            paths = [path for _, path, _ in stage.simulator.journal.requests]
            assert paths == ["/auth/exchange_user_api_key"]

    asyncio.run(main())


def test_a_token_that_has_expired_is_renewed() -> None:
    """Its lifetime is told in it, but clocks differ: the server's word counts."""

    async def main() -> None:
        settings = Settings(heartbeat=0.1, token_seconds=-1.0)
        async with on_stage(HELLO, settings=settings, key=Secret(API_KEY), token=Secret()) as stage:
            with pytest.raises(UpstreamError) as caught:
                await stage.ask(request("hi"))
            assert caught.value.status == 401
            assert stage.simulator.journal.exchanges == 2

    asyncio.run(main())


def test_the_list_of_models_renews_a_token_too() -> None:
    async def main() -> None:
        async with on_stage(HELLO, key=Secret(API_KEY), token=Secret()) as stage:
            stage.simulator.revoke(await stage.backend.service._credentials.token())
            assert "default" in [model.id for model in await stage.backend.models()]
            assert stage.simulator.journal.exchanges == 2

    asyncio.run(main())


def test_what_would_carry_a_run_is_known_without_one() -> None:
    async def main() -> None:
        async with on_stage(HELLO) as stage, in_front_of(stage, bad_request) as url:
            by_http2, auto = service(stage.simulator.url), service(url)
            only_run, only_sse = service(url, transport="run"), service(url, transport="sse")
            assert await by_http2.probe() == "HTTP/2"
            assert (await auto.probe()).startswith("HTTP/1.1, because ")
            assert await only_sse.probe() == "HTTP/1.1"
            with pytest.raises(UpstreamError) as refused:
                await only_run.probe()
            assert refused.value.code == "http2_required" or isinstance(refused.value, TransportError)
            for made in (by_http2, auto, only_run, only_sse):
                await made.close()
            assert not stage.simulator.journal.runs

    asyncio.run(main())


KEY_ROUTE = Attempt(token=Secret("ey.a.b"), request_id="r")
PASSING = UpstreamError("cut", retryable=True)
REFUSED = UpstreamError("who?", status=401)
OLD = UpstreamError("HTTP/1.1 only", code="http2_required")


def tries(retries: int = 2, *, key: str = "a_key", until: float = 100.0) -> Retries:
    async def made() -> Retries:
        config = BackendConfig(name="c", kind="cursor", base_url="http://127.0.0.1:1", key=Secret(key))
        return Retries(Service(config, Transport(environ={})), retries, until)

    return asyncio.run(made())


def test_what_may_pass_is_tried_again_so_often_with_longer_pauses() -> None:
    some = tries(3)
    pauses = [some.delay(PASSING, KEY_ROUTE, 0.0) for _ in range(4)]
    assert pauses[3] is None
    given = [pause for pause in pauses if pause is not None]
    assert len(given) == 3
    assert all(0.2 * 2**count <= pause <= 0.3 * 2**count for count, pause in enumerate(given))


def test_what_will_not_pass_is_reported_at_once() -> None:
    assert tries().delay(UpstreamError("no", status=400), KEY_ROUTE, 0.0) is None
    assert tries(0).delay(PASSING, KEY_ROUTE, 0.0) is None


@pytest.mark.parametrize(("wait", "pause"), [("1", 1.0), ("2", 2.0), ("3", None), ("60", None)])
def test_the_server_says_how_long_and_a_long_pause_is_the_clients(wait: str, pause: float | None) -> None:
    assert tries().delay(UpstreamError("busy", headers={"retry-after": wait}, retryable=True), KEY_ROUTE, 0.0) == pause


def test_no_try_begins_when_the_time_is_over() -> None:
    assert tries(until=10.0).delay(PASSING, KEY_ROUTE, 9.0) is not None
    assert tries(until=10.0).delay(PASSING, KEY_ROUTE, 9.9) is None


def test_a_token_is_renewed_once_and_only_where_there_was_one_from_a_key() -> None:
    exchanged = tries()
    assert [exchanged.delay(REFUSED, KEY_ROUTE, 0.0), exchanged.delay(REFUSED, KEY_ROUTE, 0.0)] == [0.0, None]
    assert tries(key="ey.a.b").delay(REFUSED, KEY_ROUTE, 0.0) is None
    assert tries().delay(REFUSED, None, 0.0) is None


def test_the_other_transport_is_tried_at_once_and_does_not_count() -> None:
    some = tries(0)
    assert some.delay(OLD, KEY_ROUTE, 0.0) == 0.0
    assert some.delay(OLD, Attempt(token=KEY_ROUTE.token, request_id="r", is_run=False), 0.0) is None
