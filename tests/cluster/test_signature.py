"""Requests between processes: only with the secret, for one process, one path and one body, and once."""

from __future__ import annotations

import pytest

from toolwire.cluster.signature import MAX_AGE, ClusterSigner, NonceMemory

SIGNER = ClusterSigner("secret")
HEADER = SIGNER.sign("p1", "/run", b"body", now=1000.0, nonce="n1")


def test_a_signed_request_is_accepted_once() -> None:
    found = SIGNER.nonce_of(HEADER, "p1", "/run", b"body")
    assert found == ("n1", 1000.0)
    memory = NonceMemory()
    assert memory.accept(*found, now=1000.0 + MAX_AGE)
    assert not memory.accept(*found, now=1000.0 + MAX_AGE)


@pytest.mark.parametrize("now", [1000.0 + MAX_AGE + 1, 1000.0 - MAX_AGE - 1])
def test_an_old_request_is_refused(now: float) -> None:
    assert not NonceMemory().accept("n1", 1000.0, now)


def test_numbers_are_forgotten_when_their_requests_are_too_old_anyway() -> None:
    memory = NonceMemory()
    assert all(memory.accept(str(number), 1000.0, 1000.0) for number in range(100))
    assert memory.accept("later", 2000.0, 2000.0)
    assert not memory.accept("0", 1000.0, 2000.0)


@pytest.mark.parametrize(
    ("header", "process", "path", "body"),
    [
        (HEADER, "p2", "/run", b"body"),
        (HEADER, "p1", "/models", b"body"),
        (HEADER, "p1", "/run", b"other"),
        (HEADER.replace("n1", "n2"), "p1", "/run", b"body"),
        (HEADER.replace("1000.000", "1001.000"), "p1", "/run", b"body"),
        (ClusterSigner("other").sign("p1", "/run", b"body", now=1000.0, nonce="n1"), "p1", "/run", b"body"),
        ("", "p1", "/run", b"body"),
        ("Toolwire x y z", "p1", "/run", b"body"),
        ("Bearer key", "p1", "/run", b"body"),
        ("Toolwire é é é", "p1", "/run", b"body"),
    ],
)
def test_anything_else_is_refused(header: str, process: str, path: str, body: bytes) -> None:
    assert SIGNER.nonce_of(header, process, path, body) is None


def test_the_response_proves_the_secret_too() -> None:
    assert SIGNER.is_proof(SIGNER.proof("n1"), "n1")
    assert not SIGNER.is_proof(SIGNER.proof("n2"), "n1")
    assert not SIGNER.is_proof("", "n1")
    assert "secret" not in HEADER
