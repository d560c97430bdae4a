"""How to connect a client to the gateway, as data: settings files, environment variables, code or steps.

Texts contain placeholders: @address@, @v1@ (the address with /v1), @url@ (the whole URL of the dialect), @model@, @small@ and @large@ (the
models for small and hard tasks), @context@ (tokens of the model's context window; @tokens@ is the same as a string), @input@ and @output@ (its
parts for the prompt and the answer), and @key@ in settings that are written only with --write-key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
UNKNOWN_INPUT = 128_000  # tokens, for clients that require a limit for a model of unknown size
MAX_OUTPUT = 16_000
_PLACEHOLDER = re.compile(r"@(\w+)@")
_SIZE = re.compile(r"@(?:context|tokens|input|output)@")
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
    """A value and its path. An object is merged into an existing one; None removes (not in YAML). A default never replaces a value.

    dialect: the only one that needs the setting; "" is any. is_repeated: once for each model of the target. is_sized: removed if the
    context window of the model is unknown.
    """

    path: Path
    value: Any = None
    is_default: bool = False
    dialect: str = ""
    is_repeated: bool = False
    is_sized: bool = False


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


class RunFolder(Struct, frozen=True, kw_only=True):
    """A folder of the client that `toolwire run` replaces by a temporary one, whose path it passes in the variable.

    folder: as in FilePlace. copied: the user's settings in it that the client gets a copy of, as patterns. own: the client's part of a folder
    that other programs use too; everything else in it is linked.
    """

    variable: str
    folder: str
    copied: tuple[str, ...] = ()
    own: str = ""


class ClientRun(Struct, frozen=True, kw_only=True):
    """How `toolwire run` starts a client without changing the user's files. The settings are those of `connect`.

    settings: "file" writes them to a copy, "none" means that environment has them all; any other name is a variable that takes their
    text. files: more settings files. moved: files outside of the folders, by their name in the first folder. unset: variables that would
    take precedence.
    """

    command: str
    folders: tuple[RunFolder, ...]
    settings: str = "file"
    files: tuple[SettingsFile, ...] = ()
    moved: dict[str, str] = {}
    environment: dict[str, str] = {}
    unset: tuple[str, ...] = ()


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
    run: None if it cannot be configured for one start.
    """

    name: str
    title: str
    ways: tuple[DialectSetup, ...]
    proof: Literal["run", "recorded", "read"] = "run"
    notes: str = ""
    start: str = ""
    keyed_start: str = ""
    run: ClientRun | None = None

    @property
    def dialects(self) -> tuple[str, ...]:
        return tuple(way.dialect for way in self.ways)

    def has_tier(self, tier: str) -> bool:
        """Whether its settings have a place for the model of this tier: small or large."""
        settings = [setting for way in self.ways for file in way.files for setting in file.settings]
        return any(setting.is_repeated or f"@{tier}@" in str(setting.value) for setting in settings)

    def way(self, dialect: str) -> DialectSetup:
        return next(way for way in self.ways if way.dialect == dialect)


class ConnectTarget(Struct, frozen=True, kw_only=True):
    """The gateway and model to connect to. key: only if it is written to the file. alias_of: the real model, if `model` must be an alias.

    small, large: the models for small and for hard tasks, if they are others. contexts: the known context windows, in tokens by model.
    """

    address: str
    model: str
    has_key: bool
    key: Secret = Secret("")
    alias_of: str = ""
    small: str = ""
    large: str = ""
    contexts: Mapping[str, int] = {}

    @property
    def models(self) -> tuple[str, ...]:
        """Without repetitions, the main one first."""
        return tuple(dict.fromkeys(filter(None, (self.model, self.small, self.large))))

    def context(self, model: str) -> int:
        """0 if it is unknown."""
        return self.contexts.get(self.alias_of if model == self.model and self.alias_of else model, 0)

    def named_for(self, way: DialectSetup) -> ConnectTarget:
        """The same with a model name for which the client uses this dialect."""
        bare = self.model.rpartition("/")[2]
        if not way.prefix or self.model.startswith(way.prefix):
            return self
        if bare.startswith(way.prefix):
            return replace(self, model=bare)
        return replace(self, model=f"{way.prefix}-{NAME}", alias_of=self.model)

    def placeholders(self, dialect: str, model: str = "") -> dict[str, str | int]:
        """model: another one of the target's, for a setting that is repeated."""
        model = model or self.model
        context = self.context(model)
        output = min(MAX_OUTPUT, context // 4) if context else MAX_OUTPUT
        return {
            "address": self.address,
            "v1": f"{self.address}/v1",
            "url": f"{self.address}{PATHS[dialect]}",
            "model": model,
            "small": self.small or self.model,
            "large": self.large or self.model,
            "context": context,
            "tokens": str(context),
            "input": context - output if context else UNKNOWN_INPUT,
            "output": output,
            "key": self.key.reveal(),
        }


def settings_of(file: SettingsFile, target: ConnectTarget, dialect: str) -> tuple[Setting, ...]:
    """All settings of this file, with placeholders filled in."""
    chosen = (*file.settings, *(file.keyed if target.has_key else file.keyless), *(file.carrying if target.key else ()))
    return tuple(
        filled
        for setting in chosen
        if setting.dialect in ("", dialect)
        for filled in _fill_setting(setting, target, dialect)
    )


def environment_of(environment: Mapping[str, str], target: ConnectTarget, dialect: str) -> dict[str, str]:
    """With placeholders filled in; without limits if the context window is unknown. A value $TOOLWIRE_KEY stays as it is."""
    placeholders = target.placeholders(dialect)
    is_known = bool(target.context(target.model))
    return {
        name: str(fill(value, placeholders))
        for name, value in environment.items()
        if is_known or not _SIZE.search(value)
    }


def _fill_setting(setting: Setting, target: ConnectTarget, dialect: str) -> Iterator[Setting]:
    for model in target.models if setting.is_repeated else (target.model,):
        placeholders = target.placeholders(dialect, model)
        is_unknown = setting.is_sized and not target.context(model)
        value = None if is_unknown else fill(setting.value, placeholders)
        yield replace(setting, path=fill(setting.path, placeholders), value=value)


def fill(value: _Value, placeholders: Mapping[str, str | int]) -> _Value:
    """Replaces the placeholders in all strings of a value; unknown ones stay. A string that is only the placeholder of a number becomes one."""
    result: Any = value
    match value:
        case str():
            whole = _PLACEHOLDER.fullmatch(value)
            number = placeholders.get(whole[1]) if whole else None
            text = _PLACEHOLDER.sub(lambda match: str(placeholders.get(match[1], match[0])), value)
            result = number if isinstance(number, int) else text
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
    return data if value is None else [*data, step.create(wrap(rest, value))]
