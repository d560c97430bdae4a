"""The table [models]: aliases, and groups of models of which one answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from ..errors import ConfigError, quote
from .values import FALLBACK_REASONS, ModelGroup

MakeError = Callable[[tuple[str, ...], str], ConfigError]

_REASON = re.compile(r"connect|5xx|empty|stall|4\d\d")


def read_models(table: dict[str, Any], error: MakeError) -> tuple[dict[str, str], dict[str, ModelGroup]]:
    """Aliases and groups. The first model of a group is also its alias, for lists and checks. Raises what error() makes."""
    groups: dict[str, ModelGroup] = {}
    aliases: dict[str, str] = {}
    for name, target in table.items():
        is_settings = isinstance(target, dict) and "models" in target
        found = target["models"] if is_settings else target
        models = found if isinstance(found, list) else [found]
        if not name or not models or not all(isinstance(model, str) and model for model in models):
            shown = json.dumps(target, default=str)[:80]
            message = f'found {shown}; expected a model such as "openai/gpt-5.5" for a name, or a list of models.'
            raise error(("models", name), message)
        if name.count("*") > 1:
            raise error(("models", name), f"found the alias {quote(name)}; expected at most one * in it.")
        is_group = is_settings or isinstance(target, list)
        if is_group and "*" in name:
            raise error(("models", name), f"found a list for {quote(name)}; expected a name without *.")
        aliases[name] = models[0]
        if is_group:
            groups[name] = _group(name, target if is_settings else {"models": models}, error)
    for name in aliases:
        _check_circle(name, aliases, error)
    return aliases, groups


def _group(name: str, table: dict[str, Any], error: MakeError) -> ModelGroup:
    known = ModelGroup.__struct_fields__
    if unknown := [key for key in table if key not in known]:
        message = f"found the unknown key {quote(unknown[0])}; expected one of {', '.join(map(quote, known))}."
        raise error(("models", name), message)
    try:
        group = msgspec.convert(table, ModelGroup)
    except msgspec.ValidationError as fault:
        raise error(("models", name), f"the settings of this group are not valid: {fault}.") from None
    weights, count = group.weights, len(group.models)
    if weights and (len(weights) != count or min(weights) < 0 or not 0 < sum(weights) < float("inf")):
        message = f"found the weights {list(weights)}; expected {count} numbers that are not negative, and one above 0."
        raise error(("models", name), message)
    if weights and group.order != "listed":
        raise error(("models", name), f"found weights beside order = {quote(group.order)}; expected one of them.")
    for reason in group.fallback_on:
        if not _REASON.fullmatch(reason):
            names = ", ".join(map(quote, FALLBACK_REASONS))
            message = f"found {quote(reason)} in fallback_on; expected {names} or another status from 400 to 499."
            raise error(("models", name), message)
    return group


def _check_circle(name: str, aliases: dict[str, str], error: MakeError) -> None:
    seen = [name]
    while seen[-1] in aliases:
        seen.append(aliases[seen[-1]])
        if seen[-1] in seen[:-1]:
            chain = " -> ".join(quote(one) for one in seen[:8])
            raise error(("models", name), f"this alias refers to itself: {chain}.")
