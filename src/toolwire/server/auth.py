"""Authentication: keys, or on a server without keys only programs of this machine, never a web page."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from urllib.parse import urlsplit

from ..config.file import ServerConfig, is_loopback
from ..errors import BadRequest, quote
from ..memory.keys import NamedKey, hash_of

# Desktop programs whose pages have an origin of their own: Obsidian, VS Code's web views.
_KNOWN_ORIGINS = frozenset({"app://obsidian.md", "capacitor://localhost", "vscode-file://vscode-app"})
_WEB_VIEW = "vscode-webview://"  # the rest is different for each view


class Guard:
    def __init__(self, config: ServerConfig) -> None:
        self.named: Mapping[str, NamedKey] = {}  # valid named keys by the hash of their secret
        self.lacks_named = False  # the store could not be read since the start
        self.configure(config)

    def configure(self, config: ServerConfig) -> None:
        self.keys = [key.reveal().encode() for key in config.keys]
        self._origins = frozenset(config.origins)
        self._own_name = config.host

    def admit(self, headers: Mapping[str, str], *, is_probe: bool = False, path: str = "") -> None:
        """Raises BadRequest with 401 or 403. is_probe: the request only asks whether the server works, and needs no key."""
        origin, host = headers.get("origin"), headers.get("host", "")
        if origin is not None and not self._is_welcome(origin):
            raise _origin_refused(origin)
        if self.keys:
            if not (is_probe and self._is_own(host)):
                self._check_key(headers)
        elif not _is_local(host):
            raise _host_refused(host)
        if (
            self.named
            and (key := self.named_key(headers)) is not None
            and not key.allows_route(path.removeprefix("/v1"))
        ):
            raise BadRequest(f"the key {key.name} may not use {quote(path)}.", status=403, code="permission_denied")

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raises BadRequest with 403 where a server without keys is addressed by another name than those of this machine."""
        host = headers.get("host", "")
        if not self.keys and not _is_local(host):
            raise _host_refused(host)

    def key_of(self, given: str) -> bytes | None:
        """The key of this server that was given; None if it is none of them."""
        found: bytes | None = None
        for key in self.keys:
            if hmac.compare_digest(given.encode("utf-8", "replace"), key):
                found = key
        return found

    def named_key(self, headers: Mapping[str, str]) -> NamedKey | None:
        given = key_in(headers) if self.named else ""
        return self.named.get(hash_of(given)) if given else None

    def owner_of(self, headers: Mapping[str, str]) -> str:
        """Whose the state of this request is; "" without a key."""
        key = self.named_key(headers) if self.named else None
        return owner_of(headers) if key is None else key.owner

    def allowed_origin(self, origin: str) -> str | None:
        """The origin, if pages from there may read our answers."""
        return origin if origin and self._is_welcome(origin) else None

    def _check_key(self, headers: Mapping[str, str]) -> None:
        given = key_in(headers)
        if not given:
            raise BadRequest(
                "no key was given; expected one in Authorization: Bearer or in x-api-key.",
                status=401,
                code="authentication_failed",
            )
        if self.key_of(given) is None and self.named_key(headers) is None:
            if self.lacks_named:
                message = "the key cannot be checked, because the store is not available."
                raise BadRequest(message, status=503, code="store_unavailable")
            raise BadRequest("the key is not one of this server's keys.", status=401, code="authentication_failed")

    def _is_own(self, host: str) -> bool:
        """Orchestrators address a probe to the machine: by an address, localhost or the name we listen on. A web page that reaches us by
        DNS rebinding has a name of its own there."""
        name = _name_in(host)
        return _is_local(host) or name == self._own_name.lower() or _is_address(name)

    def _is_welcome(self, origin: str) -> bool:
        if origin in self._origins or origin in _KNOWN_ORIGINS or origin.startswith(_WEB_VIEW):
            return True
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and bool(host) and _is_local(host)


def _origin_refused(origin: str) -> BadRequest:
    return BadRequest(
        f"requests from pages of {quote(origin)} are refused.",
        status=403,
        code="origin_refused",
        hint="Add it to [server] origins if it is meant.",
    )


def _host_refused(host: str) -> BadRequest:
    """A name that is not ours, resolving to us, is how a web page reaches into a loopback server (DNS rebinding)."""
    return BadRequest(
        f"the Host header is {quote(host)}; a server without keys answers only to localhost.",
        status=403,
        code="host_refused",
        hint="Set [server] keys to serve other names.",
    )


@lru_cache(maxsize=256)
def _is_local(host: str) -> bool:
    """Whether a Host header names this machine; a request without one can come from no browser."""
    return not host or is_loopback(_name_in(host))


def _name_in(host: str) -> str:
    """What a Host header names, without the port; "" if that cannot be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def owner_of(headers: Mapping[str, str]) -> str:
    """Whose the state of this request is: a hash of its key, also where any key is accepted; "" without one."""
    key = key_in(headers)
    return _hashed(key) if key else ""


@lru_cache(maxsize=1024)
def _hashed(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def key_in(headers: Mapping[str, str]) -> str:
    """The client's key; an empty Bearer counts as absent."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    return (headers.get("x-api-key") or headers.get("x-goog-api-key", "")).strip()
