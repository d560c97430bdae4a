"""Which back end a model name means. No I/O: what the back ends list is handed in.

The rules, first match wins:
1. an alias of [models]; its target goes through the rules again, and no alias is followed twice;
2. "backend/model", split at the first slash, where backend is configured. The prefix is a promise: the request goes
   there and nowhere else, whether that back end lists the model or not;
3. a name that back ends list: the one that does; of several the default, else the first in the order of the file;
4. the default back end, with the name unchanged.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import islice

from msgspec import Struct

from .config import Config
from .errors import BadRequest, InternalError, quote

_SHOWN = 8
_LISTED = 10_000
# A client that asks for nonsense must not cost more than a moment.
_LETTERS = 60
_LOOKED_AT = 1000
_COMPARED = 30


class Route(Struct, frozen=True, kw_only=True):
    """model is the back end's own name for it; why is for the log; a guess is the default, for want of anything better."""

    backend: str
    model: str
    why: str
    is_guess: bool = False


class Router:
    """default is settled by the caller: a back end's name, or "" where unknown names are refused."""

    def __init__(
        self, backends: Sequence[str], aliases: Mapping[str, str], default: str, listed: Mapping[str, Sequence[str]]
    ) -> None:
        self._aliases = dict(aliases)
        self._default = default
        self._listed: dict[str, dict[str, None]] = {backend: {} for backend in backends}
        for backend, ids in listed.items():
            self.note_models(backend, ids)

    def resolve(self, model: str) -> Route:
        """Raises BadRequest (404) for a name that leads nowhere."""
        name, aliased = self._unaliased(model)
        route = self._by_prefix(name) or self._by_listing(name) or self._by_default(name)
        if route is None:
            raise self._not_found(model)
        if not aliased:
            return route
        why = f"{quote(model)} is an alias; {route.why}"
        return Route(backend=route.backend, model=route.model, why=why, is_guess=route.is_guess)

    def note_models(self, backend: str, ids: Sequence[str]) -> None:
        """What this back end lists now, in place of what it listed before."""
        if backend not in self._listed:
            raise InternalError(f"models were noted for {quote(backend)}, which is no configured back end.")
        self._listed[backend] = dict.fromkeys(ids[:_LISTED])

    def _unaliased(self, model: str) -> tuple[str, bool]:
        name, seen = model, set[str]()
        while name in self._aliases and name not in seen:
            seen.add(name)
            name = self._aliases[name]
        return name, bool(seen)

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
        return Route(backend=self._default, model=name, why=why, is_guess=True)

    def _not_found(self, model: str) -> BadRequest:
        spellings = self._spellings()
        near = _near(model, spellings)
        shown = ", ".join(quote(name) for name in (near or list(dict.fromkeys(spellings.values())))[:_SHOWN])
        return BadRequest(
            f"found no back end for the model {quote(model)}; "
            f"{'near names are' if near else 'there are'} {shown or 'no models known yet'}.",
            status=404,
            code="model_not_found",
            where="model",
            hint='Ask for one of these, or for "BACKEND/MODEL" with any model of a configured back end.',
        )

    def _spellings(self) -> dict[str, str]:
        """Every way to write a known name -> the name that is certain to work."""
        spellings = {alias: alias for alias in self._aliases}
        for backend, ids in self._listed.items():
            for model in ids:
                spellings.setdefault(f"{backend}/{model}", f"{backend}/{model}")
                spellings.setdefault(model, f"{backend}/{model}")
        return spellings


def router_for(config: Config) -> Router:
    """A router that knows what the file lists; what back ends answer is noted later."""
    return Router(
        [backend.name for backend in config.backends],
        config.aliases,
        config.server.default,
        {backend.name: backend.models for backend in config.backends},
    )


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
