"""Anthropic Messages: the members beside messages and tools, for a request that came in another dialect."""

from __future__ import annotations

import re
from typing import assert_never

from ...profiles import Profile
from ...types import JsonObject, Loss, Reasoning, Request, ToolChoice, ToolResult
from .shapes import NAME

_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}
_LEAST_BUDGET = 1024
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}


def members(request: Request, profile: Profile, losses: list[Loss]) -> JsonObject:
    body: JsonObject = {"model": request.model, "max_tokens": request.max_tokens or profile.default_max_tokens}
    body["messages"] = []
    _sampling(request, profile, body, losses)
    add_tool_choice(request, body, losses)
    _thinking(request, profile, body, losses)
    if request.output.format == "schema":
        body["output_config"] = {
            **body.get("output_config", {}),
            "format": {"type": "json_schema", "schema": request.output.schema or {}},
        }
    elif request.output.format == "json":
        losses.append(Loss("output.json", "response_format", "this dialect has JSON only by a schema"))
    if request.output.verbosity is not None:
        losses.append(Loss("output.verbosity", "verbosity", "not part of this dialect"))
    if request.user is not None:
        body["metadata"] = {"user_id": request.user[:256]}
    if request.stream:
        body["stream"] = True
    return body | request.extra.get(NAME, {})


def _sampling(request: Request, profile: Profile, body: JsonObject, losses: list[Loss]) -> None:
    sampling = request.sampling
    refuses = bool(profile.has_sampling_until) and profile.api_version >= profile.has_sampling_until
    for key in ("temperature", "top_p", "top_k"):
        if (value := getattr(sampling, key)) is None:
            continue
        if refuses:
            losses.append(Loss(f"sampling.{key}", key, f"refused by version {profile.api_version}"))
        elif key == "temperature" and value > 1:
            body[key] = 1
            losses.append(Loss("sampling.temperature", key, "1 is the highest here"))
        elif key == "top_p" and "temperature" in body:
            if value != 1:
                losses.append(Loss("sampling.top_p", key, "many models take it or the temperature, not both"))
        else:
            body[key] = value
    if stops := [stop for stop in sampling.stop if stop.strip()]:
        body["stop_sequences"] = stops
    if len(stops) < len(sampling.stop):
        losses.append(Loss("sampling.stop", "stop", "a stop sequence of white space is refused"))
    for key in ("seed", "frequency_penalty", "presence_penalty"):
        if getattr(sampling, key):
            losses.append(Loss(f"sampling.{key}", key, "not part of this dialect"))
    if sampling.choices > 1:
        losses.append(Loss("sampling.n", "n", "this dialect gives one choice"))
    if sampling.logprobs:
        losses.append(Loss("sampling.logprobs", "logprobs", "not part of this dialect"))


def add_tool_choice(request: Request, body: JsonObject, losses: list[Loss]) -> None:
    value = _choice(request.tool_choice, losses)
    if request.parallel_calls is False and request.tools and (value or {}).get("type") != "none":
        value = {**(value or {"type": "auto"}), "disable_parallel_tool_use": True}
    if value is not None:
        body["tool_choice"] = value


def _choice(choice: ToolChoice | None, losses: list[Loss]) -> JsonObject | None:
    if choice is None:
        return None
    match choice.mode:
        case "auto" | "none":
            return {"type": choice.mode}
        case "required":
            return {"type": "any"}
        case "named":
            return {"type": "tool", "name": choice.names[0]}
        case "allowed":
            return {"type": "any" if choice.is_required else "auto"}
        case "hosted":
            losses.append(Loss("tool_choice", "tool_choice", "it names a tool that this dialect does not have"))
            return None
        case _:
            assert_never(choice.mode)


def _thinking(request: Request, profile: Profile, body: JsonObject, losses: list[Loss]) -> None:
    """An effort is told as one where the model takes that, else as a budget; thinking stays off where it is known to be refused."""
    thinking = request.thinking
    if thinking is None or thinking.mode == "off" or thinking.effort in (None, "none"):
        return
    if re.search(profile.adaptive_models, request.model):
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        effort = _EFFORTS.get(thinking.effort or "", "high")
        body["output_config"] = {**body.get("output_config", {}), "effort": effort}
    elif body.get("tool_choice", {}).get("type") in ("any", "tool"):
        losses.append(Loss("thinking", "reasoning effort", "a forced tool call and thinking exclude each other (H085)"))
        return
    elif _is_mid_turn_unsigned(request):
        losses.append(Loss("thinking", "reasoning effort", "the open turn holds calls without signed thinking (H075)"))
        return
    else:
        budget = _BUDGETS.get(thinking.effort or "", _BUDGETS["medium"])
        most = body["max_tokens"] = max(int(body["max_tokens"]), _LEAST_BUDGET * 2)
        body["thinking"] = {"type": "enabled", "budget_tokens": max(_LEAST_BUDGET, min(budget, most // 2))}
    for key in ("temperature", "top_p", "top_k"):
        if body.pop(key, 1) != 1:
            losses.append(Loss(f"sampling.{key}", key, "it cannot be set while the model thinks"))


def _is_mid_turn_unsigned(request: Request) -> bool:
    """Whether the turn that is still open, results of its calls included, begins without a signed thought."""
    is_open, messages = False, request.messages
    for number in reversed(range(len(messages))):
        message = messages[number]
        if message.role == "assistant":
            is_open = True
            first = message.parts[0] if message.parts else None
            is_first = number == 0 or messages[number - 1].role != "assistant"  # two of them in a row become one
            if is_first and isinstance(first, Reasoning) and (first.signature or first.redacted):
                return False
        elif message.role in ("user", "tool") and not all(isinstance(part, ToolResult) for part in message.parts):
            break
    return is_open
