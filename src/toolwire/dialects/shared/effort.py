"""How much a model should think: an effort from its name, written into a request; and what a dialect cannot say of it."""

from __future__ import annotations

import msgspec

from ...types import JsonObject, Loss, Request, Thinking
from ...wire.exact_json import decode, encode

# Where a request of each dialect says it. Messages has no "minimal", Gemini no "xhigh".
_MEMBERS: dict[str, tuple[str, ...]] = {
    "chat": ("reasoning_effort",),
    "gemini": ("generationConfig", "thinkingConfig", "thinkingLevel"),
    "messages": ("output_config", "effort"),
    "responses": ("reasoning", "effort"),
}
NO_SUMMARY = "none"  # the client does not want to see any reasoning
_LEAST = {"messages": {"minimal": "low"}, "gemini": {"xhigh": "high"}}


def with_effort(request: Request, effort: str) -> Request:
    """The same request with this effort, unless the client has said itself how much to think."""
    given = request.thinking or Thinking()
    if not effort or given.effort is not None or given.budget is not None or given.mode == "off":
        return request
    thinking = msgspec.structs.replace(given, effort=effort)
    if request.origin not in _MEMBERS:
        return msgspec.structs.replace(request, thinking=thinking)
    path = _MEMBERS[request.origin]
    word = _LEAST.get(request.origin, {}).get(effort, effort)
    wire = encode(_with_member(decode(request.wire), path, word)) if request.wire else b""
    source = _with_member(request.source, path, word) if request.source else {}
    return msgspec.structs.replace(request, thinking=thinking, source=source, wire=wire)


def lose_amount(thinking: Thinking, losses: list[Loss]) -> None:
    """For dialects that have an effort and nothing else, where the client has not named one."""
    if thinking.budget is not None:
        losses.append(Loss("thinking.budget", "thinking", "this dialect counts reasoning by effort only"))
    elif thinking.mode:
        why = "this dialect has no switch for reasoning, only an effort; the model's own default applies"
        losses.append(Loss("thinking", "thinking", why))


def lose_summary(thinking: Thinking, losses: list[Loss]) -> None:
    if thinking.summary not in (None, NO_SUMMARY):
        losses.append(Loss("thinking.summary", "thinking", "summaries of reasoning cannot be asked for here"))


def _with_member(body: JsonObject, path: tuple[str, ...], value: str) -> JsonObject:
    """The request has been decoded, so what stands on the way is an object, or null."""
    if len(path) == 1:
        return {**body, path[0]: value}
    return {**body, path[0]: _with_member(body.get(path[0]) or {}, path[1:], value)}
