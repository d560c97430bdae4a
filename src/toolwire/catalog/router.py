"""Routes a model name to a back end. No I/O: the caller passes in the model lists.

The first matching rule decides:
1. An alias of [models]; the rules then apply to its target, and no alias is followed twice. An alias with a `*` matches every name of that
   pattern, except names that start with the name of a back end. An alias without `*` takes precedence, also in another spelling.
2. "backend/model", split at the first slash, if backend is configured. The request goes only there, whether that back end lists the model or not.
3. A name that back ends list: of several back ends the default, else the first in the order of the file.
4. Another spelling of an alias or of a listed name (see wire/model_names.py): on the default back end, else on the only one that has it.
   An ambiguous spelling matches nothing.
5. The default back end, with the name unchanged.
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..config.file import Config
from ..errors import BadRequest, InternalError, quote
from ..wire.model_names import Spelling, is_adorned, readings_of, spelling_of

_MAX_SHOWN = 8
_MAX_LISTED = 10_000
# Limits that keep unknown names cheap.
_MAX_LETTERS = 60
_MAX_CANDIDATES = 1000
_MAX_COMPARED = 30
_MAX_ALIKE = 64
_MAX_CACHED = 1000


class Route(Struct, frozen=True, kw_only=True):
    """model: the name that the back end uses. why: for the log. effort: the reasoning effort that the name contains.

    is_guess: the default back end, because no other rule matched. needs_list: the default may list the model under a plainer name, and its list
    is unknown.
    """

    backend: str
    model: str
    why: str
    effort: str = ""
    is_guess: bool = False
    is_alias: bool = False
    needs_list: bool = False


class Router:
    """default: the name of a back end, or "" to refuse unknown names."""

    def __init__(
        self, backends: Sequence[str], aliases: Mapping[str, str], default: str, listed: Mapping[str, Sequence[str]]
    ) -> None:
        self._aliases = {alias: target for alias, target in aliases.items() if "*" not in alias}
        self._patterns = _patterns(aliases)
        self._alias_spellings = _Spellings(self._aliases)
        self._default = default
        self.routes: dict[str, Route] = {}  # cache of resolve(), cleared when a list changes
        self._listed: dict[str, dict[str, None]] = {backend: {} for backend in backends}
        self._spellings: dict[str, _Spellings] = {}
        self._prefixes = frozenset(backend.lower() for backend in backends)
        for backend, ids in listed.items():
            self.note_models(backend, ids)

    @property
    def aliases(self) -> list[str]:
        """The names of [models] without a `*`."""
        return list(self._aliases)

    @property
    def default(self) -> str:
        return self._default

    def resolve(self, model: str) -> Route:
        """Raises BadRequest (404) for a name without a route. Caches, because clients use the same few names."""
        route = self.routes.get(model)
        if route is None:
            route = self._apply_rules(model)
            if len(self.routes) >= _MAX_CACHED:
                self.routes.clear()
            if len(model) <= _MAX_LETTERS:
                self.routes[model] = route
        return route

    def _apply_rules(self, model: str) -> Route:
        name, effort, passed = model, "", dict[str, str]()
        while True:
            step = self._alias(name, passed)
            route = self._by_prefix(name) or self._by_listing(name) if step is None else None
            if step is None and route is None:
                readings = readings_of(name, self._prefixes)
                step = self._like_alias(readings, passed)
                route = self._like_listed(name, readings) or self._by_default(name) if step is None else None
            if step is None:
                break
            passed[step.alias] = step.why
            name, effort = step.target, effort or step.effort
        if route is None:
            raise self._not_found(model, name, passed)
        if not passed:
            return route
        why = "; ".join([*islice(passed.values(), _MAX_SHOWN), route.why])
        return replace(route, why=why, effort=effort or route.effort, is_alias=True)

    def route_or_none(self, model: str) -> Route | None:
        try:
            return self.resolve(model)
        except BadRequest:
            return None

    def note_models(self, backend: str, ids: Sequence[str]) -> None:
        """Replaces the model list of a back end."""
        if backend not in self._listed:
            raise InternalError(f"found models of {quote(backend)}, which is not a configured back end.")
        self.routes.clear()
        noted = dict.fromkeys(ids[:_MAX_LISTED])
        if noted != self._listed[backend]:
            self._spellings[backend] = _Spellings(noted)
        self._listed[backend] = noted

    def _alias(self, name: str, passed: Container[str]) -> _Step | None:
        if name in self._aliases and name not in passed:
            return _Step(alias=name, target=self._aliases[name], why=f"{quote(name)} is an alias")
        if not self._patterns or (step := self._by_pattern(name, passed)) is None:
            return None
        return self._closest_alias(readings_of(name, self._prefixes), passed) or step

    def _by_pattern(self, name: str, passed: Container[str]) -> _Step | None:
        is_prefixed = "/" in name and name.partition("/")[0] in self._listed
        for pattern in self._patterns:
            is_open = pattern.alias not in passed and (not is_prefixed or "/" in pattern.alias)
            if is_open and (target := pattern.target_for(name)):
                why = f"{quote(name)} matches the alias {quote(pattern.alias)}"
                return _Step(alias=pattern.alias, target=target, why=why)
        return None

    def _like_alias(self, readings: Sequence[Spelling], passed: Container[str]) -> _Step | None:
        if step := self._closest_alias(readings, passed):
            return step
        return self._by_pattern(readings[0].plain, passed) if readings and self._patterns else None

    def _closest_alias(self, readings: Iterable[Spelling], passed: Container[str]) -> _Step | None:
        for reading in readings:
            found = [name for name in self._alias_spellings.closest(reading)[1] if name not in passed]
            if found:
                why = f"it is another spelling of the alias {quote(found[0])}"
                step = _Step(alias=found[0], target=self._aliases[found[0]], why=why, effort=reading.effort)
                return step if len(found) == 1 else None
        return None

    def _like_listed(self, name: str, readings: Iterable[Spelling]) -> Route | None:
        for reading in readings:
            found = {
                backend: closest
                for backend, spellings in self._spellings.items()
                if (closest := spellings.closest(reading))[1]
            }
            if found:
                return self._respelled(name, reading, found)
        return None

    def _respelled(self, name: str, reading: Spelling, found: Mapping[str, tuple[_Rank, list[str]]]) -> Route | None:
        """On the default back end if it has the model, else the closest spelling; None if that is ambiguous."""
        if len(found.get(self._default, ((), []))[1]) == 1:
            found = {self._default: found[self._default]}
        nearest = min(rank for rank, _ in found.values())
        places = [(backend, model) for backend, (rank, models) in found.items() if rank == nearest for model in models]
        if len(places) != 1:
            return None
        backend, model = places[0]
        why = f"{quote(name)} is another spelling of {quote(model)}, which {quote(backend)} lists"
        return Route(backend=backend, model=model, why=why, effort=reading.effort)

    def _by_prefix(self, name: str) -> Route | None:
        backend, slash, model = name.partition("/")
        if not slash or not model or backend not in self._listed:
            return None
        # A server may itself have a model called "openai/x" and be configured under the name "openai".
        if name in self._listed[backend] and model not in self._listed[backend]:
            return Route(backend=backend, model=name, why=f"{quote(backend)} lists it under its full name")
        return Route(backend=backend, model=model, why=f"the name begins with {quote(backend)}")

    def _by_listing(self, name: str) -> Route | None:
        listing = [backend for backend, ids in self._listed.items() if name in ids]
        if not listing:
            return None
        if len(listing) == 1:
            return Route(backend=listing[0], model=name, why=f"only {quote(listing[0])} lists it")
        backend = self._default if self._default in listing else listing[0]
        rank = "the default" if backend == self._default else "the first of them"
        return Route(backend=backend, model=name, why=f"{len(listing)} back ends list it, {quote(backend)} is {rank}")

    def _by_default(self, name: str) -> Route | None:
        backend, slash, model = name.partition("/")
        if self._default not in self._listed or (slash and not model and backend in self._listed):
            return None
        why = f"no back end lists it, {quote(self._default)} is the default"
        needs_list = not self._listed[self._default] and is_adorned(name)
        return Route(backend=self._default, model=name, why=why, is_guess=True, needs_list=needs_list)

    def _not_found(self, model: str, name: str, passed: Container[str]) -> BadRequest:
        """name: the last target of the aliases in passed, which have no route either."""
        spellings = {written: certain for written, certain in self._names().items() if certain not in passed}
        near = _near(name, spellings)
        shown = ", ".join(quote(name) for name in (near or list(dict.fromkeys(spellings.values())))[:_MAX_SHOWN])
        target = "" if name == model else f", an alias of {quote(name)}, which no back end has"
        known = f"{'similar' if near else 'known'} models are {shown}" if shown else "no models are known yet"
        return BadRequest(
            f"found no back end for the model {quote(model)}{target}; {known}.",
            status=404,
            code="model_not_found",
            where="model",
            hint='Use one of these, or "BACKEND/MODEL" with any model of a configured back end.',
        )

    def _names(self) -> dict[str, str]:
        """Every known name, with and without prefix -> the name with prefix."""
        spellings = {alias: alias for alias in self._aliases}
        for backend, ids in self._listed.items():
            for model in ids:
                spellings.setdefault(f"{backend}/{model}", f"{backend}/{model}")
                spellings.setdefault(model, f"{backend}/{model}")
        return spellings


class _Step(Struct, frozen=True, kw_only=True):
    """One alias that was followed."""

    alias: str
    target: str
    why: str
    effort: str = ""


class _Pattern(Struct, frozen=True):
    """An alias with one `*`; a `*` in its target stands for the same text."""

    alias: str
    start: str
    end: str
    target: str

    def target_for(self, name: str) -> str:
        """ "" if the name does not match."""
        if len(name) < len(self.start) + len(self.end) or not (name.startswith(self.start) and name.endswith(self.end)):
            return ""
        return self.target.replace("*", name[len(self.start) : len(name) - len(self.end)], 1)


_Rank: TypeAlias = tuple[bool, int, bool]


class _Spellings:
    """Index of names by stem, built once per list."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_stem: dict[str, list[tuple[Spelling, str]]] = {}
        for name in names:
            if (spelling := spelling_of(name)) is not None:
                alike = self._by_stem.setdefault(spelling.stem, [])
                if len(alike) < _MAX_ALIKE:
                    alike.append((spelling, name))

    def closest(self, reading: Spelling) -> tuple[_Rank, list[str]]:
        """The closest names, of equal rank: with the same date, else without a date, else with the newest."""
        ranked: dict[_Rank, list[str]] = {}
        for spelling, name in self._by_stem.get(reading.stem, ()):
            if reading.fits(spelling):
                rank = (spelling.date != reading.date, -int(spelling.date or 0), spelling.provider != reading.provider)
                ranked.setdefault(rank, []).append(name)
        nearest = min(ranked, default=(True, 0, True))
        return nearest, ranked.get(nearest, [])


