from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import RUN, Client, Link, framed, headers, opening, tool
from tests.backends.cursor.simulator.single_run import QUICK, TRANSPORTS, call_and_report, run_once
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import SimulatorFaults

pytestmark = pytest.mark.slow  # starts a server

FULL = "One moment.It said fine."


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "faults", [SimulatorFaults(split=True), SimulatorFaults(slow=0.002), SimulatorFaults(unknown=True)]
)
def test_a_difficult_stream_says_the_same(transport: str, faults: SimulatorFaults) -> None:
    client, journal = run_once(transport, faults=faults)
    assert (client.text, client.end, journal.offences) == (FULL, {}, [])


@pytest.mark.parametrize(("accepted", "flags"), [("gzip", {1, 3}), ("", {0, 2})])
def test_frames_are_zipped_where_the_client_allows_it(accepted: str, flags: set[int]) -> None:
    client, _ = run_once(faults=SimulatorFaults(gzip=True), connect_accept_encoding=accepted)
    assert (client.text, set(client.frames)) == (FULL, flags)
    assert ("connect-content-encoding" in client.answer_headers) == (accepted == "gzip")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("how", ["drop", "reset", "goaway", "close", "half_frame"])
@pytest.mark.parametrize(("place", "answer"), [("text", "One "), ("call", "One moment."), ("parked", "One moment.")])
def test_a_stream_may_end_badly_at_every_place(transport: str, how: str, place: str, answer: str) -> None:
    client, journal = run_once(transport, faults=SimulatorFaults(at={place: how}), prepare=_never_answering)
    assert (client.text, client.end) == (answer, None)
    assert len(client.calls) == (1 if place == "parked" else 0)
    assert journal.runs[0].state == "cut"
    if transport == "run":
        assert client.how == {"drop": "lost", "reset": "reset", "goaway": "goaway"}.get(how, "end")


def _never_answering(client: Client) -> None:
    client.on_call = lambda call: None


def test_frames_that_are_none() -> None:
    async def main(how: str) -> bytes:
        async with Simulator(
            model=call_and_report(), faults=SimulatorFaults(at={"open": how}), settings=QUICK
        ) as simulator:
            client = _Deaf(simulator.url)
            await client.run(opening())
            return client.received

    assert asyncio.run(main("huge_frame")).startswith(b"\x00\x40\x00\x00\x00")
    assert asyncio.run(main("junk_frame")) == framed(b"\xff" * 11)


class _Deaf(Client):
    """Keeps bytes alone."""

    received = b""

    def feed(self, data: bytes) -> list[bytes]:
        self.received += data
        return []


@pytest.mark.parametrize(("how", "beats"), [("stall", True), ("silence", False)])
def test_a_stall_with_and_without_heartbeats(how: str, beats: bool) -> None:
    async def main() -> tuple[Client, list[str]]:
        faults = SimulatorFaults(at={"text": how})
        async with Simulator(model=call_and_report(), faults=faults, settings=QUICK) as simulator:
            client = Client(simulator.url)
            client.tools = [tool()]
            async with await Link.open(client) as link:
                link.begin(RUN, headers())
                link.send(framed(opening(tools=[tool()]).SerializeToString()))
                await link.until(lambda: "token_delta" in client.kinds)
                before = len(client.kinds)
                if beats:
                    await link.until(lambda: len(client.kinds) > before + 1)
                else:
                    assert await link.listen(0.2) == "timeout"
            return client, client.kinds[before:]

    client, after = asyncio.run(main())
    assert client.text == "One "
    assert set(after) == ({"heartbeat"} if beats else set())


def test_an_answer_may_be_a_status_alone() -> None:
    client, _ = run_once(faults=SimulatorFaults(status=503))
    assert (client.status, client.messages, client.end) == (503, [], None)


def test_a_run_that_ends_without_turn_ended() -> None:
    client, _ = run_once(faults=SimulatorFaults(no_turn_ended=True))
    assert ("turn_ended" in client.kinds, client.text, client.end) == (False, FULL, {})


def test_usage_is_there_or_not() -> None:
    def usage(faults: SimulatorFaults) -> Any:
        client, _ = run_once(faults=faults)
        return client.updates("turn_ended")[0].turn_ended

    assert usage(SimulatorFaults(empty_usage=True)).ByteSize() == 0
    assert usage(SimulatorFaults()).input_tokens == 1000
