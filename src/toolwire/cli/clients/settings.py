"""What a client's settings must say, whatever the format of its file: places in a document, and values to put there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from ...errors import ConfigError, quote


class Item(Struct, frozen=True):
    """The element of a list whose member has this value; with no member, the element that is this value itself."""

    member: str
    value: str

    def fits(self, element: Any) -> bool:
        if not self.member:
            return bool(element == self.value)
        return isinstance(element, dict) and element.get(self.member) == self.value

    def made(self, value: Any) -> Any:
        """The element as it is added to a list that lacks it."""
        return {self.member: self.value} | (value or {}) if self.member else self.value


Step: TypeAlias = str | Item
Path: TypeAlias = tuple[Step, ...]


class Setting(Struct, frozen=True):
    """One value and its place. An object is merged into what is there; None removes (TOML only).

    A default is only put where there is nothing yet.
    """

    path: Path
    value: Any
    is_default: bool = False


def merged(data: Any, settings: Sequence[Setting]) -> Any:
    """The document with the settings in it; what was given stays as it was."""
    for setting in settings:
        data = _put(data, setting.path, setting.value, setting.is_default)
    return data


def nested(path: Path, value: Any) -> Any:
    """The value with everything around it that the path names."""
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [step.made(value)]
    return value


def shown(path: Path) -> str:
    """A place as a person reads it."""
    return ".".join(step if isinstance(step, str) else f"[{step.member}={step.value}]" for step in path) or "the file"


def misplaced(path: Path, found: Any, expected: str) -> ConfigError:
    nouns = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    noun = nouns.get(type(found), "a number")
    return ConfigError(f"found {noun} at {quote(shown(path))}; expected {expected}.")


def _put(data: Any, path: Path, value: Any, is_default: bool) -> Any:
    if not path:
        return _joined(data, value, is_default)
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if not isinstance(data, dict):
            raise misplaced(path, data, "an object")
        if step not in data:
            return data if value is None else data | {step: nested(rest, value)}
        if value is None and not rest:
            return {key: kept for key, kept in data.items() if key != step}
        return data | {step: _put(data[step], rest, value, is_default)}
    if not isinstance(data, list):
        raise misplaced(path, data, "a list")
    for index, element in enumerate(data):
        if step.fits(element):
            return [*data[:index], _put(element, rest, value, is_default), *data[index + 1 :]]
    return [*data, step.made(nested(rest, value))]


def _joined(data: Any, value: Any, is_default: bool) -> Any:
    if isinstance(data, dict) and isinstance(value, dict):
        for key, inner in value.items():
            data = _put(data, (key,), inner, is_default)
        return data
    return data if is_default else value
