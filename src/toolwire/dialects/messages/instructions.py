"""Anthropic Messages: instructions among the messages that set the effort from there on, or that apply to one turn only.

Back ends of this dialect get them as they came. For the others the latest effort is that of the request, and an instruction whose turn is over
is left out.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...types import JsonObject, Message, Thinking

INSTRUCTION = frozenset({"role", "content", "output_config", "clear_at"})  # members that are read here
_ONE_TURN = "next_user_message"


def with_settings(
    messages: tuple[Message, ...], thinking: Thinking | None
) -> tuple[tuple[Message, ...], Thinking | None]:
    """The messages without text that no longer applies, and the thinking with the latest effort."""
    kept: list[Message] = []
    effort, is_answered = "", False
    for message in reversed(messages):
        item: JsonObject = {} if message.role != "system" or message.source is None else message.source.value
        effort = effort or _effort(item)
        is_over = is_answered and item.get("clear_at") == _ONE_TURN
        if is_over or (item and not message.parts and _effort(item)):
            message = replace(message, parts=(), declares_tools=True)
        is_answered = is_answered or message.role == "user"
        kept.append(message)
    return tuple(reversed(kept)), replace(thinking or Thinking(), effort=effort) if effort else thinking


def _effort(item: JsonObject) -> str:
    config = item.get("output_config")
    effort = config.get("effort") if isinstance(config, dict) else None
    return effort if isinstance(effort, str) else ""
