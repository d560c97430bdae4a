"""The first address that accepts is used, whatever the others do; and an error names all of them."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
import uvloop

from tests.backends.several_addresses import info, refusing, resolver, silent
from toolwire.backends.addresses import AddressInfo, Race, alternating, dial_error

LONG = 20.0
Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    factory = uvloop.new_event_loop if request.param == "uvloop" else None

    def runner(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as own:
            own.run(asyncio.wait_for(main, LONG))

    return runner


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[AddressInfo, list[asyncio.Event]]]:
    """Its address, and for each connection that it has accepted whether the client has closed it."""
    accepted: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        closed = asyncio.Event()
        accepted.append(closed)
        await reader.read()
        writer.close()
        closed.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield info(server.sockets[0].getsockname()[1]), accepted
    finally:
        server.close()
        await asyncio.sleep(0)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_an_address_that_does_not_answer_costs_only_the_delay(run: Run) -> None:
    async def main() -> None:
        with silent() as dead:
            async with listening() as (alive, _):
                files = open_files()
                connected = await Race("h", 1, resolver(dead, alive), delay=0.02).connect()
                assert connected.getpeername() == alive[4]
                connected.close()
                await asyncio.sleep(0.05)
                assert open_files() <= files  # the loser is closed; the server has closed its end too, or not yet

    run(main())


def test_an_address_that_refuses_costs_no_delay(run: Run) -> None:
    async def main() -> None:
        with refusing() as closed:
            async with listening() as (alive, _):
                connected = await Race("h", 1, resolver(closed, alive), delay=1000.0).connect()
                assert connected.getpeername() == alive[4]
                connected.close()

    run(main())


def test_a_late_winner_is_still_used_when_all_others_have_failed(run: Run) -> None:
    async def main() -> None:
        async with listening() as (alive, _):
            with refusing() as closed:
                connected = await Race("h", 1, resolver(alive, closed, closed), delay=0.0).connect()
                assert connected.getpeername() == alive[4]
                connected.close()

    run(main())


def test_of_two_that_accept_one_is_kept(run: Run) -> None:
    async def main() -> None:
        async with listening() as (one, first), listening() as (two, second):
            for _ in range(20):
                connected = await Race("h", 1, resolver(one, two), delay=0.0).connect()
                connected.close()
            async with asyncio.timeout(LONG):
                for closed in (*first, *second):
                    await closed.wait()
            assert len(first) + len(second) >= 20

    run(main())


def test_the_error_names_every_address(run: Run) -> None:
    async def main() -> None:
        with refusing() as one, refusing() as two:
            race = Race("h", 1, resolver(one, two))
            with pytest.raises(ConnectionRefusedError) as refused:
                await race.connect()
            places = [f"127.0.0.1:{address[4][1]} (connection refused)" for address in (one, two)]
            assert race.story == f" Tried {', '.join(places)}."
            assert dial_error(refused.value, "h:1", 5, story=race.story).message == (
                f"h:1 refused the connection. Tried {', '.join(places)}."
            )

    run(main())


def test_a_timeout_names_those_that_gave_no_answer(run: Run) -> None:
    async def main() -> None:
        with silent() as dead, refusing() as closed:
            race = Race("h", 1, resolver(dead, closed), delay=0.0)
            files = open_files()
            with pytest.raises(TimeoutError) as late:
                async with asyncio.timeout(0.2):
                    await race.connect()
            error = dial_error(late.value, "h:1", 0.2, story=race.story)
            assert error.kind == "connect_timeout"
            assert error.message.startswith("h:1 did not accept a connection in 0.2 s. Tried 127.0.0.1:")
            assert "(no answer)" in error.message
            assert "(connection refused)" in error.message
            await asyncio.sleep(0.01)
            assert open_files() <= files

    run(main())


def test_one_address_needs_no_story(run: Run) -> None:
    async def main() -> None:
        with refusing() as closed:
            race = Race("h", 1, resolver(closed))
            with pytest.raises(ConnectionRefusedError):
                await race.connect()
            assert race.story == ""

    run(main())


def test_addresses_that_fail_in_different_ways_have_no_common_reason() -> None:
    async def main() -> None:
        unusable = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("255.255.255.255", 1))
        with refusing() as closed:
            race = Race("h", 1, resolver(closed, unusable))
            with pytest.raises(OSError) as failed:
                await race.connect()
            message = dial_error(failed.value, "h:1", 5, story=race.story).message
            assert message.startswith("h:1 is out of reach: no address of this host took a connection. Tried ")

    asyncio.run(main())


def test_a_host_without_addresses_does_not_resolve() -> None:
    with pytest.raises(socket.gaierror) as failed:
        asyncio.run(Race("h", 1, resolver()).connect())
    assert dial_error(failed.value, "h:1", 5).kind == "dns"


def test_a_number_is_its_own_address_and_a_name_is_resolved() -> None:
    async def main() -> None:
        async with listening() as (alive, _):
            for host in ("127.0.0.1", "localhost"):
                connected = await Race(host, alive[4][1]).connect()
                assert connected.getpeername() == alive[4]
                connected.close()

    asyncio.run(main())


def test_families_take_turns_and_each_address_comes_once() -> None:
    def address(family: int, host: str) -> AddressInfo:
        return family, socket.SOCK_STREAM, 6, "", (host, 1)

    sixes = [address(socket.AF_INET6, f"::{number}") for number in range(1, 4)]
    fours = [address(socket.AF_INET, f"127.0.0.{number}") for number in range(1, 3)]
    found = list(alternating([*sixes, sixes[0], *fours]))
    assert found == [sixes[0], fours[0], sixes[1], fours[1], sixes[2]]
    assert list(alternating([*fours, *sixes]))[:2] == [fours[0], sixes[0]]
    assert list(alternating([])) == []


def test_behind_a_proxy_the_server_is_blamed_for_the_handshake() -> None:
    error = dial_error(ssl.SSLError(1, "bad"), "The proxy p:1", 5, server="s:443")
    assert (error.kind, error.message.startswith("s:443 failed the TLS handshake")) == ("tls", True)
