"""Codex app-server: maps errors to UpstreamError with the status of the provider.

Codex identifies some errors by a code, some by a code with an HTTP status, and the rest only by a message; checked in that order.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ....dialects.base import cut
from ....dialects.shared.errors import error_code, error_from
from ....errors import RUNAWAY, UpstreamError, quote
from ....types import JsonObject, Loss
from ....wire.exact_json import object_of

_MAX_MESSAGE = 4000  # characters
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_ADDRESS = re.compile(
    r" for url \([^()\s]{1,2000}\)|,? url: \S{1,2000}|,? (?:cf-ray|request id|auth error(?: code)?): [^,]{1,200}"
)
_WAIT = re.compile(r"try again in (\d{1,6}(?:\.\d{1,6})?) ?(ms|s|m)\b", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_CUT = "stream disconnected before completion: "
_INCOMPLETE = re.compile(rf"(?:{_CUT})?Incomplete response returned, reason: (\w{{1,60}})")
# 0.166 waits forever for a provider that cannot be reached, and reports only this.
_OFFLINE = "waiting for network"
_LOGIN = "Log in with `codex login`, or give this back end a provider with a key."


class CodexFault(Struct, frozen=True, kw_only=True):
    """status 0: the one in the error itself, or 502."""

    status: int = 0
    code: str = "upstream_error"
    is_retryable: bool = False
    hint: str = ""


# codexErrorInfo, as a word or as the only key of an object.
BY_INFO: dict[str, CodexFault] = {
    "internalServerError": CodexFault(status=500, is_retryable=True),
    "serverOverloaded": CodexFault(status=503, code="overloaded", is_retryable=True),
    "rateLimitExceeded": CodexFault(status=429, code="rate_limited", is_retryable=True),
    "usageLimitExceeded": CodexFault(status=429, code="insufficient_quota"),
    "sessionBudgetExceeded": CodexFault(status=429, code="insufficient_quota"),
    "contextWindowExceeded": CodexFault(status=400, code="context_length_exceeded"),
    "unauthorized": CodexFault(status=401, code="authentication_failed", hint=_LOGIN),
    "badRequest": CodexFault(status=400),
    "modelNotFound": CodexFault(status=404, code="model_not_found"),
    "flexUnavailable": CodexFault(status=503, code="overloaded", is_retryable=True),
    "policyCapacityUnavailable": CodexFault(status=503, code="overloaded", is_retryable=True),
    "cyberPolicy": CodexFault(status=400, code="refused_by_policy"),
    "misalignmentPolicyViolation": CodexFault(status=400, code="refused_by_policy"),
    "tooManyDenials": CodexFault(code="interrupted"),
    "httpConnectionFailed": CodexFault(is_retryable=True),
    "responseStreamConnectionFailed": CodexFault(is_retryable=True),
    "responseStreamDisconnected": CodexFault(code="upstream_cut", is_retryable=True),
    "responseTooManyFailedAttempts": CodexFault(is_retryable=True),
}
# Messages without a code, or with the code "other".
BY_MESSAGE: tuple[tuple[re.Pattern[str], CodexFault], ...] = tuple(
    (re.compile(pattern), fault)
    for pattern, fault in (
        (r"^Missing environment variable", CodexFault(status=401, code="authentication_failed")),
        (r"(?i)rate limit", BY_INFO["rateLimitExceeded"]),
        (r"(?i)\bquota\b|usage limit", BY_INFO["usageLimitExceeded"]),
        (r"(?i)overloaded|experiencing high demand|at capacity", BY_INFO["serverOverloaded"]),
        (r"(?i)context window|context length|context_length_exceeded", BY_INFO["contextWindowExceeded"]),
        (r"^error sending request", CodexFault(code="upstream_unreachable", is_retryable=True)),
        (r"^stream closed before|idle timeout waiting", BY_INFO["responseStreamDisconnected"]),
        (r"(?i)not logged in|re-?authenticate|log in again", BY_INFO["unauthorized"]),
    )
)
# By the loss of a call that Codex answered itself.
_STUCK = {
    "call.arguments": "their arguments were no JSON",
    "call.name": "no tool has the name",
    "call.own": "they were for tools of its own",
}
_TEMPORARY = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_UNKNOWN = CodexFault()
_BROKEN_OFF = CodexFault(is_retryable=True)


def error_of(value: JsonObject) -> UpstreamError:
    """The error of a turn: message, codexErrorInfo, additionalDetails."""
    message = _text(value, "message")
    details = _text(value, "additionalDetails")
    if details and (not message or message.startswith("Reconnecting")):
        message = details
    info, status = _info(value.get("codexErrorInfo"))
    fault = BY_INFO.get(info)
    if fault is None and (error := _in_body(message)) is not None:
        return error
    return _error(fault, status or _status_in(message), message)


def refused(error: JsonObject) -> UpstreamError:
    """The error response to a request of ours."""
    message = _tidy(_text(error, "message")) or "it gave no reason"
    return UpstreamError(f"Codex refused a request: {message}", code="codex_refused")


def incomplete_reason(value: JsonObject) -> str:
    """Why an answer was truncated; "" where it failed."""
    found = _INCOMPLETE.match(_text(value, "message"))
    return found.group(1) if found else ""


def unreached(value: JsonObject) -> UpstreamError | None:
    """None if Codex retries by itself. If it only waits for the network, the gateway retries."""
    if _OFFLINE not in _text(value, "message").lower():
        return None
    why = _tidy(_text(value, "additionalDetails")).rstrip(".") or "Codex waits for the network"
    message = f"the provider of Codex cannot be reached: {why}."
    return UpstreamError(message, code="upstream_unreachable", retryable=True)


def stuck(calls: int, last: Loss) -> UpstreamError:
    """The model keeps making calls that Codex answers itself with an error."""
    return UpstreamError(
        f"Codex answered {calls} calls of the model itself, the last to {quote(last.where)}, because {_STUCK[last.feature]}; "
        "then the model was stopped.",
        code="codex_stuck",
        hint='Set tier = "sentinel" for this back end, or use another model.',
        details=RUNAWAY,
    )


class UnseenCalls(UpstreamError):
    """The model keeps calling tools that it does not have, in a resumed thread, whose calls Codex does not report."""


def unseen_calls(responses: int) -> UnseenCalls:
    return UnseenCalls(
        f"the model called tools in {responses} responses, and none was offered; then it was stopped.",
        code="codex_stuck",
        hint="Use another model, or install Codex 0.121 or newer.",
        details=RUNAWAY,
    )


def gone(why: str = "") -> UpstreamError:
    """The program or its output ended in the middle of a turn."""
    reason = f": {why}" if why else ""
    error = cut(f"Codex ended in the middle of the answer{reason}.")
    error.retryable = True
    return error


def _error(fault: CodexFault | None, status: int, message: str) -> UpstreamError:
    words = _tidy(message)
    if fault is None:
        unknown = _BROKEN_OFF if message.startswith(_CUT) else _UNKNOWN
        fault = next((fault for pattern, fault in BY_MESSAGE if pattern.search(words)), unknown)
        if status:
            fault = CodexFault(status=status, code=error_code(status, {}, words), is_retryable=status in _TEMPORARY)
    actual = fault.status or status or 502
    is_named = fault.code != "upstream_error" or bool(fault.status)
    return UpstreamError(
        words or f"Codex gave no reason for its failure; its provider answered {actual}.",
        status=actual,
        code=fault.code if is_named else error_code(actual, {}, words),
        hint=fault.hint or (_LOGIN if actual == 401 and not words.startswith("Missing") else ""),
        headers=_headers(words) if actual == 429 else None,
        retryable=fault.is_retryable and actual in _TEMPORARY,
    )


def _in_body(message: str) -> UpstreamError | None:
    """An error whose message is the provider's whole body: Codex does that only for status 400."""
    body = object_of(message) if message[:1] == "{" else None
    return None if body is None else error_from(400, body, message.encode("utf-8", "replace"), {})


def _info(given: object) -> tuple[str, int]:
    """The code, and the HTTP status inside it if there is one."""
    if isinstance(given, str):
        return given, 0
    if not isinstance(given, dict) or len(given) != 1:
        return "", 0
    name, inside = next(iter(given.items()))
    status = inside.get("httpStatusCode") if isinstance(inside, dict) else None
    return name, status if isinstance(status, int) and 400 <= status < 600 else 0


def _status_in(message: str) -> int:
    found = _STATUS.search(message)
    status = int(found.group(1)) if found else 0
    return status if 400 <= status < 600 else 0


def _tidy(message: str) -> str:
    """Without addresses, which clients must not see, and without the prefix for a cut stream."""
    return _ADDRESS.sub("", message).removeprefix(_CUT).strip().removesuffix(":")


def _headers(message: str) -> dict[str, str] | None:
    found = _WAIT.search(message)
    if found is None:
        return None
    seconds = float(found.group(1)) * _SECONDS[found.group(2).lower()]
    return {"retry-after": str(max(1, round(seconds + 0.49)))}


def _text(value: JsonObject, key: str) -> str:
    given = value.get(key)
    return given[:_MAX_MESSAGE] if isinstance(given, str) else ""
