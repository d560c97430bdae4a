"""Which back end a model name means. No I/O: what the back ends list is handed in.

The rules, first match wins:
1. an alias of [models]; its target goes through the rules again, and no alias is followed twice. An alias with a `*` stands
   for every name of that pattern, except those that begin with a back end's name; an alias without one goes before it,
   also in another spelling;
2. "backend/model", split at the first slash, where backend is configured. The prefix is a promise: the request goes
   there and nowhere else, whether that back end lists the model or not;
3. a name that back ends list: the one that does; of several the default, else the first in the order of the file;
4. another spelling of an alias or of a listed name (see wire/model_names.py): on the default back end, else on the only
   one that has it. Where several could be meant, none is;
5. the default back end, with the name unchanged.
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

_SHOWN = 8
_LISTED = 10_000
# A client that asks for nonsense must not cost more than a moment.
_LETTERS = 60
_LOOKED_AT = 1000
_COMPARED = 30
_ALIKE = 64
_SETTLED = 1000


class Route(Struct, frozen=True, kw_only=True):
    """model is the back end's own name for it; why is for the log; a guess is the default, for want of anything better.

    effort is what the name asks for beside the model. A guess needs a list where the back end may know the model by a plainer
    name and has not been asked.
    """

    backend: str
    model: str
    why: str
    effort: str = ""
    is_guess: bool = False
    is_alias: bool = False
    needs_list: bool = False


class Router:
    """default is settled by the caller: a back end's name, or "" where unknown names are refused."""

    def __init__(
        self, backends: Sequence[str], aliases: Mapping[str, str], default: str, listed: Mapping[str, Sequence[str]]
    ) -> None:
        self._aliases = {alias: target for alias, target in aliases.items() if "*" not in alias}
        self._patterns = _patterns(aliases)
        self._alias_spellings = _Spellings(self._aliases)
        self._default = default
        self._settled: dict[str, Route] = {}
        self._listed: dict[str, dict[str, None]] = {backend: {} for backend in backends}
        self._spellings: dict[str, _Spellings] = {}
        self._prefixes = frozenset(backend.lower() for backend in backends)
        for backend, ids in listed.items():
            self.note_models(backend, ids)

    @property
    def aliases(self) -> list[str]:
        """The names of [models] that can be asked for as they stand."""
        return list(self._aliases)

    @property
    def default(self) -> str:
        return self._default

    def resolve(self, model: str) -> Route:
        """Raises BadRequest (404) for a name that leads nowhere. Clients ask for the same few names, so they are kept."""
        route = self._settled.get(model)
        if route is None:
            route = self._resolved(model)
            if len(self._settled) >= _SETTLED:
                self._settled.clear()
            if len(model) <= _LETTERS:
                self._settled[model] = route
        return route

    def _resolved(self, model: str) -> Route:
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
        why = "; ".join([*islice(passed.values(), _SHOWN), route.why])
        return replace(route, why=why, effort=effort or route.effort, is_alias=True)

    def route_or_none(self, model: str) -> Route | None:
        try:
            return self.resolve(model)
        except BadRequest:
            return None

    def note_models(self, backend: str, ids: Sequence[str]) -> None:
        """What this back end lists now, in place of what it listed before."""
        if backend not in self._listed:
            raise InternalError(f"models were noted for {quote(backend)}, which is no configured back end.")
        self._settled.clear()
        noted = dict.fromkeys(ids[:_LISTED])
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
                why = f"{quote(name)} fits the alias {quote(pattern.alias)}"
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
        """On the default back end if it has it, else where the spelling is nearest; None if that is not one."""
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
        """name is where the aliases lead that were passed on the way; none of them would answer if asked for itself."""
        spellings = {written: certain for written, certain in self._names().items() if certain not in passed}
        near = _near(name, spellings)
        shown = ", ".join(quote(name) for name in (near or list(dict.fromkeys(spellings.values())))[:_SHOWN])
        led = "" if name == model else f", an alias that leads to {quote(name)}, which no back end has"
        return BadRequest(
            f"found no back end for the model {quote(model)}{led}; "
            f"{'near names are' if near else 'there are'} {shown or 'no models known yet'}.",
            status=404,
            code="model_not_found",
            where="model",
            hint='Ask for one of these, or for "BACKEND/MODEL" with any model of a configured back end.',
        )

    def _names(self) -> dict[str, str]:
        """Every way to write a known name -> the name that is certain to work."""
        spellings = {alias: alias for alias in self._aliases}
        for backend, ids in self._listed.items():
            for model in ids:
                spellings.setdefault(f"{backend}/{model}", f"{backend}/{model}")
                spellings.setdefault(model, f"{backend}/{model}")
        return spellings


