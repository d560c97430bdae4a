"""Cursor: what went wrong, as an error with the status that says who must act.

A fault has a code of Connect's, which is often wrong ("resource_exhausted" is also said of a client that is too old), and may have
details with a name of Cursor's own, which decides. Where there is no name the words are asked, and the code comes last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from google.protobuf.message import DecodeError
from msgspec import Struct

from ....errors import UpstreamError, quote
from ....types import Json
from ....wire.connect import BROKE_OFF, Detail, Fault, fault_of
from ....wire.exact_json import BadJson, decode
from . import agent
from .error_table import BARE, BY_CODE, BY_NAME, BY_STATUS, BY_WORDS, CUT, OUTDATED, POLICY, UNKNOWN, Kind

_READ = 2000  # letters of a server's words that are looked at
_SECRET = re.compile(
    r"eyJ[\w-]{8,}(?:\.[\w-]+){0,2}|\bbearer\s+\S+|\b(?:user|key|crsr|sk)[_-][\w%.:-]{12,}",
    re.IGNORECASE | re.ASCII,
)
_WAIT = re.compile(
    r"\b(?:try again|retry|wait|resets?) (?:in |after |for )?(\d{1,6}(?:\.\d{1,3})?) ?"
    r"(ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b",
    re.IGNORECASE,
)
_SECONDS = {"ms": 0.001, "mi": 60.0, "m": 60.0, "h": 3600.0, "ho": 3600.0}  # by the first two letters
_NOTHING = frozenset({"", "error", "resource_exhausted"})


class Told(Struct, frozen=True, kw_only=True):
    """What the details say: is_retryable None is nothing."""

    name: str = ""
    words: str = ""
    is_retryable: bool | None = None


def error_of(fault: Fault, *, has_spoken: bool) -> UpstreamError:
    """has_spoken: something of the model was seen, so the request must not be sent again."""
    told = _told(fault.details)
    words = _safe(told.words or fault.message)
    kind = _kind(fault, told, words)
    is_retryable = kind.is_retryable if told.is_retryable is None or kind.is_final else told.is_retryable
    return _error(kind, words, fault.code, is_retryable and not has_spoken)


def error_of_status(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> UpstreamError:
    """A refusal before any stream; its body is a fault, something else, or nothing."""
    value = _json(body)
    if b"sign_in_policy_violation" in body[:_READ]:
        return _error(POLICY, "", "", False)
    if isinstance(value, dict) and isinstance(value.get("code"), str):
        error = error_of(fault_of(value), has_spoken=False)
    else:
        words = _safe(_words_in(value) or body[:_READ].decode("utf-8", "replace").strip())
        kind = _by_words(words) or BY_STATUS.get(status) or _generic(status)
        error = _error(kind, words, f"HTTP status {status}", kind.is_retryable)
    wait = (headers or {}).get("retry-after", "")
    return error if not wait.isdecimal() or error.status != 429 else _with_wait(error, wait)


def _kind(fault: Fault, told: Told, words: str) -> Kind:
    kind = BY_NAME.get(told.name)
    if kind is not None and kind.status == 429 and _by_words(words) is OUTDATED:
        return OUTDATED  # some limit's name, and the words that say what is meant
    if kind is not None:
        return kind
    if fault.code == "unavailable" and fault.message.startswith(BROKE_OFF):
        return CUT
    if (kind := _by_words(words)) is not None:
        return kind
    if fault.code == "resource_exhausted" and not told.name and words.lower() in _NOTHING:
        return BARE
    return BY_CODE.get(fault.code, UNKNOWN)


def _by_words(words: str) -> Kind | None:
    return next((kind for pattern, kind in BY_WORDS if pattern.search(words)), None)


def _generic(status: int) -> Kind:
    if 400 <= status < 500:
        return Kind(status, "upstream_error", "Cursor refused the request")
    is_passing = status in (500, 502, 503, 504, 529)
    return Kind(
        status if 500 <= status < 600 else 502, "upstream_error", "Cursor's service failed", is_retryable=is_passing
    )


def _error(kind: Kind, words: str, code: str, is_retryable: bool) -> UpstreamError:
    if words.lower() in _NOTHING:
        said = f" ({quote(code)}, and no more was said)" if code else ""
    else:
        said = f": it says {quote(words.rstrip('.'))}"
    return UpstreamError(
        f"{kind.what}{said}.",
        status=kind.status,
        code=kind.code,
        hint=kind.hint,
        headers=_headers(words) if kind.status == 429 else None,
        retryable=is_retryable,
    )


def _headers(words: str) -> dict[str, str] | None:
    found = _WAIT.search(words)
    if found is None:
        return None
    seconds = float(found.group(1)) * _SECONDS.get(found.group(2).lower()[:2], 1.0)
    return {"retry-after": str(max(1, round(seconds + 0.49)))}


def _with_wait(error: UpstreamError, wait: str) -> UpstreamError:
    error.headers["retry-after"] = wait[:9]
    return error


def _told(details: tuple[Detail, ...]) -> Told:
    """The first of them that says anything, in JSON or in protobuf."""
    for detail in details:
        for told in (_from_debug(detail.debug), _from_message(detail)):
            if told.name or told.words:
                return told
    return Told()


def _from_debug(debug: Json) -> Told:
    if not isinstance(debug, dict):
        return Told()
    name, inside = debug.get("error"), debug.get("details")
    inside = inside if isinstance(inside, dict) else {}
    is_retryable = inside.get("isRetryable")
    return Told(
        name=name[:_READ] if isinstance(name, str) else "",
        words=_joined(inside.get("title"), inside.get("detail")),
        is_retryable=is_retryable if isinstance(is_retryable, bool) else None,
    )


def _from_message(detail: Detail) -> Told:
    if not detail.type.endswith("ErrorDetails"):
        return Told()
    try:
        message = agent.ErrorDetails.FromString(detail.value)
    except DecodeError:
        return Told()
    known = agent.ErrorDetails_Error.DESCRIPTOR.values_by_number.get(message.error)
    inside = message.details
    return Told(
        name=known.name if known is not None and message.error else "",
        words=_joined(inside.title, inside.detail),
        is_retryable=inside.is_retryable if inside.HasField("is_retryable") else None,
    )


def _joined(title: Json, detail: Json) -> str:
    parts = [part.strip()[:_READ] for part in (title, detail) if isinstance(part, str) and part.strip()]
    return ": ".join(dict.fromkeys(parts))


def _safe(words: str) -> str:
    """Without what looks like a token or a key: a server may say again what it was sent."""
    return _SECRET.sub("[secret]", words[:_READ]).strip()


def _json(body: bytes) -> Json:
    try:
        return decode(body) if body[:1] == b"{" else None
    except BadJson:
        return None


def _words_in(value: Json) -> str:
    """The usual places: message, or error, which may hold it."""
    for key in ("message", "error", "detail"):
        inside = value.get(key) if isinstance(value, dict) else None
        if isinstance(inside, str) and inside:
            return inside
        if isinstance(inside, dict) and (found := _words_in(inside)):
            return found
    return ""
