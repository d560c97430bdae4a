"""A window's life: hello, signs of life, what is not understood, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator

import pytest

from tests.backends.vscode.stage import (
    FakeWindow,
    Frame,
    chatting,
    connect,
    content_of,
    hub_of,
    last_text,
    model,
    said,
    silent,
    until,
    used,
    vscode_gateway,
    window,
)
from tests.server.answers import PATHS, question, text_of
from tests.server.harness import Gateway, connected, events_in, request_bytes
from toolwire import __version__
from toolwire.backends.vscode.session import Pace
from toolwire.wire.websocket import TEXT, frame

QUICK = Pace(hello=0.1, ping=0.1, offer=0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[Gateway]:
    with vscode_gateway(pace=QUICK) as running:
        yield running


async def opened(server: Gateway) -> FakeWindow:
    found = await connect(server.port)
    found.start()
    return found


@pytest.mark.parametrize("mark", ["", "0b7c1f6e-8d0a-4a33-9a39-6f0f0d6f2c11", "anything else"])
def test_only_a_gateway_that_a_window_started_says_which_process_it_is(
    server: Gateway, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.setenv("TOOLWIRE_STARTED_BY", mark)

    async def main() -> None:
        async with window(server) as opened:
            welcome = await opened.wait("welcome")
            told = {"pid": os.getpid(), "started_by": mark} if mark.startswith("0b7c") else {}
            assert welcome == {"type": "welcome", "v": 1, "gateway": __version__, **told}

    asyncio.run(main())


def test_who_says_no_hello_is_left(server: Gateway) -> None:
    async def main() -> None:
        mute = await opened(server)
        assert await mute.gone() == (1008, "no hello came within 0.1 seconds.")
        await mute.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("first", "code", "why"),
    [
        ({"type": "focus", "focused": True}, 1008, "not a hello"),
        ({"type": "later"}, 1008, "not a hello"),
        (
            {"type": "hello", "v": 2, "window": "w", "vscode": "1", "extension": "1", "focused": True},
            1008,
            "speaks version 2",
        ),
        ({"type": "hello", "v": 1}, 1007, "not as expected"),
    ],
)
def test_a_wrong_hello_is_answered_with_the_reason(server: Gateway, first: Frame, code: int, why: str) -> None:
    async def main() -> None:
        found = await opened(server)
        await found.say(first, is_checked=False)
        ended = await found.gone()
        assert (ended[0], why in ended[1]) == (code, True)
        await found.close()

    asyncio.run(main())


@pytest.mark.parametrize("data", [b"not json", b"[]", b'{"type":1}', b'{"type":"models","models":7}', b"{" * 10_000])
def test_what_is_no_frame_is_passed_over_and_a_flood_of_it_ends_it(server: Gateway, data: bytes) -> None:
    async def main() -> None:
        async with window(server) as found:
            await found.write(frame(TEXT, data, b"abcd") * 1000)
            assert content_of(await chatting(server, "still there?")) == "you said: still there?"
            await found.write(frame(TEXT, data, b"abcd"))
            code, reason = await found.gone()
            assert (code, "1000 frames could not be decoded" in reason) == (1007, True)

    asyncio.run(main())


@pytest.mark.parametrize("call", ['{"t":"call","name":"x","input":{}}', '{"t":"call","input":' + "[" * 100_000])
def test_an_answer_that_cannot_be_read_costs_one_request_and_no_other_window_is_asked(
    server: Gateway, call: str
) -> None:
    async def spoilt(window: FakeWindow, chat: Frame) -> None:
        if last_text(chat) == "spoil":
            text = f'{{"type": "parts", "id": "{chat["id"]}", "seq": 0, "parts": [{call}'
            await window.write(frame(TEXT, text.encode(), b"abcd"))
            return
        await window.parts(chat, said("one "))
        await window.wait("cancel")
        await window.parts(chat, said("two"), used())
        await window.end(chat)

    async def main() -> None:
        async with window(server, focused=False) as other, window(server, spoilt) as found:
            good = asyncio.create_task(chatting(server))
            await found.wait("chat")
            bad = await chatting(server, "spoil")
            assert (bad.status, bad.json["error"]["code"]) == (502, "upstream_error")
            assert "cannot decode a part of the answer" in bad.json["error"]["message"]
            assert content_of(await good) == "one two"
            assert found.of("cancel") == [{"type": "cancel", "id": found.of("chat")[1]["id"]}]
            assert (found.ended, other.of("chat")) == (None, [])

    asyncio.run(main())


def test_an_ask_that_cannot_be_read_is_refused_and_costs_nothing_else(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as found:
            asked = {"type": "ask", "id": "a", "model": "m", "messages": [], "tools": [{"name": "t"}]}
            await found.say(asked, is_checked=False)
            refused = await found.wait("error")
            assert (refused["id"], refused["status"]) == ("a", 400)
            assert "description" in refused["message"]
            assert content_of(await chatting(server, "still there?")) == "you said: still there?"

    asyncio.run(main())


def test_a_frame_that_is_too_large_ends_it_before_it_is_read(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as found:
            await found.write(b"\x81\xff" + ((32 << 20) + 1).to_bytes(8, "big") + b"abcd" + b"x" * 1000)
            code, reason = await found.gone()
            assert code == 1009
            assert "longer than" in reason

    asyncio.run(main())


@pytest.mark.slow
def test_the_largest_frame_is_read() -> None:
    async def main(server: Gateway) -> None:
        async with window(server, silent) as found:
            asking = asyncio.create_task(chatting(server))
            chat = await found.wait("chat")
            empty = json.dumps({"type": "parts", "id": chat["id"], "seq": 0, "parts": [said("")]})
            text = "x" * ((32 << 20) - len(empty))
            await found.parts(chat, said(text))
            await found.parts(chat, used())
            await found.end(chat)
            assert content_of(await asking) == text

    with vscode_gateway() as server:
        asyncio.run(main(server))


def test_what_a_newer_window_says_is_passed_over(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as found:
            for _ in range(3):
                await found.say({"type": "something new", "a": 1}, is_checked=False)
            await found.say({"type": "focus", "focused": True, "more": 1}, is_checked=False)
            assert content_of(await chatting(server, "still there?")) == "you said: still there?"

    asyncio.run(main())


def test_a_second_hello_ends_it(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as found:
            await found.hello()
            assert (await found.gone())[0] == 1008

    asyncio.run(main())


def test_a_window_that_answers_pings_stays_and_one_that_does_not_goes(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as alive, window(server, silent) as dead:
            dead.answers_pings = False
            answer = asyncio.create_task(chatting(server))
            await dead.wait("chat")
            assert (await dead.gone())[0] == 4000
            assert content_of(await answer) == "you said: hi"  # by the other one
            await alive.wait("ping", 3)
            assert alive.ended is None

    asyncio.run(main())


def test_a_half_open_connection_is_noticed(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as found:
            found.stop_reading()  # it neither reads nor answers, and its connection stays
            await until(lambda: all(known.id != found.id for known in hub_of(server).windows), 3)

    asyncio.run(main())


@pytest.mark.slow
def test_a_window_that_does_not_read_is_given_up() -> None:
    async def main(server: Gateway) -> None:
        async with window(server, silent) as deaf:
            deaf.stop_reading()
            long = "x" * 15_000_000
            asking = [asyncio.create_task(chatting(server, f"{n}{long}")) for n in range(8)]
            answers = await asyncio.wait_for(asyncio.gather(*asking), 30)
            assert {answer.status for answer in answers} <= {502, 503}

    with vscode_gateway() as server:
        asyncio.run(main(server))


def test_the_end_of_the_gateway_waits_for_answers_under_way_and_closes_with_a_reason() -> None:
    async def slow(window: FakeWindow, chat: Frame) -> None:
        for word in ("one ", "two ", "three"):
            await window.parts(chat, said(word))
            await asyncio.sleep(0.1)
        await window.parts(chat, used())
        await window.end(chat)

    async def main(server: Gateway) -> None:
        busy, idle = await opened(server), await opened(server)
        busy._play = slow
        await idle.hello(focused=False)
        await busy.hello()
        await busy.lend(model())
        await until(lambda: bool(hub_of(server).models()))
        connection = connected(server.port)
        connection.sendall(request_bytes(PATHS["chat"], question("chat", "vscode/gpt-4.1", stream=True)))
        await busy.wait("chat")
        server._server.should_exit = True
        assert (await idle.gone())[0] == 1001
        assert busy.ended is None
        read = await asyncio.to_thread(_all, connection)
        assert "".join(text_of("chat", events_in(read.partition(b"\r\n\r\n")[2]))) == "one two three"
        assert (await busy.gone())[0] == 1001
        for each in (busy, idle):
            await each.close()

    with vscode_gateway() as server:
        asyncio.run(main(server))


def _all(connection: object) -> bytes:
    """The body without its chunks."""
    import http.client
    import socket

    assert isinstance(connection, socket.socket)
    response = http.client.HTTPResponse(connection)
    response.begin()
    data = b"\r\n\r\n" + response.read()
    connection.close()
    return data


@pytest.mark.slow
def test_a_gateway_that_does_not_wait_closes_all_the_same() -> None:
    async def main(server: Gateway) -> None:
        async with window(server, silent) as busy:
            answer = asyncio.create_task(chatting(server))
            await busy.wait("chat")
            server._server.should_exit = True  # shutdown_seconds is 1
            assert (await busy.gone())[0] == 1001
            assert (await answer).status in (502, 503)

    with vscode_gateway() as server:
        asyncio.run(main(server))
