"""Reads toolwire.toml; errors name file, line and key."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from platformdirs import user_config_path, user_data_path, user_log_path

from .. import profiles
from ..backends import registry
from ..errors import ConfigError, quote
from . import toml_lines
from .cluster import cluster_config
from .descriptions import describe, expected, noun, quoted_list
from .mcp import mcp_server_config
from .models import read_models
from .prices import read_prices
from .secret import Resolver, Secret
from .secret_file import MIN_LENGTH, is_strong
from .store_url import with_store_url
from .toml_lines import Document, KeyPath
from .values import DEFAULT_PORT as DEFAULT_PORT
from .values import Approval
from .values import BackendConfig as BackendConfig
from .values import ClusterConfig as ClusterConfig
from .values import Config as Config
from .values import FlowsConfig as FlowsConfig
from .values import Guard as Guard
from .values import McpServerConfig as McpServerConfig
from .values import SearchConfig as SearchConfig
from .values import ServerConfig as ServerConfig
from .values import StoreConfig as StoreConfig
from .values import TelemetryConfig as TelemetryConfig

FILE_NAME = "toolwire.toml"
_TABLES = ("server", "store", "cluster", "telemetry", "flows", "search", "mcp", "backends", "models", "prices")

BASE_URLS: dict[str, str] = {
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "cursor": "https://api2.cursor.sh",
}

_HIDDEN = {"key", "keys", "secrets", "token", "headers", "config", "env"}
_ONLY = {  # keys that are allowed only for some kinds of back ends
    "scripted": ("script",),
    "replay": ("cassette", "match", "timing", "damage"),
    "codex": ("command", "config", "workers", "tier", "keep_threads", "built_in_tools"),
    "cursor": (
        *("token", "client_type", "client_version", "privacy", "transport", "workspace", "local_tools", "history"),
        *("park_seconds", "repeated_calls", "max_requests_per_minute", "max_tokens_per_minute", "sandbox"),
        *("stall_heartbeats", "stall_seconds", "request_context", "tool_schemas", "results", "agent_url"),
    ),
    "vscode": ("max_requests_per_minute",),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORD = re.compile(r"[A-Za-z0-9._+-]{0,100}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#@]+")


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Loads the file at path, else ./toolwire.toml, else the one in the user's configuration folder, else defaults."""
    path = path or _default_file()
    if path is None:
        return with_backends(Config(), ())
    document = toml_lines.parse(_text_of(path), str(path))
    return _Reader(document, environ, path.absolute().parent).config()


def with_backends(config: Config, found: Iterable[BackendConfig]) -> Config:
    """Adds back ends and the embedded demo, and sets the default if there is only one candidate.

    VS Code is found without a window, so it is the default only if there is no other candidate.
    """
    found = list(found)
    backends = {backend.name: backend for backend in (*found, *config.backends)}
    backends.setdefault("demo", BackendConfig(name="demo", kind="demo"))
    serious = [name for name, backend in backends.items() if backend.kind not in ("demo", "scripted")]
    others = [name for name in serious if not (backends[name].kind == "vscode" and backends[name] in found)]
    candidates = others or serious
    server = config.server
    if not server.default and len(candidates) == 1:
        server = msgspec.structs.replace(server, default=candidates[0])
    return msgspec.structs.replace(config, server=server, backends=tuple(backends.values()))


def with_address(config: Config, host: str | None = None, port: int | None = None) -> Config:
    """Replaces host and port by those of the command line."""
    server = config.server
    if port is not None and not 1 <= port <= 65535:
        raise ConfigError(f"found {port}; expected a whole number from 1 to 65535.", where="--port")
    if host is not None and not server.keys and not is_loopback(host):
        raise ConfigError(_exposed(host), where="--host", hint=_EXPOSED_HINT)
    server = msgspec.structs.replace(server, host=host or server.host, port=port or server.port)
    return msgspec.structs.replace(config, server=server)


def default_store_path() -> Path:
    return user_data_path("toolwire", appauthor=False) / "state.db"


def secret_folder(store: StoreConfig) -> Path | None:
    """For generated secrets: beside the store. None for a store in memory."""
    if store.kind == "memory":
        return None
    return (Path(store.path) if store.path else default_store_path()).parent


