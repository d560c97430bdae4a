from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from tests.backends.cursor.simulator.client import RUN_SSE, Client, _head, _request, framed, headers, opening
from tests.backends.cursor.simulator.playing import played
from toolwire.backends.cursor.simulator import Settings, Simulator
from toolwire.backends.cursor.wire import agent

BEAT = agent.AgentClientMessage(client_heartbeat={}).SerializeToString()


def statuses(*numbers: int, orders: bool = False) -> tuple[list[int], str, int]:
    """The status of each append, what the last one said, and how many counted."""

    async def main() -> tuple[list[int], str, int]:
        settings = Settings(orders_appends=orders, append_wait=0.05)
        async with Simulator(settings=settings) as simulator:
            client, request_id = Client(simulator.url), str(uuid.uuid4())
            reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
            body = framed(agent.BidiRequestId(request_id=request_id).SerializeToString())
            writer.write(_request(RUN_SSE, headers(x_request_id=request_id), body))
            await _head(reader)
            found = []
            for number in numbers:
                message = BEAT if number else opening().SerializeToString()
                found.append(await client.append(request_id, message, number))
            writer.close()
            return found, client.append_body.decode(), simulator.journal.runs[0].appends

    return asyncio.run(main())


def test_appends_in_order() -> None:
    assert statuses(0, 1, 2) == ([200, 200, 200], "", 3)


@pytest.mark.parametrize(
    ("numbers", "why"), [((0, 2), "out of order"), ((1,), "out of order"), ((0, 1, 1), "Duplicate")]
)
def test_a_number_that_is_not_the_next_is_refused(numbers: tuple[int, ...], why: str) -> None:
    found, said, counted = statuses(*numbers)
    assert (found[-1], counted) == (400, len(numbers) - 1)
    assert json.loads(said)["code"] == "invalid_argument"
    assert why in said


def test_appends_may_overtake_each_other_by_a_switch() -> None:
    assert statuses(2, 1, 0, orders=True) == ([200, 200, 200], "", 3)
    assert statuses(0, 2, 2, orders=True)[0] == [200, 200, 400]


def test_an_append_without_a_run_is_not_found() -> None:
    async def main() -> int:
        async with Simulator(settings=Settings(append_wait=0.05)) as simulator:
            return await Client(simulator.url).append("nobody", BEAT, 0)

    assert asyncio.run(main()) == 404


def test_an_append_may_come_a_little_before_its_run() -> None:
    async def main() -> list[int]:
        async with Simulator() as simulator:
            client, request_id = Client(simulator.url), str(uuid.uuid4())
            early = asyncio.create_task(client.append(request_id, opening().SerializeToString(), 0))
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
            body = framed(agent.BidiRequestId(request_id=request_id).SerializeToString())
            writer.write(_request(RUN_SSE, headers(x_request_id=request_id), body))
            await _head(reader)
            status = await early
            writer.close()
            return [status, simulator.journal.runs[0].appends]

    assert asyncio.run(main()) == [200, 1]


def test_data_is_lowercase_hexadecimal() -> None:
    async def main(data: str) -> int:
        async with Simulator() as simulator:
            request = agent.BidiAppendRequest(data=data, append_seqno=0)
            given = headers(content_type="application/proto")
            path = "/aiserver.v1.BidiService/BidiAppend"
            return (await Client(simulator.url).unary(path, request.SerializeToString(), given))[0]

    assert asyncio.run(main("3A00")) == 400
    assert asyncio.run(main("zz")) == 400


def test_every_message_of_a_run_is_an_append() -> None:
    client, journal = played("run_sse")
    assert (client.append_statuses, journal.runs[0].appends) == ([200] * 8, 8)
