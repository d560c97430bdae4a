"""Quirks of back ends, as data: what a dialect must know of the one it writes to, and nothing about it in code."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class IdRule(Struct, frozen=True, kw_only=True):
    """Which ids of calls a back end takes; 0 is no limit that we know of."""

    letters: Literal["any", "word", "base62"] = "any"  # word: letters, digits, _ and -
    longest: int = 0
    length: int = 0  # exactly so many
    is_numbered: bool = False  # functions.NAME:INDEX, counted over the whole conversation
    kept: str = ""  # ids with this in them say something to the back end, and stay whole


class SchemaRules(Struct, frozen=True, kw_only=True):
    """What a back end asks of the schema of a tool."""

    needs_properties: bool = False  # H066: an object without properties is refused
    is_strict: bool = False  # H065: everything required, nothing else allowed
    has_root_unions: bool = True  # H064
    is_subset: bool = False  # H060-H062, H067, H069, H070: few keywords, no references


ANY_SCHEMAS = SchemaRules()
OPENAI_SCHEMAS = SchemaRules(needs_properties=True)
STRICT_SCHEMAS = SchemaRules(needs_properties=True, is_strict=True)
ANTHROPIC_SCHEMAS = SchemaRules(has_root_unions=False)
GEMINI_SCHEMAS = SchemaRules(is_subset=True, has_root_unions=False)

CHAT_IDS = IdRule(longest=40, kept="__thought__")
OPENAI_IDS = IdRule(longest=40)
RESPONSES_IDS = IdRule(longest=64)
MESSAGES_IDS = IdRule(letters="word", longest=64)
MISTRAL_IDS = IdRule(letters="base62", length=9)
KIMI_IDS = IdRule(is_numbered=True)


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
    adaptive_models: str = (
        r"claude-[a-z]+-(?:4[-.][6-9]|[5-9]|[1-9]\d)(?!\d)"  # refuse a budget for thinking, take an effort
    )
    keeps_state: bool = False  # it remembers answers by their ids, in the way of its dialect
    tool_kinds: frozenset[str] = frozenset()  # what it knows of its dialect's tools beside functions
    ids: IdRule = IdRule()
    schemas: SchemaRules = ANY_SCHEMAS
    strict_schemas: SchemaRules | None = None  # for tools that ask to be strict, where it takes them so
    needs_tools: bool = False  # past calls are refused where no tool is offered (H089)
    has_files: bool = False  # takes files that are no images
    image_types: frozenset[str] = _IMAGES
    # Limits of 0 are none that we know of; those for one medium count its bytes before base64.
    max_image_bytes: int = 0
    max_file_bytes: int = 0
    max_images: int = 0
    max_request_bytes: int = 0


_HOSTED = frozenset({"hosted"})  # many servers have some of their own; who asks for one knows whom it asks
_ALL = frozenset({"custom", "namespace", "typed", "hosted", "deferred"})

PLAIN = Profile()  # answers in this process
PLAIN_CHAT = Profile(name="chat", tool_kinds=_HOSTED, ids=CHAT_IDS, schemas=OPENAI_SCHEMAS)
OPENAI_CHAT = Profile(
    name="openai",
    max_tokens_field="max_completion_tokens",
    has_developer_role=True,
    result_content="parts",
    tool_kinds=frozenset({"custom", "hosted"}),
    ids=OPENAI_IDS,
    schemas=OPENAI_SCHEMAS,
    strict_schemas=STRICT_SCHEMAS,
    has_files=True,
    max_file_bytes=50_000_000,
    max_images=1500,
)
DEEPSEEK = replace(PLAIN_CHAT, name="deepseek", reasoning_field="reasoning_content")
MISTRAL = replace(PLAIN_CHAT, name="mistral", ids=MISTRAL_IDS)
KIMI = replace(PLAIN_CHAT, name="kimi", ids=KIMI_IDS, reasoning_field="reasoning_content")
OPENROUTER = replace(PLAIN_CHAT, name="openrouter", has_files=True)
RESPONSES = Profile(
    name="responses",
    has_developer_role=True,
    result_content="parts",
    tool_kinds=_ALL,
    ids=RESPONSES_IDS,
    schemas=OPENAI_SCHEMAS,
    has_files=True,
)
OPENAI_RESPONSES = replace(
    RESPONSES,
    name="openai-responses",
    strict_schemas=STRICT_SCHEMAS,
    keeps_state=True,
    max_file_bytes=50_000_000,
    max_images=1500,
)
OPENROUTER_RESPONSES = replace(RESPONSES, name="openrouter-responses", tool_kinds=_HOSTED)
ANTHROPIC = Profile(
    name="anthropic",
    api_version="2023-06-01",
    key_header="x-api-key",
    bearer_from_version="2026-10-21",
    has_sampling_until="2026-10-21",
    result_content="parts",
    tool_kinds=_ALL,
    ids=MESSAGES_IDS,
    schemas=ANTHROPIC_SCHEMAS,
    needs_tools=True,
    has_files=True,
)
ANTHROPIC_API = replace(
    ANTHROPIC,
    name="anthropic-api",
    keeps_state=True,
    max_image_bytes=7_864_320,  # 10 MiB as base64; it was half of that until spring 2026
    max_images=600,
    max_request_bytes=32 << 20,
)

BY_NAME = {
    profile.name: profile
    for profile in (
        PLAIN_CHAT,
        OPENAI_CHAT,
        DEEPSEEK,
        MISTRAL,
        KIMI,
        OPENROUTER,
        RESPONSES,
        OPENAI_RESPONSES,
        OPENROUTER_RESPONSES,
        ANTHROPIC,
        ANTHROPIC_API,
    )
}
BY_KIND = {"openai-chat": PLAIN_CHAT, "openai-responses": RESPONSES, "anthropic": ANTHROPIC}
BY_HOST = {
    ("openai-chat", "api.openai.com"): OPENAI_CHAT,
    ("openai-chat", "api.deepseek.com"): DEEPSEEK,
    ("openai-chat", "api.mistral.ai"): MISTRAL,
    ("openai-chat", "codestral.mistral.ai"): MISTRAL,
    ("openai-chat", "api.moonshot.ai"): KIMI,
    ("openai-chat", "api.moonshot.cn"): KIMI,
    ("openai-chat", "openrouter.ai"): OPENROUTER,
    ("openai-responses", "api.openai.com"): OPENAI_RESPONSES,
    ("anthropic", "api.anthropic.com"): ANTHROPIC_API,
    ("openai-responses", "openrouter.ai"): OPENROUTER_RESPONSES,
}


def profile_for(kind: str, base_url: str, name: str = "") -> Profile:
    """By name if one is given, else by the back end's host, else the plain one of its kind."""
    if name:
        return BY_NAME[name]
    host = urlsplit(base_url).hostname or ""
    return BY_HOST.get((kind, host)) or BY_KIND.get(kind, PLAIN_CHAT)
