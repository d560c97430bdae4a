"""Fake signatures of providers: the generator creates them, and the strict upstream accepts no others."""

from __future__ import annotations

from hashlib import blake2b


def signature_of(thought: str) -> str:
    """The signature of a thinking block, by its text."""
    return "EqoB" + blake2b(thought.encode("utf-8", "surrogatepass"), digest_size=24).hexdigest()


def encrypted_of(item_id: str) -> str:
    """The encrypted content of a reasoning item."""
    return "gAAAA" + blake2b(item_id.encode(), digest_size=24).hexdigest()


def redacted_of(number: int) -> str:
    return "EmwK" + blake2b(str(number).encode(), digest_size=24).hexdigest()


def is_redacted(data: str) -> bool:
    return data.startswith("EmwK") and len(data) == 52
