"""Clients that are programs: their settings files, environment variables and steps, as their makers document them."""

from __future__ import annotations

from typing import Any

from ...backends.vscode.wire import shapes
from .client import DUMMY, KEY, NAME, Client, DialectSetup, FilePlace, ListItem, Setting, SettingsFile


def _opencode(dialect: str, package: str) -> DialectSetup:
    provider = ("provider", NAME)
    file = SettingsFile(
        place=FilePlace(
            folder="$config/opencode", names=("opencode.jsonc", "opencode.json"), variable="OPENCODE_CONFIG_DIR"
        ),
        format="json",
        settings=(
            Setting(("$schema",), "https://opencode.ai/config.json", is_default=True),
            Setting(("model",), f"{NAME}/@model@"),
            Setting(
                provider, {"npm": package, "name": NAME, "options": {"baseURL": "@v1@"}, "models": {"@model@": {}}}
            ),
        ),
        keyed=(Setting((*provider, "options", "apiKey"), f"{{env:{KEY}}}"),),
        keyless=(Setting((*provider, "options", "apiKey"), DUMMY),),
    )
    return DialectSetup(dialect=dialect, files=(file,))


OPENCODE = Client(
    name="opencode",
    title="OpenCode",
    ways=(
        _opencode("chat", "@ai-sdk/openai-compatible"),
        _opencode("responses", "@ai-sdk/openai"),
        _opencode("messages", "@ai-sdk/anthropic"),
    ),
    proof="run",
    notes="`opencode.jsonc` is used where there is one; its comments stay",
    start="opencode",
)

CODEX = Client(
    name="codex",
    title="Codex CLI",
    ways=(
        DialectSetup(
            dialect="responses",
            files=(
                SettingsFile(
                    place=FilePlace(folder="~/.codex", names=("config.toml",), variable="CODEX_HOME"),
                    format="toml",
                    settings=(
                        Setting(("model",), "@model@"),
                        Setting(("model_provider",), NAME),
                        Setting(("model_providers", NAME), {"name": NAME, "base_url": "@v1@", "wire_api": "responses"}),
                    ),
                    keyed=(Setting(("model_providers", NAME, "env_key"), KEY),),
                    # Codex does not start while the variable that env_key names is not set.
                    keyless=(Setting(("model_providers", NAME, "env_key"), None),),
                ),
            ),
        ),
    ),
    proof="run",
    notes="warns that it has no metadata of a model it does not know",
    start="codex",
)

CLAUDE_CODE = Client(
    name="claude-code",
    title="Claude Code",
    ways=(
        DialectSetup(
            dialect="messages",
            files=(
                SettingsFile(
                    place=FilePlace(folder="~/.claude", names=("settings.json",), variable="CLAUDE_CONFIG_DIR"),
                    format="json",
                    settings=(
                        Setting(("model",), "@model@"),
                        Setting(
                            ("env",),
                            {
                                "ANTHROPIC_BASE_URL": "@address@",
                                # The small model for titles and searches, and what /model and subagents choose by name.
                                "ANTHROPIC_DEFAULT_HAIKU_MODEL": "@model@",
                                "ANTHROPIC_DEFAULT_SONNET_MODEL": "@model@",
                                "ANTHROPIC_DEFAULT_OPUS_MODEL": "@model@",
                                "ANTHROPIC_DEFAULT_FABLE_MODEL": "@model@",
                            },
                        ),
                    ),
                    # Values in env are not expanded, so the key comes from a command.
                    keyed=(Setting(("apiKeyHelper",), f"printenv {KEY}"),),
                    keyless=(Setting(("apiKeyHelper",), f"echo {DUMMY}"),),
                ),
            ),
        ),
    ),
    proof="run",
    notes="assumes a context of 1M tokens for a model it does not know; unset `ANTHROPIC_AUTH_TOKEN`, which takes precedence",
    start="claude",
)


def _copilot(dialect: str, variables: dict[str, str]) -> DialectSetup:
    names = {"COPILOT_PROVIDER_API_KEY": f"${KEY}", "COPILOT_MODEL": "@model@"}
    return DialectSetup(dialect=dialect, environment=variables | names)


COPILOT_CLI = Client(
    name="copilot-cli",
    title="GitHub Copilot CLI",
    ways=(
        _copilot("chat", {"COPILOT_PROVIDER_BASE_URL": "@v1@"}),
        _copilot("responses", {"COPILOT_PROVIDER_BASE_URL": "@v1@", "COPILOT_PROVIDER_WIRE_API": "responses"}),
        _copilot("messages", {"COPILOT_PROVIDER_BASE_URL": "@address@", "COPILOT_PROVIDER_TYPE": "anthropic"}),
    ),
    proof="run",
    notes="environment variables only; needs no GitHub sign-in",
    start="copilot",
)

