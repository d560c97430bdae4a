from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from tests.backends.cursor.channels import everything, failure, refusal, until
from tests.backends.cursor.http2_server import Call, Server, attempt, config, serving, sockets
from tests.backends.http.certificates import Tls
from tests.backends.http.certificates import tls as tls
from tests.backends.http.loopback import Loopback, Run, run_each
from tests.backends.several_addresses import info, refusing, resolver, silent
from toolwire.backends.cursor.transport.channel import RunChannel
from toolwire.backends.cursor.transport.run_http2 import Http2Connections, open_run
from toolwire.backends.cursor.transport.stream import Http2Limits
from toolwire.errors import UpstreamError
from toolwire.wire.connect import ConnectEnd, ConnectFault, ConnectFrame, end, frame

pytestmark = pytest.mark.slow


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_each(request.param)


@asynccontextmanager
async def connections(limits: Http2Limits | None = None, **environ: str) -> AsyncIterator[Http2Connections]:
    pool = Http2Connections(limits, environ=environ)
    try:
        yield pool
    finally:
        await pool.close()


async def answering(call: Call) -> None:
    """A word for each word, until "bye"."""
    call.head()
    while (word := await call.message()) != b"bye":
        await call.send(frame(word.upper()))
    await call.send(end())
    call.end()


async def waiting(call: Call) -> None:
    call.head()
    await call.send(frame(b"here"))
    await asyncio.Event().wait()


def test_messages_go_both_ways_on_one_stream_and_the_request_ends_after_the_reply(run: Run) -> None:
    async def main() -> None:
        async with serving(answering) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            assert channel.how == "run"
            assert await channel.receive() == [ConnectFrame(b"FIRST")]
            await channel.send(b"second")
            assert await channel.receive() == [ConnectFrame(b"SECOND")]
            assert not server.calls[0].is_ended
            await channel.send(b"bye")
            assert await everything(channel) == [ConnectEnd()]
            await until(lambda: server.calls[0].is_ended)
            assert server.calls[0].reset_code is None
            assert (await failure(channel)).code == "upstream_cut"
            with pytest.raises(UpstreamError):
                await channel.send(b"late")

    run(main())


def test_a_dead_address_does_not_stand_in_the_way_of_one_that_works(run: Run) -> None:
    async def main() -> None:
        async with serving(answering) as server:
            with silent() as dead:
                pool = Http2Connections(environ={}, resolve=resolver(dead, info(server.port)))
                channel = await open_run(pool, server.target, attempt(), b"first")
                assert await channel.receive() == [ConnectFrame(b"FIRST")]
                await pool.close()

    run(main())


def test_an_error_names_all_addresses() -> None:
    async def main() -> None:
        with refusing() as one, refusing() as two:
            pool = Http2Connections(environ={}, resolve=resolver(one, two))
            error = await refusal(open_run(pool, config(base_url="https://model.test"), attempt(), b"first"))
            assert error.message.startswith("model.test:443 refused the connection. Tried 127.0.0.1:")
            assert all(str(address[4][1]) in error.message for address in (one, two))
            await pool.close()

    asyncio.run(main())


def test_the_request_says_who_calls_and_what_it_speaks() -> None:
    async def main() -> None:
        async with serving(answering) as server, connections() as pool:
            await open_run(pool, server.target, attempt("user_1%3A%3Aey.a.b"), b"bye")
            await until(lambda: server.calls)
            headers = server.calls[0].headers
            assert headers[":path"] == "/agent.v1.AgentService/Run"
            assert headers[":authority"] == f"127.0.0.1:{server.port}"
            assert headers["authorization"] == "Bearer ey.a.b"
            assert headers["te"] == "trailers"
            assert headers["content-type"] == "application/connect+proto"
            assert "x-cursor-checksum" not in headers

    asyncio.run(main())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16384])
