"""VS Code's models behind the gateway, with a window that plays its part over a real socket."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.backends.vscode.stage import (
    FakeWindow,
    Frame,
    asking,
    called,
    chatting,
    content_of,
    echo,
    hub_of,
    model,
    said,
    silent,
    until,
    used,
    vscode_gateway,
    window,
)
from tests.backends.vscode.window_frames import hello, listed
from tests.server.answers import DIALECTS, PATHS, failure_in, is_ended, question, text_of
from tests.server.harness import Gateway, connected, read_until, request_bytes
from toolwire.backends.vscode.backend import Hub, conversation_of
from toolwire.backends.vscode.window import Window
from toolwire.backends.vscode.wire.shapes import Models
from toolwire.errors import UpstreamError
from toolwire.types import Message, Request, Text

pytestmark = pytest.mark.slow


def run(play: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(play(), 60))  # type: ignore[arg-type] # a coroutine


def picture() -> str:
    def piece(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = piece(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    body = piece(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + head + body + piece(b"IEND", b"")).decode()


async def two_calls(window: FakeWindow, chat: Frame) -> None:
    """Asks for the weather in two places, and says what it was told."""
    results = [part for message in chat["messages"] for part in message["parts"] if part["t"] == "result"]
    if results:
        told = " and ".join(part["text"] for result in results for part in result["parts"])
        await window.parts(chat, said(f"It is {told}."), used())
    else:
        await window.parts(chat, said("Let me see."))
        await window.parts(chat, called("c1", "weather", city="Bern"), called("c2", "weather", city="Basel"), used())
    await window.end(chat)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_in_every_dialect(server: Gateway, dialect: str, stream: bool) -> None:
    async def play() -> None:
        async with window(server):
            asked = question(dialect, "vscode/gpt-4.1", stream=stream)
            answer = await asking(server, PATHS[dialect], asked)
            assert answer.status == 200, answer.body
            if stream:
                assert text_of(dialect, answer.events) == "you said: What is the weather?"
                assert is_ended(dialect, answer.events)
            else:
                assert "you said: What is the weather?" in answer.body.decode()

    run(play)


def test_parallel_calls_and_the_turn_with_their_results(server: Gateway) -> None:
    async def play() -> None:
        async with window(server, two_calls) as opened:
            asked = question("chat", "vscode/gpt-4.1")
            message = (await asking(server, PATHS["chat"], asked)).json["choices"][0]["message"]
            calls = message["tool_calls"]
            assert [json.loads(call["function"]["arguments"]) for call in calls] == [
                {"city": "Bern"},
                {"city": "Basel"},
            ]
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": f"{n} degrees"} for n, call in enumerate(calls)
            ]
            asked["messages"] += [message, *results]
            assert content_of(await asking(server, PATHS["chat"], asked)) == "It is 0 degrees and 1 degrees."
            second = opened.of("chat")[1]
            assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
            assert [part["t"] for part in second["messages"][2]["parts"]] == ["result", "result"]
            assert second["tools"][0]["name"] == "weather"

    run(play)


def test_images_reach_the_window_as_data(server: Gateway) -> None:
    async def play() -> None:
        async with window(server) as opened:
            data = picture()
            content = [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
            ]
            body = {"model": "vscode/gpt-4.1", "messages": [{"role": "user", "content": content}]}
            assert (await asking(server, PATHS["chat"], body)).status == 200
            parts = opened.of("chat")[0]["messages"][0]["parts"]
            assert {"t": "data", "mime": "image/png", "data": data} in parts

    run(play)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_leaves_cancels_the_request(server: Gateway, dialect: str) -> None:
    async def endless(window: FakeWindow, chat: Frame) -> None:
        await window.parts(chat, said("one"))

    async def play() -> None:
        async with window(server, endless) as opened:
            connection = connected(server.port)
            connection.sendall(request_bytes(PATHS[dialect], question(dialect, "vscode/gpt-4.1", stream=True)))
            await asyncio.to_thread(read_until, connection, b"one")
            connection.close()
            chat = opened.of("chat")[0]
            assert await opened.wait("cancel") == {"type": "cancel", "id": chat["id"]}
            await opened.end(chat, cancelled=True)
            await until(lambda: all(known.is_idle for known in hub_of(server).windows))

    run(play)


def test_a_client_that_leaves_before_the_first_word_cancels_too(server: Gateway) -> None:
    async def play() -> None:
        async with window(server, silent) as opened:
            connection = connected(server.port)
            connection.sendall(request_bytes(PATHS["chat"], question("chat", "vscode/gpt-4.1", stream=True)))
            chat = await opened.wait("chat")
            connection.close()
            assert (await opened.wait("cancel"))["id"] == chat["id"]

    run(play)


def test_consent_that_is_denied_is_not_asked_for_again_by_itself(server: Gateway) -> None:
    async def deny(window: FakeWindow, chat: Frame) -> None:
        await window.fail(chat, "NoPermissions", "", "Language model 'copilot/gpt-4.1' cannot be used by 'x.y'.")

    async def play() -> None:
        async with window(server, deny) as opened:
            for _ in range(2):
                answer = await chatting(server)
                assert answer.status == 403
                assert "Allow" in answer.json["error"]["message"]
            assert len(opened.of("chat")) == 1
            await opened.lend(model())
            await until(lambda: not any(known.refused for known in hub_of(server).windows))
            assert (await chatting(server)).status == 403
            assert len(opened.of("chat")) == 2

    run(play)


def test_a_provider_that_denies_a_request_is_asked_again(server: Gateway) -> None:
    """Its NoPermissions is no answer of the user's."""

    async def deny_once(window: FakeWindow, chat: Frame) -> None:
        if len(window.of("chat")) == 1:
            await window.fail(
                chat, "NoPermissions", "LanguageModelError", "the organisation has switched this model off"
            )
        else:
            await echo(window, chat)

    async def play() -> None:
        async with window(server, deny_once):
            refused = await chatting(server)
            assert (refused.status, refused.json["error"]["code"]) == (403, "permission_denied")
            assert "switched this model off" in refused.json["error"]["message"]
            assert content_of(await chatting(server)) == "you said: hi"

    run(play)


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (("Blocked", "", "temporarily blocked"), 429),
        (("", "ChatQuotaExceeded", "quota"), 429),
        (("", "Error", "Message exceeds token limit."), 400),
        (("", "Error", "Request Failed: 418 {}"), 418),
        (("", "Error", "whatever it is"), 502),
    ],
)
def test_failures_have_the_status_that_says_who_must_act(
    server: Gateway, failure: tuple[str, str, str], status: int
) -> None:
    async def fail(window: FakeWindow, chat: Frame) -> None:
        await window.fail(chat, *failure)

    async def play() -> None:
        async with window(server, fail) as opened:
            assert (await chatting(server)).status == status
            assert len(opened.of("chat")) == 1  # each one counts: nothing is tried again

    run(play)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_window_that_goes_in_mid_answer_ends_it_and_nothing_is_replayed(server: Gateway, dialect: str) -> None:
    async def crash(window: FakeWindow, chat: Frame) -> None:
        await window.parts(chat, said("half of "))
        await asyncio.sleep(0.05)
        window.crash()

    async def play() -> None:
        async with window(server, focused=False) as other, window(server, crash):
            answer = await asking(server, PATHS[dialect], question(dialect, "vscode/gpt-4.1", stream=True))
            assert text_of(dialect, answer.events) == "half of "
            assert "window disconnected" in failure_in(dialect, answer.events)
            assert not other.of("chat")
            whole = await asking(server, PATHS[dialect], question(dialect, "vscode/gpt-4.1"))
            assert whole.status == 200  # the next one goes to the window that is left

    run(play)


