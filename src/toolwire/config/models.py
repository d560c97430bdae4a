"""The table [models]: aliases, and groups of models that are tried in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..errors import ConfigError, quote

MakeError = Callable[[tuple[str, ...], str], ConfigError]


def read_models(table: dict[str, Any], error: MakeError) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Aliases and groups. The first model of a group is also its alias, for lists and checks. Raises what error() makes."""
    groups: dict[str, tuple[str, ...]] = {}
    aliases: dict[str, str] = {}
    for name, target in table.items():
        models = target if isinstance(target, list) else [target]
        if not name or not models or not all(isinstance(model, str) and model for model in models):
            found = json.dumps(target, default=str)[:80]
            message = f'found {found}; expected a model such as "openai/gpt-5.5" for a name, or a list of models.'
            raise error(("models", name), message)
        if name.count("*") > 1:
            raise error(("models", name), f"found the alias {quote(name)}; expected at most one * in it.")
        if isinstance(target, list) and "*" in name:
            raise error(("models", name), f"found a list for {quote(name)}; expected a name without *.")
        aliases[name] = models[0]
        if isinstance(target, list):
            groups[name] = tuple(models)
    for name in aliases:
        _check_circle(name, aliases, error)
    return aliases, groups


def _check_circle(name: str, aliases: dict[str, str], error: MakeError) -> None:
    seen = [name]
    while seen[-1] in aliases:
        seen.append(aliases[seen[-1]])
        if seen[-1] in seen[:-1]:
            chain = " -> ".join(quote(one) for one in seen[:8])
            raise error(("models", name), f"this alias refers to itself: {chain}.")
