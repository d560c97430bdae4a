"""What an application sends becomes one response on the wire, and what it receives is the request's body."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from tests.server.wire import Line, responses_by_h11

GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Scripted:
    """Sends these messages to each request; keeps what it received, and the error that it was given."""

    def __init__(self, *messages: dict[str, Any], reads: int = 0) -> None:
        self._messages = messages
        self._reads = reads
        self.received: list[MutableMapping[str, Any]] = []
        self.fault = ""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        for _ in range(self._reads):
            self.received.append(await receive())
        try:
            for message in self._messages:
                await send(message)
        except RuntimeError as fault:
            self.fault = str(fault)


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def length(size: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % size


def answered(application: Scripted, *pieces: bytes) -> Line:
    async def main() -> Line:
        line = Line(application)
        await line.hear(*(pieces or (GET,)))
        await line.hang_up()
        return line

    return asyncio.run(main())


def test_the_head_is_written_with_the_start_of_the_body() -> None:
    line = answered(Scripted(start(200, length(8)), body(b"body", more=True), body(b"more")))
    assert line.wire.writes == 2
    assert line.wire.written == b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nbodymore"


def test_a_body_of_unknown_length_is_chunked() -> None:
    line = answered(Scripted(start(), body(b"one", more=True), body(b"", more=True), body(b"two")))
    (response,) = responses_by_h11(line.wire.written, ["GET"])
    assert (response.headers["transfer-encoding"], response.body) == ("chunked", b"onetwo")
    assert not line.is_over


def test_an_older_client_gets_no_chunks() -> None:
    line = answered(Scripted(start(), body(b"one", more=True), body(b"two")), b"GET / HTTP/1.0\r\n\r\n")
    assert line.wire.written == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nonetwo"
    assert line.wire.ended == "closed"


@pytest.mark.parametrize(
    ("request_bytes", "status", "data"),
    [(GET, 204, b""), (GET, 304, b""), (GET.replace(b"GET", b"HEAD"), 200, b"body")],
)
def test_responses_without_a_body(request_bytes: bytes, status: int, data: bytes) -> None:
    line = answered(Scripted(start(status, length(4)), body(data)), request_bytes)
    head, _, rest = line.wire.written.partition(b"\r\n\r\n")
    assert (head.split()[1], rest) == (b"%d" % status, b"")
    assert not line.is_over


@pytest.mark.parametrize("status", [418, 529, 999])
def test_any_status_of_a_back_end_can_be_passed_on(status: int) -> None:
    assert answered(Scripted(start(status, length(0)), body(b""))).wire.written.startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb", b"a\0b"])
def test_a_header_cannot_begin_another_one(value: bytes) -> None:
    application = Scripted(start(200, (b"x", value), length(0)), body(b""))
    line = answered(application)
    assert line.wire.written == b""
    assert line.wire.ended == "aborted"
    assert "line break" in application.fault


@pytest.mark.parametrize("data", [b"shor", b"longer"])
def test_a_body_of_another_length_than_announced_ends_the_connection(data: bytes) -> None:
    application = Scripted(start(200, length(5)), body(data))
    line = answered(application)
    assert line.wire.ended == "aborted"
    assert "content-length" in application.fault


def test_nothing_can_be_added_to_a_complete_response() -> None:
    application = Scripted(start(200, length(0)), body(b""), body(b"more"))
    line = answered(application)
    assert "complete" in application.fault
    assert not line.is_over


def test_a_response_that_never_ends_closes_the_connection() -> None:
    assert answered(Scripted(start(), body(b"one", more=True))).wire.ended == "aborted"
    assert answered(Scripted()).wire.ended == "aborted"


POST = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n"


def test_the_body_arrives_in_pieces_and_then_the_end() -> None:
    application = Scripted(reads=3)
    answered(application, POST + b"\r\none", b"two")
    assert application.received == [
        {"type": "http.request", "body": b"one", "more_body": True},
        {"type": "http.request", "body": b"two", "more_body": False},
        {"type": "http.disconnect"},
    ]


EXPECT = POST + b"Expect: 100-Continue\r\n\r\n"


def test_a_client_that_waits_gets_100_continue() -> None:
    application = Scripted(start(200, length(0)), body(b""), reads=1)
    line = answered(application, EXPECT, b"onetwo")
    assert line.wire.written.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert application.received[0]["body"] == b"onetwo"
    assert not line.is_over


def test_no_100_continue_for_a_body_that_has_arrived() -> None:
    assert b" 100 " not in answered(Scripted(reads=1), EXPECT + b"one").wire.written


def test_an_http_1_0_client_gets_no_100_continue() -> None:
    assert b" 100 " not in answered(Scripted(reads=1), EXPECT.replace(b"HTTP/1.1", b"HTTP/1.0")).wire.written


def test_a_client_that_waits_and_is_refused_need_not_send_its_body() -> None:
    line = answered(Scripted(start(413, length(0)), body(b"")), EXPECT, b"onetwo")
    (response,) = responses_by_h11(line.wire.written, ["POST"])
    assert (response.status, response.is_last) == (413, True)
    assert line.wire.has_eof
    assert not line.wire.ended


DISCONNECT = {"type": "http.disconnect"}


class Waiting:
    """Waits for the end of its request in several places, one of which gives up; answers if it should."""

    def __init__(self, *, is_answered: bool) -> None:
        self._is_answered = is_answered
        self.received: list[Any] = []

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        self.received.append(await receive())
        given_up, first, second = (asyncio.ensure_future(receive()) for _ in range(3))
        given_up.cancel()
        third = asyncio.ensure_future(receive())
        if self._is_answered:
            await send(start(200, length(0)))
            await send(body(b""))
        self.received += await asyncio.gather(first, second, third)
        self.received.append(await receive())


@pytest.mark.parametrize("is_answered", [True, False])
def test_everybody_who_waits_hears_of_the_end(is_answered: bool) -> None:
    application = Waiting(is_answered=is_answered)

    async def main() -> None:
        line = Line(application)
        await line.hear(GET)
        await line.hang_up()

    asyncio.run(main())
    assert application.received == [{"type": "http.request", "body": b"", "more_body": False}, *[DISCONNECT] * 4]


UPLOAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"


class Taking(Scripted):
    """Takes the body at once if it is there, then waits for the end of the request."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        self.taken = [receive.take_body(), receive.take_body()]
        self.disconnects = 0
        receive.watch(self._disconnect)
        await super().__call__(scope, receive, send)

    def _disconnect(self) -> None:
        self.disconnects += 1


def test_a_body_that_has_arrived_is_taken_once_without_waiting() -> None:
    application = Taking(start(200, length(0)), body(b""))
    answered(application, UPLOAD + b"body")
    assert application.taken == [b"body", None]
    assert application.disconnects == 0  # the response was complete when the client left


def test_a_body_that_is_still_on_its_way_is_received() -> None:
    application = Taking(start(200, length(0)), body(b""), reads=2)
    answered(application, UPLOAD + b"bo", b"dy")
    assert application.taken == [None, None]
    assert b"".join(message["body"] for message in application.received) == b"body"


def test_a_watch_reports_that_the_client_has_disconnected() -> None:
    application = Taking(reads=1)
    answered(application, UPLOAD + b"body")
    assert application.taken == [b"body", None]
    assert application.disconnects == 1
    assert application.received == [{"type": "http.disconnect"}]