def test_frames_cut_anywhere_are_the_same_frames(size: int) -> None:
    words = [b"", b"a", b"two words", b"x" * 300]

    async def talking(call: Call) -> None:
        call.head()
        await call.send(b"".join([*map(frame, words), frame(b"z" * 50, is_zipped=True), end()]), size)
        call.end()

    async def main() -> None:
        async with serving(talking) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"go")
            assert await everything(channel) == [*map(ConnectFrame, words), ConnectFrame(b"z" * 50), ConnectEnd()]

    asyncio.run(main())


def test_a_slow_reader_stops_the_server_and_no_other_stream(run: Run) -> None:
    block = bytes(range(256)) * 4096

    async def flooding(call: Call) -> None:
        if await call.message() == b"small":
            call.head()
            return await call.send(frame(b"small"))
        call.head()
        for _ in range(10):
            await call.send(frame(block))
        await call.send(end())
        return call.end()

    async def main() -> None:
        async with serving(flooding) as server, connections() as pool:
            slow = await open_run(pool, server.target, attempt(), b"large")
            other = await open_run(pool, server.target, attempt(), b"small")
            assert await other.receive() == [ConnectFrame(b"small")]
            await until(lambda: server.calls[0].sent >= Http2Limits().window)
            await asyncio.sleep(0.05)
            assert server.calls[0].sent == Http2Limits().window
            assert await everything(slow) == [*[ConnectFrame(block)] * 10, ConnectEnd()]
            assert len(server.peers) == 1

    run(main())


def test_a_large_request_waits_for_a_small_window(run: Run) -> None:
    message = bytes(range(256)) * 4096

    async def echoing(call: Call) -> None:
        call.head()
        await call.send(frame(await call.message()))

    async def main() -> None:
        async with serving(echoing) as server, connections() as pool:
            server.settings = {SettingCodes.INITIAL_WINDOW_SIZE: 20_000}
            channel = await open_run(pool, server.target, attempt(), message)
            assert await channel.receive() == [ConnectFrame(message)]

    run(main())


def test_messages_of_many_tasks_are_never_mixed() -> None:
    messages = [bytes([65 + number]) * (40_000 + number) for number in range(10)]

    async def collecting(call: Call) -> None:
        call.head()
        for _ in messages:
            await call.send(frame(await call.message()))

    async def main() -> None:
        async with serving(collecting) as server, connections() as pool:
            server.settings = {SettingCodes.INITIAL_WINDOW_SIZE: 5_000}
            channel = await open_run(pool, server.target, attempt(), messages[0])
            sending = asyncio.gather(*(channel.send(message) for message in messages[1:]))
            got: list[ConnectFrame | ConnectEnd] = []
            while len(got) < len(messages):
                got += await channel.receive()
            await sending
            assert got == [ConnectFrame(message) for message in messages]

    asyncio.run(main())


def test_a_server_that_takes_nothing_is_given_up() -> None:
    async def main() -> None:
        async with serving(waiting) as server, connections(Http2Limits(stall=0.1)) as pool:
            server.opens_windows = False
            error = await refusal(open_run(pool, server.target, attempt(), bytes(100_000)))
            assert error.status == 504
            assert "0.1 s" in error.message
            await until(lambda: server.calls[0].reset_code == ErrorCodes.CANCEL)

    asyncio.run(main())


def test_a_send_cancelled_in_mid_message_ends_the_run_and_one_that_waits_does_not() -> None:
    async def main() -> None:
        async with serving(waiting) as server, connections() as pool:
            server.opens_windows = False
            channel = await open_run(pool, server.target, attempt(), b"first")
            half = asyncio.create_task(channel.send(bytes(100_000)))
            await asyncio.sleep(0.02)
            queued = asyncio.create_task(channel.send(b"queued"))
            await asyncio.sleep(0)
            queued.cancel()
            await asyncio.sleep(0.02)
            assert not half.done()
            assert server.calls[0].reset_code is None
            half.cancel()
            await until(lambda: server.calls[0].reset_code == ErrorCodes.CANCEL)
            with pytest.raises(UpstreamError):
                await channel.send(b"more")

    asyncio.run(main())


