"""Builds the runtime from the configuration. When the configuration is read again, it replaces what has changed.

A back end whose configuration is the same stays the same object, with its connections and its live runs. Requests under way keep the
back end, the policy and the tools that they began with. What needs a restart is named, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ...backends import build
from ...backends.http.transport import Transport
from ...backends.registry import load
from ...backends.search import build_search
from ...catalog.router import router_for
from ...cluster.node import ClusterNode
from ...config.file import BackendConfig, Config, secret_folder
from ...config.policy import policy_of
from ...config.secret_file import seal_secrets, sealing_secrets
from ...memory.answers import AnswerMemory, storing_backends
from ...memory.signatures import SignatureMemory
from ...memory.store import Store
from ...pipeline.compaction.stage import Compactor
from ...pipeline.groups import ModelGroups
from ...pipeline.mounted.servers import start_servers
from ...pipeline.search import Searching
from ...runtime import Runtime, RuntimeSettings
from ...telemetry.quality import CallQuality
from .retirement import Closable, Retirement

_FIXED_TABLES = ("store", "cluster", "telemetry", "flows")
_LIVE_SERVER_KEYS = ("keys", "origins", "default", "max_streams")


class Changes(Struct):
    """Names of back ends, and of other parts. restart: what was changed in the file and is only used after a restart."""

    added: list[str] = []
    changed: list[str] = []
    removed: list[str] = []
    others: list[str] = []
    restart: list[str] = []

    def describe(self) -> str:
        lists = {
            "added": self.added,
            "changed": self.changed,
            "removed": self.removed,
            "also changed": self.others,
            "only used after a restart": self.restart,
        }
        return "; ".join(f"{name}: {', '.join(found)}" for name, found in lists.items() if found) or "nothing changed"


class RuntimeParts:
    """Belongs to one event loop, after which stop() is to be called."""

    def __init__(self, config: Config, store: Store, cluster: ClusterNode | None, retirement: Retirement) -> None:
        self.config = config
        self.transport = Transport()
        self.quality = CallQuality()
        self.answers = AnswerMemory(store, (), is_shared=bool(config.server.keys))
        self.retirement = retirement
        self._cluster = cluster
        self.backends = {one.name: build(one, self.transport) for one in config.backends}
        self._mounted = start_servers(config.mcp_servers)
        signatures = SignatureMemory(store) if config.store.reasoning else None
        compactor = Compactor(seal_secrets(sealing_secrets(config), secret_folder(config.store)))
        self._reached = self.backends if cluster is None else cluster.join(store, self.backends)
        self._groups = ModelGroups(config.groups, self._backend_of, self._quality)
        settings = self._settings(config)
        self.runtime = Runtime(self._reached, settings.router, settings.policies, self.answers, signatures, compactor)
        self._use(config, settings)

    def replace(self, config: Config) -> Changes:
        """Use another configuration for requests that begin from now on. Raises ConfigError, and nothing has changed."""
        changes, retired = Changes(restart=list(_fixed(self.config, config))), list[Closable]()
        before = {one.name: one for one in self.config.backends}
        wanted = tuple(_usable(before, config, changes))
        built = {one.name: build(one, self.transport) for one in wanted if before.get(one.name) != one}
        merged = _merged(self.config, config, wanted)
        settings = self._settings(merged)
        if config.mcp_servers != self.config.mcp_servers:
            mounted = start_servers(config.mcp_servers)
            retired += [self._mounted] if self._mounted is not None else []
            self._mounted = mounted
            changes.others.append("MCP servers")
        names = [one.name for one in wanted]
        changes.added = [name for name in names if name not in before]
        changes.changed = [name for name in names if name in before and name in built]
        changes.removed = [name for name in before if name not in names]
        changes.others += [
            name
            for name in ("aliases", "groups", "prices", "search")
            if getattr(config, name) != getattr(self.config, name)
        ]
        changes.others += [f"server.{key}" for key in _live_changes(self.config, config)]
        retired += [self._reached[name] for name in (*changes.changed, *changes.removed)]
        self.backends = {name: built.get(name) or self.backends[name] for name in names}
        self._reached = self.backends if self._cluster is None else self._cluster.replace(self.backends)
        self._use(merged, settings)
        self.retirement.retire(retired)
        return changes

    async def stop(self) -> None:
        await self.retirement.stop()
        await self.runtime.close()
        await self.transport.close()

    def _settings(self, config: Config) -> RuntimeSettings:
        """What can be said without changing anything. Raises ConfigError."""
        return RuntimeSettings(
            backends={},
            router=router_for(config),
            policies={one.name: policy_of(one) for one in config.backends},
            search=Searching(build_search(config.search, self.transport)) if config.search is not None else None,
        )

    def _use(self, config: Config, settings: RuntimeSettings) -> None:
        """Groups keep what they know: where conversations are, and which back ends fail."""
        self.config = config
        self.answers.keepers = tuple(storing_backends(config.backends))
        self._groups.groups = dict(config.groups)
        self.runtime.configure(replace(settings, backends=self._reached, groups=self._groups, mounts=self._mounted))

    def _backend_of(self, model: str) -> str:
        route = self.runtime.catalog.router.route_or_none(model)
        return "" if route is None else route.backend

    def _quality(self, model: str) -> float | None:
        route = self.runtime.catalog.router.route_or_none(model)
        return None if route is None else self.quality.share(route.backend, route.model)


def _usable(before: dict[str, BackendConfig], config: Config, changes: Changes) -> Iterator[BackendConfig]:
    """The back ends to use. Those that live in one process only, such as VS Code, are connected when the server starts."""
    for one in config.backends:
        if before.get(one.name) != one and load(one.kind).is_single_process:
            changes.restart.append(f"backends.{one.name}")
            if one.name in before:
                yield before[one.name]
        else:
            yield one
    names = {one.name for one in config.backends}
    for name, one in before.items():
        if name not in names and load(one.kind).is_single_process:
            changes.restart.append(f"backends.{name}")
            yield one


def _server_changes(before: Config, after: Config) -> list[str]:
    names = type(before.server).__struct_fields__
    return [name for name in names if getattr(before.server, name) != getattr(after.server, name)]


def _live_changes(before: Config, after: Config) -> list[str]:
    """Keys of [server] that can be replaced. A gateway without keys is another one: it accepts only this machine, and records requests."""
    is_same_kind = bool(before.server.keys) == bool(after.server.keys)
    return [
        key for key in _server_changes(before, after) if key in _LIVE_SERVER_KEYS and (key != "keys" or is_same_kind)
    ]


def _fixed(before: Config, after: Config) -> Iterator[str]:
    """What differs and cannot be replaced."""
    for name in _FIXED_TABLES:
        if getattr(before, name) != getattr(after, name):
            yield name
    live = _live_changes(before, after)
    yield from (f"server.{key}" for key in _server_changes(before, after) if key not in live)


def _merged(before: Config, after: Config, backends: tuple[BackendConfig, ...]) -> Config:
    """The new configuration, with what cannot be replaced as it was."""
    live = {key: getattr(after.server, key) for key in _live_changes(before, after)}
    fixed = {name: getattr(before, name) for name in _FIXED_TABLES}
    return replace(after, server=replace(before.server, **live), backends=backends, **fixed)
