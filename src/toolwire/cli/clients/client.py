"""How to connect a client to the gateway, as data: settings files, environment variables, code or steps.

Texts contain placeholders: @address@, @v1@ (the address with /v1), @url@ (the whole URL of the dialect), @model@, and @key@ in settings that
are written only with --write-key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ...config.secret import Secret
from ...errors import ConfigError, quote

Format: TypeAlias = Literal["json", "toml", "yaml"]
KEY = "TOOLWIRE_KEY"  # the environment variable with the gateway's key
NAME = "toolwire"  # the gateway in a client's settings
DUMMY = "toolwire"  # for clients that require a key when the gateway has none
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "ollama": "/api/chat",
}
_PLACEHOLDER = re.compile(r"@(\w+)@")
_Value = TypeVar("_Value")


class ListItem(Struct, frozen=True):
    """The list element whose member has this value; without a member, the element equal to the value."""

    member: str
    value: str

    def matches(self, element: Any) -> bool:
        if not self.member:
            return bool(element == self.value)
        return isinstance(element, dict) and element.get(self.member) == self.value

    def create(self, value: Any) -> Any:
        """The element to add to a list that lacks it."""
        return {self.member: self.value} | (value or {}) if self.member else self.value


Step: TypeAlias = str | ListItem
Path: TypeAlias = tuple[Step, ...]


class Setting(Struct, frozen=True):
    """A value and its path. An object is merged into an existing one; None removes (TOML only). A default never replaces a value.

    dialect: the only one that needs the setting; "" is any.
    """

    path: Path
    value: Any = None
    is_default: bool = False
    dialect: str = ""


class FilePlace(Struct, frozen=True, kw_only=True):
    """The path of a file: the first of names that exists in the folder, else the last one.

    ~ is the home folder, $config the user's configuration folder, $code that of VS Code. The environment variable overrides the folder.
    Without a folder the user must pass --file.
    """

    names: tuple[str, ...]
    folder: str = ""
    variable: str = ""


class SettingsFile(Struct, frozen=True, kw_only=True):
    """keyed and keyless: settings for a gateway with and without a key. carrying: settings that contain the key itself."""

    place: FilePlace
    format: Format
    settings: tuple[Setting, ...]
    keyed: tuple[Setting, ...] = ()
    keyless: tuple[Setting, ...] = ()
    carrying: tuple[Setting, ...] = ()


class DialectSetup(Struct, frozen=True, kw_only=True):
    """Setup of one dialect of a client: files, environment variables, code, or steps in its user interface.

    prefix: the client uses this dialect only for models with this prefix. check: how its requests differ from plain ones (trial.py).
    """

    dialect: str
    prefix: str = ""
    files: tuple[SettingsFile, ...] = ()
    environment: dict[str, str] = {}
    code: str = ""
    steps: tuple[str, ...] = ()
    check: tuple[str | dict[str, Any], ...] = ()


class Client(Struct, frozen=True, kw_only=True):
    """start is the command that runs it; keyed_start the one for a gateway with a key, if different.

    proof: whether the settings were tested with the program itself, with recordings of it, or only taken from its documentation.
    """

    name: str
    title: str
    ways: tuple[DialectSetup, ...]
    proof: Literal["run", "recorded", "read"] = "run"
    notes: str = ""
    start: str = ""
    keyed_start: str = ""

    @property
    def dialects(self) -> tuple[str, ...]:
        return tuple(way.dialect for way in self.ways)

    def way(self, dialect: str) -> DialectSetup:
        return next(way for way in self.ways if way.dialect == dialect)


class ConnectTarget(Struct, frozen=True, kw_only=True):
    """The gateway and model to connect to. key: only if it is written to the file. alias_of: the real model, if `model` must be an alias."""

    address: str
    model: str
    has_key: bool
    key: Secret = Secret("")
    alias_of: str = ""

    def named_for(self, way: DialectSetup) -> ConnectTarget:
        """The same with a model name for which the client uses this dialect."""
        bare = self.model.rpartition("/")[2]
        if not way.prefix or self.model.startswith(way.prefix):
            return self
        if bare.startswith(way.prefix):
            return replace(self, model=bare)
        return replace(self, model=f"{way.prefix}-{NAME}", alias_of=self.model)

    def placeholders(self, dialect: str) -> dict[str, str]:
        return {
            "address": self.address,
            "v1": f"{self.address}/v1",
            "url": f"{self.address}{PATHS[dialect]}",
            "model": self.model,
            "key": self.key.reveal(),
        }


def settings_of(file: SettingsFile, target: ConnectTarget, dialect: str) -> tuple[Setting, ...]:
    """All settings of this file, with placeholders filled in."""
    chosen = (*file.settings, *(file.keyed if target.has_key else file.keyless), *(file.carrying if target.key else ()))
    placeholders = target.placeholders(dialect)
    return tuple(
        replace(setting, path=fill(setting.path, placeholders), value=fill(setting.value, placeholders))
        for setting in chosen
        if setting.dialect in ("", dialect)
    )


def fill(value: _Value, placeholders: dict[str, str]) -> _Value:
    """Replaces the placeholders in all strings of a value; unknown ones stay."""
    result: Any = value
    match value:
        case str():
            result = _PLACEHOLDER.sub(lambda match: placeholders.get(match[1], match[0]), value)
        case dict():
            result = {fill(key, placeholders): fill(inner, placeholders) for key, inner in value.items()}
        case tuple() | list():
            result = type(value)(fill(inner, placeholders) for inner in value)
        case ListItem():
            result = ListItem(value.member, fill(value.value, placeholders))
    final: _Value = result
    return final


def merge(data: Any, settings: Sequence[Setting]) -> Any:
    """A copy of the document with the settings applied."""
    for setting in settings:
        data = _put(data, setting.path, setting.value, setting.is_default)
    return data


def wrap(path: Path, value: Any) -> Any:
    """The value inside the containers that the path names."""
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [step.create(value)]
    return value


def format_path(path: Path) -> str:
    return ".".join(step if isinstance(step, str) else f"[{step.member}={step.value}]" for step in path) or "the file"


def misplaced(path: Path, found: Any, expected: str) -> ConfigError:
    nouns = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    noun = nouns.get(type(found), "a number")
    return ConfigError(f"found {noun} at {quote(format_path(path))}; expected {expected}.")


def _put(data: Any, path: Path, value: Any, is_default: bool) -> Any:
    if not path and isinstance(data, dict) and isinstance(value, dict):
        for key, inner in value.items():
            data = _put(data, (key,), inner, is_default)
        return data
    if not path:
        return data if is_default else value
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if not isinstance(data, dict):
            raise misplaced(path, data, "an object")
        if step not in data:
            return data if value is None else data | {step: wrap(rest, value)}
        if value is None and not rest:
            return {key: inner for key, inner in data.items() if key != step}
        return data | {step: _put(data[step], rest, value, is_default)}
    if not isinstance(data, list):
        raise misplaced(path, data, "a list")
    for index, element in enumerate(data):
        if step.matches(element):
            return [*data[:index], _put(element, rest, value, is_default), *data[index + 1 :]]
    return [*data, step.create(wrap(rest, value))]
