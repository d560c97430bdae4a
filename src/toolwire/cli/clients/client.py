"""What is known of a client: how it is told where the gateway is, and how its requests look. Data, and how it is filled in.

Texts hold words in @...@ that stand for what a person chose: @address@, @v1@ (the address with /v1), @url@ (the whole
URL of the dialect), @model@, and @key@ in settings that are written only when somebody asks for that.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ...config.secret import Secret
from .settings import Item, Setting

Format: TypeAlias = Literal["json", "toml", "yaml"]
KEY = "TOOLWIRE_KEY"  # the variable that clients take the gateway's key from
NAME = "toolwire"  # what the gateway is called in a client's settings
DUMMY = "toolwire"  # for clients that demand a key where the gateway has none

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_WORD = re.compile(r"@(address|v1|url|model|key)@")
_Value = TypeVar("_Value")


class Place(Struct, frozen=True, kw_only=True):
    """Where a file is: the first of names that exists in the folder, else the last. ~ is the home folder,
    $config the user's folder for settings, $code that of VS Code; variable, when set, names another folder.
    Without a folder only the user knows where it is, and says so with --file.
    """

    names: tuple[str, ...]
    folder: str = ""
    variable: str = ""


class SettingsFile(Struct, frozen=True, kw_only=True):
    """keyed and keyless are the settings that depend on whether the gateway wants a key; carrying, those that hold the key itself."""

    place: Place
    format: Format
    settings: tuple[Setting, ...]
    keyed: tuple[Setting, ...] = ()
    keyless: tuple[Setting, ...] = ()
    carrying: tuple[Setting, ...] = ()


class Way(Struct, frozen=True, kw_only=True):
    """One dialect of a client: files, or environment variables, or code, or steps in its window.

    prefix: the client speaks this dialect only to models whose names begin so.
    """

    dialect: str
    prefix: str = ""
    files: tuple[SettingsFile, ...] = ()
    environment: dict[str, str] = {}
    code: str = ""
    steps: tuple[str, ...] = ()


class Client(Struct, frozen=True, kw_only=True):
    """start is the command that runs it; keyed_start the one for a gateway with a key, where it differs.

    proof says what the settings were checked against: the program itself, recordings of it, or its documents.
    """

    name: str
    title: str
    ways: tuple[Way, ...]
    proof: Literal["run", "recorded", "read"]
    notes: str
    start: str = ""
    keyed_start: str = ""

    @property
    def dialects(self) -> tuple[str, ...]:
        return tuple(way.dialect for way in self.ways)

    def way(self, dialect: str) -> Way:
        return next(way for way in self.ways if way.dialect == dialect)


class Target(Struct, frozen=True, kw_only=True):
    """What a client is to be connected to. key is the key itself, only where it is to be written. meant: the model that the
    client's name for it must lead to, by an alias of the gateway; "" where none is needed."""

    address: str
    model: str
    has_key: bool
    key: Secret = Secret("")
    meant: str = ""

    def named_for(self, way: Way) -> Target:
        """With a name by which the client speaks the dialect of this way."""
        bare = self.model.rpartition("/")[2]
        if not way.prefix or self.model.startswith(way.prefix):
            return self
        if bare.startswith(way.prefix):
            return replace(self, model=bare)
        return replace(self, model=f"{way.prefix}-{NAME}", meant=self.model)

    def words(self, dialect: str) -> dict[str, str]:
        return {
            "address": self.address,
            "v1": f"{self.address}/v1",
            "url": f"{self.address}{PATHS[dialect]}",
            "model": self.model,
            "key": self.key.reveal(),
        }


def settings_of(file: SettingsFile, target: Target, dialect: str) -> tuple[Setting, ...]:
    """Everything that must be in this file."""
    chosen = (*file.settings, *(file.keyed if target.has_key else file.keyless), *(file.carrying if target.key else ()))
    words = target.words(dialect)
    return tuple(
        replace(setting, path=filled(setting.path, words), value=filled(setting.value, words)) for setting in chosen
    )


def filled(value: _Value, words: dict[str, str]) -> _Value:
    """The same with every @word@ in its strings replaced."""
    result: Any = value
    match value:
        case str():
            result = _WORD.sub(lambda match: words[match[1]], value)
        case dict():
            result = {filled(key, words): filled(inner, words) for key, inner in value.items()}
        case tuple() | list():
            result = type(value)(filled(inner, words) for inner in value)
        case Item():
            result = Item(value.member, filled(value.value, words))
    final: _Value = result
    return final
