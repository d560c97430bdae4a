"""Damaged calls without any setting: what has one certain meaning arrives equal to it, the rest arrives as it was written and is reported.

Every kind of damage, for clients of every dialect, on back ends of every dialect, streamed and whole.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import jsonschema
import pytest

from tests.clients.gateway import KINDS
from tests.contract.damaged.clients import Received, ask
from tests.contract.damaged.kinds import CERTAIN, DOUBTFUL, TOOLS, Damaged
from tests.contract.damaged.upstreams import play
from tests.server.harness import Gateway, Upstream, gateway, server_config
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret

pytestmark = pytest.mark.slow  # each test makes two hundred requests

CLIENTS = (*KINDS, "ollama")
# Characters of each fragment of the arguments; 0 for a whole answer. The calls of Gemini have no fragments.
WAYS = [(dialect, size) for dialect in KINDS for size in (1, 7, 0) if (dialect, size) != ("gemini", 1)]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    playing = Upstream()
    yield playing
    playing.close()


@pytest.fixture(scope="module")
def server(upstream: Upstream) -> Iterator[Gateway]:
    """Back ends without any setting of the guard."""
    backends = tuple(
        BackendConfig(
            name=dialect,
            kind=kind,
            base_url=upstream.url + ("/v1" if kind.startswith("openai") else ""),
            key=Secret("sk-upstream"),
            retries=0,
        )
        for dialect, kind in KINDS.items()
    )
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        yield running


def received(server: Gateway, upstream: Upstream, client: str, dialect: str, damaged: Damaged, size: int) -> Received:
    model = f"m{next(_numbers)}"
    play(upstream, dialect, model, damaged, size)
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        return ask(connection, client, f"{dialect}/{model}", stream=bool(size))
    finally:
        connection.close()


def is_valid(name: str, value: Any) -> bool:
    return name in TOOLS and bool(jsonschema.Draft202012Validator(TOOLS[name]).is_valid(value))


def test_there_are_many_kinds_and_all_are_damaged() -> None:
    kinds = [damaged.kind for damaged in [*CERTAIN, *DOUBTFUL]]
    assert len(set(kinds)) == len(kinds) > 90
    for damaged in CERTAIN:
        assert is_valid(damaged.meant_tool, damaged.meant), damaged.kind


@pytest.mark.parametrize(("dialect", "size"), WAYS)
@pytest.mark.parametrize("client", CLIENTS)
def test_every_kind_of_damage(server: Gateway, upstream: Upstream, client: str, dialect: str, size: int) -> None:
    wrong: dict[str, Received] = {}
    for damaged in CERTAIN:
        found = received(server, upstream, client, dialect, damaged, size)
        is_equal = found.calls == [(damaged.meant_tool, damaged.meant)]
        if not is_equal or "Zoe" in found.report or not is_repair_reported(dialect, damaged, size, found.report):
            wrong[damaged.kind] = found
    for damaged in DOUBTFUL:
        found = received(server, upstream, client, dialect, damaged, size)
        if len(found.calls) != 1 or is_valid(*found.calls[0]) or "call." not in found.report:
            wrong[damaged.kind] = found
    assert wrong == {}


def is_repair_reported(dialect: str, damaged: Damaged, size: int, report: str) -> bool:
    """Whole answers only report losses. Gemini has objects: an object as text is read without a repair."""
    if not size or dialect == "gemini" or damaged.tool != damaged.meant_tool or not damaged.meant:
        return True
    return [one["tool"] for one in json.loads(report)["repaired"]] == [damaged.tool]