def test_a_cancelled_receive_loses_nothing() -> None:
    async def main() -> None:
        async with serving(answering) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            assert await channel.receive() == [ConnectFrame(b"FIRST")]
            with suppress(TimeoutError):
                await asyncio.wait_for(channel.receive(), 0.02)
            await channel.send(b"second")
            assert await channel.receive() == [ConnectFrame(b"SECOND")]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        (ErrorCodes.REFUSED_STREAM, True),
        (ErrorCodes.INTERNAL_ERROR, True),
        (ErrorCodes.CANCEL, True),
        (ErrorCodes.PROTOCOL_ERROR, False),
    ],
)
def test_a_reset_is_reported_after_what_came_before_it(code: ErrorCodes, retryable: bool) -> None:
    async def resetting(call: Call) -> None:
        call.head()
        await call.send(frame(b"said"))
        call.reset(code)

    async def main() -> None:
        async with serving(resetting) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            await asyncio.sleep(0.02)
            assert await channel.receive() == [ConnectFrame(b"said")]
            error = await failure(channel)
            assert code.name in error.message
            assert error.retryable is retryable

    asyncio.run(main())


def test_a_server_that_wants_http_1_says_so_and_the_other_way_is_named() -> None:
    async def resetting(call: Call) -> None:
        call.reset(ErrorCodes.HTTP_1_1_REQUIRED)

    async def main() -> None:
        async with serving(resetting) as server, connections() as pool:
            error = await refusal(open_run(pool, server.target, attempt(), b"first"))
            assert error.code == "http2_required"
            assert "sse" in error.sentence()

    asyncio.run(main())


def test_after_a_goaway_open_streams_continue_and_new_ones_get_a_new_connection(run: Run) -> None:
    async def main() -> None:
        async with serving(answering) as server, connections() as pool:
            first = await open_run(pool, server.target, attempt(), b"one")
            second = await open_run(pool, server.target, attempt(), b"two")
            assert await first.receive() == [ConnectFrame(b"ONE")]
            assert await second.receive() == [ConnectFrame(b"TWO")]
            server.peers[0].goodbye(1, 0, b"draining")
            error = await failure(second)
            assert error.retryable
            assert "NO_ERROR" in error.message
            assert "draining" in error.message
            third = await open_run(pool, server.target, attempt(), b"three")
            assert await third.receive() == [ConnectFrame(b"THREE")]
            assert len(server.peers) == 2
            await first.send(b"on")
            assert await first.receive() == [ConnectFrame(b"ON")]
            await first.send(b"bye")
            assert await everything(first) == [ConnectEnd()]
            await until(lambda: server.peers[0].reader.at_eof())  # its last stream is over

    run(main())


def test_a_lost_connection_is_reported_with_the_reason_that_came_before() -> None:
    async def leaving(call: Call) -> None:
        call.peer.goodbye(call.number, ErrorCodes.ENHANCE_YOUR_CALM, b"too many pings")
        await call.peer.writer.drain()
        await asyncio.sleep(0.01)
        call.peer.writer.transport.abort()

    async def main() -> None:
        async with serving(leaving) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            error = await failure(channel)
            assert (error.status, error.code, error.retryable) == (502, "upstream_cut", True)
            assert "ENHANCE_YOUR_CALM" in error.message
            assert "too many pings" in error.message

    asyncio.run(main())


def test_a_refused_connection_can_be_tried_again() -> None:
    async def main() -> None:
        async with serving(waiting) as server:
            target = server.target
        async with connections() as pool:
            with pytest.raises(UpstreamError) as caught:
                await open_run(pool, target, attempt("ey.secret.x"), b"first")
            assert caught.value.code == "upstream_unreachable"
            assert caught.value.retryable
            assert "secret" not in f"{caught.value} {caught.value.sentence()}"

    asyncio.run(main())


@pytest.mark.parametrize(("status", "expected"), [(401, 401), (415, 502), (429, 429), (464, 502), (503, 503)])
def test_a_status_becomes_its_error(status: int, expected: int) -> None:
    async def refusing(call: Call) -> None:
        call.head(status, "application/json")
        await call.send(b'{"message":"no"}')
        call.end()

    async def main() -> None:
        async with serving(refusing) as server, connections() as pool:
            error = await refusal(open_run(pool, server.target, attempt(), bytes(500_000)))
            assert error.status == expected

    asyncio.run(main())


