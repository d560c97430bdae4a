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
from ....wire.connect import BROKE_OFF, ConnectFault, Detail, fault_of
from ....wire.exact_json import BadJson, decode
from . import agent

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


def error_of(fault: ConnectFault, *, has_spoken: bool) -> UpstreamError:
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


def _kind(fault: ConnectFault, told: Told, words: str) -> Kind:
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


class Kind(Struct, frozen=True):
    """what begins the sentence; is_final: the same request fails again, whatever the server says about trying."""

    status: int
    code: str
    what: str
    hint: str = ""
    is_retryable: bool = False
    is_final: bool = False


# The back end's name belongs to it: without one a mark behind a model's name is dropped on the way here.
_AS_LARGE = "max mode is asked for by the model's name, BACKEND/MODEL[1m]"

LOGIN = Kind(
    401,
    "authentication_failed",
    "Cursor does not accept the token",
    "Give this back end a valid access token or API key: tokens expire, and a key can be revoked.",
    is_final=True,
)
FORBIDDEN = Kind(403, "permission_denied", "Cursor does not allow this to the account", is_final=True)
POLICY = Kind(
    403,
    "sign_in_policy_violation",
    "the sign-in policy of the account's team forbids this kind of login",
    "Ask an administrator of the team, or use another account; trying again does not help.",
    is_final=True,
)
OUTDATED = Kind(
    426,
    "client_outdated",
    "Cursor says that the client is too old, which is no rate limit",
    "Set client_type and client_version of this back end to a pair that the service still accepts.",
    is_final=True,
)
LIMITED = Kind(429, "rate_limited", "Cursor's rate limit is reached", is_retryable=True)
LOADED = Kind(429, "rate_limited", "Cursor is under high load", is_retryable=True)
SPENT = Kind(
    429,
    "insufficient_quota",
    "the usage limit of the Cursor account is reached",
    "Wait for the next period, change the plan or its spending limit, or use another model.",
    is_final=True,
)
BARE = Kind(
    502,
    "unexplained_refusal",
    "Cursor refused the run without a reason, which is not a quota",
    "Known causes: a conversation id that the service has given up on (a new run has a new one), a prompt longer than the model's "
    "context, a model name with an effort at its end (give the effort as a parameter), or call ids with unusual characters.",
    is_retryable=True,
)
TOO_LONG = Kind(
    400,
    "context_length_exceeded",
    "the conversation is longer than the model's context",
    f"Shorten it; {_AS_LARGE}, where the model has it.",
    is_final=True,
)
NO_MODEL = Kind(
    404,
    "model_not_found",
    "Cursor has no such model for this account",
    "See which there are with `toolwire models`; efforts are parameters, not parts of the name.",
    is_final=True,
)
BLOCKED = Kind(403, "model_blocked", "the account may not use this model", "Choose another model.", is_final=True)
MAX_MODE = Kind(400, "max_mode_required", "this model runs in max mode only", f"Try again: {_AS_LARGE}.", is_final=True)
REGION = Kind(403, "unsupported_region", "the model is not offered in this region", is_final=True)
BAD = Kind(400, "upstream_error", "Cursor refused the request", is_final=True)
NO_PROMPT = Kind(
    400,
    "upstream_error",
    "Cursor refused a custom system prompt, which it allows to few accounts",
    "Toolwire asks for none, system prompts go as rules: see whether headers of this back end, or a proxy, ask for it.",
    is_final=True,
)
NO_EXCLUSION = Kind(
    400,
    "workspace_exclusion_refused",
    "Cursor does not let this account leave out the workspace context",
    "Toolwire does not ask for that: see whether headers of this back end, or a proxy, do.",
    is_final=True,
)
NO_BLOB = Kind(
    502,
    "blob_not_found",
    "Cursor missed a part of the conversation that it had asked for or been given",
    "A fresh conversation helps; this one will not go on.",
    is_retryable=True,
)
CLOSED = Kind(502, "upstream_cut", "Cursor took the run for abandoned by us", is_retryable=True)
CUT = Kind(502, "upstream_cut", "Cursor's answer broke off", is_retryable=True)
CANCELED = Kind(502, "upstream_cut", "Cursor canceled the run")
LATE = Kind(504, "upstream_timeout", "Cursor ran out of time", is_retryable=True)
DOWN = Kind(503, "overloaded", "Cursor's service is not available", is_retryable=True)
FAILED = Kind(502, "upstream_error", "Cursor failed", is_retryable=True)
PROVIDER = Kind(502, "upstream_error", "the provider behind Cursor failed", is_retryable=True)
UNKNOWN = Kind(502, "upstream_error", "Cursor failed")
HTTP2 = Kind(
    502,
    "http2_required",
    "Cursor takes a run over HTTP/2 only, and something in between made it HTTP/1.1",
    'Set transport = "sse" for this back end, or go around the proxy.',
    is_final=True,
)
MEDIA = Kind(
    502,
    "upstream_refused",
    "Cursor did not accept the content type of a call",
    "Something in between may have changed it; if nothing did, this is a fault of toolwire.",
    is_final=True,
)
NO_PATH = Kind(502, "upstream_refused", "Cursor does not know the path of a call", "Check base_url.", is_final=True)

