"""`toolwire models`: lists every model as backend/model, and the aliases of the file."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec import Struct
from msgspec.structs import replace

from ..catalog.found import found_config
from ..catalog.router import Route, router_for
from ..config.file import BackendConfig, Config
from ..errors import GatewayError, UpstreamError, quote
from .clients.gateway import GatewayStatus, running
from .serve import ConfigFlag

HTTP_SECONDS = 5.0
PROGRAM_SECONDS = 20.0  # includes its start
# Model lists contain models that cannot chat; they are recognised by name.
_NOT_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|image|audio|realtime|transcribe|rerank|sora|speech|veo|imagen", re.IGNORECASE
)


class ModelListing(Struct, frozen=True, kw_only=True):
    """The models of one back end, or why there are none."""

    backend: str
    models: tuple[str, ...] = ()
    program: str = ""  # for a local program: its version and how it calls tools
    error: GatewayError | None = None


def models(
    *,
    config: ConfigFlag = None,
    json: Annotated[bool, Parameter(help="Write JSON, for programs.", negative="")] = False,
) -> int:
    """List the models of every back end, as backend/model, and the aliases. Exits with 1 if a back end cannot be asked."""
    found, listings = asyncio.run(_listings(config))
    aliases = _aliases(found, listings)
    code = 1 if any(listing.error is not None for listing in listings) else 0
    if json:
        print(msgspec.json.format(msgspec.json.encode(_as_json(listings, aliases)), indent=2).decode())
        return code
    for alias, route in aliases.items():
        print(plain(f"{alias} -> {route.backend}/{route.model}", 600))
    for listing in listings:
        for model in listing.models:
            print(plain(f"{listing.backend}/{model}"))
        if listing.error is not None:
            print(plain(f"{listing.backend}: {listing.error.sentence()}", 600), file=sys.stderr)
    return code


async def ask(backend: BackendConfig, seconds: float = 0.0, *, gateway: GatewayStatus | None = None) -> ModelListing:
    """The models that the back end itself lists. Only a running gateway knows the models of VS Code windows."""
    if backend.kind == "vscode":
        return _vscode_listing(backend.name, gateway or GatewayStatus())
    seconds = seconds or (PROGRAM_SECONDS if backend.kind == "codex" else HTTP_SECONDS)
    if backend.missing:
        return ModelListing(backend=backend.name, error=UpstreamError(f"{backend.missing}."))
    try:
        async with asyncio.timeout(seconds):
            answers, program = await _models_of(backend)
        return ModelListing(backend=backend.name, models=answers, program=program)
    except GatewayError as fault:
        error = fault
    except TimeoutError:
        error = UpstreamError(f"it did not answer within {seconds:g} seconds.", status=504)
    except OSError as fault:
        error = UpstreamError(f"it cannot be reached: {fault.strerror or type(fault).__name__}.")
    return ModelListing(backend=backend.name, error=error)


def first_chat_model(models: Sequence[str]) -> str:
    """ "" for an empty list."""
    return next((model for model in models if not _NOT_CHAT.search(model)), models[0] if models else "")


def plain(text: str, length: int = 200) -> str:
    """Foreign text for a terminal: bounded, without control characters."""
    pieces = [text[start : start + 200] for start in range(0, min(len(text), length), 200)]
    return "".join(quote(piece)[1:-1] for piece in pieces)


async def listings_of(config: Config) -> list[ModelListing]:
    """Lists all back ends. Without a file VS Code is only a possibility, so that a missing window is not an error."""
    gateway = await gateway_of(config)
    listings = await asyncio.gather(*(_listing(backend, gateway) for backend in config.backends))
    pairs = zip(config.backends, listings, strict=True)
    return [listing for backend, listing in pairs if listing.models or config.path or backend.kind != "vscode"]


async def gateway_of(config: Config) -> GatewayStatus:
    """Queries the running gateway only if a back end needs it."""
    needs_it = any(backend.kind == "vscode" for backend in config.backends)
    return await asyncio.to_thread(running, config) if needs_it else GatewayStatus()


async def _listings(path: Path | None) -> tuple[Config, list[ModelListing]]:
    config: Config = await found_config(path, is_serving=True)
    return config, await listings_of(config)


def _vscode_listing(name: str, gateway: GatewayStatus) -> ModelListing:
    models = tuple(model.removeprefix(f"{name}/") for model in gateway.models if model.startswith(f"{name}/"))
    if models:
        return ModelListing(backend=name, models=models)
    if gateway.status in (0, 200):
        running = "no VS Code window offers a model" if gateway.status else "the gateway is not running"
        fault = f"{running}; VS Code's models are known only to a running gateway that a window is connected to."
        hint = "`toolwire vscode status` shows what is missing."
    else:
        fault = f"the running gateway answers {gateway.status} and does not list its models."
        hint = "Set TOOLWIRE_KEY to one of its keys."
    return ModelListing(backend=name, error=UpstreamError(fault, hint=hint))


def _aliases(config: Config, listings: list[ModelListing]) -> dict[str, Route]:
    """The route of each alias without a `*`."""
    router = router_for(config)
    for listing in listings:
        router.note_models(listing.backend, listing.models)
    routes = {alias: router.route_or_none(alias) for alias in router.aliases}
    return {alias: route for alias, route in routes.items() if route is not None}


async def _listing(backend: BackendConfig, gateway: GatewayStatus) -> ModelListing:
    if backend.models:
        return ModelListing(backend=backend.name, models=backend.models)
    return await ask(backend, gateway=gateway)


async def _models_of(config: BackendConfig) -> tuple[tuple[str, ...], str]:
    from ..backends import build
    from ..backends.http.transport import Transport

    transport = Transport()
    backend = build(replace(config, models=()), transport)
    try:
        models = tuple(model.id for model in await backend.models())
        running = getattr(backend, "program", None)
        return models, "" if running is None else str(await running())
    finally:
        await backend.close()
        await transport.close()


def _as_json(listings: list[ModelListing], aliases: dict[str, Route]) -> dict[str, list[dict[str, str]]]:
    return {
        "aliases": [{"id": alias, "backend": route.backend, "model": route.model} for alias, route in aliases.items()],
        "models": [
            {"id": f"{listing.backend}/{model}", "backend": listing.backend, "model": model}
            for listing in listings
            for model in listing.models
        ],
        "failures": [
            {"backend": listing.backend, "why": listing.error.sentence()}
            for listing in listings
            if listing.error is not None
        ],
    }
