"""A gateway for one test: it answers from a cassette, or records one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from msgspec.structs import replace

from ..backends.base import Backend
from ..catalog.found import found_config
from ..config.file import BackendConfig, Config, FlowsConfig, ServerConfig, StoreConfig
from ..errors import ConfigError
from .background import BackgroundGateway

_NAME = "replay"
_MAX_BODY_KB = 64 * 1024
_MAX_MB = 512


class CassetteGateway:
    """Use it as a context manager. is_recording: the answers come from real back ends, and the file is written.

    base_url: for clients of OpenAI. address: for clients of Anthropic and Google.
    """

    def __init__(self, file: Path, config: Config, *, is_recording: bool) -> None:
        self.file = file
        self.is_recording = is_recording
        self._gateway = BackgroundGateway(config)
        self.address = self._gateway.address
        self.base_url = f"{self.address}/v1"

    @classmethod
    def replay(
        cls,
        file: Path,
        *,
        match: Literal["exact", "conversation"] = "exact",
        timing: Literal["instant", "recorded"] = "instant",
        damage: tuple[str, ...] = (),
    ) -> Self:
        """Answers from the cassette. Raises ConfigError if it cannot be read."""
        return cls(file, replay_config(file, match=match, timing=timing, damage=damage), is_recording=False)

    @classmethod
    def record(cls, file: Path, config: Config | None = None) -> Self:
        """Writes the cassette anew. config: of the real back ends; by default what `toolwire serve` would use.

        Raises ConfigError without a real back end."""
        found = config or asyncio.run(found_config(None))
        if not any(backend.kind != "demo" for backend in found.backends) and config is None:
            raise ConfigError(
                f"there is no model to record {file.name} from.",
                hint="Set a key such as OPENAI_API_KEY, start a local server, or write a toolwire.toml; then run pytest --toolwire-record.",
            )
        file.unlink(missing_ok=True)
        return cls(file, replace(found, flows=record_config(found.flows, file)), is_recording=True)

    @property
    def misses(self) -> list[str]:
        """Why requests had no recorded answer."""
        return list(getattr(self._replayed, "misses", ()))

    @property
    def unused(self) -> list[int]:
        """Lines of the cassette that no request asked for."""
        return list(getattr(self._replayed, "unused", ()))

    def start(self) -> Self:
        self._gateway.start()
        return self

    def close(self) -> None:
        self._gateway.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _replayed(self) -> Backend | None:
        return None if self.is_recording else self._gateway.backend(_NAME)


def record_config(flows: FlowsConfig, file: Path) -> FlowsConfig:
    """Flows that are also written to the file, whole."""
    return replace(
        flows, enabled=True, bodies=True, max_body_kb=_MAX_BODY_KB, max_mb=_MAX_MB, file=str(file.absolute())
    )


def replay_config(
    file: Path,
    *,
    match: Literal["exact", "conversation"] = "exact",
    timing: Literal["instant", "recorded"] = "instant",
    damage: tuple[str, ...] = (),
) -> Config:
    """A gateway that answers every model name from the cassette."""
    backend = BackendConfig(
        name=_NAME, kind="replay", cassette=str(file.absolute()), match=match, timing=timing, damage=damage, guard="off"
    )
    return Config(server=ServerConfig(default=_NAME), store=StoreConfig(kind="memory"), backends=(backend,))
