"""Back ends by kind, found through the entry-point group `toolwire.backends`: ours and those of other packages.

A kind is imported when it is first built, so that back ends without a configuration cost nothing. Our own entry points are looked up first;
all installed packages are searched only for a kind that is not among them, and no other package can replace one of ours.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.values import BackendConfig
from ..errors import ConfigError, quote
from ..installation import install_command
from .base import Backend

if TYPE_CHECKING:
    from .http.transport import Transport

GROUP = "toolwire.backends"
_PACKAGE = "toolwire"


def kinds() -> list[str]:
    """Every installed kind, ours first."""
    return list(dict.fromkeys([*sorted(_own()), *sorted(_foreign())]))


def is_kind(kind: str) -> bool:
    return is_own(kind) or kind in _foreign()


def is_own(kind: str) -> bool:
    """Whether it is part of toolwire, not of another package."""
    return kind in _own()


def load(kind: str) -> type[Backend]:
    """The class of a kind, imported now. Raises ConfigError with the command that installs what is missing."""
    entry = _own().get(kind) or _foreign().get(kind)
    if entry is None:
        raise ConfigError(f"no installed package has a back end of kind {quote(kind)}.", where="kind")
    try:
        loaded: type[Backend] = entry.load()
    except (ImportError, AttributeError) as error:
        message = f"back ends of kind {quote(kind)} cannot be imported: {error}."
        raise ConfigError(message, where="kind", hint=f"Install what they need: {_install_command(entry)}") from error
    return loaded


def build(config: BackendConfig, transport: Transport) -> Backend:
    """Back ends that are given the same transport share its connections."""
    return load(config.kind).from_config(config, transport)


def load_group(group: str) -> list[Any]:
    """What all entry points of a group name: ours, then those of other packages. Imports all of them."""
    return [entry.load() for entry in {**_foreign(group), **_own(group)}.values()]


def _install_command(entry: EntryPoint) -> str:
    """With the extra of the kind's name if its package has one."""
    owner: Distribution | None = entry.dist
    name = _PACKAGE if owner is None else owner.name
    extras = [] if owner is None else owner.metadata.get_all("Provides-Extra") or []
    return install_command(entry.name if entry.name in extras else "", name)


@cache
def _own(group: str = GROUP) -> dict[str, EntryPoint]:
    try:
        found = {entry.name: entry for entry in distribution(_PACKAGE).entry_points.select(group=group)}
    except PackageNotFoundError:
        found = {}
    return found or _declared(group)


@cache
def _foreign(group: str = GROUP) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}


def _declared(group: str = GROUP) -> dict[str, EntryPoint]:
    """As pyproject.toml has them: for a source tree that was not installed, or was before it had entry points."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {name: EntryPoint(name, value, group) for name, value in project["entry-points"][group].items()}