def default_trace_path() -> Path:
    return user_log_path("toolwire", appauthor=False) / "trace.jsonl"


def is_loopback(host: str) -> bool:
    """A name that only resolves to this machine does not count."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def url_fault(url: str) -> str:
    """What is wrong with a base URL, or "". Does not quote the URL, because it may contain a key."""
    if not url.isprintable() or not url.isascii() or " " in url:
        return "found a URL with spaces or characters outside ASCII"
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete:
        return "found no complete URL"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "found a URL with a user, a query or a fragment in it"
    return ""


def suggestion(found: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: '; did you mean "x"?' or a full stop."""
    near = difflib.get_close_matches(found[:100], list(known), n=1)
    return f"; did you mean {quote(near[0])}?" if near else "."


_EXPOSED_HINT = 'Set keys = ["env:TOOLWIRE_KEY"] under [server], or use host = "127.0.0.1".'


def _exposed(host: str) -> str:
    return f"found {quote(host)}, which other machines can reach, and no keys; expected keys, or a loopback address."


def _default_file() -> Path | None:
    places = (Path(FILE_NAME), user_config_path("toolwire", appauthor=False) / FILE_NAME)
    return next((place for place in places if place.is_file()), None)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("this file is not UTF-8; save it as UTF-8.", where=str(path)) from None
    except OSError as error:
        message = f"this file cannot be read: {error.strerror or 'unknown reason'}."
        raise ConfigError(message, where=str(path), hint="Correct the path given with --config.") from None