_VSCODE_TYPES = {"chat": "chat-completions", "responses": "responses", "messages": "messages"}


def _vscode(dialect: str) -> DialectSetup:
    group = ListItem("name", NAME)
    model: dict[str, Any] = {
        "name": "@model@",
        "url": "@url@",
        "toolCalling": True,
        "vision": True,
        "maxInputTokens": 128000,
        "maxOutputTokens": 16000,
    }
    # Without it the second turn of the Responses dialect leans on a stored response.
    model |= {"zeroDataRetentionEnabled": True} if dialect == "responses" else {}
    chosen = (group, "models", ListItem("id", "@model@"))
    file = SettingsFile(
        place=FilePlace(folder="$code", names=("chatLanguageModels.json",)),
        format="json",
        settings=(
            Setting((group,), {"vendor": "customendpoint", "apiType": _VSCODE_TYPES[dialect]}),
            Setting(chosen, model),
            Setting((*chosen, "requestHeaders", shapes.MARK), shapes.NAME),
        ),
        carrying=(Setting((*chosen, "requestHeaders", "x-api-key"), "@key@"),),
    )
    return DialectSetup(dialect=dialect, files=(file,))


_ANONYMOUS = 'without a Copilot account, first add "chat.allowAnonymousAccess": true to settings.json'

VSCODE = Client(
    name="vscode",
    title="VS Code (Copilot Chat, custom endpoint)",
    ways=(
        _vscode("chat"),
        _vscode("responses"),
        _vscode("messages"),
    ),
    proof="run",
    notes="VS Code 1.122 or newer; with keys `--write-key`, or in VS Code: Manage Models, the group, Update API Key",
    start=f"code ({_ANONYMOUS})",
    keyed_start=f'code, then Chat: Manage Language Models, the group "toolwire", Update API Key ({_ANONYMOUS})',
)

QWEN_CODE = Client(
    name="qwen-code",
    title="Qwen Code",
    ways=(
        DialectSetup(
            dialect="chat",
            files=(
                SettingsFile(
                    place=FilePlace(folder="~/.qwen", names=("settings.json",), variable="QWEN_HOME"),
                    format="json",
                    settings=(
                        Setting(
                            ("modelProviders", "openai", ListItem("id", "@model@")),
                            {"name": NAME, "baseUrl": "@v1@", "envKey": KEY},
                        ),
                        Setting(("security", "auth", "selectedType"), "openai"),
                        Setting(("model", "name"), "@model@"),
                    ),
                    keyless=(Setting(("env", KEY), DUMMY),),
                ),
            ),
        ),
    ),
    proof="run",
    notes="needs Node.js 22",
    start="qwen",
)

CLINE = Client(
    name="cline",
    title="Cline CLI",
    ways=(
        DialectSetup(
            dialect="chat",
            files=(
                SettingsFile(
                    place=FilePlace(folder="~/.cline/data/settings", names=("providers.json",)),
                    format="json",
                    settings=(
                        Setting(("version",), 1, is_default=True),
                        Setting(("lastUsedProvider",), "openai-compatible"),
                        Setting(("modes",), {}, is_default=True),
                        Setting(
                            ("providers", "openai-compatible"),
                            {
                                "settings": {
                                    "provider": "openai-compatible",
                                    "model": "@model@",
                                    "baseUrl": "@v1@",
                                },
                                "tokenSource": "manual",
                            },
                        ),
                        Setting(
                            ("providers", "openai-compatible", "updatedAt"), "2026-01-01T00:00:00.000Z", is_default=True
                        ),
                    ),
                    keyless=(Setting(("providers", "openai-compatible", "settings", "apiKey"), DUMMY),),
                ),
            ),
        ),
    ),
    proof="run",
    notes="stores keys in its file, so pass a key when you start it; the VS Code extension has its own settings page",
    start="cline",
    keyed_start=f'cline -k "${KEY}"',
)


def _continue(dialect: str, provider: str) -> DialectSetup:
    model = {"provider": provider, "model": "@model@", "apiBase": "@v1@"}
    lists = {"roles": ["chat", "edit", "apply"], "capabilities": ["tool_use"]}
    place = ("models", ListItem("name", NAME))
    file = SettingsFile(
        place=FilePlace(folder="~/.continue", names=("config.yaml",), variable="CONTINUE_GLOBAL_DIR"),
        format="yaml",
        settings=(
            Setting(("name",), NAME, is_default=True),
            Setting(("version",), "1.0.0", is_default=True),
            Setting(("schema",), "v1", is_default=True),
        ),
        keyed=(Setting(place, model | {"apiKey": f"${{{{ secrets.{KEY} }}}}"} | lists),),
        keyless=(Setting(place, model | {"apiKey": DUMMY} | lists),),
    )
    return DialectSetup(dialect=dialect, files=(file,))


