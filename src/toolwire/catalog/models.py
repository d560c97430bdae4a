"""The models of all back ends: their merged list, and the route that a model name means."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ..backends.base import Backend, Model
from ..config.policy import Policy
from ..dialects.base import ModelLine
from ..errors import BadRequest, GatewayError, quote
from .router import Route, Router

_LIST_SECONDS = 5.0  # a back end that takes longer is left out of the list
_LIST_AGE = 60.0


class Catalog:
    """Caches the model lists for a minute, and requests them only when a name alone does not decide the route."""

    def __init__(
        self, backends: Mapping[str, Backend], router: Router, policies: Mapping[str, Policy] | None = None
    ) -> None:
        self._announced: dict[str, list[Model]] = {}  # by back ends that report changes of their list themselves
        self._lock = asyncio.Lock()
        self.configure(backends, router, policies or {})

    def configure(self, backends: Mapping[str, Backend], router: Router, policies: Mapping[str, Policy]) -> None:
        """Lists are requested again, except those that back ends have reported themselves."""
        self.backends = dict(backends)
        self.router = router
        self._policies = policies
        self._lists: list[tuple[str, list[Model]]] = []
        self._listed_at = -_LIST_AGE
        self._unlisted: dict[str, None] = {}
        self._knows_others = False
        self._knows_default = False
        for name, models in self._announced.items():
            self._register(name, models)

    async def route(self, model: str) -> Route:
        """Raises BadRequest (404) for a name without a route, or with only a default that cannot answer now."""
        route = self.router.routes.get(model)
        if route is not None and not route.is_guess:
            return route
        route = await self._resolve(model)
        absence = self.backends[route.backend].absence if route.is_guess else None
        if absence is not None:
            raise BadRequest(
                f"no back end lists the model {quote(model)}, and the default {quote(route.backend)} cannot answer: {absence.message}",
                status=404,
                code="model_not_found",
                where="model",
                hint=absence.hint,
            )
        return route

    @property
    def unlisted(self) -> list[str]:
        """Back ends whose model list could not be fetched the last time."""
        return list(self._unlisted)

    async def models(self) -> list[ModelLine]:
        """Every model as backend/model, and every alias."""
        async with self._lock:
            if time.monotonic() - self._listed_at >= _LIST_AGE or not self._lists:
                self._lists = await self._fetch(self.backends.values())
                self._listed_at = time.monotonic()
        lines = {
            f"{name}/{model.id}": ModelLine(
                id=f"{name}/{model.id}",
                owner=model.owner or name,
                created=model.created,
                title=model.title,
                context=self._context(name, model.id) or model.context,
            )
            for name, models in self._lists
            for model in self._announced.get(name, models)  # an announced list is never older than a fetched one
        }
        for alias in self.router.aliases:
            if (route := self.router.route_or_none(alias)) is not None:
                line = lines.get(f"{route.backend}/{route.model}", ModelLine(id=alias))
                context = line.context or self._context(route.backend, route.model)
                lines[alias] = replace(line, id=alias, owner=route.backend, context=context)
        return list(lines.values())

    async def model(self, name: str) -> ModelLine | None:
        """The line of the model that a request for this name would get, under this name. Raises as that request would."""
        lines = {line.id: line for line in await self.models()}
        if name in lines:
            return lines[name]
        route = await self.route(name)
        line = lines.get(f"{route.backend}/{route.model}")
        if line is None and route.is_alias:
            line = ModelLine(id=name, owner=route.backend)
        return None if line is None else replace(line, id=name)

    async def default_model(self) -> str:
        """For a request without a model: the first model of the default back end, or ""."""
        start = f"{self.router.default}/"
        lines = await self.models() if self.router.default else []
        return next((line.id for line in lines if line.id.startswith(start)), "")

    def note_models(self, name: str, models: list[Model]) -> None:
        """The new list of a back end that reports changes itself. Its old names keep their route while the list is empty."""
        self._register(name, models)
        self._announced[name] = models

    def _context(self, backend: str, model: str) -> int:
        """The size that the owner configured takes precedence over the list."""
        policy = self._policies.get(backend)
        return policy.context_for(model) if policy is not None else 0

    async def _resolve(self, model: str) -> Route:
        try:
            route = self.router.resolve(model)
            if not route.is_guess or (self._knows_others and (self._knows_default or not route.needs_list)):
                return route
        except BadRequest:
            if time.monotonic() - self._listed_at < _LIST_AGE:
                raise
            await self.models()
        else:
            await self._list_before_guess(route)
        return self.router.resolve(model)

    async def _list_before_guess(self, route: Route) -> None:
        """Once: a back end that lists the name takes precedence over the default. Where all other back ends run in this process,
        no request waits for a list from the network, unless the name needs the list of the default."""
        self._knows_default = self._knows_default or route.needs_list
        others = [backend for backend in self.backends.values() if backend.name != route.backend]
        if route.needs_list or any(backend.dialect for backend in others):
            await self.models()
        else:
            await self._fetch(others)
        self._knows_others = True

    async def _fetch(self, backends: Iterable[Backend]) -> list[tuple[str, list[Model]]]:
        fetched = await asyncio.gather(*(_list_of(backend) for backend in backends))
        for name, models in fetched:
            if models is None:
                self._unlisted[name] = None
            else:
                self._unlisted.pop(name, None)
            self._register(name, self._announced.get(name, models or []))
        return [(name, models or []) for name, models in fetched]

    def _register(self, name: str, models: list[Model]) -> None:
        if models and name in self.backends:  # it may have been removed while its list was fetched
            self.router.note_models(name, [known for model in models for known in (model.id, *model.also)])


async def _list_of(backend: Backend) -> tuple[str, list[Model] | None]:
    """None if the list could not be fetched."""
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            return backend.name, await backend.models()
    except (GatewayError, TimeoutError):
        return backend.name, None
