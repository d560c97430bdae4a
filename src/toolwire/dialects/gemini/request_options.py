"""Gemini: the members beside contents and tools, for a request that came in another dialect."""

from __future__ import annotations

import re
from typing import assert_never

from ...profiles import Profile
from ...types import JsonObject, Loss, Request, ToolChoice
from ..shared.effort import NO_SUMMARY
from .shapes import NAME, name_out

_LEVELS = {"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}
_BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
_MOST_STOPS = 5
_MOST_SEED = 1 << 31
_MOST_LOGPROBS = 20


def members(request: Request, profile: Profile, losses: list[Loss]) -> JsonObject:
    config: JsonObject = {}
    _sampling(request, config, losses)
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    _output(request, profile, config, losses)
    _thinking(request, profile, config, losses)
    if request.parallel_calls is False and request.tools:
        losses.append(Loss("parallel_calls", "parallel_tool_calls", "this dialect cannot forbid several calls at once"))
    if request.user is not None:
        losses.append(Loss("user", "user", "not part of this dialect"))
    own = request.extra.get(NAME, {})
    body: JsonObject = {"contents": [], **own}
    more = own.get("generationConfig", {})
    if "thinkingConfig" in config and "thinkingConfig" in more:
        config["thinkingConfig"] = {**more["thinkingConfig"], **config["thinkingConfig"]}
    if config := {**more, **config}:
        body["generationConfig"] = config
    return body


def choice_out(choice: ToolChoice | None, losses: list[Loss]) -> JsonObject | None:
    if choice is None:
        return None
    names = [name_out(name) for name in choice.names]
    match choice.mode:
        case "auto" | "none":
            return {"mode": choice.mode.upper()}
        case "required":
            return {"mode": "ANY"}
        case "named":
            return {"mode": "ANY", "allowedFunctionNames": names}
        case "allowed":  # where none must be called, only these are offered
            return {"mode": "ANY", "allowedFunctionNames": names} if choice.is_required else {"mode": "AUTO"}
        case "hosted":
            losses.append(Loss("tool_choice", "tool_choice", "it names a tool that this dialect does not have"))
            return None
        case _:
            assert_never(choice.mode)


def _sampling(request: Request, config: JsonObject, losses: list[Loss]) -> None:
    sampling = request.sampling
    for key, value in (
        ("temperature", sampling.temperature),
        ("topP", sampling.top_p),
        ("topK", sampling.top_k),
        ("frequencyPenalty", sampling.frequency_penalty),
        ("presencePenalty", sampling.presence_penalty),
    ):
        if value is not None:
            config[key] = value
    if isinstance(sampling.seed, int) and -_MOST_SEED <= sampling.seed < _MOST_SEED:
        config["seed"] = sampling.seed
    elif sampling.seed is not None:
        losses.append(Loss("sampling.seed", "seed", "only whole numbers of 32 bits are taken"))
    if sampling.stop:
        config["stopSequences"] = list(sampling.stop[:_MOST_STOPS])
    if len(sampling.stop) > _MOST_STOPS:
        losses.append(Loss("sampling.stop", "stop", f"only {_MOST_STOPS} stop sequences are taken"))
    if sampling.choices > 1:
        config["candidateCount"] = sampling.choices
    if sampling.logprobs:
        config["responseLogprobs"] = True
        if sampling.top_logprobs:
            config["logprobs"] = min(sampling.top_logprobs, _MOST_LOGPROBS)
    elif sampling.top_logprobs:
        losses.append(Loss("sampling.top_logprobs", "top_logprobs", "log probabilities are not asked for"))


def _output(request: Request, profile: Profile, config: JsonObject, losses: list[Loss]) -> None:
    output = request.output
    if output.format != "text":
        config["responseMimeType"] = "application/json"
    if output.format == "schema" and profile.has_json_schemas:
        config["responseJsonSchema"] = output.schema or {}
    elif output.format == "schema":
        losses.append(
            Loss("output.schema", "response_format", "asked for by an instruction: the back end takes no JSON Schema")
        )
    if output.description is not None:
        losses.append(Loss("output.description", "response_format", "not part of this dialect"))
    if output.verbosity is not None:
        losses.append(Loss("output.verbosity", "verbosity", "not part of this dialect"))


def _thinking(request: Request, profile: Profile, config: JsonObject, losses: list[Loss]) -> None:
    """By a level where the model has levels, else by a budget; models that do not think refuse both."""
    thinking = request.thinking
    if thinking is None:
        return
    if profile.plain_models and re.search(profile.plain_models, request.model):
        if thinking.mode != "off" and thinking.effort != "none":
            losses.append(Loss("thinking", "thinking", "this model does not think"))
        return
    is_off = thinking.mode == "off" or thinking.effort == "none"
    value: JsonObject = {} if is_off else {"includeThoughts": thinking.summary != NO_SUMMARY}
    if re.search(profile.level_models, request.model):
        if is_off or thinking.effort is not None:
            value["thinkingLevel"] = "minimal" if is_off else _LEVELS.get(thinking.effort or "", "high")
        elif thinking.budget is not None:
            value["thinkingLevel"] = level = _level_for(thinking.budget)
            losses.append(Loss("thinking.budget", "thinking", f"this model takes a level; it is {level}"))
    elif is_off:
        value["thinkingBudget"] = 0
    elif thinking.budget is not None:
        value["thinkingBudget"] = thinking.budget
    elif thinking.effort is not None:
        value["thinkingBudget"] = _BUDGETS.get(thinking.effort, _BUDGETS["high"])
    config["thinkingConfig"] = value


def _level_for(budget: int) -> str:
    """The lowest level whose own budget is no smaller."""
    return next((level for level in ("low", "medium") if budget <= _BUDGETS[level]), "high")
