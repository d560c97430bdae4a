"""`toolwire simulate cursor`: a simulator of a vendor's server, to test a back end without an account."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ..errors import BadRequest, ConfigError

if TYPE_CHECKING:
    from ..backends.cursor.simulator.server import Simulator

simulate = App(name="simulate", help="Run a simulator of a vendor's server on this machine.", help_format="plaintext")


@simulate.command
def cursor(
    *,
    port: Annotated[int, Parameter(help="Port to listen on; 0 selects a free one.")] = 0,
    script: Annotated[
        Path | None,
        Parameter(
            help="Script of its model: TOML ([[turns]] with steps), JSON or JSON lines. A step is "
            '{"do": "say", "text": "..."}, {"do": "call", "name": "...", "args": {...}}, think, together, native, query, '
            "set_blob, checkpoint, pause, ended, fail, drop, stall, with or raw. One turn is one answer; the next one "
            "follows the results of its calls. Without a script the demo model answers. A script in the prompt, "
            "[[script:BASE64]], takes precedence.",
        ),
    ] = None,
    fault: Annotated[
        tuple[str, ...],
        Parameter(
            help="Fault to inject, as NAME or NAME=VALUE, can be repeated: gzip, split, calls=3, late=0.2, drop=text, "
            "stall=parked, error:rate_limited=open and so on; an unknown name lists them all.",
            negative="",
        ),
    ] = (),
    journal: Annotated[Path | None, Parameter(help="Write received messages to this file, as JSON lines.")] = None,
    heartbeat: Annotated[float, Parameter(help="Seconds between heartbeats of the server.")] = 1.0,
    strict: Annotated[
        bool, Parameter(help="Refuse runs whose first message has no request context.", negative="")
    ] = False,
    any_model: Annotated[bool, Parameter(help="Accept every model name.", negative="")] = False,
) -> int:
    """Serve Cursor's Agent API on 127.0.0.1, over HTTP/1.1 and HTTP/2, until interrupted. Sends nothing to other machines."""
    from ..backends import registry

    registry.load("cursor")  # names the extra if it is not installed
    from ..backends.cursor.simulator.script import load
    from ..backends.cursor.simulator.server import Simulator
    from ..backends.cursor.simulator.settings import Settings, parse

    try:
        faults = parse(fault)
    except BadRequest as wrong:
        raise ConfigError(wrong.message, where="--fault") from None
    model = None if script is None else load(script)
    settings = Settings(heartbeat=heartbeat, knows_every_model=any_model, needs_context=strict)
    simulator = Simulator(model=model, faults=faults, settings=settings, port=port, journal=journal)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(simulator, settings.api_keys[0], settings.tokens[0]))
    return 0


async def _serve(simulator: Simulator, key: str, token: str) -> None:
    try:
        await simulator.start()
    except OSError as fault:
        why = fault.strerror or type(fault).__name__
        raise ConfigError(f"port {simulator.port} cannot be opened: {why}.", where="--port") from None
    try:
        print(f"Simulator of Cursor's Agent API on {simulator.url}", flush=True)
        print(f"API key: {key}   token: {token}   (Ctrl-C stops it)", flush=True)
        await asyncio.Event().wait()
    finally:
        await simulator.close()