def test_a_request_moves_to_another_window_only_before_the_first_part(server: Gateway) -> None:
    async def crash(window: FakeWindow, chat: Frame) -> None:
        window.crash()

    async def missing(window: FakeWindow, chat: Frame) -> None:
        await window.fail(chat, "NotFound", "", "no such model")

    async def play() -> None:
        async with (
            window(server, focused=False) as last,
            window(server, missing) as second,
            window(server, crash) as first,
        ):
            assert content_of(await chatting(server, "hello")) == "you said: hello"
            assert [len(each.of("chat")) for each in (first, second, last)] == [1, 1, 1]

    run(play)


def test_without_another_window_the_loss_of_the_only_one_is_reported(server: Gateway) -> None:
    async def crash(window: FakeWindow, chat: Frame) -> None:
        window.crash()

    async def play() -> None:
        async with window(server, crash):
            answer = await chatting(server)
            assert answer.status in (502, 503)
        assert (await chatting(server)).status == 503

    run(play)


def test_a_conversation_stays_with_its_window(server: Gateway) -> None:
    async def play() -> None:
        async with window(server) as first:
            assert content_of(await chatting(server, "stay here")).endswith("stay here")
            async with window(server) as second:
                messages = [
                    {"role": "user", "content": "stay here"},
                    {"role": "assistant", "content": "you said: stay here"},
                    {"role": "user", "content": "and now?"},
                ]
                body = {"model": "vscode/gpt-4.1", "messages": messages}
                await asking(server, PATHS["chat"], body)
                await chatting(server, "something else")
                assert (len(first.of("chat")), len(second.of("chat"))) == (2, 1)
                await first.say({"type": "focus", "focused": True})
                focused = max(known.focused_at for known in hub_of(server).windows)
                await until(lambda: max(known.focused_at for known in hub_of(server).windows) >= focused)
                await asyncio.sleep(0.02)
                await chatting(server, "a third one")
                assert (len(first.of("chat")), len(second.of("chat"))) == (3, 1)

    run(play)


