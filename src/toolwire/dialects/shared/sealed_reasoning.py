"""Reasoning for clients of another dialect: signatures and encrypted content go into the one opaque member that the client
sends back, under a seal that only the gateway reads. A seal never reaches a back end."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence

from ...types import Json, JsonObject, Reasoning
from ...wire.exact_json import BadJson, decode, encode

MARK = "tw1."
WIRE_MARK = b'"tw1.'  # in the bytes of a request: a quick test for seals
_STANDARD = str.maketrans("-_", "+/")


def seal(parts: Sequence[Reasoning]) -> str:
    """What the client's dialect cannot express of this reasoning besides its text."""
    return MARK + b64encode(encode([_entry(part) for part in parts])).decode()


def is_sealed(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(MARK)


def unseal(value: str, texts: Sequence[str]) -> list[Reasoning]:
    """The original reasoning, with the texts that the client sent back; only the texts if their number differs."""
    entries = _entries(value)
    if entries is None or sum(1 for entry in entries if entry.get("t")) != len(texts):
        return [Reasoning(text=text) for text in texts]
    rest = iter(texts)
    return [_thought(entry, next(rest) if entry.get("t") else "") for entry in entries]


def sealed_out(part: Reasoning) -> str:
    """A signature of another dialect, in base64, which clients of this one send back unchanged; "" if there is none."""
    is_proven = part.signature or part.redacted or part.encrypted
    return b64encode(seal([part]).encode()).decode() if is_proven else ""


def sealed_in(signature: str) -> str:
    """The seal in a signature, "" if it is the provider's own; some clients use the other base64 alphabet."""
    if not signature.startswith("dHcxL"):  # as every seal begins
        return ""
    try:
        seal_text = b64decode(signature.translate(_STANDARD) + "=" * (-len(signature) % 4)).decode("ascii")
    except ValueError:
        return ""
    return seal_text if is_sealed(seal_text) else ""


def _entry(part: Reasoning) -> JsonObject:
    members = {
        "t": bool(part.text),
        "s": part.signature,
        "r": part.redacted,
        "e": part.encrypted,
        "i": part.item_id,
        "m": part.is_summary,
        "d": list(part.extra),
    }
    return {key: value for key, value in members.items() if value}


def _entries(value: str) -> list[JsonObject] | None:
    try:
        entries = decode(b64decode(value[len(MARK) :], validate=True))
    except (Base64Error, BadJson, ValueError):
        return None
    is_right = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    return entries if is_right else None


def _thought(entry: JsonObject, text: str) -> Reasoning:
    dialects = entry.get("d")
    return Reasoning(
        text=text,
        signature=_text(entry, "s"),
        redacted=_text(entry, "r"),
        encrypted=_text(entry, "e"),
        item_id=_text(entry, "i") or "",
        is_summary=entry.get("m") is True,
        extra={str(name): {} for name in dialects} if isinstance(dialects, list) else {},
    )


def _text(entry: JsonObject, key: str) -> str | None:
    value = entry.get(key)
    return value if isinstance(value, str) and value else None
