"""Ollama: errors, the list of models and the description of one model, all out."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from ...errors import GatewayError
from ...types import JsonObject, Request
from ...wire.exact_json import encode
from ...wire.fields import body_object, need_name, text_or_none
from ..base import ModelLine
from .shapes import date_of

# What the gateway accepts for every model. What a back end cannot do is a reported loss or an error of that request.
_CAPABILITIES = ["completion", "tools", "vision", "thinking"]
_ARCHITECTURE = "toolwire"
# Clients shorten the history to this many tokens: GitHub Copilot 0.30 to 4096 where the member is missing. For models whose window is unknown.
_CONTEXT = 131_072
_DETAILS: JsonObject = {
    "parent_model": "",
    "format": "",
    "family": _ARCHITECTURE,
    "families": [_ARCHITECTURE],
    "parameter_size": "",
    "quantization_level": "",
}


def encode_error(error: GatewayError, request_id: str) -> bytes:
    return encode({"error": error.sentence()})


def encode_models(models: Sequence[ModelLine]) -> bytes:
    return encode({"models": [_line(model) for model in models]})


def encode_model(model: ModelLine) -> bytes:
    """The answer of /api/show."""
    information = {
        "general.architecture": _ARCHITECTURE,
        "general.basename": model.title or model.id,
        f"{_ARCHITECTURE}.context_length": model.context or _CONTEXT,
    }
    return encode(
        {
            "modelfile": "",
            "parameters": "",
            "template": "",
            "details": _DETAILS,
            "model_info": information,
            "capabilities": _CAPABILITIES,
            "modified_at": date_of(model.created),
        }
    )


def name_in(body: bytes) -> str:
    """The model that a request of /api/show names; older clients name it in another member."""
    top = body_object(body)
    return text_or_none(top, "model") or text_or_none(top, "name") or need_name(top, "model", "")


def pull_answer(request: Request, now: int) -> bytes:
    """Back ends have their models already. The server has found one for this name, and nothing is downloaded."""
    return b'{"status":"success"}\n'


def _line(model: ModelLine) -> JsonObject:
    """The digest depends on the name alone, because the gateway has no files."""
    return {
        "name": model.id,
        "model": model.id,
        "modified_at": date_of(model.created),
        "size": 0,
        "digest": sha256(model.id.encode("utf-8", "surrogatepass")).hexdigest(),
        "details": _DETAILS,
        "capabilities": _CAPABILITIES,
    }
