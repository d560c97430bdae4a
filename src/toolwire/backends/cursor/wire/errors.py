"""Faults of the service as errors whose status says who must act.

A fault has a code of Connect's, which is often wrong ("resource_exhausted" may also mean that the client is too old), and may have
details with a name of Cursor's own, which takes precedence. Without a name the text decides, and the code comes last. The kinds are
in errors.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pkgutil import get_data

import msgspec
from google.protobuf.message import DecodeError
from msgspec import Struct

from ....errors import UpstreamError, quote
from ....types import Json
from ....wire.connect import BROKE_OFF, ConnectFault, Detail, fault_of
from ....wire.exact_json import BadJson, decode
from . import agent

_MAX_TEXT = 2000  # characters of a server's text that are read
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
_NO_TEXT = frozenset({"", "error", "resource_exhausted"})


class ErrorKind(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of errors.toml."""

    status: int
    code: str
    what: str
    hint: str = ""
    is_retryable: bool = False
    is_final: bool = False
    names: tuple[str, ...] = ()
    text: str = ""
    codes: tuple[str, ...] = ()
    http: tuple[int, ...] = ()


KINDS: dict[str, ErrorKind] = msgspec.convert(
    tomllib.loads((get_data(__package__, "errors.toml") or b"").decode()), dict[str, ErrorKind]
)
BY_NAME = {f"ERROR_{name}": kind for kind in KINDS.values() for name in kind.names}
BY_TEXT = [(re.compile(kind.text, re.IGNORECASE), kind) for kind in KINDS.values() if kind.text]
BY_CODE = {code: kind for kind in KINDS.values() for code in kind.codes}
BY_STATUS = {status: kind for kind in KINDS.values() for status in kind.http}


class _Details(Struct, frozen=True, kw_only=True):
    """is_retryable is None if the server does not say."""

    name: str = ""
    text: str = ""
    is_retryable: bool | None = None


def error_of(fault: ConnectFault, *, has_seen_output: bool) -> UpstreamError:
    """has_seen_output: the model has begun, so the request must not be sent again."""
    details = _details_of(fault.details)
    text = _redact(details.text or fault.message)
    kind = _kind(fault, details, text)
    is_retryable = kind.is_retryable if details.is_retryable is None or kind.is_final else details.is_retryable
    return _error(kind, text, fault.code, is_retryable and not has_seen_output)


def error_of_status(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> UpstreamError:
    """A refusal without a stream; its body is a fault, something else, or empty."""
    if b"sign_in_policy_violation" in body[:_MAX_TEXT]:
        return _error(KINDS["policy"], "", "", False)
    try:
        value = decode(body) if body[:1] == b"{" else None
    except BadJson:
        value = None
    if isinstance(value, dict) and isinstance(value.get("code"), str):
        error = error_of(fault_of(value), has_seen_output=False)
    else:
        text = _redact(_text_in(value) or body[:_MAX_TEXT].decode("utf-8", "replace").strip())
        kind = _by_text(text) or BY_STATUS.get(status) or _generic(status)
        error = _error(kind, text, f"HTTP status {status}", kind.is_retryable)
    wait = (headers or {}).get("retry-after", "")
    if wait.isdecimal() and error.status == 429:
        error.headers["retry-after"] = wait[:9]
    return error


def _kind(fault: ConnectFault, details: _Details, text: str) -> ErrorKind:
    kind = BY_NAME.get(details.name)
    if kind is not None and kind.status == 429 and _by_text(text) is KINDS["outdated"]:
        return KINDS["outdated"]  # the name of some limit, and a text that says what is meant
    if kind is not None:
        return kind
    if fault.code == "unavailable" and fault.message.startswith(BROKE_OFF):
        return KINDS["cut"]
    if (kind := _by_text(text)) is not None:
        return kind
    if fault.code == "resource_exhausted" and not details.name and text.lower() in _NO_TEXT:
        return KINDS["unexplained"]
    return BY_CODE.get(fault.code, KINDS["unknown"])


def _by_text(text: str) -> ErrorKind | None:
    return next((kind for pattern, kind in BY_TEXT if pattern.search(text)), None)


def _generic(status: int) -> ErrorKind:
    if 400 <= status < 500:
        return ErrorKind(status=status, code="upstream_error", what="Cursor refused the request")
    is_retryable = status in (500, 502, 503, 504, 529)
    status = status if 500 <= status < 600 else 502
    return ErrorKind(status=status, code="upstream_error", what="Cursor's service failed", is_retryable=is_retryable)


def _error(kind: ErrorKind, text: str, code: str, is_retryable: bool) -> UpstreamError:
    if text.lower() in _NO_TEXT:
        cause = f" ({quote(code)}, without a message)" if code else ""
    else:
        cause = f": it says {quote(text.rstrip('.'))}"
    headers: dict[str, str] | None = None
    if kind.status == 429 and (found := _WAIT.search(text)) is not None:
        seconds = float(found.group(1)) * _SECONDS.get(found.group(2).lower()[:2], 1.0)
        headers = {"retry-after": str(max(1, round(seconds + 0.49)))}
    return UpstreamError(
        f"{kind.what}{cause}.",
        status=kind.status,
        code=kind.code,
        hint=kind.hint,
        headers=headers,
        retryable=is_retryable,
    )


def _details_of(details: tuple[Detail, ...]) -> _Details:
    """The first that is not empty, in JSON or in protobuf."""
    for detail in details:
        for found in (_from_debug(detail.debug), _from_message(detail)):
            if found.name or found.text:
                return found
    return _Details()


def _from_debug(debug: Json) -> _Details:
    if not isinstance(debug, dict):
        return _Details()
    name, inside = debug.get("error"), debug.get("details")
    inside = inside if isinstance(inside, dict) else {}
    is_retryable = inside.get("isRetryable")
    return _Details(
        name=name[:_MAX_TEXT] if isinstance(name, str) else "",
        text=_joined(inside.get("title"), inside.get("detail")),
        is_retryable=is_retryable if isinstance(is_retryable, bool) else None,
    )


def _from_message(detail: Detail) -> _Details:
    if not detail.type.endswith("ErrorDetails"):
        return _Details()
    try:
        message = agent.ErrorDetails.FromString(detail.value)
    except DecodeError:
        return _Details()
    known = agent.ErrorDetails_Error.DESCRIPTOR.values_by_number.get(message.error)
    inside = message.details
    return _Details(
        name=known.name if known is not None and message.error else "",
        text=_joined(inside.title, inside.detail),
        is_retryable=inside.is_retryable if inside.HasField("is_retryable") else None,
    )


def _joined(title: Json, detail: Json) -> str:
    parts = [part.strip()[:_MAX_TEXT] for part in (title, detail) if isinstance(part, str) and part.strip()]
    return ": ".join(dict.fromkeys(parts))


def _redact(text: str) -> str:
    """Without tokens and keys: a server may repeat what it was sent."""
    return _SECRET.sub("[secret]", text[:_MAX_TEXT]).strip()


def _text_in(value: Json) -> str:
    """From the usual members: message, or error, which may contain it."""
    for key in ("message", "error", "detail"):
        inside = value.get(key) if isinstance(value, dict) else None
        if isinstance(inside, str) and inside:
            return inside
        if isinstance(inside, dict) and (found := _text_in(inside)):
            return found
    return ""