@pytest.mark.parametrize("is_endless", [True, False])
def test_a_refusal_is_read_up_to_a_limit_in_size_and_time(is_endless: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.cursor.transport.stream._REFUSAL_SECONDS", 0.05)

    async def refusing(call: Call) -> None:
        call.head(403)
        while is_endless:
            await call.send(b"x" * 10_000)

    async def main() -> None:
        async with serving(refusing) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            error = await failure(channel)
            assert error.status in (401, 403)
            await until(lambda: server.calls[0].reset_code is not None)

    asyncio.run(main())


def test_a_server_of_http_1_is_named_by_its_status() -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 464 \r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        await reader.read()

    async def main() -> None:
        async with Loopback(old) as server, connections() as pool:
            target = config(base_url=f"http://127.0.0.1:{server.port}")
            error = await refusal(open_run(pool, target, attempt(), b"first"))
            assert "HTTP/2" in error.sentence()

    asyncio.run(main())


@pytest.mark.parametrize(
    "answer", [b"\xff" * 100, b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00", b"SSH-2.0-x\r\n"]
)
def test_what_is_no_http_2_is_garbage(answer: bytes) -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer)
        await writer.drain()
        with suppress(OSError):
            await reader.read()

    async def main() -> None:
        async with Loopback(odd) as server, connections() as pool:
            target = config(base_url=f"http://127.0.0.1:{server.port}")
            error = await refusal(open_run(pool, target, attempt(), b"first"))
            assert error.code == "upstream_garbage"

    asyncio.run(main())


def _missing_status(call: Call) -> None:
    call.head(None)


def _page(call: Call) -> None:
    call.head(200, "text/html; charset=utf-8")


@pytest.mark.parametrize("head", [_missing_status, _page])
def test_a_reply_that_is_no_reply_of_the_service_is_garbage(head: object) -> None:
    async def odd(call: Call) -> None:
        head(call)  # type: ignore[operator]

    async def main() -> None:
        async with serving(odd) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            assert (await failure(channel)).code == "upstream_garbage"

    asyncio.run(main())


def test_bytes_that_are_no_frames_are_garbage_after_the_frames_before() -> None:
    async def odd(call: Call) -> None:
        call.head()
        await call.send(frame(b"good") + b"\xff\xff\xff\xff\xff")

    async def main() -> None:
        async with serving(odd) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            assert await channel.receive() == [ConnectFrame(b"good")]
            await asyncio.sleep(0)
            await server.calls[0].send(b"more")
            assert (await failure(channel)).code == "upstream_garbage"
            await until(lambda: server.calls[0].reset_code == ErrorCodes.CANCEL)

    asyncio.run(main())


def test_a_message_that_comes_too_late_does_not_cost_the_answer(run: Run) -> None:
    async def hasty(call: Call) -> None:
        call.head()
        await call.send(frame(b"the answer") + end())
        call.end()

    async def main() -> None:
        async with serving(hasty) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            await until(lambda: server.calls and server.calls[0].is_ended)
            await channel.send(b"late")
            assert await everything(channel) == [ConnectFrame(b"the answer"), ConnectEnd()]
            with pytest.raises(UpstreamError):
                await channel.send(b"later")

    run(main())


def test_H157_a_reply_that_ends_without_its_end_frame_has_a_fault() -> None:
    async def cutting(call: Call) -> None:
        call.head()
        await call.send(frame(b"text")[:-2])
        call.end()

    async def main() -> None:
        async with serving(cutting) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            [item] = await everything(channel)
            assert isinstance(item, ConnectEnd)
            assert isinstance(item.fault, ConnectFault)
            assert item.fault.code == "unavailable"

    asyncio.run(main())


def test_trailers_of_another_protocol_are_its_error() -> None:
    async def failing(call: Call) -> None:
        call.head()
        await call.send(frame(b"text"))
        call.peer.engine.send_headers(call.number, [("grpc-status", "16"), ("grpc-message", "who")], end_stream=True)
        call.peer.flush()

    async def main() -> None:
        async with serving(failing) as server, connections() as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            assert await channel.receive() == [ConnectFrame(b"text")]
            assert (await failure(channel)).status == 401

    asyncio.run(main())


def test_a_peer_that_answers_no_ping_is_dead_and_one_that_does_is_not(run: Run) -> None:
    async def main() -> None:
        async with serving(waiting) as server, connections(Http2Limits(ping=0.04, silence=0.2)) as pool:
            channel = await open_run(pool, server.target, attempt(), b"first")
            assert await channel.receive() == [ConnectFrame(b"here")]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(channel.receive(), 0.3)
            assert server.peers[0].pings >= 3
            server.listening.clear()
            async with asyncio.timeout(2):
                error = await failure(channel)
            assert (error.status, error.code) == (504, "upstream_timeout")
            assert "ping" in error.message

    run(main())


def test_abort_notifies_the_server_and_leaves_no_task_and_no_socket(run: Run) -> None:
    async def main() -> None:
        async with serving(waiting) as server:
            tasks, before = asyncio.all_tasks(), sockets()
            async with connections(Http2Limits(idle=0)) as pool:
                channel = await open_run(pool, server.target, attempt(), b"first")
                assert await channel.receive() == [ConnectFrame(b"here")]
                channel.abort()
                channel.abort()
                await channel.close()
                await until(lambda: server.calls[0].reset_code == ErrorCodes.CANCEL)
                await until(lambda: sockets() == before)
                with pytest.raises(UpstreamError):
                    await channel.receive()
                server_tasks = {
                    task for task in asyncio.all_tasks() - tasks if "connected" in repr(task) or "waiting" in repr(task)
                }
                assert asyncio.all_tasks() - tasks - server_tasks == set()

    run(main())


def test_an_idle_connection_is_used_again_and_then_closed() -> None:
    async def main() -> None:
        async with serving(answering) as server, connections(Http2Limits(idle=0.1)) as pool:
            for _ in range(3):
                assert await everything(await open_run(pool, server.target, attempt(), b"bye")) == [ConnectEnd()]
            assert len(server.peers) == 1
            await until(lambda: server.peers[0].reader.at_eof())
            assert await everything(await open_run(pool, server.target, attempt(), b"bye")) == [ConnectEnd()]
            assert len(server.peers) == 2

    asyncio.run(main())


def test_closing_ends_every_stream_and_takes_no_more() -> None:
    async def main() -> None:
        before = sockets()
        async with serving(waiting) as server:
            pool = Http2Connections(environ={})
            channel = await open_run(pool, server.target, attempt(), b"first")
            await pool.close()
            with pytest.raises(UpstreamError):
                await open_run(pool, server.target, attempt(), b"first")
            await failure(channel)
        await until(lambda: sockets() == before)

    asyncio.run(main())


async def parked(server: Server, pool: Http2Connections) -> list[RunChannel]:
    """Two hundred runs that have begun and wait."""
    channels = await asyncio.gather(*(open_run(pool, server.target, attempt(), b"x" * 500) for _ in range(200)))
    for channel in channels:
        assert await channel.receive() == [ConnectFrame(b"here")]
    return channels


def test_two_hundred_streams_share_a_few_connections(run: Run) -> None:
    async def main() -> None:
        async with serving(waiting) as server, connections() as pool:
            channels = await parked(server, pool)
            assert len(server.peers) == 3
            for channel in channels:
                channel.abort()
            await until(lambda: all(call.reset_code is not None for call in server.calls))

    run(main())


@pytest.mark.slow
def test_two_hundred_idle_streams_take_little_memory() -> None:
    async def main() -> None:
        async with serving(waiting) as server, connections() as pool:
            gc.collect()
            tracemalloc.start(12)
            try:
                channels = await parked(server, pool)
                gc.collect()
                everybody = tracemalloc.take_snapshot()
            finally:
                tracemalloc.stop()
            ours = everybody.filter_traces([tracemalloc.Filter(False, "*serving.py", all_frames=True)])
            used = sum(place.size for place in ours.statistics("filename"))
            assert 0 < used < 3 << 20, used
            assert len(channels) == 200

    asyncio.run(main())


def test_a_server_that_allows_few_streams_gets_few_on_each_connection() -> None:
    async def main() -> None:
        async with serving(waiting) as server, connections() as pool:
            server.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 2}
            for _ in range(5):
                channel = await open_run(pool, server.target, attempt(), b"first")
                assert await channel.receive() == [ConnectFrame(b"here")]
            assert len(server.peers) == 3

    asyncio.run(main())


