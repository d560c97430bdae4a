"""Gemini: the model and what is asked of it stand in the path, not in the body."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from ...types import Request

GENERATE, STREAM, COUNT = "generateContent", "streamGenerateContent", "countTokens"
_FOLDERS = ("models/", "tunedModels/")
# Clients of the provider's cloud name their project and place before the model.
_PATH = re.compile(
    r"/(v1|v1beta|v1alpha|v1beta1)/(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/)?((?:tunedM|m)odels)(?:/(.+))?"
)


class Asked(NamedTuple):
    """What a path asks for: verb is "" where it only names a model, and model where it names none."""

    model: str
    verb: str = ""


def path_of(request: Request) -> str:
    """Streams are asked for as server-sent events; without that word they would come as one long JSON array."""
    return _path(request.model, f"{STREAM}?alt=sse" if request.stream else GENERATE)


def asked_in(path: str) -> Asked | None:
    """What a client asks for; None for a path that other dialects have too, or nobody. A name may hold slashes and colons."""
    found = _PATH.fullmatch(path.rstrip("/"))
    if found is None:
        return None
    version, folder, rest = found.groups(default="")
    name, colon, verb = rest.rpartition(":")
    if colon and name and verb in (GENERATE, STREAM, COUNT):
        return Asked(plain_name(f"{folder}/{name}"), verb)
    return None if version == "v1" else Asked(plain_name(f"{folder}/{rest}") if rest else "")


def plain_name(name: str) -> str:
    """Without the folder that most models are in."""
    return unquote(name).removeprefix("models/")


def _path(model: str, verb: str) -> str:
    name = model if model.startswith(_FOLDERS) else f"models/{model}"
    folder, _, own = name.partition("/")
    return f"/v1beta/{folder}/{quote(own, safe='')}:{verb}"
