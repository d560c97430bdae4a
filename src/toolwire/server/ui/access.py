"""Who may use the inspector: programs and the gateway's own page, with a key where the server has keys.

A page of another origin gets nothing, also one on another port of this machine: what it may send is refused by `Origin` and
`Sec-Fetch-Site`, and no answer allows it to read anything. A browser that has logged in sends a cookie. It is signed with the key that
was used, so that all workers accept it, and a removed key ends its sessions. Requests that change something also need a header that a
form of another page cannot set.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from ...errors import BadRequest
from ..auth import Guard, key_in

COOKIE = "toolwire_session"
MARK = "x-toolwire-ui"
LIFETIME = 12 * 3600
_OWN_SITES = ("same-origin", "none")  # none: the user opened the address


class UiAccess:
    def __init__(self, guard: Guard, clock: Callable[[], float] = time.time) -> None:
        self._guard = guard
        self._clock = clock

    @property
    def needs_key(self) -> bool:
        return bool(self._guard.keys)

    def check_page(self, headers: Mapping[str, str], *, is_document: bool = False) -> None:
        """For the files of the page, which contain nothing of the owner. is_document: other pages may link to it."""
        self._guard.check_host(headers)
        if not is_document or headers.get("sec-fetch-mode") != "navigate":
            self._check_origin(headers)

    def check_api(self, headers: Mapping[str, str], *, changes: bool) -> None:
        """changes: the request deletes something."""
        self._guard.check_host(headers)
        self._check_origin(headers)
        if changes and headers.get(MARK) != "1" and not key_in(headers):
            raise BadRequest(
                f"the header {MARK} is missing; expected {MARK}: 1.", status=403, code="csrf_refused", where=MARK
            )
        if not self.is_logged_in(headers):
            raise BadRequest(
                "no valid key or session was given.",
                status=401,
                code="authentication_failed",
                hint="Log in at /ui/, or send a key of this server as Authorization: Bearer.",
            )

    def is_logged_in(self, headers: Mapping[str, str]) -> bool:
        if not self.needs_key:
            return True
        return self._guard.key_of(key_in(headers)) is not None or self.session_key(headers) is not None

    def session_key(self, headers: Mapping[str, str]) -> str | None:
        """The key with which the browser has logged in; None without a valid session."""
        expires, _, rest = _cookie(headers).partition(".")
        nonce, _, given = rest.partition(".")
        if not (expires.isdecimal() and len(expires) < 12 and int(expires) > self._clock() and nonce and given):
            return None
        found: str | None = None
        for key in self._guard.keys:
            if hmac.compare_digest(_signature(key, f"{expires}.{nonce}"), given.encode("utf-8", "replace")):
                found = key.decode()
        return found

    def page_key(self, headers: Mapping[str, str]) -> str | None:
        """The key of a request that the gateway's own page sends to an ordinary path, such as that of the playground."""
        is_own = headers.get("sec-fetch-site") == "same-origin" or "origin" in headers
        if headers.get(MARK) != "1" or not is_own or not _is_same_origin(headers):
            return None
        return self.session_key(headers)

    def login(self, key: str, headers: Mapping[str, str]) -> str:
        """The value of Set-Cookie. Raises BadRequest for a wrong key."""
        found = self._guard.key_of(key)
        if found is None:
            raise BadRequest("the key is not one of this server's keys.", status=401, code="authentication_failed")
        text = f"{int(self._clock()) + LIFETIME}.{secrets.token_urlsafe(16)}"
        return _set_cookie(f"{text}.{_signature(found, text).decode()}", LIFETIME, headers)

    def logout(self, headers: Mapping[str, str]) -> str:
        return _set_cookie("", 0, headers)

    def check_login(self, headers: Mapping[str, str]) -> None:
        """Another page must not log a browser in either."""
        self._guard.check_host(headers)
        self._check_origin(headers)

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        if not _is_same_origin(headers):
            raise BadRequest(
                "requests from other pages are refused here.", status=403, code="origin_refused", where="origin"
            )


def _is_same_origin(headers: Mapping[str, str]) -> bool:
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    host = headers.get("host", "").lower()
    return parts.scheme in ("http", "https") and bool(host) and parts.netloc.lower() == host and not parts.path


def _signature(key: bytes, text: str) -> bytes:
    derived = sha256(b"toolwire session\0" + key).digest()
    return hmac.new(derived, text.encode(), sha256).hexdigest().encode()


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _set_cookie(value: str, lifetime: int, headers: Mapping[str, str]) -> str:
    is_secure = headers.get("x-forwarded-proto", "").lower() == "https" or headers.get("origin", "").startswith("https")
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={value}; Path=/; Max-Age={lifetime}; HttpOnly; SameSite=Strict{secure}"