def test_models_of_all_windows_are_listed_at_once_and_gone_with_them(server: Gateway) -> None:
    def listed(answer: Any) -> set[str]:
        return {line["id"] for line in answer.json["data"] if line["id"].startswith("vscode/")}

    async def models() -> set[str]:
        from tests.server.harness import ask

        return listed(await asyncio.to_thread(ask, server.port, "GET", "/v1/models"))

    async def play() -> None:
        assert await models() == set()
        async with window(server, None, model("copilot/gpt-4.1")) as first:
            await first.say({"type": "models", "models": [model(), model("toolwire/loop")]}, is_checked=False)
            assert await models() == {"vscode/gpt-4.1"}
            async with window(
                server, None, model("copilot/gpt-4.1"), model("other/gpt-4.1"), model("x/claude-sonnet-4.5")
            ):
                assert await models() == {"vscode/copilot/gpt-4.1", "vscode/other/gpt-4.1", "vscode/claude-sonnet-4.5"}
        assert await models() == set()

    run(play)


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4.5",
        "vscode/copilot/claude-sonnet-4.5",
        "copilot/claude-sonnet-4.5",
        "claude-sonnet-4-5-20250929",
        "vscode/sonnet",
    ],
)
def test_a_model_is_found_by_any_of_its_names(server: Gateway, name: str) -> None:
    async def play() -> None:
        async with window(server, None, model("copilot/claude-sonnet-4.5")):
            assert content_of(await chatting(server, "hello", name)) == "you said: hello"

    run(play)


def test_a_model_that_no_window_has_is_named_with_those_there_are(server: Gateway) -> None:
    async def play() -> None:
        async with window(server):
            answer = await chatting(server, name="vscode/no-such-model")
            assert answer.status == 404
            assert "copilot/gpt-4.1" in answer.json["error"]["message"]

    run(play)


def test_without_a_window_the_error_says_what_to_open(server: Gateway) -> None:
    async def play() -> None:
        answer = await chatting(server)
        assert answer.status == 503
        assert "Open VS Code" in answer.json["error"]["message"]

    run(play)


