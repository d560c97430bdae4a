"""The quirks that a check found, as a table of toolwire.toml."""

from __future__ import annotations

import json

from ...check.results import DialectReport
from ...config.file import BackendConfig

# What the gateway needs to be configured for, by the code of the deviation. Other faults are repaired without configuration.
_SETTINGS: dict[str, tuple[str, str]] = {
    "tools.refused": ('tools = "simulate"', "it refuses tools, so they are described in the prompt"),
    "tools.ignored": ('tools = "simulate"', "tools have no effect, so they are described in the prompt"),
    "call.as_text": ('tools = "auto"', "calls arrive as text, and toolwire recognises them"),
    "schema.mismatch": (
        'guard = "retry"',
        "arguments do not match their schema, so the model is asked to correct them",
    ),
    "schema.invalid_json": ('guard = "retry"', "arguments are not JSON, so the model is asked to correct them"),
    "schema.no_call": ('guard = "retry"', "forced calls are not made, so the model is asked again"),
    "choice.ignored": ('guard = "retry"', "tool choices have no effect, so the answer is checked and asked for again"),
}


def configuration(config: BackendConfig, key: str, report: DialectReport) -> str:
    """key: the reference to the key, such as env:NAME, "" without one."""
    lines = [
        f"[backends.{config.name}]",
        f"kind = {json.dumps(config.kind)}",
        f"base_url = {json.dumps(config.base_url)}",
    ]
    if key:
        lines.append(f"key = {json.dumps(key)}")
    found = {deviation.code for deviation in report.deviations}
    settings: dict[str, str] = {}
    for code, (setting, reason) in _SETTINGS.items():
        if code in found:
            name = setting.partition(" ")[0]
            settings.setdefault(name, f"{setting}  # {reason}")
    return "\n".join([*lines, *settings.values()]) + "\n"