def test_a_proxy_is_refused_with_the_other_way_named() -> None:
    async def main() -> None:
        async with connections(https_proxy="http://user:password@proxy.test:3128") as pool:
            with pytest.raises(UpstreamError) as caught:
                await open_run(pool, config(base_url="https://service.test"), attempt(), b"first")
            sentence = caught.value.sentence()
            assert "proxy.test:3128" in sentence
            assert "sse" in sentence
            assert "password" not in sentence

    asyncio.run(main())


def test_all_who_wait_for_a_connection_hear_of_the_same_failure(run: Run) -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read()

    async def main() -> None:
        async with Loopback(mute) as server, connections() as pool:
            target = config(base_url=f"http://127.0.0.1:{server.port}", connect_timeout=0.1)
            async with asyncio.timeout(1.5):  # twenty times a tenth of a second would be longer
                errors = await asyncio.gather(*(refusal(open_run(pool, target, attempt(), b"x")) for _ in range(20)))
            assert {error.code for error in errors} == {"upstream_timeout"}
            assert server.connections == 1

    run(main())


def test_an_unclaimed_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.cursor.transport.http2._FIRST_USE", 0.05)

    async def main() -> None:
        async with serving(waiting) as server, connections(Http2Limits(idle=0)) as pool:
            opening = asyncio.create_task(open_run(pool, server.target, attempt(), b"first"))
            await asyncio.sleep(0)
            opening.cancel()
            await until(lambda: server.peers and server.peers[0].reader.at_eof())
            assert server.calls == []

    asyncio.run(main())


