"""Cursor: models by name. What a client asks for as a model becomes an id, settings of that model, and the larger context."""

from __future__ import annotations

import re

from google.protobuf.message import DecodeError
from msgspec import Struct

from ....dialects.base import garbage, shown
from ....types import Loss, Thinking
from ....wire.connect import BadConnectStream, ConnectDecoder, ConnectFrame
from . import agent

DEFAULT = "default"  # what "auto" is called there
_OPENAI = re.compile(r"(?:gpt-|o\d|codex)")
_CLAUDE = re.compile(r"claude-")
_EFFORTS = ("xhigh", "high", "medium", "low", "minimal", "none")
_SPELLINGS = {"extra-high": "xhigh"}
_CLAUDES = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
_OPENAIS = {"max": "xhigh"} | {effort: effort for effort in _EFFORTS}
_LARGE = "[1m]"
_FAST = "-fast"
_ENVELOPED = 3  # a message begins with a tag, and no tag is so low; flags are


class Usable(Struct, frozen=True, kw_only=True):
    id: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    has_thinking: bool = False
    is_max: bool = False


class Requested(Struct, frozen=True, kw_only=True):
    id: str
    parameters: dict[str, str] = {}
    max_mode: bool = False
    losses: tuple[Loss, ...] = ()


def usable(data: bytes) -> list[Usable]:
    """The models of a GetUsableModelsResponse, bare or in an envelope. Raises UpstreamError for anything else."""
    try:
        answer = agent.GetUsableModelsResponse.FromString(_bare(data))
    except (DecodeError, BadConnectStream):
        raise garbage(f"the list of models is {shown(data)}; expected a GetUsableModelsResponse.") from None
    found = {model.model_id: _usable(model) for model in answer.models if model.model_id}
    return list(found.values())


def requested(model: str, thinking: Thinking | None = None) -> Requested:
    """What to ask for by the name that a client gave.

    OpenAI's models are refused by names that end in an effort, so that is taken off and told beside. "[1m]" behind a name asks for
    the large context.
    """
    name = model.removesuffix(_LARGE)
    losses: list[Loss] = []
    if not name or name == "auto":
        name = DEFAULT
    parameters: dict[str, str] = {}
    if _OPENAI.match(name):
        name, parameters = _split(name)
        parameters |= _openai(thinking, losses)
    elif _CLAUDE.match(name):
        parameters = _claude(name, thinking, losses)
    elif thinking is not None and (thinking.effort is not None or thinking.mode == "off"):
        losses.append(Loss("thinking", "thinking", "this model is not known to have a setting for it"))
    if thinking is not None and thinking.budget is not None:
        losses.append(Loss("thinking.budget", "thinking", "Cursor counts reasoning by effort only"))
    return Requested(id=name, parameters=parameters, max_mode=model.endswith(_LARGE), losses=tuple(losses))


def _bare(data: bytes) -> bytes:
    if not data or data[0] > _ENVELOPED:
        return data
    frames = ConnectDecoder().feed(data)
    return b"".join(frame.data for frame in frames if isinstance(frame, ConnectFrame))


def _usable(model: agent.ModelDetails) -> Usable:
    return Usable(
        id=model.model_id,
        name=model.display_name or model.display_model_id,
        aliases=tuple(model.aliases),
        has_thinking=model.HasField("thinking_details"),
        is_max=model.max_mode,
    )


def _split(name: str) -> tuple[str, dict[str, str]]:
    """gpt-5.1-codex-high-fast: the model, its effort, and whether it is the fast one."""
    parameters: dict[str, str] = {}
    if name.endswith(_FAST):
        name, parameters["fast"] = name.removesuffix(_FAST), "true"
    for ending in (*_SPELLINGS, *_EFFORTS):
        if name.endswith(f"-{ending}"):
            parameters["reasoning"] = _SPELLINGS.get(ending, ending)
            return name.removesuffix(f"-{ending}"), parameters
    return name, parameters


def _openai(thinking: Thinking | None, losses: list[Loss]) -> dict[str, str]:
    if thinking is None or (thinking.effort is None and thinking.mode != "off"):
        return {}
    effort = _OPENAIS.get(thinking.effort or "none")
    if effort is None:
        losses.append(Loss("thinking.effort", "effort", "this model has no such effort"))
        return {}
    if thinking.effort is None:
        losses.append(Loss("thinking", "thinking", "whether this model can be kept from reasoning is not known"))
        return {}
    return {"reasoning": effort}


def _claude(name: str, thinking: Thinking | None, losses: list[Loss]) -> dict[str, str]:
    if thinking is None:
        return {}
    if thinking.mode == "off" or thinking.effort == "none":
        return {"thinking": "false"}
    parameters = {"thinking": "true"} if thinking.mode and not name.endswith("-thinking") else {}
    if thinking.effort is not None and (effort := _CLAUDES.get(thinking.effort)) is None:
        losses.append(Loss("thinking.effort", "effort", "this model has no such effort"))
    elif thinking.effort is not None and effort is not None:
        parameters["effort"] = effort
    return parameters
