"""Codex app-server, without I/O: what is sent to have a request answered, and what its messages mean."""

from __future__ import annotations

from .answer_in import Call, Reply, TurnDecoder
from .errors import error_of, gone, refused
from .history import history_items
from .names import Names, skipped_tool
from .request_out import (
    NAME,
    Opening,
    cache_key,
    initialize_params,
    losses_of,
    offered,
    opening,
    thread_start,
    tool_answer,
    turn_start,
)
from .settings import (
    Provider,
    Setup,
    bare_settings,
    catalog,
    merged,
    provider_settings,
    switched_on,
    switches_tools,
    toml,
)
from .versions import TIERS, Abilities, Tier, Version, abilities_of, tier_for, version_of

__all__ = [
    "NAME",
    "TIERS",
    "Abilities",
    "Call",
    "Names",
    "Opening",
    "Provider",
    "Reply",
    "Setup",
    "Tier",
    "TurnDecoder",
    "Version",
    "abilities_of",
    "bare_settings",
    "cache_key",
    "catalog",
    "error_of",
    "gone",
    "history_items",
    "initialize_params",
    "losses_of",
    "merged",
    "offered",
    "opening",
    "provider_settings",
    "refused",
    "skipped_tool",
    "switched_on",
    "switches_tools",
    "thread_start",
    "tier_for",
    "tool_answer",
    "toml",
    "turn_start",
    "version_of",
]
