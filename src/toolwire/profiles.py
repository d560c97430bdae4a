"""Quirks of back ends, as data: what a dialect must know of the one it writes to, and nothing about it in code."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct


class Profile(Struct, frozen=True, kw_only=True):
    """Defaults are the plain form of each dialect, accepted by most servers that speak it."""

    name: str = "plain"
    max_tokens_field: str = "max_tokens"
    has_developer_role: bool = False
    asks_for_usage: bool = True
    reasoning_field: str = ""  # where past reasoning goes back in; "" where the back end refuses it
    has_effort: bool = True
    result_content: Literal["text", "parts"] = "text"
    default_max_tokens: int = 16384
    api_version: str = ""
    key_header: Literal["authorization", "x-api-key"] = "authorization"
    bearer_from_version: str = ""  # api versions from this one on take the key as a Bearer
    has_sampling_until: str = ""  # api versions from this one on refuse temperature, top_p and top_k
    has_system_messages: bool = False


PLAIN_CHAT = Profile(name="chat")
OPENAI_CHAT = Profile(
    name="openai", max_tokens_field="max_completion_tokens", has_developer_role=True, result_content="parts"
)
DEEPSEEK = Profile(name="deepseek", reasoning_field="reasoning_content")
RESPONSES = Profile(name="responses", has_developer_role=True, result_content="parts")
ANTHROPIC = Profile(
    name="anthropic",
    api_version="2023-06-01",
    key_header="x-api-key",
    bearer_from_version="2026-10-21",
    has_sampling_until="2026-10-21",
    result_content="parts",
)

BY_NAME = {profile.name: profile for profile in (PLAIN_CHAT, OPENAI_CHAT, DEEPSEEK, RESPONSES, ANTHROPIC)}
BY_KIND = {"openai-chat": PLAIN_CHAT, "openai-responses": RESPONSES, "anthropic": ANTHROPIC}
BY_HOST = {
    ("openai-chat", "api.openai.com"): OPENAI_CHAT,
    ("openai-chat", "api.deepseek.com"): DEEPSEEK,
}


def profile_for(kind: str, base_url: str, name: str = "") -> Profile:
    """By name if one is given, else by the back end's host, else the plain one of its kind."""
    if name:
        return BY_NAME[name]
    host = urlsplit(base_url).hostname or ""
    return BY_HOST.get((kind, host)) or BY_KIND.get(kind, PLAIN_CHAT)
