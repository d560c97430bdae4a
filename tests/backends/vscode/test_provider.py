"""The gateway's models inside VS Code: offered, asked, stopped, and never lent back."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.backends.vscode.stage import (
    FakeWindow,
    Frame,
    connect,
    hub_of,
    model,
    said,
    until,
    vscode_gateway,
    window,
)
from tests.server.answers import streamed
from tests.server.harness import LAST_CHUNK, Gateway, Upstream, ask, chunk, reply
from toolwire.backends.vscode.provider import MAX_REQUESTS
from toolwire.backends.vscode.session import Pace
from toolwire.config.file import BackendConfig
from toolwire.telemetry import Record

WEATHER = {
    "name": "weather",
    "description": "the weather",
    "schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Gateway]:
    with vscode_gateway(BackendConfig(name="scripted", kind="scripted"), pace=Pace(offer=0.05)) as running:
        yield running


def scripted(ask_id: str = "a", tools: list[Frame] | None = None, **turn: Any) -> Frame:
    mark = base64.b64encode(json.dumps(turn).encode()).decode()
    asked = {"type": "ask", "id": ask_id, "model": "scripted/scripted"}
    message = {"role": "user", "parts": [said(f"[[script:{mark}]]")]}
    return {**asked, "messages": [message], **({"tools": tools} if tools else {})}


def parts_of(window: FakeWindow, ask_id: str = "a") -> list[Frame]:
    frames = [frame for frame in window.of("parts") if frame["id"] == ask_id]
    assert [frame["seq"] for frame in frames] == list(range(len(frames)))
    return [part for frame in frames for part in frame["parts"]]


def text_in(window: FakeWindow, ask_id: str = "a") -> str:
    return "".join(part["text"] for part in parts_of(window, ask_id) if part["t"] == "text")


def test_what_the_gateway_has_is_offered_without_what_vs_code_lends(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            await opened.say({"type": "list"})
            offer = await opened.wait("offer")
            assert {line["id"] for line in offer["models"]} == {"scripted/scripted", "demo/echo-tools"}
            await asyncio.sleep(0.15)
            assert len(opened.of("offer")) == 1  # nothing has changed
            await opened.say({"type": "list"})
            await opened.wait("offer", 2)

    asyncio.run(main())


def test_a_change_is_offered_unasked(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            await opened.say({"type": "list"})
            await opened.wait("offer")
            runtime = server.app._running()
            kept = dict(runtime.catalog._lists)["scripted"]
            runtime.catalog.note_models("scripted", [])
            offer = await opened.wait("offer", 2)
            assert {line["id"] for line in offer["models"]} == {"demo/echo-tools"}
            runtime.catalog.note_models("scripted", kept)
            await opened.wait("offer", 3)

    asyncio.run(main())


def test_text_comes_in_parts_with_its_usage_and_an_end(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            await opened.say(scripted(text="hello from here"))
            assert await opened.wait("end") == {"type": "end", "id": "a", "cancelled": False}
            assert text_in(opened) == "hello from here"
            assert [part.get("mime") for part in parts_of(opened)][-1] == "usage"

    asyncio.run(main())


def test_calls_come_whole_and_their_results_are_understood(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            calls = [{"name": "weather", "arguments": {"city": city}} for city in ("Bern", "Basel")]
            await opened.say(scripted(tools=[WEATHER], calls=calls))
            await opened.wait("end")
            found = [part for part in parts_of(opened) if part["t"] == "call"]
            assert [part["input"] for part in found] == [{"city": "Bern"}, {"city": "Basel"}]
            messages = [
                {"role": "system", "parts": [said("be kind")]},
                {"role": "user", "parts": [said("weather?")]},
                {"role": "assistant", "parts": found},
                {
                    "role": "user",
                    "parts": [{"t": "result", "id": part["id"], "parts": [said("dry")]} for part in found],
                },
            ]
            asked = {"type": "ask", "id": "b", "model": "demo/echo-tools", "messages": messages, "tools": [WEATHER]}
            await opened.say(asked)
            await opened.wait("end", 2)
            assert "dry" in text_in(opened, "b")

    asyncio.run(main())


def test_wrong_arguments_are_judged_as_for_every_client() -> None:
    scripted_backend = BackendConfig(name="scripted", kind="scripted", guard="repair", policy="error")

    async def main(server: Gateway) -> None:
        async with window(server) as opened:
            await opened.say(scripted(tools=[WEATHER], calls=[{"name": "weather", "arguments": {"town": "Bern"}}]))
            failed = await opened.wait("error")
            assert failed["id"] == "a"
            assert failed["status"] >= 400
            assert not any(part["t"] == "call" for part in parts_of(opened))

    with vscode_gateway(scripted_backend) as server:
        asyncio.run(main(server))


def test_pieces_are_gathered_so_that_vs_code_does_not_heap_them(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            text = "0123456789" * 20
            await opened.say(scripted(text=text, chunk=1, pace=0.002))
            started = time.monotonic()
            await opened.wait("end")
            seconds = time.monotonic() - started
            assert text_in(opened) == text
            assert 2 <= len(opened.of("parts")) <= seconds / 0.04 + 3

    asyncio.run(main())


def test_an_ask_can_be_stopped(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            await opened.say(scripted(text="x" * 500, chunk=1, pace=0.05))
            await opened.wait("parts")
            await opened.say({"type": "stop", "id": "a"})
            await opened.say({"type": "stop", "id": "never asked"})
            assert await opened.wait("end") == {"type": "end", "id": "a", "cancelled": True}
            await opened.say(scripted(text="again"))  # the id is free
            await opened.wait("end", 2)
            await until(lambda: server.app._requests.count == 0)

    asyncio.run(main())


def test_a_window_that_goes_stops_its_asks(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            await opened.say(scripted(text="x" * 500, chunk=1, pace=0.05))
            await opened.wait("parts")
            assert server.app._requests.count == 1
        await until(lambda: server.app._requests.count == 0)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"model": "vscode/gpt-4.1"}, 404),
        ({"model": "gpt-4.1"}, 404),
        ({"model": "nowhere"}, 404),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_status(server: Gateway, asked: Frame, status: int) -> None:
    async def main() -> None:
        async with window(server) as opened:
            await opened.say({**scripted(), **asked})
            failed = await opened.wait("error")
            assert (failed["id"], failed["status"]) == ("a", status)
            assert not opened.of("chat")

    asyncio.run(main())


def test_a_failure_of_the_back_end_has_its_status(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            await opened.say(scripted(error={"status": 429, "message": "slow down"}))
            failed = await opened.wait("error")
            assert (failed["status"], failed["code"]) == (429, "Blocked")

    asyncio.run(main())


def test_an_id_in_use_and_too_many_asks_are_refused(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            for number in range(MAX_REQUESTS):
                await opened.say(scripted(str(number), text="x" * 100, chunk=1, pace=0.1))
            await opened.say(scripted("0"))
            await opened.say(scripted("one more"))
            await opened.wait("error", 2)
            assert [(frame["id"], frame["status"]) for frame in opened.of("error")] == [("0", 400), ("one more", 429)]

    asyncio.run(main())


def test_a_mistake_of_ours_is_reported_as_one(server: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a mistake")

    async def main() -> None:
        runtime = server.app._running()
        monkeypatch.setattr(runtime, "answer", broken)
        async with window(server) as opened:
            await opened.say(scripted())
            failed = await opened.wait("error")
            assert failed["status"] == 500
            assert "a mistake" not in failed["message"]

    asyncio.run(main())


def test_a_model_lent_by_one_window_is_not_offered_to_another(server: Gateway) -> None:
    async def main() -> None:
        async with window(server, None, model("copilot/one")), window(server, None, model("copilot/two")) as second:
            assert len(hub_of(server).models()) == 2
            await second.say({"type": "list"})
            offer = await second.wait("offer")
            assert not any(line["id"].startswith("vscode/") for line in offer["models"])

    asyncio.run(main())


def _behind(upstream: Upstream) -> BackendConfig:
    return BackendConfig(name="chat", kind="openai-chat", base_url=f"{upstream.url}/v1", models=("m", "breaks"))


def _asked(ask_id: str, name: str) -> Frame:
    return {"type": "ask", "id": ask_id, "model": name, "messages": [{"role": "user", "parts": [said("hi")]}]}


def test_answers_are_counted_and_recorded_as_those_of_clients(upstream: Upstream) -> None:
    """With their usage, with a failure in the middle, and on one connection."""
    end = [chunk(b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\n'), 0.02]
    play = streamed("chat")
    upstream.on("m", [*play[:-2], *end, *play[-2:]])
    upstream.on("breaks", [*play[:3], chunk(b'data: {"error": {"message": "boom"}}\n\n'), LAST_CHUNK])

    async def main() -> None:
        async with window(server) as opened:
            for number in range(3):
                await opened.say(_asked(f"a{number}", "chat/m"))
                await opened.wait("end", number + 1)
                await until(lambda wanted=number + 1: len(records) == wanted)  # type: ignore[misc]
            await opened.say(_asked("b", "chat/breaks"))
            assert "boom" in (await opened.wait("error"))["message"]
            await until(lambda: len(records) == 4)

    records: list[Record] = []
    with vscode_gateway(_behind(upstream)) as server:
        close = server.app._close
        server.app._close = lambda record: (records.append(record), close(record))[1]  # type: ignore[method-assign]
        asyncio.run(main())
    assert [(record.outcome, record.usage and record.usage.input) for record in records[:3]] == [("ok", 5)] * 3
    assert (records[3].outcome, records[3].error) == ("error", "upstream_error")
    assert len({request.peer for request in upstream.requests("m")}) == 1


def test_models_that_come_while_others_are_listed_are_in_the_list(upstream: Upstream) -> None:
    """A window asks for our models first and lends its own then; another back end may take its time to say what it has."""
    upstream.on("/v1/models", [0.2, reply(200, b'{"object":"list","data":[{"id":"m","object":"model"}]}')])
    slow = BackendConfig(name="slow", kind="openai-chat", base_url=f"{upstream.url}/v1")

    async def main() -> list[str]:
        opened = await connect(server.port)
        opened.start()
        await opened.hello()
        await opened.wait("welcome")
        await opened.say({"type": "list"})
        await asyncio.sleep(0.05)
        await opened.lend(model())
        await opened.wait("offer")
        answer = await asyncio.to_thread(ask, server.port, "GET", "/v1/models")
        await opened.close()
        return [line["id"] for line in answer.json["data"]]

    with vscode_gateway(slow) as server:
        assert {"vscode/gpt-4.1", "slow/m"} <= set(asyncio.run(main()))


def test_a_gateway_that_is_ending_takes_no_more(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            (joined,) = hub_of(server).windows
            joined.is_leaving = True
            await opened.say(scripted(turns=[{"text": "hello"}]))
            refused = await opened.wait("error")
            assert (refused["status"], refused["name"]) == (503, "not_ready")

    asyncio.run(main())


def test_a_custom_endpoint_of_vs_code_is_not_sent_back_to_it(server: Gateway) -> None:
    """Its model may be listed by nobody else at the moment: the request would go round until all places are taken."""

    async def main() -> None:
        async with window(server, None, model("customendpoint/ollama/llama3.2")) as opened:
            for name, status in (("ollama/llama3.2", 404), ("demo/echo-tools", 200)):
                body = {"model": name, "messages": [{"role": "user", "content": "hi"}]}
                marked = {"x-toolwire-from": "vscode"}
                answer = await asyncio.to_thread(ask, server.port, "POST", "/v1/chat/completions", body, headers=marked)
                assert answer.status == status, answer.body
            assert not opened.of("chat")

    asyncio.run(main())
