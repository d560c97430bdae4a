"""The user's own Codex, configured as a bare model: its folder, its settings, its processes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

from ... import __version__
from ...config.file import BackendConfig
from ...errors import UpstreamError, quote
from ...subprocesses import kill_group
from ...subprocesses import start as start_process
from ...types import JsonObject
from ...wire.exact_json import encode, object_of
from ..sessions import SessionLost
from .home import Home, no_room
from .pool import WorkerLimits, WorkerPool
from .transport.process import is_secret_name, redact_command, start
from .transport.websocket import connect, is_address
from .wire.request_out import initialize_params
from .wire.settings import BARE_SETTINGS, bare_settings, enable, flat, merged, provider_settings, switches_tools, toml
from .wire.versions import Abilities, Tier, Version, tier_for, version_of
from .worker import AppServerChannel, AppServerWorker, RequestRefused

COMMAND = ("codex", "app-server")
# A key of ours, not of Codex: replaces the prompt that Codex puts first.
BASE_INSTRUCTIONS = "base_instructions"
_INITIALIZE_SECONDS = 30.0  # a machine under load needs several for the start
# The values of a model that Codex does not know.
_PLAIN: JsonObject = {
    "tool_mode": None,
    "multi_agent_version": None,
    "apply_patch_tool_type": None,
    "use_responses_lite": False,
    "experimental_supported_tools": [],
}
_LIST_SECONDS = 10.0  # for the program to print its models
_DOCTOR = "`toolwire doctor` shows its last output."  # which clients must not see


class Program(Struct, frozen=True, kw_only=True):
    """The version that runs, and how tools are called with it."""

    version: Version
    abilities: Abilities
    tier: Tier
    has_own_instructions: bool = False  # Codex puts a prompt of its own before everything

    def __str__(self) -> str:
        prompt = ", with Codex's own instructions" if self.has_own_instructions else ""
        return f"Codex {self.version}, tier {self.tier.name}{prompt}"


class CodexHost:
    """Creates and starts nothing before the first lease."""

    def __init__(self, config: BackendConfig, environ: Mapping[str, str], folder: Path | None = None) -> None:
        self.command = config.command or COMMAND
        self.is_remote = is_address(self.command)
        self.pool = WorkerPool(self._start, 1 if self.is_remote else config.workers, WorkerLimits())
        self._config = config
        self._environ = environ
        self._folder = folder
        self.home: Home | None = None  # None before the first start, and for a remote app-server
        self._last_output = ""  # of an app-server that did not start
        self._starting = asyncio.Lock()

    @property
    def work(self) -> str:
        return str(self.home.work) if self.home is not None else "/"

    def program(self, worker: AppServerWorker) -> Program:
        """Raises ConfigError where it is not Codex, or does not have the configured tier."""
        wanted = "sentinel" if self._config.is_simulated else self._config.tier
        return _program(str(worker.about.get("userAgent") or ""), wanted, self.base_instructions is None)

    def thread_settings(self, program: Program) -> JsonObject:
        """For an app-server that we did not start. It keeps its own provider and refuses threads with another one."""
        if not self.is_remote:
            return {}
        own = flat(_of_codex(self._config.config))
        own = {key: value for key, value in own.items() if not key.startswith("model_provider")}
        return merged(bare_settings(program.abilities), enable(self._config.built_in_tools), own)

    @property
    def stores_threads(self) -> bool:
        """Whether threads are stored for the next request; not for a remote app-server, whose files cannot be deleted."""
        return self._config.keep_threads and not self.is_remote

    @property
    def has_built_ins(self) -> bool:
        return bool(self._config.built_in_tools) or switches_tools(_of_codex(self._config.config))

    @property
    def base_instructions(self) -> str | None:
        given = self._config.config.get(BASE_INSTRUCTIONS)
        return given if isinstance(given, str) else None

    def with_details(self, error: UpstreamError) -> UpstreamError:
        """For the owner: adds the command and the last output of an app-server that did not start, which clients must not see."""
        if error.code != "codex_not_started":
            return error
        output = f" Its last output was {quote(self._last_output)}." if self._last_output else ""
        command = quote(redact_command(self.command))
        hint = f"{error.hint} The command is {command}."
        if error.hint == _DOCTOR:
            hint = f"Run {command} by hand to see what is wrong."
        return UpstreamError(f"{error.message}{output}", status=error.status, code=error.code, hint=hint)

    def renew(self) -> bool:
        """After a 401: whether there is a new login. Then all app-servers are retired."""
        if self.home is None or not self.home.has_new_login():
            return False
        self.pool.retire()
        return True

    async def close(self) -> None:
        await self.pool.close()
        if self.home is not None:
            await asyncio.to_thread(self.home.remove)
            self.home = None

    async def _start(self) -> AppServerWorker:
        """One at a time: two that create the databases of one folder at once conflict (seen with 0.166)."""
        async with self._starting:
            worker = AppServerWorker(await self._channel(), self._config.name)
            try:
                await worker.introduce(initialize_params(__version__), _INITIALIZE_SECONDS)
                self.program(worker)
            except (SessionLost, RequestRefused, TimeoutError) as error:
                await worker.close()
                self._last_output = worker.channel.last_output()
                raise _not_started(error) from None
            except BaseException:
                await worker.close()
                raise
            return worker

    async def _channel(self) -> AppServerChannel:
        if self.is_remote:
            return await connect(self.command[0], self._config.key.reveal())
        if self.home is not None and not self.home.is_there:
            await asyncio.to_thread(self.home.remove)
            self.home = None
        if self.home is None:
            self.home = await self._create_home()
        else:
            with suppress(OSError):  # Codex then reports that there is no login
                self.home.link_login()
        secrets = _secrets(self._config.config, self._environ)
        return await start(self.command, self.home.work, self.home.environment(), secrets)

    async def _create_home(self) -> Home:
        """A new folder, with a model catalogue where the version has one."""
        settings = _settings(self._config)
        making = asyncio.create_task(asyncio.to_thread(Home, toml(settings), self._environ, self._folder))
        try:
            home = await asyncio.shield(making)
            listed = await catalogue_of(self.command, home.work, home.environment())
            if listed and "model_catalog_json" not in self._config.config:
                path = {"model_catalog_json": str(home.home / "models.json")}
                await asyncio.to_thread(home.write, "models.json", listed)
                await asyncio.to_thread(home.write, "config.toml", toml(merged(settings, path)).encode())
        except BaseException as error:
            await asyncio.wait([making])  # a thread cannot be stopped
            if making.exception() is None:
                making.result().remove()
            if isinstance(error, OSError):
                raise no_room(error) from None
            raise
        return home


async def catalogue_of(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> bytes:
    """The text of a model catalogue; b"" if the version prints none (0.89), and then needs none."""
    if "app-server" not in command:
        return b""
    listing = [*command[: command.index("app-server")], "debug", "models"]
    try:
        nothing = asyncio.subprocess.DEVNULL
        process = await start_process(*listing, stdin=nothing, stderr=nothing, folder=folder, environment=environment)
    except OSError:
        return b""  # the real start reports the reason
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError:
        return b""
    finally:
        kill_group(process)
        await process.wait()
    return plain_catalogue(printed)


def plain_catalogue(printed: bytes) -> bytes:
    """The catalogue without settings that change prompts and tools; b"" if it is no catalogue."""
    known = object_of(printed.decode("utf-8", "replace"))
    models = known.get("models") if known is not None else None
    if known is None or not isinstance(models, list) or not models:
        return b""
    changed = [
        model | {name: value for name, value in _PLAIN.items() if name in model}
        for model in models
        if isinstance(model, dict)
    ]
    return encode({**known, "models": changed})


@cache
def _program(user_agent: str, wanted: str, has_own_instructions: bool) -> Program:
    version = version_of(user_agent)
    return Program(
        version=version,
        abilities=Abilities(version),
        tier=tier_for(version, wanted),
        has_own_instructions=has_own_instructions,
    )


def _settings(config: BackendConfig) -> JsonObject:
    """A bare model without retries by Codex, overridden by the owner's settings."""
    own = flat(_of_codex(config.config))
    chosen = own.get("model_provider")
    if chosen is None:
        provider = provider_settings(max(1, round(config.idle_timeout)))
    elif any(key.startswith(f"model_providers.{chosen}.") for key in own):
        table = f"model_providers.{chosen}"
        provider = {f"{table}.request_max_retries": 0, f"{table}.stream_max_retries": 0}
    else:
        provider = {}  # a built-in provider has no settings
    return merged(BARE_SETTINGS, enable(config.built_in_tools), provider, own)


def _secrets(config: JsonObject, environ: Mapping[str, str]) -> list[str]:
    """Secrets in the owner's settings, and in environment variables that the settings name."""
    found: list[str] = []
    for key, value in flat(config).items():
        above, _, name = key.rpartition(".")
        if not isinstance(value, str):
            continue
        if name == "env_key" or above.endswith("env_http_headers"):
            found.append(environ.get(value, ""))
        elif is_secret_name(name) or above.endswith(("http_headers", "query_params")):
            found.append(value)
    return found


def _of_codex(config: JsonObject) -> JsonObject:
    return {name: value for name, value in config.items() if name != BASE_INSTRUCTIONS}


def _not_started(error: SessionLost | RequestRefused | TimeoutError) -> UpstreamError:
    is_late = isinstance(error, TimeoutError)
    why = f"it did not answer initialize within {_INITIALIZE_SECONDS:.0f} seconds." if is_late else str(error)
    return UpstreamError(f"the app-server of Codex did not start: {why}", code="codex_not_started", hint=_DOCTOR)
