from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.backends.cursor.channels import everything, failure, until
from tests.backends.cursor.http1_server import Halves, Http1Server, HttpRequest
from tests.backends.cursor.http2_server import attempt, sockets
from toolwire.backends.cursor.transport.channel import RunChannel
from toolwire.backends.cursor.transport.run_sse import open_sse
from toolwire.backends.cursor.wire import agent
from toolwire.backends.http.transport import Transport
from toolwire.errors import UpstreamError
from toolwire.wire.connect import ConnectEnd, ConnectFrame, end, frame

pytestmark = pytest.mark.slow


@asynccontextmanager
async def transports() -> AsyncIterator[Transport]:
    transport = Transport(environ={})
    try:
        yield transport
    finally:
        await transport.close()


async def refusal(opening: Awaitable[RunChannel]) -> UpstreamError:
    try:
        return await failure(await opening)
    except UpstreamError as error:
        return error


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_run_in_two_halves_is_opened_first_and_then_sent(is_silent: bool) -> None:
    async def main() -> None:
        halves = Halves(is_silent=is_silent)
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"first")
            assert channel.how == "sse"
            assert halves.request_id == "request-1"
            assert halves.order == ["RunSSE", "BidiAppend"]
            halves.send(frame(b"hello"))
            assert await channel.receive() == [ConnectFrame(b"hello")]
            await channel.send(b"\x3a\x00")
            assert halves.messages == [b"first", b"\x3a\x00"]
            halves.send(end())
            halves.end()
            assert await everything(channel) == [ConnectEnd()]
            assert (await failure(channel)).code == "upstream_cut"
            await channel.close()

    asyncio.run(main())


def test_the_two_halves_have_the_headers_of_their_shape() -> None:
    async def main() -> None:
        async with Http1Server(Halves()) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"first")
            [opened], [appended] = server.named("RunSSE"), server.named("BidiAppend")
            assert opened.headers["content-type"] == "application/connect+proto"
            assert opened.headers["x-cursor-streaming"] == "true"
            assert appended.headers["content-type"] == "application/proto"
            for request in (opened, appended):
                assert request.headers["x-request-id"] == "request-1"
                assert request.headers["authorization"] == "Bearer ey.a.b"
                assert request.headers["connect-protocol-version"] == "1"
            await channel.close()

    asyncio.run(main())


def test_messages_of_many_tasks_arrive_in_the_order_of_their_numbers() -> None:
    async def main() -> None:
        halves = Halves()
        halves.delay = 0.002
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            await asyncio.gather(*(channel.send(str(number).encode()) for number in range(1, 20)))
            assert halves.numbers == list(range(20))
            assert halves.messages == [str(number).encode() for number in range(20)]
            await channel.close()

    asyncio.run(main())


def test_a_send_that_is_cancelled_leaves_no_hole_in_the_numbers() -> None:
    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            halves.delay = 0.03
            sending = asyncio.create_task(channel.send(b"1"))
            await asyncio.sleep(0.01)
            sending.cancel()
            await channel.send(b"2")
            assert halves.numbers == [0, 1, 2]
            assert halves.messages == [b"0", b"1", b"2"]
            await channel.close()

    asyncio.run(main())


def test_a_cancelled_receive_loses_nothing() -> None:
    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(channel.receive(), 0.02)
            halves.send(frame(b"late"))
            assert await channel.receive() == [ConnectFrame(b"late")]
            await channel.close()

    asyncio.run(main())


@pytest.mark.parametrize("size", [1, 2, 5])
def test_frames_cut_anywhere_are_the_same_frames(size: int) -> None:
    data = frame(b"") + frame(b"abc") + frame(b"z" * 40, is_zipped=True) + end()

    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            for start in range(0, len(data), size):
                halves.send(data[start : start + size])
                await asyncio.sleep(0)
            halves.end()
            assert await everything(channel) == [
                ConnectFrame(b""),
                ConnectFrame(b"abc"),
                ConnectFrame(b"z" * 40),
                ConnectEnd(),
            ]
            await channel.close()

    asyncio.run(main())


def test_a_slow_reader_stops_the_server() -> None:
    block = bytes(1 << 20)

    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            sent = 0

            async def flood() -> None:
                nonlocal sent
                assert halves.reply is not None
                for _ in range(64):
                    halves.send(frame(block))
                    sent += 1
                    await halves.reply.writer.drain()

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(flood(), 0.2)
            assert sent < 20
            got = 0
            while got < sent:
                got += len(await channel.receive())
            await channel.close()

    asyncio.run(main())


def test_an_append_that_fails_ends_the_run_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.cursor.transport.run_sse._REPLY_SECONDS", 0.05)

    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            receiving = asyncio.create_task(failure(channel))
            await asyncio.sleep(0)
            halves.refusal = (401, b'{"code":"unauthenticated","message":"expired"}')
            await channel.send(b"1")
            assert (await receiving).status == 401
            with pytest.raises(UpstreamError) as caught:
                await channel.send(b"2")
            assert caught.value.status == 401
            assert halves.numbers == [0]
            await channel.close()

    asyncio.run(main())


