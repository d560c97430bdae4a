"""Codex app-server: the settings that turn the agent into a bare model, as data; the owner's own settings take precedence.

Settings are flat, with dotted keys, a form that both `thread/start.config` and TOML accept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from msgspec import Struct

from ....errors import ConfigError, quote
from ....types import Json, JsonObject
from ....wire.exact_json import encode
from .versions import Abilities

_PROVIDER = "toolwire"
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


class ThreadSetup(Struct, frozen=True, kw_only=True):
    """The parameters of a thread that do not come from the request.

    base_instructions: None for Codex's own. settings: only for this thread. has_built_ins: the owner's settings may enable tools of
    Codex. skipped: tool names that this app-server was seen to skip. is_stored: the thread may serve the next request, too. may_resume:
    the history may be sent with thread/resume, which then reports no raw items.
    """

    cwd: str
    base_instructions: str | None = None
    settings: JsonObject = {}
    has_built_ins: bool = False
    skipped: frozenset[str] = frozenset()
    is_stored: bool = False
    may_resume: bool = True


# Codex would truncate tool results (to some 10,000 tokens) and replace a long conversation by a summary, at the limit and at the
# context window. The window is used for nothing else.
_WHOLE: JsonObject = {
    "tool_output_token_limit": 100_000_000,
    "model_auto_compact_token_limit": 9_000_000_000,
    "model_context_window": 9_000_000_000,
}
# Old versions always keep update_plan, view_image, request_user_input (0.98, 0.110), three tools for MCP resources (0.89, 0.98), and
# texts about permissions and skills.
_OLD: JsonObject = {
    **_WHOLE,
    "project_doc_max_bytes": 0,
    "features.shell_tool": False,
    "features.exec_policy": False,
    "features.remote_models": False,  # the first thread waits some 5 s for chatgpt.com where that cannot be reached
}
# Checked with the requests of 0.166.0 to a provider: no tool, and no text of its own.
_NEW: JsonObject = {
    **_WHOLE,
    "web_search": "disabled",
    "project_doc_max_bytes": 0,
    "include_permissions_instructions": False,
    "include_apps_instructions": False,
    "include_collaboration_mode_instructions": False,
    "include_environment_context": False,
    "analytics.enabled": False,
    "features.shell_tool": False,
    "features.unified_exec": False,
    "features.multi_agent": False,
    "features.goals": False,
    "features.view_image": False,
    "features.plugins": False,
    "features.apps": False,
    "features.tool_suggest": False,
    "features.image_generation": False,
    "features.hooks": False,
    "features.skill_search": False,
    "features.sleep_tool": False,
    "features.shell_snapshot": False,
    "skills.include_instructions": False,
    "tools.experimental_request_user_input.enabled": False,
}
# For every version: unknown settings are ignored.
BARE_SETTINGS: JsonObject = _OLD | _NEW


def bare_settings(abilities: Abilities) -> JsonObject:
    """No built-in tools and no prompt texts of Codex, as far as the version allows."""
    if abilities.bare:
        return _NEW
    return BARE_SETTINGS if abilities.dynamic_tools else _OLD


# Tools of Codex that the owner may enable by name.
BUILT_IN_TOOLS: dict[str, JsonObject] = {
    "web_search": {"web_search": "live"},
    "view_image": {"features.view_image": True},
}


def enable(tools: Iterable[str]) -> JsonObject:
    """Settings that enable these tools of Codex."""
    return merged(*(BUILT_IN_TOOLS[tool] for tool in tools))


def switches_tools(settings: Mapping[str, Json]) -> bool:
    """Whether the owner's settings may enable built-in tools."""
    return any(key == "web_search" or key.startswith(("features.", "tools.")) for key in flat(settings))


def provider_settings(idle_seconds: int) -> JsonObject:
    """OpenAI with the user's own login. Only the gateway retries: Codex would repeat text that the client has already received."""
    key = f"model_providers.{_PROVIDER}"
    return {
        "model_provider": _PROVIDER,
        f"{key}.name": "OpenAI",
        f"{key}.wire_api": "responses",
        f"{key}.request_max_retries": 0,
        f"{key}.stream_max_retries": 0,
        f"{key}.stream_idle_timeout_ms": idle_seconds * 1000,
        f"{key}.requires_openai_auth": True,
    }


def merged(*layers: Mapping[str, Json]) -> JsonObject:
    """Flat settings of all layers; a later one replaces earlier ones at, above and below its keys."""
    settings: JsonObject = {}
    for layer in layers:
        for key, value in flat(layer).items():
            for known in [known for known in settings if _is_below(known, key) or _is_below(key, known)]:
                del settings[known]
            settings[key] = value
    return settings


def flat(settings: Mapping[str, Json], above: str = "") -> JsonObject:
    """Tables as dotted keys, without empty tables."""
    found: JsonObject = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found


def toml(settings: Mapping[str, Json]) -> str:
    """The text of a config.toml, one dotted key a line."""
    return "".join(f"{_key(key)} = {_value(value, key)}\n" for key, value in flat(settings).items())


def _is_below(key: str, other: str) -> bool:
    return key.startswith(f"{other}.")


def _key(key: str) -> str:
    return ".".join(part if _PLAIN_KEY.match(part) else _text(part) for part in key.split("."))


def _value(value: Json, key: str) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return str(value)
        case str():
            return _text(value)
        case list() | tuple():
            return f"[{', '.join(_value(item, key) for item in value)}]"
        case Mapping():
            inside = ", ".join(f"{_key(name)} = {_value(item, key)}" for name, item in value.items())
            return f"{{{inside}}}"
        case _:
            raise ConfigError(f"found {quote(value)}; expected a value that TOML can express.", where=key[:200])


def _text(text: str) -> str:
    """TOML escapes strings as JSON does, and also DEL."""
    return encode(text).decode().replace("\x7f", "\\u007f")
