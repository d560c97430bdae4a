"""What a command works with, and the probe that looks for local servers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.listener import http, listening
from toolwire.catalog.discovery import ACCOUNTS
from toolwire.catalog.found import found_config, probe

LISTING = b'{"object": "list", "data": [{"id": "llama"}, {"id": 3}, "x", {"id": "qwen"}]}'


def probed(answer: bytes, key: str = "") -> tuple[list[str] | None, bytes]:
    async def main() -> tuple[list[str] | None, bytes]:
        async with listening(answer) as listener:
            ids = await probe(f"http://127.0.0.1:{listener.port}/v1/models", key)
            return ids, listener.requests[0]

    return asyncio.run(main())


def test_a_model_list_is_known_by_its_data() -> None:
    ids, request = probed(http(LISTING))
    assert ids == ["llama", "qwen"]
    assert request.startswith(b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Authorization" not in request


def test_a_key_is_sent_when_there_is_one() -> None:
    assert b"\r\nAuthorization: Bearer tw-1\r\n" in probed(http(LISTING), "tw-1")[1]


def test_a_chunked_answer_and_one_that_ends_with_the_connection() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(LISTING), LISTING)
    assert probed(chunked)[0] == ["llama", "qwen"]
    assert probed(b"HTTP/1.1 200 OK\r\n\r\n" + LISTING)[0] == ["llama", "qwen"]


@pytest.mark.parametrize(
    "answer",
    [
        http(b'{"error": "no"}', "404 Not Found"),
        http(LISTING, "401 Unauthorized"),
        http(b"<html>"),
        http(b"[]"),
        http(b'{"data": {}}'),
        http(b"\xff"),
        http(b"[" * 100_000),
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
        b"",
    ],
)
def test_anything_else_is_no_model_list(answer: bytes) -> None:
    assert probed(answer)[0] is None


@pytest.mark.slow
def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    assert probed(http(b" " * (5 * 1024 * 1024)))[0] is None


def test_a_closed_port() -> None:
    async def main() -> None:
        async with listening(b"") as listener:
            port = listener.port
        await probe(f"http://127.0.0.1:{port}/v1/models")

    with pytest.raises(OSError):
        asyncio.run(main())


def test_discovery_is_only_for_where_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    for account in ACCOUNTS:
        monkeypatch.delenv(account.key, raising=False)
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    monkeypatch.setattr("toolwire.catalog.discovery.LOCAL_PORTS", {})
    found = asyncio.run(found_config(None))
    assert [backend.name for backend in found.backends] == ["openrouter", "demo"]
    assert found.server.default == "openrouter"
    Path("toolwire.toml").write_text("")
    assert [backend.name for backend in asyncio.run(found_config(None)).backends] == ["demo"]