class _Reader:
    """Converts a document; everything unexpected is an error at its key."""

    def __init__(self, document: Document, environ: Mapping[str, str], folder: Path) -> None:
        self._document = document
        self._environ = environ
        self._folder = folder
        self._warnings: list[str] = []

    def config(self) -> Config:
        data = self._document.data
        self._refuse_unknown((), data, _TABLES)
        aliases, groups = read_models(self._table(("models",), data.get("models", {})), self._document.error)
        config = Config(
            server=self._server(self._table(("server",), data.get("server", {}))),
            store=self._store(self._table(("store",), data.get("store", {}))),
            cluster=self._cluster(self._table(("cluster",), data["cluster"])) if "cluster" in data else None,
            telemetry=self._telemetry(self._table(("telemetry",), data.get("telemetry", {}))),
            flows=self._flows(self._table(("flows",), data.get("flows", {}))),
            search=self._search(self._table(("search",), data["search"])) if "search" in data else None,
            mcp_servers=self._mcp_servers(self._table(("mcp",), data.get("mcp", {}))),
            backends=tuple(
                self._backend(name, self._table(("backends", name), value))
                for name, value in self._table(("backends",), data.get("backends", {})).items()
            ),
            aliases=aliases,
            groups=groups,
            prices=read_prices(self._table(("prices",), data.get("prices", {})), self._document.error),
            path=self._document.name,
            warnings=tuple(self._warnings),
        )
        config = with_backends(config, ())
        self._check_default(config)
        return config

    def _server(self, table: dict[str, Any]) -> ServerConfig:
        resolver = Resolver(self._environ, self._folder)
        fields = self._fields(("server",), table, ServerConfig, resolver)
        server = ServerConfig(
            **fields | {"trace_file": self._path(("server", "trace_file"), fields.get("trace_file", ""))}
        )
        self._warnings += resolver.warnings
        if resolver.missing or not all((*server.keys, *server.secrets)):
            key = "keys" if not all(server.keys) else "secrets"
            found = resolver.missing[0] if resolver.missing else f"found an empty {key.removesuffix('s')}"
            whose = "the keys of its clients" if key == "keys" else "its secrets"
            raise self._document.error(("server", key), f"{found}; the gateway does not start without {whose}.")
        if not all(is_strong(secret.reveal()) for secret in server.secrets):
            message = f"found a weak secret; expected {MIN_LENGTH} printable characters or more, without blanks."
            raise self._document.error(("server", "secrets"), message)
        if not server.keys and not is_loopback(server.host):
            raise self._document.error(("server", "host"), _exposed(server.host), _EXPOSED_HINT)
        for origin in server.origins:
            if not _ORIGIN.fullmatch(origin):
                message = f'found {quote(origin)}; expected an origin such as "https://example.com", without a path.'
                raise self._document.error(("server", "origins"), message)
        return server

    def _store(self, table: dict[str, Any]) -> StoreConfig:
        resolver = Resolver(self._environ, self._folder)
        fields = self._fields(("store",), table, StoreConfig, resolver)
        self._warnings += resolver.warnings
        if resolver.missing:
            raise self._document.error(("store", "url"), f"{resolver.missing[0]}; expected the URL of the store.")
        try:
            fields = with_store_url(fields, set(table))
        except ConfigError as error:
            raise self._document.error(("store", error.where), error.message) from None
        fields["path"] = self._path(("store", "path"), fields.get("path", ""))
        return StoreConfig(**fields)

    def _flows(self, table: dict[str, Any]) -> FlowsConfig:
        fields = self._fields(("flows",), table, FlowsConfig, Resolver(self._environ, self._folder))
        for key in ("path", "file"):
            fields[key] = self._path(("flows", key), fields.get(key, ""))
        return FlowsConfig(**fields)

    def _cluster(self, table: dict[str, Any]) -> ClusterConfig:
        resolver = Resolver(self._environ, self._folder)
        fields = self._fields(("cluster",), table, ClusterConfig, resolver, unsettable=("is_own",))
        self._warnings += resolver.warnings
        try:
            return cluster_config(fields, resolver)
        except ConfigError as error:
            raise self._document.error(("cluster", error.where), error.message) from None

    def _telemetry(self, table: dict[str, Any]) -> TelemetryConfig:
        fields = self._fields(("telemetry",), table, TelemetryConfig, Resolver(self._environ, self._folder))
        if fault := url_fault(fields.get("otlp_endpoint", "") or "http://unset"):
            message = f'{fault}; expected one such as "http://127.0.0.1:4318".'
            raise self._document.error(("telemetry", "otlp_endpoint"), message)
        return TelemetryConfig(**fields)

    def _search(self, table: dict[str, Any]) -> SearchConfig:
        kinds = {"searxng": "url", "command": "command"}
        if "kind" not in table:
            raise self._document.error(("search",), f"kind is missing; expected one of {quoted_list(kinds)}.")
        fields = self._fields(("search",), table, SearchConfig, Resolver(self._environ, self._folder))
        needed = kinds[fields["kind"]]
        if not fields.get(needed):
            raise self._document.error(("search",), f"{needed} is missing; kind {quote(fields['kind'])} needs it.")
        for other in kinds.values():
            if other != needed and other in fields:
                message = f"found {other} for kind {quote(fields['kind'])}; expected only {needed}."
                raise self._document.error(("search", other), message)
        if needed == "url" and (fault := url_fault(fields["url"])):
            raise self._document.error(("search", "url"), f'{fault}; expected one such as "http://127.0.0.1:8080".')
        if needed == "command":
            fields["command"] = self._program(fields["command"])
        return SearchConfig(**fields)

    def _mcp_servers(self, table: dict[str, Any]) -> tuple[McpServerConfig, ...]:
        self._refuse_unknown(("mcp",), table, ("servers",))
        return tuple(
            self._mcp_server(name, self._table(("mcp", "servers", name), value))
            for name, value in self._table(("mcp", "servers"), table.get("servers", {})).items()
        )

    def _mcp_server(self, name: str, table: dict[str, Any]) -> McpServerConfig:
        path, resolver = ("mcp", "servers", name), Resolver(self._environ, self._folder)
        fields = self._fields(path, table, McpServerConfig, resolver, unsettable=("name",))
        if fields.get("url"):
            fields["url"] = self._url((*path, "url"), fields["url"])
        try:
            server = mcp_server_config(name, fields, resolver)
        except ConfigError as error:
            raise self._document.error((*path, error.where) if error.where else path, error.message) from None
        self._warnings += resolver.warnings
        return server

    def _program(self, command: str) -> str:
        """A bare name is looked up in PATH; a path is relative to the folder of this file."""
        try:
            program = str(self._folder / Path(command).expanduser()) if "/" in command else command
        except RuntimeError:  # "~" of a user who does not exist
            program = "\0"
        if "\0" in program:
            message = f"found {quote(command)}; expected the path of a program."
            raise self._document.error(("search", "command"), message)
        return program

    def _backend(self, name: str, table: dict[str, Any]) -> BackendConfig:
        path = ("backends", name)
        if not _NAME.fullmatch(name):
            message = (
                f"found the name {quote(name)}; expected letters, digits, dots, dashes and underscores, at most 64."
            )
            raise self._document.error(path, message)
        self._check_kind(path, table)
        resolver = Resolver(self._environ, self._folder)
        fields = self._fields(path, table, BackendConfig, resolver, unsettable=("name", "missing"))
        fields["headers"] = self._headers(path, fields.get("headers", {}), resolver)
        fields["base_url"] = self._base_url(path, fields)
        self._check_owned(path, fields)
        fields["agent_url"] = self._url((*path, "agent_url"), str(fields.get("agent_url", "")))
        for key in ("script", "cassette", "workspace"):
            fields[key] = self._path((*path, key), str(fields.get(key, "")))
        if fields.get("profile") and fields["profile"] not in profiles.BY_NAME:
            raise self._unexpected((*path, "profile"), fields["profile"], profiles.BY_NAME)
        self._check_tier(path, fields)
        self._check_account(path, fields)
        self._warnings += resolver.warnings
        if fields.get("tools") == "simulate" or fields.get("tier") == "sentinel":
            fields = {"guard": "retry", "policy": "text", **fields}
        if fields["kind"] == "replay":  # damaged arguments must reach the client
            fields = {"guard": "off", **fields}
        if fields["kind"] == "vscode":  # it replaces arguments that are not JSON by {}
            fields = {"guard": "retry", **fields}
        missing = resolver.missing
        if fields["kind"] == "cursor" and not missing and not fields.get("key") and not fields.get("token"):
            missing = ["neither key nor token is set"]
        return BackendConfig(name=name, missing="; ".join(missing), **fields)

    def _check_owned(self, path: KeyPath, fields: dict[str, Any]) -> None:
        """Most keys are for every kind; some make sense for one alone. Kinds of other packages may use any of them."""
        if not registry.is_own(fields["kind"]):
            return
        for key in fields:
            kinds = [kind for kind, keys in _ONLY.items() if key in keys]
            if kinds and fields["kind"] not in kinds:
                owners = " or ".join(map(quote, kinds))
                message = f"found {key} for kind {quote(fields['kind'])}; expected it only for kind {owners}."
                raise self._document.error((*path, key), message)

    def _check_account(self, path: KeyPath, fields: dict[str, Any]) -> None:
        """Checks the credentials and the client name of a subscription."""
        if "token" in fields and "key" in fields:
            message = "found both a key and a token; expected one of them."
            raise self._document.error((*path, "token"), message)
        for key in ("client_type", "client_version"):
            if not _WORD.fullmatch(fields.get(key, "")):
                message = f"found {quote(fields[key])}; expected letters, digits, dots, dashes and underscores."
                raise self._document.error((*path, key), message)

    def _check_tier(self, path: KeyPath, fields: dict[str, Any]) -> None:
        tier = fields.get("tier", "auto")
        if "command" in fields and not all(fields["command"]):
            raise self._document.error(
                (*path, "command"), "found an empty string; expected a program and its arguments."
            )
        if fields.get("tools") == "simulate" and tier not in ("auto", "sentinel"):
            message = f'found tier {quote(tier)} beside tools = "simulate"; expected "sentinel", or no tier.'
            raise self._document.error((*path, "tier"), message)
        if tier == "mcp":
            self._warnings.append(
                f'{".".join(path)}.tier: the tier "mcp" was removed; "auto" is used instead, which describes tools as text to Codex '
                "before 0.92."
            )
        if fields.get("tools") == "native" and tier == "sentinel":
            message = 'found tier "sentinel" beside tools = "native"; expected another tier, or tools = "simulate".'
            raise self._document.error((*path, "tier"), message)

    def _check_kind(self, path: KeyPath, table: dict[str, Any]) -> None:
        kind = table.get("kind")
        if kind is None:
            raise self._document.error(path, f"kind is missing; expected one of {quoted_list(registry.kinds())}.")
        if isinstance(kind, str) and not registry.is_kind(kind):
            raise self._unexpected((*path, "kind"), kind, registry.kinds())

    def _headers(self, path: KeyPath, headers: dict[str, str], resolver: Resolver) -> dict[str, str]:
        resolved: dict[str, str] = {}
        for name, value in headers.items():
            place = (*path, "headers", name)
            if not _HEADER_NAME.fullmatch(name):
                raise self._document.error(place, f"found {quote(name)}; expected the name of an HTTP header.")
            try:
                resolved[name] = resolver.resolve(value)
            except ValueError as error:
                raise self._document.error(place, f"{error}; expected one line of printable ASCII.") from None
        return resolved

    def _base_url(self, path: KeyPath, fields: dict[str, Any]) -> str:
        return self._url((*path, "base_url"), str(fields.get("base_url", "")) or BASE_URLS.get(fields["kind"], ""))

    def _url(self, key: KeyPath, written: str) -> str:
        url = written.rstrip("/")
        if url and (fault := url_fault(url)):
            raise self._document.error(key, f'{fault}; expected one such as "http://127.0.0.1:11434/v1".')
        return url

    def _path(self, key: KeyPath, path: str) -> str:
        """A path is relative to the folder of this file; "" stays ""."""
        try:
            found = str(self._folder / Path(path).expanduser()) if path else ""
        except RuntimeError:  # "~" of a user who does not exist
            found = "\0"
        if "\0" in found:
            raise self._document.error(key, f"found {quote(path)}; expected a path.")
        return found

    def _check_default(self, config: Config) -> None:
        names = [backend.name for backend in config.backends]
        if config.server.default and config.server.default not in names:
            raise self._unexpected(("server", "default"), config.server.default, names)

    def _fields(
        self,
        path: KeyPath,
        table: dict[str, Any],
        struct: type[Struct],
        resolver: Resolver,
        unsettable: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        types = {field.name: field.type for field in msgspec.structs.fields(struct) if field.name not in unsettable}
        self._refuse_unknown(path, table, types)
        return {key: self._value((*path, key), value, types[key], resolver) for key, value in table.items()}

    def _value(self, path: KeyPath, value: Any, kind: Any, resolver: Resolver) -> Any:
        def revealed(_: type, reference: Any) -> Secret:
            if not isinstance(reference, str):
                raise ValueError(f"found {noun(reference)}")
            return resolver.secret(reference)

        try:
            return msgspec.convert(value, kind, dec_hook=revealed)
        except msgspec.ValidationError as error:
            if isinstance(value, str) and get_origin(kind) is Literal:
                raise self._unexpected(path, value, get_args(kind)) from None
            if isinstance(value, list) and get_origin(get_args(kind)[0] if get_args(kind) else None) is Literal:
                for item in value:
                    self._value(path, item, get_args(kind)[0], resolver)
            if isinstance(value, dict) and kind in (dict[str, Guard], dict[str, Approval]):
                for name, level in value.items():
                    self._value((*path, name), level, get_args(kind)[1], resolver)
            found = f"found {noun(value) if path[-1] in _HIDDEN else describe(value)}"
            if error.__cause__ is not None:
                found = str(error.__cause__)
            raise self._document.error(path, f"{found}; expected {expected(kind)}.") from None

    def _table(self, path: KeyPath, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            named = {"backends": "[backends.NAME]", "mcp": "[mcp.servers.NAME]"}
            example = named.get(path[0], f"[{path[0]}]")
            raise self._document.error(path, f"found {noun(value)}; expected a table: {example}.")
        return value

    def _refuse_unknown(self, path: KeyPath, table: dict[str, Any], known: Iterable[str]) -> None:
        for key in table:
            if key not in known:
                message = (
                    f"found the unknown key {quote(key)}; expected one of {quoted_list(known)}{suggestion(key, known)}"
                )
                raise self._document.error((*path, key), message)

    def _unexpected(self, path: KeyPath, found: str, known: Iterable[str]) -> ConfigError:
        message = f"found {quote(found)}; expected one of {quoted_list(known)}{suggestion(found, known)}"
        return self._document.error(path, message)
