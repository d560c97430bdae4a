"""Anthropic Messages: the members beside messages and tools, for a request that came in another dialect."""

from __future__ import annotations

import re
from typing import assert_never

from ...profiles import Profile
from ...types import JsonObject, Loss, Reasoning, Request, Thinking, ToolChoice, ToolResult
from ..shared.effort import NO_SUMMARY, lose_summary
from .shapes import NAME

_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}
_LEAST_BUDGET = 1024
_LONGEST_USER = 256
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
        losses.append(Loss("output.json", "response_format", "asked for by an instruction: only a schema has a member"))
    if request.output.description is not None:
        losses.append(Loss("output.description", "response_format", "not part of this dialect"))
    if request.output.verbosity is not None:
        losses.append(Loss("output.verbosity", "verbosity", "not part of this dialect"))
    if request.user is not None:
        body["metadata"] = {"user_id": request.user[:_LONGEST_USER]}
        if len(request.user) > _LONGEST_USER:
            losses.append(Loss("user", "user", f"cut to {_LONGEST_USER} characters"))
    if request.stream:
        body["stream"] = True
    own = request.extra.get(NAME, {})
    return (
        body
        | own
        | {key: {**own[key], **body[key]} for key in ("thinking", "output_config") if key in body and key in own}
    )


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
    for key, idle in (("seed", None), ("frequency_penalty", 0), ("presence_penalty", 0)):
        if getattr(sampling, key) not in (None, idle):
            losses.append(Loss(f"sampling.{key}", key, "not part of this dialect"))
    if sampling.choices > 1:
        losses.append(Loss("sampling.n", "n", "this dialect gives one choice"))
    if sampling.logprobs or sampling.top_logprobs:
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
    """An effort or a budget in the one of the two that the model takes; thinking stays off where it is known to be refused."""
    thinking = request.thinking
    if thinking is None or thinking.mode == "off" or thinking.effort == "none":
        return
    if not thinking.mode and thinking.effort is None and thinking.budget is None:
        lose_summary(thinking, losses)  # of thinking that nobody asks for
        return
    if re.search(profile.adaptive_models, request.model):
        _adapt(thinking, body, losses)
    elif body.get("tool_choice", {}).get("type") in ("any", "tool"):
        losses.append(Loss("thinking", "thinking", "a forced tool call and thinking exclude each other (H085)"))
        return
    elif _is_mid_turn_unsigned(request):
        losses.append(Loss("thinking", "thinking", "the open turn holds calls without signed thinking (H075)"))
        return
    else:
        _budget(thinking, body, losses)
    for key in ("temperature", "top_p", "top_k"):
        if body.pop(key, 1) != 1:
            losses.append(Loss(f"sampling.{key}", key, "it cannot be set while the model thinks"))


def _adapt(thinking: Thinking, body: JsonObject, losses: list[Loss]) -> None:
    is_hidden = thinking.summary == NO_SUMMARY
    body["thinking"] = {"type": "adaptive", "display": "omitted" if is_hidden else "summarized"}
    effort = None if thinking.effort is None else _EFFORTS.get(thinking.effort, "high")
    if effort is None and thinking.budget is not None:
        effort = _effort_for(thinking.budget)
        losses.append(Loss("thinking.budget", "thinking", f"this model takes an effort; it is {effort}"))
    if effort is not None:
        body["output_config"] = {**body.get("output_config", {}), "effort": effort}


def _budget(thinking: Thinking, body: JsonObject, losses: list[Loss]) -> None:
    """Half of all tokens at most, so that there is room for an answer."""
    wanted = thinking.budget or _BUDGETS.get(thinking.effort or "", _BUDGETS["medium"])
    most = body["max_tokens"] = max(int(body["max_tokens"]), _LEAST_BUDGET * 2)
    budget = max(_LEAST_BUDGET, min(wanted, most // 2))
    if thinking.budget is not None and budget != thinking.budget:
        losses.append(Loss("thinking.budget", "thinking", f"{budget} in place of {thinking.budget} tokens"))
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if thinking.summary == NO_SUMMARY:
        body["thinking"]["display"] = "omitted"


def _effort_for(budget: int) -> str:
    """The lowest effort whose own budget is no smaller."""
    return next((effort for effort in ("low", "medium", "high") if budget <= _BUDGETS[effort]), "xhigh")


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
