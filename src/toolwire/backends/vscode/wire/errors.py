"""VS Code bridge: maps failures of a window to errors with a status and a hint on what to do in VS Code.

A failure has a code of VS Code's (NoPermissions, Blocked, NotFound), a name that its provider gave it, and a message; of Copilot's
provider only the message distinguishes most of them. They are checked in that order. None is retried: each request counts against the
user's plan.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from ....dialects.shared.errors import error_details, error_from
from ....errors import BadRequest, GatewayError, UpstreamError, quote
from ....wire.exact_json import object_of
from .shapes import Refused

_MAX_MESSAGE = 4000  # characters
_SECRET = re.compile(
    r"\b(?:gh[a-z]_|github_pat_|sk-|key-)[\w-]{8,}|\bbearer\s+[\w.~+/=-]{4,}|\btid=[\w;=.:-]{8,}|eyJ[\w-]{8,}(?:\.[\w-]+){0,2}",
    re.IGNORECASE | re.ASCII,
)
_STATUS = re.compile(r"(?:Request Failed|Server error): (\d{3})\b\s{0,9}(.{0,4000})", re.DOTALL | re.ASCII)
_TOO_LONG = re.compile(r"response (?:is )?too long", re.IGNORECASE)
_DECLINED = re.compile(
    r"response got filtered|model declined to respond|filtered by responsible ai service|filtered as off_topic",
    re.IGNORECASE,
)
_CANCELLED = re.compile(r"cancell?ed\b|network request aborted|\babort(?:ed)?error\b", re.IGNORECASE)
_CANCELLED_NAMES = frozenset({"canceled", "cancelled", "cancellationerror", "aborterror"})
ALLOW = (
    "Look at the VS Code window: press Allow in its dialog, or click toolwire in the status bar to be asked again. "
    "VS Code asks once for each model."
)
_OPEN = "Open VS Code with the toolwire extension and wait until toolwire in its status bar says that it is connected."
_SIGN_IN = "Sign in to GitHub Copilot in VS Code: click the account or the Copilot icon there."


class VSCodeFault(Struct, frozen=True, kw_only=True):
    status: int
    code: str
    what: str
    hint: str = ""


CONSENT = VSCodeFault(
    status=403, code="consent_required", what="VS Code has not allowed this model to be used", hint=ALLOW
)
_FORBIDDEN = VSCodeFault(
    status=403,
    code="permission_denied",
    what="the model's provider in VS Code denied the request",
    hint="Check the account and the plan that this provider uses, or choose another model.",
)
_RATE = VSCodeFault(
    status=429,
    code="rate_limited",
    what="the model's provider in VS Code limits the rate",
    hint="Wait a little before the next request, or choose another model.",
)
_QUOTA = VSCodeFault(
    status=429,
    code="insufficient_quota",
    what="the Copilot plan of this user is used up",
    hint="Click the Copilot icon in VS Code's status bar to see the plan, or choose a model that is included in it.",
)
MISSING = VSCodeFault(
    status=404,
    code="model_not_found",
    what="the VS Code window does not have this model",
    hint='See which it has: ask for the list of models, or run "Chat: Manage Language Models" in VS Code.',
)
_CONTEXT = VSCodeFault(
    status=400,
    code="context_length_exceeded",
    what="the conversation is longer than the model in VS Code takes",
    hint="Send less: shorten the conversation, or offer fewer tools.",
)
_SIGNED_OUT = VSCodeFault(
    status=401,
    code="authentication_failed",
    what="the user is not signed in, or the sign-in has expired",
    hint=_SIGN_IN,
)
_IMAGE = VSCodeFault(
    status=400,
    code="invalid_media",
    what="VS Code could not decode an image of this request",
    hint="Send it as a whole PNG, JPEG, GIF or WebP.",
)
_REFUSED = VSCodeFault(status=400, code="upstream_error", what="the model's provider in VS Code refused the request")
_OTHER = VSCodeFault(status=502, code="upstream_error", what="the request failed in VS Code")

# VS Code's own message when its user refuses; versions of the extension before refused_by_user send only this text.
_REFUSED_CONSENT = re.compile(r"Language model '[^']{1,300}' cannot be used by '[^']{1,300}'\.?")

BY_NAME: dict[str, VSCodeFault] = {
    "NoPermissions": _FORBIDDEN,  # by the provider; a refusal by the user is recognised before this table is read
    "Blocked": _RATE,
    "NotFound": MISSING,
    "ChatRateLimited": _RATE,
    "ChatQuotaExceeded": _QUOTA,
}
BY_CODE: dict[str, VSCodeFault] = {  # of a server's own error object
    "model_not_supported": MISSING,
    "model_max_prompt_tokens_exceeded": _CONTEXT,
}
BY_MESSAGE: tuple[tuple[re.Pattern[str], VSCodeFault], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"invalid tool name|toolmode\.required is not|more than 128 tools|invalid request: no messages", _REFUSED),
        (r"exceeds token limit|context_length_exceeded|maximum context length|prompt is too long", _CONTEXT),
        (r"prompt token count of \d{1,12} exceeds|input is too long", _CONTEXT),
        (r"quota exceeded|exceeded your .{0,40}quota|out of premium requests", _QUOTA),
        (r"rate.?limit|too many requests", _RATE),
        (r"githubloginfailed|not signed in|sign in to (?:use|github)|no github session", _SIGNED_OUT),
        (r"\Atoken expired or invalid|\Aunauthorized\Z", _SIGNED_OUT),
        (r"\Aendpoint not found for model", MISSING),
        (r"istrusted|undecodable image|non-error value|could not be decoded", _IMAGE),
    )
)


def error_of(code: str, name: str, message: str, *, refused_by_user: bool = False) -> UpstreamError:
    """code, name, message and refused_by_user as the window sent them."""
    # A provider may repeat its input, with tokens and keys.
    words = _SECRET.sub("[secret]", message[:_MAX_MESSAGE]).strip()
    if refused_by_user or (code in ("", "NoPermissions") and _REFUSED_CONSENT.fullmatch(words)):
        return _error(CONSENT, words)
    kind = BY_NAME.get(code) or BY_NAME.get(name)
    if kind is _FORBIDDEN or kind is MISSING:
        return _error(kind, words)
    if is_cancelled(code, name, message):
        return cancelled(words)
    if kind is None and (found := _STATUS.match(words)) is not None:
        return _from_status(int(found[1]), found[2])
    return _error(kind or _by_code(words) or _by_message(words) or _OTHER, words)


def is_too_long(message: str) -> bool:
    """How older versions of Copilot report that an answer reached its limit."""
    return _TOO_LONG.match(message[:200].strip()) is not None


def refusal_in(message: str) -> str:
    """The message by which Copilot reports a refusal of the model or a filter; "" for other messages."""
    found = _DECLINED.match(message[:200].strip())
    return found[0] if found is not None else ""


def is_cancelled(code: str, name: str, message: str) -> bool:
    names = {code.lower(), name.lower()}
    return bool(names & _CANCELLED_NAMES) or _CANCELLED.match(message[:200].strip()) is not None


def cancelled(words: str = "") -> UpstreamError:
    said = f": it says {quote(words)}" if words else ""
    return UpstreamError(f"the request was cancelled in VS Code{said}.", code="cancelled")


def no_window(model: str = "") -> UpstreamError:
    """No window is connected."""
    wanted = f", and {quote(model)} is a model of VS Code" if model else ""
    return UpstreamError(f"no VS Code window is connected{wanted}.", status=503, code="no_window", hint=_OPEN)


def no_model(model: str, listed: list[str]) -> UpstreamError:
    """No connected window has the model."""
    names = ", ".join(quote(name) for name in listed[:8]) or "none at all"
    return UpstreamError(
        f"no connected VS Code window has the model {quote(model)}; they have {names}.",
        status=404,
        code="model_not_found",
        hint=MISSING.hint if listed else _SIGN_IN,
    )


def own_model(model: str) -> BadRequest:
    """For requests that come from VS Code: they would loop."""
    message = f"{quote(model)} is a model of VS Code itself; the gateway does not offer it to VS Code."
    return BadRequest(message, status=404, code="model_not_found")


def needs_consent(model: str) -> UpstreamError:
    """The user refused before: another request would only show the dialog again."""
    return UpstreamError(f"{CONSENT.what}: {quote(model)}.", status=CONSENT.status, code=CONSENT.code, hint=ALLOW)


def window_lost() -> UpstreamError:
    return UpstreamError(
        "the VS Code window disconnected before the answer was complete.",
        code="upstream_cut",
        hint="Keep the window open, and send the request again: it is not retried automatically, because each request counts.",
    )


def refused(id: str, error: GatewayError) -> Refused:
    """An error of the gateway, for VS Code to show."""
    code = _CODES.get(error.status, "Unknown")
    status = error.status if 400 <= error.status < 600 else 500
    message = error.sentence() or "the request failed."
    return Refused(id=id, status=status, code=code, name=error.code or "error", message=message)


_CODES: dict[int, Literal["NoPermissions", "Blocked", "NotFound", "Unknown"]] = {
    401: "NoPermissions",
    403: "NoPermissions",
    404: "NotFound",
    429: "Blocked",
}


def _error(kind: VSCodeFault, words: str) -> UpstreamError:
    said = f": it says {quote(words)}" if words else ""
    return UpstreamError(f"{kind.what}{said}.", status=kind.status, code=kind.code, hint=kind.hint)


def _from_status(status: int, body: str) -> UpstreamError:
    """The response of the server behind a provider."""
    status = status if 400 <= status < 600 else 502
    if (known := _by_code(body) or _by_message(body, 400 if status == 413 else status)) is not None:
        return _error(known, body)
    error = error_from(status, object_of(body), body.encode("utf-8", "replace"), {})
    error.hint = error.hint or (_SIGN_IN if status == 401 else "")
    return error


def _by_code(body: str) -> VSCodeFault | None:
    code = error_details(object_of(body)).get("code")
    return BY_CODE.get(code) if isinstance(code, str) else None


def _by_message(words: str, status: int = 0) -> VSCodeFault | None:
    """With a status only faults of that status: the text may quote the client, and must not change who has to act."""
    kinds = ((pattern, kind) for pattern, kind in BY_MESSAGE if status in (0, kind.status))
    return next((kind for pattern, kind in kinds if pattern.search(words)), None)