def test_heartbeats_do_not_keep_a_run_alive_that_takes_no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.cursor.transport.run_sse._REPLY_SECONDS", 0.1)
    update: Any = {"heartbeat": {}}
    heartbeat = agent.AgentServerMessage(interaction_update=update).SerializeToString()

    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            halves.refusal = (401, b'{"code":"unauthenticated","message":"expired"}')
            await channel.send(b"1")
            halves.send(frame(b"words"))

            async def beat() -> None:
                while True:
                    halves.send(frame(heartbeat))
                    await asyncio.sleep(0.02)

            got: list[ConnectFrame | ConnectEnd] = []

            async def read() -> None:
                while True:
                    got.extend(await channel.receive())

            beating = asyncio.create_task(beat())
            with pytest.raises(UpstreamError) as caught:
                await asyncio.wait_for(read(), 2)
            assert caught.value.status == 401
            assert ConnectFrame(b"words") in got
            beating.cancel()
            await channel.close()

    asyncio.run(main())


def test_a_message_that_comes_too_late_does_not_cost_the_answer() -> None:
    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            halves.refusal = (404, b'{"code":"not_found","message":"over"}')
            await channel.send(b"late")
            halves.send(frame(b"the answer"))
            await asyncio.sleep(0.02)
            halves.send(end())
            halves.end()
            assert await everything(channel) == [ConnectFrame(b"the answer"), ConnectEnd()]
            await channel.close()

    asyncio.run(main())


def test_a_reply_that_ends_without_its_end_after_a_failed_message_has_that_reason() -> None:
    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            halves.refusal = (401, b"{}")
            await channel.send(b"1")
            halves.end()
            assert (await failure(channel)).status == 401
            await channel.close()

    asyncio.run(main())


@pytest.mark.parametrize(("status", "expected"), [(401, 401), (464, 502), (503, 503), (429, 429)])
def test_a_refused_opening_is_its_status_and_nothing_is_appended(status: int, expected: int) -> None:
    async def main() -> None:
        async def refusing(request: HttpRequest) -> None:
            request.answer(b"{}", status, "application/json")

        async with Http1Server(refusing) as server, transports() as transport:
            error = await refusal(open_sse(transport, server.target, attempt(), b"first"))
            assert error.status == expected
            assert server.named("BidiAppend") == []

    asyncio.run(main())


def test_a_page_instead_of_a_stream_is_garbage() -> None:
    async def main() -> None:
        async def showing(request: HttpRequest) -> None:
            request.answer(b"<html>sign in here</html>", 200, "text/html")

        async with Http1Server(showing) as server, transports() as transport:
            error = await refusal(open_sse(transport, server.target, attempt(), b"first"))
            assert error.code == "upstream_garbage"

    asyncio.run(main())


def test_a_server_that_is_not_there_can_be_tried_again() -> None:
    async def main() -> None:
        async with Http1Server(Halves()) as server:
            target = server.target
        async with transports() as transport:
            error = await refusal(open_sse(transport, target, attempt("ey.secret.x"), b"first"))
            assert error.retryable
            assert error.code == "upstream_unreachable"
            assert "secret" not in error.sentence()

    asyncio.run(main())


def test_a_reply_that_is_cut_is_gone_and_one_without_its_end_has_a_fault() -> None:
    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            cut = await open_sse(transport, server.target, attempt(), b"0")
            halves.send(frame(b"text"))
            assert await cut.receive() == [ConnectFrame(b"text")]
            assert halves.reply is not None
            halves.reply.writer.transport.abort()
            error = await failure(cut)
            assert (error.code, error.retryable) == ("upstream_cut", True)
            unended = await open_sse(transport, server.target, attempt(), b"0")
            halves.end()
            [item] = await everything(unended)
            assert isinstance(item, ConnectEnd)
            assert item.fault is not None
            await asyncio.gather(cut.close(), unended.close())

    asyncio.run(main())


def test_garbage_ends_the_run() -> None:
    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server, transports() as transport:
            channel = await open_sse(transport, server.target, attempt(), b"0")
            halves.send(b"data: {}\n\n")
            assert (await failure(channel)).code == "upstream_garbage"
            with pytest.raises(UpstreamError):
                await channel.send(b"1")
            await channel.close()

    asyncio.run(main())


@pytest.mark.parametrize("is_waiting", [True, False])
def test_abort_leaves_no_task_and_no_socket(is_waiting: bool) -> None:
    async def main() -> None:
        halves = Halves()
        async with Http1Server(halves) as server:
            tasks, before = asyncio.all_tasks(), sockets()
            async with transports() as transport:
                channel = await open_sse(transport, server.target, attempt(), b"0")
                sending = None
                if is_waiting:
                    halves.delay = 5.0
                    sending = asyncio.create_task(channel.send(b"1"))
                    await asyncio.sleep(0.02)
                channel.abort()
                channel.abort()
                if sending is not None:
                    with pytest.raises(UpstreamError):
                        await sending
                await channel.close()
                own = [task for task in asyncio.all_tasks() - tasks if "Loopback" not in repr(task)]
                assert own == []
            if not is_waiting:
                await until(lambda: sockets() == before)

    asyncio.run(main())


def test_leaving_while_it_opens_leaves_nothing() -> None:
    async def main() -> None:
        async with Http1Server(Halves(is_silent=True)) as server, transports() as transport:
            tasks = asyncio.all_tasks()
            opening = asyncio.create_task(open_sse(transport, server.target, attempt(), b"0"))
            await asyncio.sleep(0.02)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            own = [task for task in asyncio.all_tasks() - tasks if "Loopback" not in repr(task)]
            assert own == []

    asyncio.run(main())
