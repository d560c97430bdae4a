"""The gateway's models inside VS Code: offered, asked, stopped, and never lent back."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.backends.vscode.stage import TOKEN, FakeWindow, Frame, hub_of, model, said, until, vscode_gateway, window
from tests.server.harness import Gateway
from toolwire.config import BackendConfig
from toolwire.server.bridge_asks import AT_ONCE
from toolwire.server.bridge_session import Pace

WEATHER = {
    "name": "weather",
    "description": "the weather",
    "schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Gateway]:
    with vscode_gateway(BackendConfig(name="scripted", kind="scripted"), pace=Pace(offer=0.05)) as running:
        yield running


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_BRIDGE_TOKEN", TOKEN)


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
            runtime = server.app._runtime
            assert runtime is not None
            kept = dict(runtime._listing)["scripted"]
            runtime.note_models("scripted", [])
            offer = await opened.wait("offer", 2)
            assert {line["id"] for line in offer["models"]} == {"demo/echo-tools"}
            runtime.note_models("scripted", kept)
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
            await until(lambda: server.app._open == 0)

    asyncio.run(main())


def test_a_window_that_goes_stops_its_asks(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            await opened.say(scripted(text="x" * 500, chunk=1, pace=0.05))
            await opened.wait("parts")
            assert server.app._open == 1
        await until(lambda: server.app._open == 0)

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
            for number in range(AT_ONCE):
                await opened.say(scripted(str(number), text="x" * 100, chunk=1, pace=0.1))
            await opened.say(scripted("0"))
            await opened.say(scripted("one more"))
            await opened.wait("error", 2)
            assert [(frame["id"], frame["status"]) for frame in opened.of("error")] == [("0", 400), ("one more", 429)]

    asyncio.run(main())


def test_a_mistake_of_ours_is_told_as_one(server: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a mistake")

    async def main() -> None:
        runtime = server.app._runtime
        assert runtime is not None
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