def test_closing_ends_a_connection_that_is_being_made() -> None:
    async def main() -> None:
        async with Loopback(lambda reader, writer: reader.read()) as server, connections() as pool:
            target = config(base_url=f"http://127.0.0.1:{server.port}")
            opening = asyncio.create_task(refusal(open_run(pool, target, attempt(), b"first")))
            await asyncio.sleep(0.02)
            await pool.close()
            assert (await opening).status in (502, 503)

    asyncio.run(main())


def test_a_token_never_goes_to_another_machine_in_the_clear() -> None:
    async def main() -> None:
        async with connections() as pool:
            with pytest.raises(UpstreamError) as caught:
                await open_run(pool, config(base_url="http://service.test"), attempt(), b"first")
            assert "https://" in caught.value.message

    asyncio.run(main())


@pytest.mark.parametrize("protocols", [["h2"], ["http/1.1"], []])
def test_over_tls_http_2_is_agreed_on_or_the_other_way_named(tls: Tls, protocols: list[str]) -> None:
    async def main() -> None:
        tls.client.set_alpn_protocols(["h2"])
        tls.server.set_alpn_protocols(protocols)
        async with serving(answering, context=tls.server) as server:
            pool = Http2Connections(environ={}, ssl_context=tls.client)
            target = config(base_url=f"https://127.0.0.1:{server.port}")
            if protocols == ["h2"]:
                channel = await open_run(pool, target, attempt(), b"first")
                assert await channel.receive() == [ConnectFrame(b"FIRST")]
            else:
                with pytest.raises(UpstreamError) as caught:
                    await open_run(pool, target, attempt(), b"first")
                assert "sse" in caught.value.sentence()
            await pool.close()

    asyncio.run(main())
