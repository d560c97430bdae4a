"""The door at /bridge: who is let in."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.backends.vscode.stage import (
    TOKEN,
    FakeWindow,
    Frame,
    Refused,
    connect,
    hub_of,
    model,
    said,
    until,
    used,
    vscode_gateway,
    window,
)
from tests.server import harness
from tests.server.harness import Gateway, Process, ask, connected, process, raw, request_bytes
from toolwire.backends.vscode import bridge as bridge_module
from toolwire.backends.vscode.token import token_path
from toolwire.server.app import App


def refused(server: Gateway, **options: Any) -> Refused:
    async def main() -> Refused:
        with pytest.raises(Refused) as caught:
            await connect(server.port, **options)
        return caught.value

    return asyncio.run(main())


def test_a_window_with_the_token_is_welcome(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as opened:
            assert opened.of("welcome")[0]["v"] == 1
            for host in ("localhost", f"localhost:{server.port}", "[::1]:1", "127.0.0.2"):
                other = await connect(server.port, headers={"Host": host})
                await other.close()

    asyncio.run(main())


@pytest.mark.parametrize("token", ["wrong", "", f"{TOKEN}x", TOKEN[:-1], TOKEN.upper(), "é"])
def test_any_other_token_is_refused_without_revealing_the_right_one(server: Gateway, token: str) -> None:
    found = refused(server, headers={"Authorization": f"Bearer {token}" if token else ""})
    assert found.status == 401
    assert TOKEN not in found.body
    assert "bridge-token" in found.body


@pytest.mark.parametrize(
    "origin", ["https://evil.example", f"http://127.0.0.1:{1}", "null", "vscode-webview://x", "http://localhost"]
)
def test_no_page_is_let_in_whatever_it_knows(server: Gateway, origin: str) -> None:
    found = refused(server, headers={"Origin": origin})
    assert found.status == 403
    assert "page" in found.body


def test_a_page_is_refused_before_its_token_is_looked_at(server: Gateway) -> None:
    assert refused(server, headers={"Origin": "https://evil.example", "Authorization": ""}).status == 403


@pytest.mark.parametrize("host", ["evil.example", "10.0.0.1", "0.0.0.0", "[", "localhost.evil.example"])
def test_another_name_for_this_machine_is_refused(server: Gateway, host: str) -> None:
    assert refused(server, headers={"Host": host}).status == 403


def test_a_request_without_a_host_is_refused(server: Gateway) -> None:
    head = "GET /bridge HTTP/1.0\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    answer = raw(
        server.port, f"{head}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n".encode()
    )
    assert answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400", b"HTTP/1.1 404"))


def test_another_machine_is_refused() -> None:
    async def main() -> None:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]
        with vscode_gateway() as running:
            for client in (("192.168.1.5", 1), None):
                scope = {"type": "websocket", "path": "/bridge", "headers": headers, "client": client}
                await running.app.mounts["/bridge"].serve(scope, receive, send)
        assert [message["status"] for message in sent if "status" in message] == [403, 403]

    asyncio.run(main())


def test_no_other_path_becomes_a_socket(server: Gateway) -> None:
    for path in ("/v1/models", "/bridges", "/bridge/", "/v1/bridge"):
        with pytest.raises(Refused) as caught:
            asyncio.run(connect(server.port, path=path))
        assert caught.value.status in (200, 404)


def test_a_plain_request_gets_the_list_of_windows(server: Gateway) -> None:
    async def main() -> None:
        assert (await asyncio.to_thread(ask, server.port, "GET", "/bridge")).json == {"windows": []}
        async with window(server, None, model("copilot/a"), model("copilot/b")):
            listed = (await asyncio.to_thread(ask, server.port, "GET", "/bridge")).json
            assert listed == {"windows": [{"vscode": "1.139.1", "extension": "0.1.0", "models": 2}]}

    asyncio.run(main())
    assert ask(server.port, "POST", "/bridge", {}).status == 405
    for origin in ("https://example.com", "http://127.0.0.1:3000", "null"):
        assert ask(server.port, "GET", "/bridge", headers={"origin": origin}).status == 403


def test_without_the_variable_the_file_has_the_token(
    server: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TOOLWIRE_BRIDGE_TOKEN")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert refused(server).status == 401

    async def main() -> None:
        opened = await connect(server.port, token=token_path().read_text().strip())
        await opened.close()

    asyncio.run(main())


def test_a_token_that_cannot_be_kept_is_said(server: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "toolwire").write_text("a file where the folder must be")
    monkeypatch.delenv("TOOLWIRE_BRIDGE_TOKEN")
    monkeypatch.setattr(bridge_module, "bridge_token", lambda environ: _bridge_token(tmp_path))
    found = refused(server)
    assert found.status == 503
    assert "cannot be stored" in found.body


def _bridge_token(folder: Path) -> str:
    from toolwire.backends.vscode.token import bridge_token

    return bridge_token({}, folder / "toolwire" / "bridge-token")


def test_too_many_windows_are_sent_away(server: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "_MAX_WINDOWS", 1)

    async def main() -> None:
        async with window(server):
            other = await connect(server.port)
            other.start()
            await other.hello()
            assert (await other.gone())[0] == 1013
            await other.close()

    asyncio.run(main())


def test_a_window_that_reconnects_takes_its_own_place(server: Gateway) -> None:
    async def main() -> None:
        async with window(server) as old:
            new = await connect(server.port)
            new.start()
            await new.hello(window=old.id)
            await new.wait("welcome")
            assert (await old.gone())[0] == 4002
            await asyncio.sleep(0.05)
            assert [known.id for known in hub_of(server).windows] == [old.id]
            await new.close()
            await until(lambda: not hub_of(server).windows)

    asyncio.run(main())


def test_nothing_secret_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with vscode_gateway() as running:
        refused(running, headers={"Authorization": "Bearer another-secret"})

        async def main() -> None:
            async with window(running):
                pass

        asyncio.run(main())
    logged = capfd.readouterr().err
    assert "refused a connection" in logged
    assert "another-secret" not in logged
    assert TOKEN not in logged


def test_an_app_that_has_not_started_has_no_door() -> None:
    from toolwire.config.file import Config

    app = App(Config())
    assert not app.mounts
    app.close_log()


@pytest.mark.slow
def test_a_gateway_that_was_killed_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By `toolwire serve` as people start it, with the token that it has made."""
    vscode = '[backends.vscode]\nkind = "vscode"\n'

    async def joined(running: Process) -> FakeWindow:
        token = next(tmp_path.glob("**/bridge-token")).read_text().strip()
        opened = await connect(running.port, token=token)
        opened.start()
        await opened.hello()
        await opened.wait("welcome")
        await opened.lend(model())
        return opened

    async def asked(running: Process) -> str:
        body = {"model": "vscode/gpt-4.1", "messages": [{"role": "user", "content": "hi"}]}
        while True:
            answer = await asyncio.to_thread(ask, running.port, "POST", "/v1/chat/completions", body)
            if answer.status == 200:
                return str(answer.json["choices"][0]["message"]["content"])

    async def main() -> None:
        with process(tmp_path, vscode) as running:
            opened = await joined(running)
            assert await asked(running) == "you said: hi"
            running.process.kill()
            assert (await opened.gone())[0] == 1006
            await opened.close()
        monkeypatch.setattr(harness, "free_port", lambda: running.port)
        with process(tmp_path, vscode) as again:
            opened = await joined(again)
            assert await asked(again) == "you said: hi"
            again.process.terminate()
            assert (await opened.gone())[0] == 1001
            await opened.close()
            assert await asyncio.to_thread(again.process.wait, 10) == 0

    asyncio.run(main())