def router_for(config: Config) -> Router:
    """A router with the models of the file; note_models() adds the lists of back ends."""
    return Router(
        [backend.name for backend in config.backends],
        config.aliases,
        config.server.default,
        {backend.name: backend.models for backend in config.backends},
    )


def _patterns(aliases: Mapping[str, str]) -> list[_Pattern]:
    """Sorted by the length of the text before the `*`, longest first."""
    patterns = []
    for alias, target in aliases.items():
        start, star, end = alias.partition("*")
        if star:
            patterns.append(_Pattern(alias, start, end, target))
    return sorted(patterns, key=lambda pattern: (-len(pattern.start), -len(pattern.end)))


def _near(model: str, spellings: Mapping[str, str]) -> list[str]:
    """Names of similar spelling, and the same model if only the prefix is unknown."""
    tail = model.partition("/")[2]
    exact = [spellings[tail]] if tail in spellings else []
    # difflib is slow, and this runs on the event loop: compare only the names with the most letter pairs in common.
    pairs = _pairs(model)
    likely = nlargest(
        _MAX_COMPARED, islice(spellings, _MAX_CANDIDATES), key=lambda spelling: len(pairs & _pairs(spelling))
    )
    close = difflib.get_close_matches(model[:_MAX_LETTERS], likely, n=_MAX_SHOWN)
    return list(dict.fromkeys([*exact, *(spellings[spelling] for spelling in close)]))


def _pairs(text: str) -> set[str]:
    return {text[start : start + 2] for start in range(min(len(text), _MAX_LETTERS) - 1)}
