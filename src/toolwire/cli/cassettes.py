"""`toolwire record FILE` and `toolwire replay FILE`: a gateway that writes a cassette, and one that answers from it."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from msgspec.structs import replace

from ..catalog.found import found_config
from ..config.file import Config, with_address
from ..errors import ConfigError
from ..testing.gateway import record_config, replay_config
from .serve import ConfigFlag, announce


def record(
    file: Annotated[Path, Parameter(help="The cassette; new flows are appended.")],
    *,
    host: Annotated[str | None, Parameter(help="Address to listen on (default 127.0.0.1).")] = None,
    port: Annotated[int | None, Parameter(help="Port to listen on (default 18741).")] = None,
    config: ConfigFlag = None,
) -> None:
    """Start the gateway and record every request and its answer to a file."""
    found = asyncio.run(found_config(config, port=port, is_serving=True))
    served = with_address(replace(found, flows=record_config(found.flows, file)), host, port)
    print(f"recording to {file}", file=sys.stderr)
    _serve(served)


def replay(
    file: Annotated[Path, Parameter(help="A cassette of `toolwire record`.")],
    *,
    match: Annotated[
        Literal["exact", "conversation"],
        Parameter(help="exact compares the whole request, conversation ignores instructions and tools."),
    ] = "exact",
    timing: Annotated[Literal["instant", "recorded"], Parameter(help="Whether to keep the pauses.")] = "instant",
    damage: Annotated[
        tuple[str, ...], Parameter(help="cut, 429, 500, stall or arguments; with @N for the Nth answer alone.")
    ] = (),
    host: Annotated[str | None, Parameter(help="Address to listen on (default 127.0.0.1).")] = None,
    port: Annotated[int | None, Parameter(help="Port to listen on (default 18741).")] = None,
) -> None:
    """Start a gateway that answers from a recorded file, without a model."""
    if not file.is_file():
        raise ConfigError("there is no such file.", where=str(file), hint="`toolwire record FILE` makes one.")
    served = replay_config(file, match=match, timing=timing, damage=damage)
    _serve(with_address(served, host, port))


def _serve(config: Config) -> None:
    from ..server import run

    run(config, announce=partial(announce, config))
