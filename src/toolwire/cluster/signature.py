"""Authenticates requests between processes of one cluster by a shared secret, which is never sent.

A request has a time, a random number and a MAC over both, the path, the process it is meant for and the body. A response has a MAC over the
number of its request. So neither can be made without the secret, sent to another process, or used twice.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from hashlib import blake2b, sha256

MAX_AGE = 60.0  # seconds; clocks of the machines may differ by this much
_MOST_NONCES = 100_000


class ClusterSigner:
    def __init__(self, secret: str) -> None:
        self._key = blake2b(secret.encode(), digest_size=32, person=b"toolwire-cluster").digest()

    def sign(self, process: str, path: str, body: bytes, *, now: float, nonce: str) -> str:
        """The value of the authorization header."""
        return f"Toolwire {now:.3f} {nonce} {self._mac('request', f'{now:.3f}', nonce, process, path, _digest(body))}"

    def proof(self, nonce: str) -> str:
        """What the response to a request with this number contains."""
        return self._mac("response", nonce)

    def is_proof(self, given: str, nonce: str) -> bool:
        return hmac.compare_digest(given.encode(), self.proof(nonce).encode())

    def nonce_of(self, header: str, process: str, path: str, body: bytes) -> tuple[str, float] | None:
        """The number and the time of a request that was made with the secret; None for any other."""
        words = header.split(" ")
        if len(words) != 4 or words[0] != "Toolwire" or not header.isascii():
            return None
        _, time, nonce, given = words
        try:
            made = float(time)
        except ValueError:
            return None
        expected = self._mac("request", time, nonce, process, path, _digest(body))
        return (nonce, made) if hmac.compare_digest(given.encode(), expected.encode()) else None

    def _mac(self, *values: str) -> str:
        text = "".join(f"{len(value)} {value}" for value in values)
        return hmac.new(self._key, text.encode(), sha256).hexdigest()


class NonceMemory:
    """Numbers of recent requests: each is accepted once."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, float] = OrderedDict()

    def accept(self, nonce: str, made: float, now: float) -> bool:
        while self._seen and (next(iter(self._seen.values())) < now - 2 * MAX_AGE or len(self._seen) >= _MOST_NONCES):
            self._seen.popitem(last=False)
        if abs(now - made) > MAX_AGE or nonce in self._seen:
            return False
        self._seen[nonce] = now
        return True


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=32).hexdigest()
