from __future__ import annotations

import asyncio

import pytest

from tests.backends.cursor.simulator.client import RUN, Client, Link, framed, headers, opening, tool
from tests.backends.cursor.simulator.single_run import QUICK, call_and_report
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import TOKEN

pytestmark = pytest.mark.slow  # starts a server


def test_both_kinds_of_http_share_one_port() -> None:
    async def main() -> list[tuple[str, str]]:
        async with Simulator(model=call_and_report(), settings=QUICK) as simulator:
            for transport in ("run", "run_sse", "run"):
                client = Client(simulator.url)
                client.tools = [tool()]
                await getattr(client, transport)(opening(tools=[tool()]))
                assert client.error == {}
            return [(run.transport, run.http) for run in simulator.journal.runs]

    assert asyncio.run(main()) == [("run", "2"), ("sse", "1.1"), ("run", "2")]


def test_run_sse_works_over_http_2_as_well() -> None:
    async def main() -> tuple[str, list[int]]:
        from toolwire.backends.cursor.wire import agent

        async with Simulator(model=call_and_report(), settings=QUICK) as simulator:
            client = Client(simulator.url)
            async with await Link.open(client) as link:
                link.begin("/agent.v1.AgentService/RunSSE", headers(x_request_id="r1"))
                link.send(framed(agent.BidiRequestId(request_id="r1").SerializeToString()))
                link.half_close()
                status = await client.append("r1", opening().SerializeToString(), 0)
                await link.until(lambda: bool(client.kinds))
            return client.kinds[0], [client.status, status]

    assert asyncio.run(main()) == ("request_context_args", [200, 200])


def test_closing_leaves_nothing_behind() -> None:
    async def main() -> tuple[int, int]:
        before = len(asyncio.all_tasks())
        simulator = Simulator(model=call_and_report(), settings=QUICK)
        await simulator.start()
        client = Client(simulator.url)
        client.tools = [tool()]
        client.on_call = lambda call: None
        link = await Link.open(client)
        link.begin(RUN, headers())
        link.send(framed(opening(tools=[tool()]).SerializeToString()))
        await link.until(lambda: bool(client.calls))
        idle = await asyncio.open_connection("127.0.0.1", simulator.port)
        assert len(simulator.journal.open_runs) == 1
        await simulator.close()
        await link.close()
        idle[1].close()
        return len(asyncio.all_tasks()) - before, simulator.connections

    assert asyncio.run(main()) == (0, 0)


def test_a_client_that_goes_away_ends_its_run() -> None:
    async def main() -> str:
        async with Simulator(model=call_and_report(), settings=QUICK) as simulator:
            client = Client(simulator.url)
            client.tools = [tool()]
            client.on_call = lambda call: None
            async with await Link.open(client) as link:
                link.begin(RUN, headers())
                link.send(framed(opening(tools=[tool()]).SerializeToString()))
                await link.until(lambda: bool(client.calls))
            async with asyncio.timeout(2):
                while simulator.journal.open_runs or simulator.connections:
                    await asyncio.sleep(0.01)
            return simulator.journal.runs[0].state

    assert asyncio.run(main()) == "gone"


def test_a_token_can_be_revoked() -> None:
    async def main() -> str:
        async with Simulator(settings=QUICK) as simulator:
            simulator.revoke(TOKEN)
            return str((await Client(simulator.url).run(opening())).error["code"])

    assert asyncio.run(main()) == "unauthenticated"