class _Step(Struct, frozen=True, kw_only=True):
    """From a name to what its alias stands for."""

    alias: str
    target: str
    why: str
    effort: str = ""


class _Pattern(Struct, frozen=True):
    """An alias with one `*` in it; a `*` in its target is what stood there."""

    alias: str
    start: str
    end: str
    target: str

    def target_for(self, name: str) -> str:
        """ "" where the name does not fit."""
        if len(name) < len(self.start) + len(self.end) or not (name.startswith(self.start) and name.endswith(self.end)):
            return ""
        return self.target.replace("*", name[len(self.start) : len(name) - len(self.end)], 1)


_Rank: TypeAlias = tuple[bool, int, bool]


class _Spellings:
    """Names by stem, made once a list, so that no request walks through it."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_stem: dict[str, list[tuple[Spelling, str]]] = {}
        for name in names:
            if (spelling := spelling_of(name)) is not None:
                alike = self._by_stem.setdefault(spelling.stem, [])
                if len(alike) < _ALIKE:
                    alike.append((spelling, name))

    def closest(self, reading: Spelling) -> tuple[_Rank, list[str]]:
        """The names nearest to it, of equal rank: of its own date, else without one, else of the newest."""
        ranked: dict[_Rank, list[str]] = {}
        for spelling, name in self._by_stem.get(reading.stem, ()):
            if reading.fits(spelling):
                rank = (spelling.date != reading.date, -int(spelling.date or 0), spelling.provider != reading.provider)
                ranked.setdefault(rank, []).append(name)
        nearest = min(ranked, default=(True, 0, True))
        return nearest, ranked.get(nearest, [])


def router_for(config: Config) -> Router:
    """A router that knows what the file lists; what back ends answer is noted later."""
    return Router(
        [backend.name for backend in config.backends],
        config.aliases,
        config.server.default,
        {backend.name: backend.models for backend in config.backends},
    )


def _patterns(aliases: Mapping[str, str]) -> list[_Pattern]:
    """The one that begins with the most letters first."""
    patterns = []
    for alias, target in aliases.items():
        start, star, end = alias.partition("*")
        if star:
            patterns.append(_Pattern(alias, start, end, target))
    return sorted(patterns, key=lambda pattern: (-len(pattern.start), -len(pattern.end)))


def _near(model: str, spellings: Mapping[str, str]) -> list[str]:
    """Names spelled almost so, and this very model where only the prefix is unknown here."""
    tail = model.partition("/")[2]
    exact = [spellings[tail]] if tail in spellings else []
    # difflib is exact but slow, and this runs on the event loop: it sees only what shares most letter pairs.
    pairs = _pairs(model)
    likely = nlargest(_COMPARED, islice(spellings, _LOOKED_AT), key=lambda spelling: len(pairs & _pairs(spelling)))
    close = difflib.get_close_matches(model[:_LETTERS], likely, n=_SHOWN)
    return list(dict.fromkeys([*exact, *(spellings[spelling] for spelling in close)]))


def _pairs(text: str) -> set[str]:
    return {text[start : start + 2] for start in range(min(len(text), _LETTERS) - 1)}