def test_stop_sequences_and_limits_are_kept_by_the_gateway(server: Gateway) -> None:
    async def long(window: FakeWindow, chat: Frame) -> None:
        await window.parts(chat, said("one two three " + "four " * 60))

    async def play() -> None:
        async with window(server, long) as opened:
            answer = await chatting(server, stop=["three"])
            assert content_of(answer) == "one two "
            assert answer.json["choices"][0]["finish_reason"] == "stop"
            answer = await chatting(server, max_tokens=2)
            assert len(content_of(answer)) == 256
            assert answer.json["choices"][0]["finish_reason"] == "length"
            await opened.wait("cancel", 2)

    run(play)


def test_usage_that_was_not_reported_is_counted_in_the_window(server: Gateway) -> None:
    async def untold(window: FakeWindow, chat: Frame) -> None:
        await window.parts(chat, said("four words are here"))
        await window.end(chat)

    async def play() -> None:
        async with window(server, untold, model("other/plain")) as opened:
            answer = await chatting(server, "three words here", "vscode/plain")
            usage = answer.json["usage"]
            assert (usage["prompt_tokens"], usage["completion_tokens"]) == (3, 4)
            assert len(opened.of("count")) == 2
            assert "usage" in answer.headers["x-toolwire-loss"]

    run(play)


def test_arguments_that_vs_code_has_emptied_are_asked_for_again() -> None:
    async def emptied(window: FakeWindow, chat: Frame) -> None:
        is_again = len(window.of("chat")) > 1
        await window.parts(chat, called("c1", "weather", **({"city": "Bern"} if is_again else {})), used())
        await window.end(chat)

    async def play(server: Gateway) -> None:
        async with window(server, emptied) as opened:
            asked = question("chat", "vscode/gpt-4.1")
            asked["tools"][0]["function"]["parameters"] = {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            }
            answer = await asking(server, PATHS["chat"], asked)
            call = answer.json["choices"][0]["message"]["tool_calls"][0]
            assert json.loads(call["function"]["arguments"]) == {"city": "Bern"}
            assert len(opened.of("chat")) == 2

    with vscode_gateway(guard="retry") as server:
        run(lambda: play(server))


def test_a_million_characters(server: Gateway) -> None:
    pieces = [f"{n:09d}," for n in range(100_000)]

    async def long(window: FakeWindow, chat: Frame) -> None:
        for start in range(0, len(pieces), 500):
            await window.parts(chat, said("".join(pieces[start : start + 500])))
        await window.parts(chat, used())
        await window.end(chat)

    async def play() -> None:
        async with window(server, long):
            assert content_of(await chatting(server)) == "".join(pieces)

    run(play)


@pytest.mark.parametrize("count", [8, 200])
def test_many_at_once(server: Gateway, count: int) -> None:
    most, now = 0, 0

    async def slow(window: FakeWindow, chat: Frame) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await window.parts(chat, said("a"))
        await asyncio.sleep(0.01)
        now -= 1
        await window.parts(chat, said(chat["messages"][0]["parts"][0]["text"]), used())
        await window.end(chat)

    async def play() -> None:
        async with window(server, slow):
            answers = await asyncio.gather(*(chatting(server, f"number {n}") for n in range(count)))
            assert [content_of(answer) for answer in answers] == [f"anumber {n}" for n in range(count)]
            assert most <= 8

    run(play)


def test_a_mute_window_costs_its_patience_and_then_comes_last() -> None:
    async def play(server: Gateway) -> None:
        async with window(server, focused=False) as other, window(server, silent) as mute:
            answer = await chatting(server)
            assert answer.status == 504
            assert (await mute.wait("cancel"))["id"] == mute.of("chat")[0]["id"]
            assert content_of(await chatting(server, "and now?")) == "you said: and now?"
            assert len(other.of("chat")) == 1

    with vscode_gateway(first_byte_timeout=0.2) as server:
        run(lambda: play(server))


