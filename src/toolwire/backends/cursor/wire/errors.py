"""Faults of the service as errors whose status says who must act.

A fault has a code of Connect's, which is often wrong ("resource_exhausted" may also mean that the client is too old), and may have
details with a name of Cursor's own, which takes precedence. Without a name the text decides, and the code comes last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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


class ErrorKind(Struct, frozen=True):
    """what starts the message. is_final: a retry fails again, whatever the server says."""

    status: int
    code: str
    what: str
    hint: str = ""
    is_retryable: bool = False
    is_final: bool = False


# The name of the back end is part of it: without it, a suffix of a model's name is removed before it gets here.
_USE_MAX_MODE = "max mode is requested by the model's name, BACKEND/MODEL[1m]"

LOGIN = ErrorKind(
    401,
    "authentication_failed",
    "Cursor does not accept the token",
    "Give this back end a valid access token or API key: tokens expire, and a key can be revoked.",
    is_final=True,
)
FORBIDDEN = ErrorKind(403, "permission_denied", "Cursor does not allow this to the account", is_final=True)
POLICY = ErrorKind(
    403,
    "sign_in_policy_violation",
    "the sign-in policy of the account's team forbids this kind of login",
    "Ask an administrator of the team, or use another account; trying again does not help.",
    is_final=True,
)
OUTDATED = ErrorKind(
    426,
    "client_outdated",
    "Cursor says that the client is too old, which is no rate limit",
    "Set client_type and client_version of this back end to a pair that the service still accepts.",
    is_final=True,
)
LIMITED = ErrorKind(429, "rate_limited", "Cursor's rate limit is reached", is_retryable=True)
LOADED = ErrorKind(429, "rate_limited", "Cursor is under high load", is_retryable=True)
SPENT = ErrorKind(
    429,
    "insufficient_quota",
    "the usage limit of the Cursor account is reached",
    "Wait for the next period, change the plan or its spending limit, or use another model.",
    is_final=True,
)
UNEXPLAINED = ErrorKind(
    502,
    "unexplained_refusal",
    "Cursor refused the run without a reason, which is not a quota",
    "Known causes: a conversation id that the service has given up on (a new run has a new one), a prompt longer than the model's "
    "context, a model name with an effort at its end (give the effort as a parameter), or call ids with unusual characters.",
    is_retryable=True,
)
TOO_LONG = ErrorKind(
    400,
    "context_length_exceeded",
    "the conversation is longer than the model's context",
    f"Shorten it; {_USE_MAX_MODE}, where the model has it.",
    is_final=True,
)
NO_MODEL = ErrorKind(
    404,
    "model_not_found",
    "Cursor has no such model for this account",
    "List the models with `toolwire models`; efforts are parameters, not parts of the name.",
    is_final=True,
)
BLOCKED = ErrorKind(403, "model_blocked", "the account may not use this model", "Choose another model.", is_final=True)
MAX_MODE = ErrorKind(
    400, "max_mode_required", "this model runs in max mode only", f"Try again: {_USE_MAX_MODE}.", is_final=True
)
REGION = ErrorKind(403, "unsupported_region", "the model is not offered in this region", is_final=True)
BAD_REQUEST = ErrorKind(400, "upstream_error", "Cursor refused the request", is_final=True)
NO_PROMPT = ErrorKind(
    400,
    "upstream_error",
    "Cursor refused a custom system prompt, which it allows to few accounts",
    "Toolwire sends none, system prompts become rules: check the headers of this back end, and any proxy.",
    is_final=True,
)
NO_EXCLUSION = ErrorKind(
    400,
    "workspace_exclusion_refused",
    "Cursor does not let this account leave out the workspace context",
    "Toolwire does not request that: check the headers of this back end, and any proxy.",
    is_final=True,
)
NO_BLOB = ErrorKind(
    502,
    "blob_not_found",
    "Cursor did not find a part of the conversation",
    "Start a new conversation; this one cannot continue.",
    is_retryable=True,
)
CLOSED = ErrorKind(502, "upstream_cut", "Cursor considers the run abandoned by us", is_retryable=True)
CUT = ErrorKind(502, "upstream_cut", "Cursor's answer broke off", is_retryable=True)
CANCELED = ErrorKind(502, "upstream_cut", "Cursor canceled the run")
TIMED_OUT = ErrorKind(504, "upstream_timeout", "Cursor ran out of time", is_retryable=True)
UNAVAILABLE = ErrorKind(503, "overloaded", "Cursor's service is not available", is_retryable=True)
FAILED = ErrorKind(502, "upstream_error", "Cursor failed", is_retryable=True)
PROVIDER = ErrorKind(502, "upstream_error", "the provider behind Cursor failed", is_retryable=True)
UNKNOWN = ErrorKind(502, "upstream_error", "Cursor failed")
HTTP2_REQUIRED = ErrorKind(
    502,
    "http2_required",
    "Cursor accepts a run over HTTP/2 only, and a proxy made it HTTP/1.1",
    'Set transport = "sse" for this back end, or bypass the proxy.',
    is_final=True,
)
MEDIA_TYPE = ErrorKind(
    502,
    "upstream_refused",
    "Cursor did not accept the content type of a call",
    "A proxy may have changed it; if there is none, this is a bug of toolwire.",
    is_final=True,
)
NO_PATH = ErrorKind(
    502, "upstream_refused", "Cursor does not know the path of a call", "Check base_url.", is_final=True
)
NOT_FOUND = ErrorKind(404, "not_found", "Cursor did not find what was requested", is_final=True)

# Names in the details, without their prefix ERROR_.
_NAMES: tuple[tuple[ErrorKind, str], ...] = (
    (LOGIN, "BAD_API_KEY NOT_LOGGED_IN INVALID_AUTH_ID USER_NOT_FOUND AUTH_TOKEN_NOT_FOUND AUTH_TOKEN_EXPIRED"),
    (LOGIN, "AGENT_REQUIRES_LOGIN UNAUTHORIZED BAD_USER_API_KEY"),
    (FORBIDDEN, "NOT_HIGH_ENOUGH_PERMISSIONS PRO_USER_ONLY SUSPICIOUS_USAGE_BLOCKED ACCOUNT_CLOSED"),
    (OUTDATED, "GPT_4_VISION_PREVIEW_RATE_LIMIT OUTDATED_CLIENT DEPRECATED"),
    (LIMITED, "FREE_USER_RATE_LIMIT_EXCEEDED PRO_USER_RATE_LIMIT_EXCEEDED OPENAI_RATE_LIMIT_EXCEEDED"),
    (LIMITED, "GENERIC_RATE_LIMIT_EXCEEDED API_KEY_RATE_LIMIT RATE_LIMITED RATE_LIMITED_CHANGEABLE"),
    (LOADED, "RESOURCE_EXHAUSTED SLOW_POOL"),
    (SPENT, "FREE_USER_USAGE_LIMIT PRO_USER_USAGE_LIMIT USAGE_PRICING_REQUIRED USAGE_PRICING_REQUIRED_CHANGEABLE"),
    (TOO_LONG, "CONVERSATION_TOO_LONG MAX_TOKENS"),
    (NO_MODEL, "BAD_MODEL_NAME MODEL_NO_LONGER_SUPPORTED"),
    (BLOCKED, "MODEL_BLOCKED"),
    (MAX_MODE, "MAX_MODE_REQUIRED"),
    (REGION, "UNSUPPORTED_REGION"),
    (BAD_REQUEST, "BAD_REQUEST CLAUDE_IMAGE_TOO_LARGE"),
    (CANCELED, "USER_ABORTED_REQUEST"),
    (TIMED_OUT, "TIMEOUT"),
    (PROVIDER, "OPENAI PROVIDER_ERROR NETWORK_ERROR"),
    (FAILED, "INTERNAL"),
)
BY_NAME: dict[str, ErrorKind] = {f"ERROR_{name}": kind for kind, names in _NAMES for name in names.split()}

# By the text, where the details have no known name.
BY_TEXT: tuple[tuple[re.Pattern[str], ErrorKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"update required|outdated client|client is (?:outdated|too old)", OUTDATED),
        (r"--system-prompt|custom system prompt", NO_PROMPT),
        (r"workspace context exclusion", NO_EXCLUSION),
        (r"blob not found", NO_BLOB),
        (r"no exec result", CLOSED),
        (r"context window|context length|conversation (?:is )?too long|prompt is too long", TOO_LONG),
        (r"usage limit|spend(?:ing)? limit|\bquota\b", SPENT),
        (r"rate limit|too many requests", LIMITED),
        (r"not logged in|token (?:has )?expired|invalid (?:api key|token)", LOGIN),
    )
)
BY_CODE: dict[str, ErrorKind] = {
    "unauthenticated": LOGIN,
    "permission_denied": FORBIDDEN,
    "resource_exhausted": LIMITED,
    "invalid_argument": BAD_REQUEST,
    "failed_precondition": BAD_REQUEST,
    "out_of_range": BAD_REQUEST,
    "not_found": NOT_FOUND,
    "aborted": FAILED,
    "deadline_exceeded": TIMED_OUT,
    "unavailable": UNAVAILABLE,
    "internal": FAILED,
    "canceled": CANCELED,
}
# By the HTTP status of a call that got no stream.
BY_STATUS: dict[int, ErrorKind] = {
    401: LOGIN,
    403: LOGIN,
    404: NO_PATH,
    415: MEDIA_TYPE,
    426: OUTDATED,
    429: LIMITED,
    464: HTTP2_REQUIRED,
    505: HTTP2_REQUIRED,
    503: UNAVAILABLE,
    504: TIMED_OUT,
}


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
        return _error(POLICY, "", "", False)
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
    if kind is not None and kind.status == 429 and _by_text(text) is OUTDATED:
        return OUTDATED  # the name of some limit, and a text that says what is meant
    if kind is not None:
        return kind
    if fault.code == "unavailable" and fault.message.startswith(BROKE_OFF):
        return CUT
    if (kind := _by_text(text)) is not None:
        return kind
    if fault.code == "resource_exhausted" and not details.name and text.lower() in _NO_TEXT:
        return UNEXPLAINED
    return BY_CODE.get(fault.code, UNKNOWN)


def _by_text(text: str) -> ErrorKind | None:
    return next((kind for pattern, kind in BY_TEXT if pattern.search(text)), None)


def _generic(status: int) -> ErrorKind:
    if 400 <= status < 500:
        return ErrorKind(status, "upstream_error", "Cursor refused the request")
    is_retryable = status in (500, 502, 503, 504, 529)
    status = status if 500 <= status < 600 else 502
    return ErrorKind(status, "upstream_error", "Cursor's service failed", is_retryable=is_retryable)


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
