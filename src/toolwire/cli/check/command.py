"""`toolwire check URL|BACKEND`: three verdicts about an endpoint, and one for each client."""

from __future__ import annotations

import asyncio
import datetime
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter
from msgspec import Struct
from msgspec.structs import replace

from ... import __version__
from ...backends.http.kinds import DIALECT_OF
from ...backends.http.transport import Transport
from ...catalog.found import found_config
from ...check.results import DialectReport, ProbeResult
from ...check.runner import CheckOptions, check_dialect, check_wire, has_dialect, plan, wire_plan
from ...config.file import BackendConfig, Config, ServerConfig, with_backends
from ...config.secret import Resolver, Secret
from ...errors import BadRequest, ConfigError, UpstreamError, quote
from ..models import ask, first_chat_model, plain
from ..serve import ConfigFlag
from .clients import verdicts
from .configuration import configuration
from .report import CheckReport, text_lines, to_html, to_json, to_junit

ProgressStep: TypeAlias = Callable[[ProbeResult], None]
DialectName: TypeAlias = Literal["chat", "responses", "messages", "gemini", "all"]
_KIND_OF = {dialect: kind for kind, dialect in DIALECT_OF.items()}
_CLIENT_DIALECTS = ("chat", "responses", "messages")
_COULD_NOT_TRY = 2
_NAME = "checked"


class CheckTarget(Struct, frozen=True, kw_only=True):
    """The endpoint as a back end of each dialect. shown: the name in reports. key: the reference to its key."""

    shown: str
    endpoints: tuple[BackendConfig, ...]
    model: str
    key: str = ""
    gateway: str = ""  # the address of the gateway of this check, if the back end has no HTTP endpoint of its own


def check(
    target: Annotated[str, Parameter(help="Base URL of an endpoint, or the name of a configured back end.")],
    *,
    dialect: Annotated[
        DialectName | None, Parameter(help="Dialect to check, or all; by default the first one that the endpoint has.")
    ] = None,
    model: Annotated[str, Parameter(help="Model to use; by default the first one that the endpoint lists.")] = "",
    key: Annotated[str, Parameter(help="Key of the endpoint, as env:NAME or file:PATH.")] = "",
    quick: Annotated[bool, Parameter(help="Fewer requests, under a minute with most models.", negative="")] = False,
    baseline: Annotated[str, Parameter(help="BACKEND/MODEL to compare decisions to call with.")] = "",
    timeout: Annotated[float, Parameter(help="Seconds without a byte from the endpoint until a request fails.")] = 60.0,
    json: Annotated[Path | None, Parameter(help="Write a JSON report to this file.")] = None,
    junit: Annotated[Path | None, Parameter(help="Write a JUnit report to this file.")] = None,
    html: Annotated[Path | None, Parameter(help="Write an HTML report to this file.")] = None,
    config: ConfigFlag = None,
) -> int:
    """Check which clients an endpoint works with, and report its faults."""
    options = CheckOptions(is_quick=quick, seconds=timeout)
    try:
        report = asyncio.run(_run(target, dialect, model, key, baseline, options, config))
    except (UpstreamError, BadRequest) as error:
        print(f"toolwire: {error.sentence()}", file=sys.stderr)
        return _COULD_NOT_TRY
    for path, write in ((json, to_json), (junit, to_junit), (html, to_html)):
        if path is not None:
            path.write_text(write(report), encoding="utf-8")
    for line in text_lines(report):
        print(line)
    if report.configuration:
        print(f"Configuration for toolwire.toml:\n{report.configuration}", end="")
    print("The endpoint conforms." if report.is_conforming else "The endpoint does not conform.")
    return 0 if report.is_conforming else 1


async def _run(
    target: str, dialect: str | None, model: str, key: str, baseline: str, options: CheckOptions, path: Path | None
) -> CheckReport:
    transport = Transport()
    try:
        with _target(target, dialect, model, key, await found_config(path)) as found:
            if baseline:
                options = replace(options, baseline=_baseline(baseline, await found_config(path)))
            reports = await _reports(found, dialect, options, transport)
            through = await _through_gateway(found, reports, options, transport)
    finally:
        await transport.close()
    settings = "" if found.gateway else configuration(_endpoint(found, reports[0].dialect), found.key, reports[0])
    return CheckReport(
        target=found.shown,
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        reports=reports,
        clients=verdicts(reports, through),
        configuration=settings,
    )


async def _reports(
    target: CheckTarget, dialect: str | None, options: CheckOptions, transport: Transport
) -> list[DialectReport]:
    """Raises UpstreamError if the endpoint has none of the dialects."""
    reports: list[DialectReport] = []
    for endpoint in target.endpoints:
        model = target.model or await _first_model(endpoint)
        if dialect in (None, "all") and not await has_dialect(endpoint, model, transport, options.seconds):
            continue
        cost = plan(options)
        name = DIALECT_OF[endpoint.kind]
        print(
            f"{target.shown}, {name}, {model}: about {cost.requests} requests and {cost.tokens} tokens.",
            file=sys.stderr,
        )
        if not reports and (fronts := _front_count(target, dialect)):
            more = wire_plan()
            print(
                f"Through the gateway, for each client: about {fronts * more.requests} requests and {fronts * more.tokens} tokens.",
                file=sys.stderr,
            )
        with _progress(cost.requests) as advance:
            reports.append(await check_dialect(endpoint, model, transport, options, advance))
        if dialect != "all":
            break
    if reports:
        return reports
    raise UpstreamError(
        f"{target.shown} answers in none of the dialects {', '.join(DIALECT_OF.values())}.",
        hint="Check the URL: for Chat Completions and Responses it usually ends in /v1.",
    )


