"""Model names: a client's model becomes an id of the service, parameters of that model, and max mode."""

from __future__ import annotations

import re

from google.protobuf.message import DecodeError
from msgspec import Struct

from ....dialects.base import excerpt, garbage
from ....types import Loss, Thinking
from . import agent

DEFAULT = "default"  # the service's name for "auto"
_OPENAI = re.compile(r"(?:gpt-|o\d|codex)")
_CLAUDE = re.compile(r"claude-")
_EFFORTS = ("xhigh", "high", "medium", "low", "minimal", "none")
_SPELLINGS = {"extra-high": "xhigh"}
_CLAUDE_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
_OPENAI_EFFORTS = {"max": "xhigh"} | {effort: effort for effort in _EFFORTS}
_MAX_MODE = "[1m]"
_FAST = "-fast"


class RequestedModel(Struct, frozen=True, kw_only=True):
    id: str
    parameters: dict[str, str] = {}
    max_mode: bool = False
    losses: tuple[Loss, ...] = ()


def usable_models(data: bytes) -> dict[str, str]:
    """The models of a GetUsableModelsResponse: titles by id. Raises UpstreamError for anything else."""
    try:
        answer = agent.GetUsableModelsResponse.FromString(data)
    except DecodeError:
        raise garbage(f"the list of models is {excerpt(data)}; expected a GetUsableModelsResponse.") from None
    return {model.model_id: model.display_name or model.display_model_id for model in answer.models if model.model_id}


def requested_model(model: str, thinking: Thinking | None = None) -> RequestedModel:
    """The service refuses names of OpenAI's models that end in an effort, so the effort becomes a parameter. "[1m]" after a name
    requests max mode."""
    name = model.removesuffix(_MAX_MODE)
    losses: list[Loss] = []
    if not name or name == "auto":
        name = DEFAULT
    parameters: dict[str, str] = {}
    if _OPENAI.match(name):
        name, parameters = _split(name)
        parameters |= _openai_parameters(thinking, losses)
    elif _CLAUDE.match(name):
        parameters = _claude_parameters(name, thinking, losses)
    elif thinking is not None and (thinking.effort is not None or thinking.mode == "off"):
        losses.append(Loss("thinking", "thinking", "this model is not known to have a setting for it"))
    if thinking is not None and thinking.budget is not None:
        losses.append(Loss("thinking.budget", "thinking", "Cursor limits reasoning by effort only"))
    return RequestedModel(id=name, parameters=parameters, max_mode=model.endswith(_MAX_MODE), losses=tuple(losses))


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


def _openai_parameters(thinking: Thinking | None, losses: list[Loss]) -> dict[str, str]:
    if thinking is None or (thinking.effort is None and thinking.mode != "off"):
        return {}
    if thinking.effort is None:
        losses.append(Loss("thinking", "thinking", "it is unknown how to switch off reasoning of this model"))
        return {}
    effort = _OPENAI_EFFORTS.get(thinking.effort)
    if effort is None:
        losses.append(Loss("thinking.effort", "effort", "this model has no such effort"))
        return {}
    return {"reasoning": effort}


def _claude_parameters(name: str, thinking: Thinking | None, losses: list[Loss]) -> dict[str, str]:
    if thinking is None:
        return {}
    if thinking.mode == "off" or thinking.effort == "none":
        return {"thinking": "false"}
    parameters = {"thinking": "true"} if thinking.mode and not name.endswith("-thinking") else {}
    if thinking.effort is not None and (effort := _CLAUDE_EFFORTS.get(thinking.effort)) is None:
        losses.append(Loss("thinking.effort", "effort", "this model has no such effort"))
    elif thinking.effort is not None and effort is not None:
        parameters["effort"] = effort
    return parameters
