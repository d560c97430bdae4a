"""What one dialect has and another has not: the losses that every encoder records in the same words."""

from __future__ import annotations

from ..types import JsonObject, Loss, Reasoning, Request

# Members that change nothing about the answer, or say only what is so without them: leaving them out loses nothing.
_HARMLESS: dict[str, frozenset[str]] = {
    "chat": frozenset({"store", "stream_options", "prompt_cache_key", "safety_identifier", "service_tier"}),
    "responses": frozenset(
        [
            "store",
            "include",
            "prompt_cache_key",
            "prompt_cache_retention",
            "safety_identifier",
            "service_tier",
            "client_metadata",
            "stream_options",
            "truncation",
            "background",
        ]
    ),
    "messages": frozenset({"service_tier", "cache_control"}),
    "gemini": frozenset({"safetySettings", "serviceTier", "store"}),
}


def foreign_members(request: Request, own: str, losses: list[Loss]) -> None:
    """Top-level members of the client's dialect that have no place in this one."""
    for dialect, members in request.extra.items():
        if dialect == own:
            continue
        for name, value in members.items():
            if value is None or value == [] or value == {} or name in _HARMLESS.get(dialect, ()):
                continue
            losses.append(Loss(f"request.{name[:60]}", name[:60], f"{own} has no such member"))


def whole_schema(schema: JsonObject | None) -> JsonObject:
    """What a function takes, as an object by its own word: some clients leave that out, and some back ends insist on it."""
    if not schema:
        return {"type": "object", "properties": {}}
    return schema if "type" in schema else {"type": "object", "properties": {}, **schema}


def lose_thinking(part: Reasoning, where: str, losses: list[Loss]) -> None:
    """Past reasoning that belongs to another back end; it is never rewritten into something it was not."""
    losses.append(Loss("reasoning", where, "reasoning of another dialect cannot be handed on"))
