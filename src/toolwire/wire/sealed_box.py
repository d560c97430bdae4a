"""Bytes that a client stores for the gateway: encrypted and authenticated with a secret, for one context.

Encrypt-then-MAC from the standard library: the keystream is SHAKE-256 over a key and a nonce, the tag HMAC-SHA-256. Both keys are derived
with HMAC from the secret and the context, so a box of one context (such as a tenant) does not open in another. The nonce is an argument, and
must be random: 16 bytes do not repeat.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

NONCE = 16  # bytes
_TAG = 32


def seal(data: bytes, secret: bytes, context: bytes, nonce: bytes) -> bytes:
    encrypting, authenticating = _keys(secret, context)
    sealed = nonce + _crypt(data, encrypting, nonce)
    return sealed + hmac.digest(authenticating, sealed, "sha256")


def open_box(box: bytes, secrets: Iterable[bytes], context: bytes) -> bytes | None:
    """None if none of the secrets opens it for this context."""
    sealed, tag = box[:-_TAG], box[-_TAG:]
    if len(sealed) < NONCE:
        return None
    for secret in secrets:
        encrypting, authenticating = _keys(secret, context)
        if hmac.compare_digest(hmac.digest(authenticating, sealed, "sha256"), tag):
            return _crypt(sealed[NONCE:], encrypting, sealed[:NONCE])
    return None


def _keys(secret: bytes, context: bytes) -> tuple[bytes, bytes]:
    base = hmac.digest(secret, b"toolwire sealed box 1\0" + context, "sha256")
    return hmac.digest(base, b"encrypt", "sha256"), hmac.digest(base, b"authenticate", "sha256")


def _crypt(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """The same in both directions."""
    size = len(data)
    stream = hashlib.shake_256(key + nonce).digest(size)
    return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")