def test_a_client_that_does_not_read_is_cut_off_and_others_are_served(server: Gateway) -> None:
    async def flood(window: FakeWindow, chat: Frame) -> None:
        if "flood" not in json.dumps(chat["messages"]):
            await window.parts(chat, said("fine"), used())
            await window.end(chat)
            return
        for _ in range(40):
            await window.parts(chat, said("x" * 1_000_000))

    async def play() -> None:
        async with window(server, flood) as opened:
            connection = connected(server.port, buffer=4096)
            asked = question("chat", "vscode/gpt-4.1", stream=True)
            asked["messages"][0]["content"] = "flood"
            connection.sendall(request_bytes(PATHS["chat"], asked))
            await opened.wait("cancel")
            assert content_of(await chatting(server)) == "fine"
            connection.close()

    run(play)


def test_a_name_that_no_back_end_lists_goes_to_the_windows_where_there_is_nothing_else(server: Gateway) -> None:
    async def play() -> None:
        async with window(server, None, model("copilot/claude-sonnet-4.5"), model("copilot/gpt-4.1")) as opened:
            assert content_of(await chatting(server, name="sonnet")) == "you said: hi"
            assert (await opened.wait("chat"))["model"] == "copilot/claude-sonnet-4.5"
            unknown = await chatting(server, name="llama-9")
            assert (unknown.status, unknown.json["error"]["code"]) == (404, "model_not_found")
            assert "copilot/gpt-4.1" in unknown.json["error"]["message"]

    run(play)


def test_without_a_window_the_refusal_says_so() -> None:
    with vscode_gateway() as server:

        async def play() -> None:
            unknown = await chatting(server, name="llama-9")
            assert (unknown.status, unknown.json["error"]["code"]) == (404, "model_not_found")
            assert "no VS Code window is connected" in unknown.json["error"]["message"]
            assert "Open VS Code" in unknown.json["error"]["message"]
            named = await chatting(server, name="vscode/llama-9")
            assert (named.status, named.json["error"]["code"]) == (503, "no_window")
            async with window(server):
                assert content_of(await chatting(server, name="gpt-4.1")) == "you said: hi"
            gone = await chatting(server, name="gpt-4.1")  # which VS Code is known to have
            assert (gone.status, gone.json["error"]["code"]) == (503, "no_window")
            assert (await chatting(server, name="llama-9")).status == 404

        run(play)


def test_an_agent_that_runs_in_circles_is_stopped() -> None:
    with vscode_gateway(max_requests_per_minute=2) as server:
        begun = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]

        async def asked(*more: str) -> Any:
            messages = [*begun, *({"role": "user", "content": text} for text in more)]
            return await asking(server, PATHS["chat"], {"model": "vscode/gpt-4.1", "messages": messages})

        async def play() -> None:
            async with window(server) as opened:
                assert [(await asked("c")).status, (await asked("d")).status] == [200, 200]
                refused = await asked("e")
                assert (refused.status, refused.json["error"]["code"]) == (429, "budget_exceeded")
                assert "max_requests_per_minute" in refused.json["error"]["message"]
                assert len(opened.of("chat")) == 2
                assert (await chatting(server, "another one")).status == 200

        run(play)


def opened(hub: Hub, name: str, *keys: str, focused: bool = True) -> Window:
    window = Window(hello(name, focused=focused))
    window.list_models(Models(models=tuple(map(listed, keys))))
    hub.join(window)
    return window


def played(play: Callable[[Hub], None]) -> None:
    async def main() -> None:
        play(Hub())

    asyncio.run(main())


def picked(hub: Hub, name: str = "gpt-4.1", conversation: str = "c", tried: tuple[str, ...] = ()) -> str:
    found = hub.pick(name, conversation, tried)
    return "" if found is None else found.window.id


def test_a_hub_without_windows_says_what_to_open() -> None:
    def play(hub: Hub) -> None:
        with pytest.raises(UpstreamError, match="no VS Code window") as caught:
            hub.pick("gpt-4.1", "c")
        assert caught.value.status == 503
        assert "Open VS Code" in caught.value.hint

    played(play)


