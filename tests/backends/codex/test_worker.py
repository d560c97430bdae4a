"""One app-server: answers find their requests, messages their threads, and its end is heard by all."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from tests.backends.codex.scripted import Scripted
from tests.backends.codex.starting import environment, fake, journal, worker
from toolwire.backends.codex.transport.process import start
from toolwire.backends.codex.worker import AppServerWorker, RequestRefused, Thread, ThreadMessage
from toolwire.backends.sessions import Overflow, SessionLost
from toolwire.wire import json_rpc as rpc

pytestmark = pytest.mark.slow


async def _heard(thread: Thread) -> list[str]:
    """The methods of what is heard, up to the end of the turn or of everything."""
    found: list[str] = []
    while not found or found[-1] not in ("turn/completed", "gone"):
        try:
            found.append((await thread.next()).method)
        except SessionLost:
            found.append("gone")
    return found


async def _begun(made: AppServerWorker, word: str) -> Thread:
    thread = await made.open("thread/start", {})
    await made.ask("turn/start", {"threadId": thread.id, "input": [{"type": "text", "text": f"DO={word}"}]})
    return thread


def test_a_thread_hears_all_of_its_turn_and_nothing_of_others(tmp_path: Path) -> None:
    async def main() -> list[list[str]]:
        made = await worker(tmp_path)
        threads = [await _begun(made, "plain") for _ in range(3)]
        heard = await asyncio.gather(*map(_heard, threads))
        await made.close()
        return heard

    heard = asyncio.run(main())
    assert all(one == heard[0] for one in heard)
    assert heard[0][:3] == ["turn/started", "item/started", "item/agentMessage/delta"]
    assert heard[0].count("item/agentMessage/delta") == 3


def test_a_refusal_is_raised_with_its_own_words(tmp_path: Path) -> None:
    async def main() -> None:
        made = await worker(tmp_path)
        try:
            await made.ask("no/such", {})
        finally:
            await made.close()

    with pytest.raises(RequestRefused, match="unknown variant `no/such`"):
        asyncio.run(main())


def test_requests_of_its_own_are_answered_and_their_ids_are_not_ours(tmp_path: Path) -> None:
    log = tmp_path / "journal"

    async def main() -> None:
        made = await worker(tmp_path, "--journal", str(log))
        for word in ("ask", "approve"):
            assert (await _heard(await _begun(made, word)))[-1] == "turn/completed"
        await made.close()

    asyncio.run(main())
    answers = [line for line in journal(log) if "method" not in line]
    assert [line["id"] for line in answers] == [0, 1]
    assert "toolwire/never/heard/of" in answers[0]["error"]["message"]


def test_a_tool_call_waits_for_a_listener(tmp_path: Path) -> None:
    log = tmp_path / "journal"

    async def main() -> list[tuple[str, rpc.Id]]:
        made = await worker(tmp_path, "--journal", str(log))
        thread = await _begun(made, "calls")
        calls = []
        while len(calls) < 2:
            message = await thread.next()
            calls += [(str(message.params["callId"]), message.id)] if isinstance(message, rpc.RpcRequest) else []
        await made.close()
        return calls

    assert asyncio.run(main()) == [("call_0", 0), ("call_1", 1)]
    assert not [line for line in journal(log) if "method" not in line]


def test_its_death_is_heard_by_every_thread_and_every_request(tmp_path: Path) -> None:
    async def main() -> tuple[list[list[str]], list[object]]:
        made = await worker(tmp_path)
        threads = [await _begun(made, "slow") for _ in range(3)]
        asking = [asyncio.create_task(made.ask("turn/interrupt/never", {"n": n})) for n in range(2)]
        os.kill(made.channel.pid, signal.SIGKILL)
        heard = await asyncio.gather(*map(_heard, threads))
        results = await asyncio.gather(*asking, return_exceptions=True)
        with pytest.raises(SessionLost, match="signal 9"):
            await made.ask("model/list", {})
        assert not made.is_alive
        await made.close()
        return heard, list(results)

    heard, results = asyncio.run(main())
    assert [one[-1] for one in heard] == ["gone"] * 3
    assert all(isinstance(result, SessionLost | RequestRefused) for result in results)


def test_one_that_does_not_introduce_itself_runs_into_its_time(tmp_path: Path) -> None:
    async def main() -> None:
        made = AppServerWorker(await start(fake("--mute"), tmp_path, environment()[0]))
        with pytest.raises(TimeoutError):
            await made.introduce({}, 0.1)
        await made.close()

    asyncio.run(main())


def test_a_dropped_thread_is_not_listened_to_and_its_calls_are_refused(tmp_path: Path) -> None:
    log = tmp_path / "journal"

    async def main() -> list[ThreadMessage]:
        made = await worker(tmp_path, "--journal", str(log))
        thread = await made.open("thread/start", {})
        made.drop(thread)
        await made.ask("turn/start", {"threadId": thread.id, "input": [{"type": "text", "text": "DO=calls"}]})
        async with asyncio.timeout(5):
            while sum("method" not in line for line in journal(log)) < 2:
                await asyncio.sleep(0.01)
        await made.close()
        return thread.ready()

    assert asyncio.run(main()) == []
    refused = next(line for line in journal(log) if "method" not in line)
    assert 'toolwire does not answer "item/tool/call"' in refused["error"]["message"]


async def _refused(answer: object) -> str:
    """What is said of this answer to a request for a thread."""
    channel = Scripted()
    made = AppServerWorker(channel)
    opening = asyncio.create_task(made.open("thread/start", {}))
    id = (await channel.heard())["id"]
    channel.say(answer if isinstance(answer, bytes) else json.dumps({"id": id, "result": answer}).encode() + b"\n")
    try:
        with pytest.raises(RequestRefused) as caught:
            await opening
        assert made.is_alive
        return str(caught.value)
    finally:
        await made.close()


@pytest.mark.parametrize("answer", [None, [], {}, {"thread": None}, {"thread": {"id": 5}}, {"thread": {"id": ""}}])
def test_an_answer_that_names_no_thread_is_a_refusal_and_no_silence(answer: object) -> None:
    assert "names no thread" in asyncio.run(_refused(answer))


# As deep as it can be read at all, wherever that is.
_DEEP = [b"[" * depth + b"]" * depth for depth in range(1000, 800, -1)]


def test_a_refusal_whose_reason_is_no_text_has_none() -> None:
    said = b"".join(b'{"id":1,"error":{"message":%b}}\n' % deep for deep in _DEEP)
    assert asyncio.run(_refused(said)) == "no reason given"


def test_a_thread_that_is_open_already_is_not_given_to_another(tmp_path: Path) -> None:
    async def main() -> None:
        channel = Scripted()
        made = AppServerWorker(channel)
        opening = [asyncio.create_task(made.open("thread/start", {})) for _ in range(2)]
        await channel.heard()
        for id in (1, 2):
            channel.tell(id=id, result={"thread": {"id": "t"}})
        thread = await opening[0]
        with pytest.raises(RequestRefused, match="open already"):
            await opening[1]
        channel.tell(method="m", params={"threadId": "t"})
        assert await thread.next() == rpc.RpcNotification(method="m", params={"threadId": "t"})
        await made.close()

    asyncio.run(main())


async def _ended(*said: bytes) -> tuple[str, int]:
    """Why a worker that hears this has given up, and how many answers of its own it has made."""
    channel = Scripted()
    channel.is_deaf = True
    made = AppServerWorker(channel)
    waiting = asyncio.create_task(made.ask("initialize", {}))
    for data in said:
        channel.say(data)
    with pytest.raises(SessionLost) as caught:
        await waiting
    answers = len(made._responding)
    await made.close()
    return str(caught.value), answers


def test_one_that_writes_anything_but_messages_is_given_up_at_once() -> None:
    story, _ = asyncio.run(_ended(b"y\n" * 100_000))
    assert story.startswith("it does not write what an app-server does: it is not JSON")


def test_a_banner_is_passed_over(tmp_path: Path) -> None:
    async def main() -> None:
        channel = Scripted()
        made = AppServerWorker(channel)
        for _ in range(10):
            channel.say(b"a line\n" * 500 + b'{"method":"m"}\n')
        asking = asyncio.create_task(made.ask("initialize", {}))
        await channel.heard()
        channel.tell(id=1, result=5)
        assert await asking == 5
        await made.close()

    asyncio.run(main())


def test_a_message_that_was_too_long_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc.LineReader.__init__, "__defaults__", (1000,))
    story, _ = asyncio.run(_ended(b"x" * 600, b"x" * 600))
    assert "longer than 1000 bytes" in story


def test_one_that_asks_and_does_not_read_is_given_up() -> None:
    asked = b"".join(b'{"id":%d,"method":"a/b"}\n' % id for id in range(5000))
    story, answers = asyncio.run(_ended(asked))
    assert story == "it sends requests without reading the responses."
    assert answers == 1000


def test_an_unclaimed_result_runs_into_its_time() -> None:
    async def main() -> None:
        channel = Scripted()
        channel.is_deaf = True
        made = AppServerWorker(channel)
        with pytest.raises(TimeoutError):
            await made.reply(1, {}, 0.01)
        await made.close()

    asyncio.run(main())


def test_unread_output_is_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.worker._MAX_BYTES", 1000)

    async def main() -> None:
        thread = Thread({})
        assert all(thread.put(rpc.RpcNotification(method="m"), 500) for _ in range(2))
        assert not thread.put(rpc.RpcNotification(method="m"), 1)
        with pytest.raises(Overflow):
            await thread.next()

    asyncio.run(main())


def test_messages_without_a_thread_are_dropped() -> None:
    async def main() -> None:
        channel = Scripted()
        made = AppServerWorker(channel)
        for id in (b"null", b"[]", b"{}", b"7", *_DEEP):
            channel.say(b'{"method":"m","params":{"threadId":%b}}\n' % id)
            channel.say(b'{"id":9,"method":"item/tool/call","params":{"threadId":%b}}\n' % id)
        channel.say(b'{"id":10,"method":"item/tool/call"}\n')
        async with asyncio.timeout(5):
            while (await channel.heard())["id"] != 10:
                await asyncio.sleep(0)
        assert made.is_alive
        await made.close()

    asyncio.run(main())
