"""The internal listener: nothing without the secret, nothing for strangers, and bounded bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from toolwire.cluster.client import PROOF
from toolwire.cluster.endpoint import ClusterEndpoint
from toolwire.cluster.signature import ClusterSigner

SIGNER = ClusterSigner("secret")


def ask(endpoint: ClusterEndpoint, path: str, body: bytes, header: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the response."""

    async def main() -> tuple[int, dict[str, str], bytes]:
        sent: list[Any] = []
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            if not messages:
                await asyncio.Event().wait()
            return messages.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        await endpoint({"type": "http", "path": path, "headers": [(b"authorization", header.encode())]}, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])

    return asyncio.run(main())


def endpoint(heartbeat: float = 5.0) -> ClusterEndpoint:
    return ClusterEndpoint("p1", SIGNER, 1000, clock=lambda: 1000.0, heartbeat=heartbeat)


def signed(path: str, body: bytes, nonce: str = "n") -> str:
    return SIGNER.sign("p1", path, body, now=1000.0, nonce=nonce)


def test_only_signed_requests_are_answered_and_each_once() -> None:
    tested = endpoint()
    assert ask(tested, "/run", b"{}", "Bearer x")[0] == 401
    status, headers, body = ask(tested, "/run", b"{}", signed("/run", b"{}"))
    assert (status, headers[PROOF]) == (200, SIGNER.proof("n"))
    assert b'"error"' in body
    assert ask(tested, "/run", b"{}", signed("/run", b"{}"))[0] == 401


@pytest.mark.parametrize(("path", "body", "status"), [("/nowhere", b"", 404), ("/run", b"x" * 1001, 400)])
def test_other_paths_and_large_bodies_are_refused(path: str, body: bytes, status: int) -> None:
    assert ask(endpoint(), path, body, signed(path, body))[0] == status


def test_heartbeats_are_sent_while_an_answer_waits() -> None:
    tested = endpoint(heartbeat=0.01)

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"one"
        await asyncio.sleep(0.05)
        yield b"two"

    tested.follow = lambda owner, id, after: pieces() if (owner, id, after) == ("ann", "r", 3) else None
    body = b'{"owner":"ann","id":"r","after":3}'
    found = ask(tested, "/follow", body, signed("/follow", body))[2]
    assert found.startswith(b"one: \n\n")
    assert found.endswith(b"two")
    body = b'{"owner":"ann","id":"other"}'
    assert ask(tested, "/follow", body, signed("/follow", body, "m"))[0] == 404