CONTINUE = Client(
    name="continue",
    title="Continue",
    ways=(
        _continue("chat", "openai"),
        _continue("messages", "anthropic"),
    ),
    proof="run",
    notes="the CLI `cn` takes the first model of the file, so this one is put first",
    start="cn",
)

AIDER = Client(
    name="aider",
    title="aider",
    ways=(
        DialectSetup(
            dialect="chat",
            files=(
                SettingsFile(
                    place=FilePlace(folder="~", names=(".aider.conf.yml",)),
                    format="yaml",
                    settings=(
                        Setting(("model",), "openai/@model@"),
                        Setting(("openai-api-base",), "@v1@"),
                    ),
                    keyless=(Setting(("openai-api-key",), DUMMY),),
                ),
            ),
        ),
    ),
    proof="run",
    notes="sends no tools, edits are text; a `.aider.conf.yml` of the project takes precedence",
    start="aider",
    keyed_start=f'AIDER_OPENAI_API_KEY="${KEY}" aider',
)

_OBSIDIAN_MODEL = f"{NAME}-@model@"


def _obsidian(dialect: str, prefix: str = "") -> DialectSetup:
    configured = ("configuredModels", ListItem("configuredModelId", _OBSIDIAN_MODEL))
    provider = {
        "providerId": NAME,
        "providerType": "openai-compatible",
        "displayName": NAME,
        "baseUrl": "@v1@",
        "origin": {"kind": "byok"},
    }
    file = SettingsFile(
        place=FilePlace(names=("data.json",)),
        format="json",
        settings=(
            Setting(("providers", NAME), provider),
            Setting(("providers", NAME, "addedAt"), 0, is_default=True),
            Setting((*configured, "providerId"), NAME),
            Setting((*configured, "info"), {"id": "@model@", "displayName": "@model@"}),
            Setting((*configured, "configuredAt"), 0, is_default=True),
            Setting(("backends", "chat", "enabledModels", ListItem("", _OBSIDIAN_MODEL)), _OBSIDIAN_MODEL),
        ),
        keyed=(Setting(("providers", NAME, "requiresApiKey"), True),),
        keyless=(Setting(("providers", NAME, "requiresApiKey"), False),),
    )
    steps = (
        "Settings, Copilot, BYOK: Add a provider, Add a custom provider.",
        "Base URL: @v1@",
        "Model: @model@",
        f"API key: the gateway's key, or {DUMMY} where it has none. Then Test, Save.",
    )
    return DialectSetup(dialect=dialect, prefix=prefix, files=(file,), steps=steps)


OBSIDIAN_COPILOT = Client(
    name="obsidian-copilot",
    title="Copilot for Obsidian",
    ways=(_obsidian("chat"), _obsidian("responses", "gpt-5")),
    proof="read",
    notes="version 4; its settings page is the safer way, `--write` needs `--file VAULT/.obsidian/plugins/copilot` and Obsidian closed",
)


def _pi(dialect: str, api: str, address: str) -> DialectSetup:
    place = FilePlace(folder="~/.pi/agent", names=("models.json",), variable="PI_CODING_AGENT_DIR")
    provider = ("providers", NAME)
    models = SettingsFile(
        place=place,
        format="json",
        settings=(
            # pi takes the variable of this name, and the text itself where there is none.
            Setting(provider, {"baseUrl": address, "api": api, "apiKey": KEY}),
            Setting((*provider, "models", ListItem("id", "@model@")), {}),
        ),
    )
    chosen = SettingsFile(
        place=FilePlace(folder=place.folder, names=("settings.json",), variable=place.variable),
        format="json",
        settings=(Setting(("defaultProvider",), NAME), Setting(("defaultModel",), "@model@")),
    )
    return DialectSetup(dialect=dialect, files=(models, chosen))


PI = Client(
    name="pi",
    title="pi",
    ways=(
        _pi("chat", "openai-completions", "@v1@"),
        _pi("responses", "openai-responses", "@v1@"),
        _pi("messages", "anthropic-messages", "@address@"),
    ),
    proof="run",
    notes="",
    start="pi",
)

PROGRAMS = (
    OPENCODE, CODEX, CLAUDE_CODE, COPILOT_CLI, VSCODE, QWEN_CODE, CLINE, CONTINUE, AIDER, OBSIDIAN_COPILOT, PI,
)  # fmt: skip
