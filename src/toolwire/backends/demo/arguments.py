"""Arguments that a prompt gives: its texts, paths and numbers, proposed for the properties that they fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...calls.schemas.examples import Proposal, Suggestions
from ...types import Json, JsonObject
from .prompt_match import PromptHints, is_folder, is_place, likely_number


class PromptArguments(Suggestions):
    """Each text, path and number is used once."""

    placeholder = "a"
    fewest_items = 0

    def __init__(self, hints: PromptHints) -> None:
        self._hints = hints

    def values(self, name: str, kind: str, rules: JsonObject) -> Iterator[Proposal]:
        hints = self._hints
        named = hints.value_of(name)
        if kind == "enum":
            yield from ((option, None) for option in rules["enum"][:500] if self._is_named(option))
        elif kind == "string":
            if named:
                yield named, None
            if phrase := hints.phrase_for(name):
                yield phrase, None
            if hints.wildcard and "*" in _description(rules):
                yield hints.wildcard, None
            yield from self._texts(name, _description(rules))
        elif kind in ("integer", "number"):
            if named is not None and (number := _number_in(named)) is not None:
                yield number, None
            yield from _once("number", hints.numbers)
            if (likely := likely_number(name, _description(rules))) is not None:
                yield likely, None
        elif kind == "array" and name and not _has_format(rules):
            yield from ((list(values), None) for values in (hints.quoted, hints.numbers) if values)
        elif kind == "boolean":
            yield False, None

    def wants(self, name: str, rules: Json) -> bool:
        options = rules.get("enum", []) if isinstance(rules, dict) else []
        if self._hints.location and is_place(name):
            return True
        return self._hints.names(name) or any(self._is_named(option) for option in options[:50])

    def _is_named(self, option: Json) -> bool:
        return isinstance(option, str) and self._hints.names(option)

    def _texts(self, name: str, description: str) -> Iterator[Proposal]:
        hints = self._hints
        if not is_place(name):
            yield from _once("text", hints.texts)
            yield from _once("path", hints.paths)
            if hints.prompt.strip():
                yield hints.prompt.strip()[:200], None
            return
        # Only what looks like a path: the tool may write there.
        yield from ((hints.located(path, description), key) for path, key in _once("path", hints.paths))
        if hints.location in hints.texts:
            yield hints.located(hints.location, description), ("text", hints.texts.index(hints.location))
        if is_folder(name, description):
            yield hints.workspace or ".", None
        words = ((text, key) for text, key in _once("text", hints.texts) if len(text.split()) == 1)
        yield from ((hints.located(text, description), key) for text, key in words)


def _once(pool: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[str, int]]]:
    return ((value, (pool, place)) for place, value in enumerate(values))


def _description(rules: JsonObject) -> str:
    description = rules.get("description")
    return description if isinstance(description, str) else ""


def _has_format(rules: JsonObject) -> bool:
    """Whether items need a format, which the schema checker does not verify."""
    first = rules.get("prefixItems")
    return any("format" in item for item in (rules.get("items"), *(first or ())) if isinstance(item, dict))


def _number_in(text: str) -> int | float | None:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return None