def test_a_model_that_no_window_has_is_not_found() -> None:
    def play(hub: Hub) -> None:
        opened(hub, "a", "copilot/gpt-4.1")
        with pytest.raises(UpstreamError, match=r'"claude-9"; they have "copilot/gpt-4.1"') as caught:
            hub.pick("claude-9", "c")
        assert caught.value.status == 404

    played(play)


def test_where_nothing_is_lent_yet_it_is_worth_another_try() -> None:
    def play(hub: Hub) -> None:
        waking = opened(hub, "a")
        with pytest.raises(UpstreamError, match="none at all") as caught:
            hub.pick("gpt-4.1", "c")
        assert (caught.value.status, caught.value.code) == (503, "no_models")
        assert "Sign in" in caught.value.hint
        waking.list_models(Models(models=(listed(),)))
        assert picked(hub) == "a"

    played(play)


def test_the_window_that_was_in_front_last_is_asked() -> None:
    def play(hub: Hub) -> None:
        first, _, _ = (opened(hub, name, "copilot/gpt-4.1") for name in "abc")
        assert picked(hub) == "c"
        first.focus(True)
        assert picked(hub) == "a"
        assert picked(hub, tried=("a",)) == "c"
        assert picked(hub, tried=("a", "b", "c")) == ""
        opened(hub, "d", "other/x")
        assert picked(hub) == "a"

    played(play)


def test_a_conversation_stays_where_it_was() -> None:
    def play(hub: Hub) -> None:
        first, second = (opened(hub, name, "copilot/gpt-4.1") for name in "ab")
        hub.stick("c", first)
        assert (picked(hub), picked(hub, conversation="other")) == ("a", "b")
        first.list_models(Models(models=()))
        assert picked(hub) == "b"
        hub.leave(first)
        assert picked(hub) == "b"
        second.is_leaving = True
        with pytest.raises(UpstreamError):
            picked(hub)

    played(play)


def test_windows_that_do_not_answer_or_may_not_come_last() -> None:
    def play(hub: Hub) -> None:
        windows = {name: opened(hub, name, "copilot/gpt-4.1") for name in "abc"}
        windows["c"].is_mute = True
        assert picked(hub) == "b"
        windows["b"].refused.add("copilot/gpt-4.1")
        assert picked(hub) == "a"
        assert [picked(hub, tried=("a",)), picked(hub, tried=("a", "c"))] == ["c", "b"]

    played(play)


def test_models_of_all_windows_are_listed_once_and_changes_are_reported() -> None:
    def play(hub: Hub) -> None:
        told: list[list[str]] = []
        hub.changed = lambda: told.append(sorted(model.key for model in hub.models()))
        first = opened(hub, "a", "copilot/x", "copilot/y")
        opened(hub, "b", "copilot/y", "other/z")
        again = opened(hub, "a", "copilot/x")
        hub.leave(first)  # what is left of it: the window has come back
        hub.leave(again)
        assert told == [
            ["copilot/x", "copilot/y"],
            ["copilot/x", "copilot/y", "other/z"],
            ["copilot/x", "copilot/y", "other/z"],
            ["copilot/y", "other/z"],
        ]

    played(play)


def test_old_conversations_are_forgotten() -> None:
    def play(hub: Hub) -> None:
        first = opened(hub, "a", "copilot/x")
        for number in range(5000):
            hub.stick(str(number), first)
        opened(hub, "b", "copilot/x")
        assert (picked(hub, "x", "4999"), picked(hub, "x", "0")) == ("a", "b")

    played(play)


def test_what_a_conversation_is() -> None:
    def request(*texts: str, model: str = "m", owner: str = "") -> Request:
        roles = ("user", "assistant")
        messages = [Message(role=roles[n % 2], parts=(Text(text=text),)) for n, text in enumerate(texts)]  # type: ignore[arg-type] # one of the roles
        return Request(model=model, messages=tuple(messages), owner=owner)

    first = conversation_of(request("hello"))
    assert conversation_of(request("hello", "answer", "more")) == first
    others = [request("other"), request("hello", model="n"), request("hello", owner="o")]
    assert len({first, *map(conversation_of, others)}) == 4