@pytest.mark.slow
def test_memory_is_flat_over_ten_thousand_requests(tmp_path: Path) -> None:
    async def some(port: int, count: int) -> None:
        def one_after_the_other() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            for number in range(count // 4):
                body = {"model": "vscode/gpt-4.1", "messages": [{"role": "user", "content": f"number {number}"}]}
                connection.request(
                    "POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"}
                )
                response = connection.getresponse()
                data = response.read()
                assert response.status == 200, data
            connection.close()

        await asyncio.gather(*(asyncio.to_thread(one_after_the_other) for _ in range(4)))

    async def main() -> None:
        with process(
            tmp_path,
            '[server]\nlog = "warning"\n[flows]\nenabled = false\n[store]\nkind = "memory"\n[backends.vscode]\nkind = "vscode"\n',
        ) as running:
            opened = await connect(running.port, token=next(tmp_path.glob("**/bridge-token")).read_text().strip())
            opened.start()
            await opened.hello()
            await opened.lend(model())
            await opened.wait("welcome")
            await asyncio.sleep(0.1)
            await some(running.port, 2000)
            before = running.memory
            await some(running.port, 10_000)
            grown = running.memory - before
            print(f"grown by {grown / 10_000:.0f} bytes a request, {grown / 1e6:.2f} MB in all")
            opened.frames.clear()
            assert grown < 8_000_000
            await opened.close()

    asyncio.run(main())


@pytest.mark.slow
def test_how_long_a_part_is_on_its_way(tmp_path: Path) -> None:
    """From a window's socket to a client's: printed, because what a machine does meanwhile is not ours to test."""
    count = 300
    sent: list[float] = []

    async def paced(window: FakeWindow, chat: Frame) -> None:
        for number in range(count):
            sent.append(time.perf_counter())
            await window.parts(chat, said(f"<{number}>"))
            await asyncio.sleep(0.005)
        await window.parts(chat, used())
        await window.end(chat)

    def read(port: int, came: list[float]) -> bytes:
        with connected(port) as connection:
            messages = [{"role": "user", "content": "go"}]
            body = {"model": "vscode/gpt-4.1", "stream": True, "messages": messages}
            connection.sendall(request_bytes("/v1/chat/completions", body))
            data = b""
            while b"[DONE]" not in data:
                data += connection.recv(65536)
                while len(came) < count and f"<{len(came)}>".encode() in data:
                    came.append(time.perf_counter())
            return data

    async def main() -> None:
        with process(tmp_path, '[store]\nkind = "memory"\n[backends.vscode]\nkind = "vscode"\n') as running:
            token = next(tmp_path.glob("**/bridge-token")).read_text().strip()
            opened = await connect(running.port, paced, token=token)
            opened.start()
            await opened.hello()
            await opened.lend(model())
            await opened.wait("welcome")
            await asyncio.sleep(0.1)
            came: list[float] = []
            await asyncio.to_thread(read, running.port, came)
            assert (len(sent), len(came)) == (count, count)
            ways = sorted(end - start for start, end in zip(sent, came, strict=True))
            print(f"median {ways[count // 2] * 1000:.2f} ms, 95 of 100 within {ways[count * 95 // 100] * 1000:.2f} ms")
            await opened.close()

    asyncio.run(main())