# By the name in the details.
BY_NAME: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "ERROR_BAD_API_KEY",
            "ERROR_NOT_LOGGED_IN",
            "ERROR_INVALID_AUTH_ID",
            "ERROR_USER_NOT_FOUND",
            "ERROR_AUTH_TOKEN_NOT_FOUND",
            "ERROR_AUTH_TOKEN_EXPIRED",
            "ERROR_AGENT_REQUIRES_LOGIN",
            "ERROR_UNAUTHORIZED",
            "ERROR_BAD_USER_API_KEY",
        ),
        LOGIN,
    ),
    **dict.fromkeys(
        (
            "ERROR_NOT_HIGH_ENOUGH_PERMISSIONS",
            "ERROR_PRO_USER_ONLY",
            "ERROR_SUSPICIOUS_USAGE_BLOCKED",
            "ERROR_ACCOUNT_CLOSED",
        ),
        FORBIDDEN,
    ),
    **dict.fromkeys(("ERROR_GPT_4_VISION_PREVIEW_RATE_LIMIT", "ERROR_OUTDATED_CLIENT", "ERROR_DEPRECATED"), OUTDATED),
    **dict.fromkeys(
        (
            "ERROR_FREE_USER_RATE_LIMIT_EXCEEDED",
            "ERROR_PRO_USER_RATE_LIMIT_EXCEEDED",
            "ERROR_OPENAI_RATE_LIMIT_EXCEEDED",
            "ERROR_GENERIC_RATE_LIMIT_EXCEEDED",
            "ERROR_API_KEY_RATE_LIMIT",
            "ERROR_RATE_LIMITED",
            "ERROR_RATE_LIMITED_CHANGEABLE",
        ),
        LIMITED,
    ),
    **dict.fromkeys(("ERROR_RESOURCE_EXHAUSTED", "ERROR_SLOW_POOL"), LOADED),
    **dict.fromkeys(
        (
            "ERROR_FREE_USER_USAGE_LIMIT",
            "ERROR_PRO_USER_USAGE_LIMIT",
            "ERROR_USAGE_PRICING_REQUIRED",
            "ERROR_USAGE_PRICING_REQUIRED_CHANGEABLE",
        ),
        SPENT,
    ),
    **dict.fromkeys(("ERROR_CONVERSATION_TOO_LONG", "ERROR_MAX_TOKENS"), TOO_LONG),
    **dict.fromkeys(("ERROR_BAD_MODEL_NAME", "ERROR_MODEL_NO_LONGER_SUPPORTED"), NO_MODEL),
    "ERROR_MODEL_BLOCKED": BLOCKED,
    "ERROR_MAX_MODE_REQUIRED": MAX_MODE,
    "ERROR_UNSUPPORTED_REGION": REGION,
    **dict.fromkeys(("ERROR_BAD_REQUEST", "ERROR_CLAUDE_IMAGE_TOO_LARGE"), BAD),
    "ERROR_USER_ABORTED_REQUEST": CANCELED,
    "ERROR_TIMEOUT": LATE,
    **dict.fromkeys(("ERROR_OPENAI", "ERROR_PROVIDER_ERROR", "ERROR_NETWORK_ERROR"), PROVIDER),
    "ERROR_INTERNAL": FAILED,
}

# By what was said, where the details have no name that is known.
BY_WORDS: tuple[tuple[re.Pattern[str], Kind], ...] = tuple(
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

# By the code of the fault.
BY_CODE: dict[str, Kind] = {
    "unauthenticated": LOGIN,
    "permission_denied": FORBIDDEN,
    "resource_exhausted": LIMITED,
    "invalid_argument": BAD,
    "failed_precondition": BAD,
    "out_of_range": BAD,
    "not_found": Kind(404, "not_found", "Cursor did not find what was asked for", is_final=True),
    "aborted": FAILED,
    "deadline_exceeded": LATE,
    "unavailable": DOWN,
    "internal": FAILED,
    "canceled": CANCELED,
}

# By the HTTP status of a call that got no stream.
BY_STATUS: dict[int, Kind] = {
    401: LOGIN,
    403: LOGIN,
    404: NO_PATH,
    415: MEDIA,
    426: OUTDATED,
    429: LIMITED,
    464: HTTP2,
    505: HTTP2,
    503: DOWN,
    504: LATE,
}
