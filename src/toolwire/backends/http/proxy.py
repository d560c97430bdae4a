"""Which proxy a request goes through: a pure function of the environment's proxy variables.

The lower-case spelling of a variable wins, and one that is set but empty means "no proxy". Loopback addresses never go through
a proxy: a model server on this machine would be out of its reach.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from typing import Literal, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from ...errors import ConfigError, quote

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = {"http": 80, "https": 443}


class Proxy(Struct, frozen=True, kw_only=True):
    """authorization is the value of Proxy-Authorization, "" without credentials; it never shows in repr()."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    authorization: str = ""

    @property
    def address(self) -> str:
        return authority(self.host, self.port)

    def __repr__(self) -> str:
        return f"Proxy({self.scheme}://{self.address})"


def choose_proxy(environ: Mapping[str, str], scheme: str, host: str, port: int) -> Proxy | None:
    """The proxy for this origin, None to go there directly. Raises ConfigError when the variable makes no sense."""
    for name in (f"{scheme}_proxy", "all_proxy"):
        value = _variable(environ, name)
        if value is None:
            continue
        if not value or _is_loopback(host) or _is_exempt(_variable(environ, "no_proxy") or "", host, port):
            return None
        return parse_proxy(value, name.upper())
    return None


def parse_proxy(value: str, variable: str) -> Proxy:
    """variable is the name to blame; the value is never quoted, because it may hold a password."""
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        port = parts.port
    except ValueError:
        raise _bad_proxy(variable, "is not a URL") from None
    if parts.scheme not in ("http", "https"):
        raise _bad_proxy(variable, f"has the scheme {quote(parts.scheme)}, which is not supported")
    if not parts.hostname or not value.isascii() or not value.isprintable() or " " in value:
        raise _bad_proxy(variable, "has no valid host")
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    port = DEFAULT_PORTS[scheme] if port is None else port
    return Proxy(scheme=scheme, host=parts.hostname, port=port, authorization=basic_authorization(parts))


def basic_authorization(parts: SplitResult) -> str:
    """The user and password of a URL as the value of an authorization header, "" without any."""
    if parts.username is None and parts.password is None:
        return ""
    credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(credentials.encode()).decode()


def authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bad_proxy(variable: str, problem: str) -> ConfigError:
    return ConfigError(
        f"The proxy in the environment variable {variable} {problem}.",
        where=variable,
        hint="Set it to http://host:port or https://host:port, or list the back end's host in NO_PROXY.",
    )


def _variable(environ: Mapping[str, str], name: str) -> str | None:
    if name in environ:
        return environ[name].strip()
    # Under CGI a client's "Proxy:" header arrives as HTTP_PROXY, so it is not trusted there.
    if name == "http_proxy" and "REQUEST_METHOD" in environ:
        return None
    value = environ.get(name.upper())
    return None if value is None else value.strip()


def _is_loopback(host: str) -> bool:
    address = _parse_address(host)
    if address is not None:
        return address.is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _is_exempt(no_proxy: str, host: str, port: int) -> bool:
    host = host.lower().rstrip(".")
    return any(_matches(entry, host, port) for entry in no_proxy.lower().replace(",", " ").split())


def _matches(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    address = _parse_address(host)
    if "/" in entry:
        return address is not None and _is_in_network(address, entry)
    name, entry_port = _split_port(entry)
    if entry_port not in ("", str(port)):
        return False
    if address is not None:
        return address == _parse_address(name)
    name = name.removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _split_port(entry: str) -> tuple[str, str]:
    """An IPv6 address without brackets has no port."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _parse_address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_in_network(address: Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
