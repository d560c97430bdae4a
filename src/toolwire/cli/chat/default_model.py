"""Which model answers where nobody said: the first that can be found, else the one that is always there."""

from __future__ import annotations

import asyncio
import re

from ...catalog.router import router_for
from ...config.file import Config
from ..clients.gateway import look
from ..models import ask

DEMO = "demo/echo-tools"
# Lists hold models that cannot talk; their names say so.
_SPEECHLESS = re.compile(
    r"embed|whisper|tts|dall-e|moderation|image|audio|realtime|transcribe|rerank|sora|speech|veo|imagen", re.IGNORECASE
)


async def first_model(config: Config) -> str:
    """The default back end goes before the others."""
    backends = [backend for backend in config.backends if backend.kind != "demo" and not backend.missing]
    backends.sort(key=lambda backend: backend.name != config.server.default)
    known = [list(backend.models) for backend in backends]
    asked = await asyncio.gather(*(ask(backend) for backend in backends if not backend.models))
    lists = {listing.backend: list(listing.models) for listing in asked}
    for backend, models in zip(backends, known, strict=True):
        if found := _talking(models or lists.get(backend.name, [])):
            return f"{backend.name}/{found}"
    return DEMO


def first_model_at(url: str, key: str) -> str:
    """The same of a gateway that runs elsewhere; where it does not answer, the first question will tell."""
    listed = [model for model in look(url.rstrip("/").removesuffix("/v1"), key).models if model != DEMO]
    return _talking(listed) or DEMO


async def check_model(config: Config, model: str) -> None:
    """Raises BadRequest, with names like it, where no back end has this model."""
    router = router_for(config)
    if router.route_or_none(model) is None:
        for listing in await asyncio.gather(*(ask(backend) for backend in config.backends)):
            router.note_models(listing.backend, listing.models)
        router.resolve(model)


def _talking(models: list[str]) -> str:
    return next((model for model in models if not _SPEECHLESS.search(model)), models[0] if models else "")