def _front_count(target: CheckTarget, dialect: str | None) -> int:
    """In how many dialects the endpoint is checked through the gateway."""
    if not target.gateway:
        return len(_CLIENT_DIALECTS)
    checked = _KIND_OF if dialect == "all" else (dialect or DIALECT_OF[target.endpoints[0].kind],)
    return len([name for name in _CLIENT_DIALECTS if name not in checked])


async def _through_gateway(
    target: CheckTarget, reports: list[DialectReport], options: CheckOptions, transport: Transport
) -> dict[str, DialectReport]:
    """The same endpoint behind the gateway, by dialect of the client."""
    report = reports[0]
    if target.gateway:
        known = {one.dialect: one for one in reports}
        rest = tuple(dialect for dialect in _CLIENT_DIALECTS if dialect not in known)
        return known | await _checked_fronts(target.gateway, rest, report.model, options, transport)
    from ...testing.background import BackgroundGateway

    endpoint = replace(_endpoint(target, report.dialect), name=_NAME, models=(report.model,))
    if {"tools.refused", "tools.ignored"} & {one.code for one in report.deviations}:
        endpoint = replace(endpoint, tools="simulate")
    with BackgroundGateway(with_backends(Config(server=ServerConfig()), (endpoint,))) as gateway:
        model = f"{_NAME}/{report.model}"
        return await _checked_fronts(gateway.address, _CLIENT_DIALECTS, model, options, transport)


async def _checked_fronts(
    gateway: str, dialects: tuple[str, ...], model: str, options: CheckOptions, transport: Transport
) -> dict[str, DialectReport]:
    found: dict[str, DialectReport] = {}
    for dialect in dialects:
        front = BackendConfig(name=_NAME, kind=_KIND_OF[dialect], base_url=_base_url(gateway, dialect))
        with _progress(wire_plan().requests) as advance:
            found[dialect] = await check_wire(front, model, transport, options, advance)
    return found


@contextmanager
def _target(target: str, dialect: str | None, model: str, key: str, config: Config) -> Iterator[CheckTarget]:
    """Starts a gateway for a back end that has no HTTP endpoint of its own."""
    wanted = tuple(_KIND_OF) if dialect in (None, "all") else (str(dialect),)
    if target.startswith(("http://", "https://")):
        secret = _secret(key)
        endpoints = tuple(
            BackendConfig(name=_NAME, kind=_KIND_OF[name], base_url=target.rstrip("/"), key=secret) for name in wanted
        )
        yield CheckTarget(shown=target, endpoints=endpoints, model=model, key=key)
        return
    backend = next((one for one in config.backends if one.name == target), None)
    if backend is None:
        names = ", ".join(one.name for one in config.backends)
        raise ConfigError(f"found {quote(target)}; expected a URL or one of the back ends {names}.", where="target")
    if backend.kind in DIALECT_OF and dialect in (None, "all", DIALECT_OF[backend.kind]):
        yield CheckTarget(shown=target, endpoints=(backend,), model=model)
        return
    from ...testing.background import BackgroundGateway

    with BackgroundGateway(with_backends(Config(server=ServerConfig()), (backend,))) as gateway:
        endpoints = tuple(
            BackendConfig(name=target, kind=_KIND_OF[name], base_url=_base_url(gateway.address, name))
            for name in wanted
        )
        full = f"{target}/{model}" if model and not model.startswith(f"{target}/") else model
        yield CheckTarget(shown=target, endpoints=endpoints, model=full, gateway=gateway.address)


def _secret(reference: str) -> Secret:
    """Raises ConfigError. A key on the command line would be visible to other users of the machine."""
    if not reference:
        return Secret()
    if not reference.startswith(("env:", "file:")):
        raise ConfigError("found a key; expected env:NAME or file:PATH.", where="--key")
    resolver = Resolver(os.environ, Path.cwd())
    try:
        secret = resolver.secret(reference)
    except ValueError as error:
        raise ConfigError(f"{error}.", where="--key") from None
    if not secret:
        raise ConfigError(f"{resolver.missing[0]}.", where="--key")
    return secret


def _base_url(address: str, dialect: str) -> str:
    return f"{address}/v1" if dialect in ("chat", "responses") else address


def _endpoint(target: CheckTarget, dialect: str) -> BackendConfig:
    return next(one for one in target.endpoints if DIALECT_OF[one.kind] == dialect)


def _baseline(text: str, config: Config) -> tuple[BackendConfig, str]:
    name, _, model = text.partition("/")
    backend = next((one for one in config.backends if one.name == name and one.kind in DIALECT_OF), None)
    if backend is None or not model:
        raise ConfigError(
            f"found {quote(text)}; expected BACKEND/MODEL of a configured HTTP back end.", where="--baseline"
        )
    return backend, model


async def _first_model(endpoint: BackendConfig) -> str:
    listing = await ask(endpoint)
    if listing.error is not None and listing.error.status in (401, 403):
        raise listing.error
    if listing.error is not None and listing.error.status in (502, 504):
        raise UpstreamError(f"{endpoint.base_url} cannot be reached: {plain(listing.error.sentence(), 400)}")
    return first_chat_model(listing.models) or "default"


@contextmanager
def _progress(requests: int) -> Iterator[ProgressStep]:
    """A bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield _ignore
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("", total=requests)

        def advance(result: ProbeResult) -> None:
            bar.update(task, advance=max(1, requests // 20), description=result.name)

        yield advance


def _ignore(result: ProbeResult) -> None:
    """Without a terminal there is no bar."""
