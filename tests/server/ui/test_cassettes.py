"""Flows of the inspector saved as a cassette, and a cassette opened in another gateway's inspector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.answers import DIALECTS, PATHS, question, streamed
from tests.server.conftest import backends_of
from tests.server.harness import Answer, Gateway, Upstream, ask, gateway, server_config, wait_until
from toolwire.config.file import BackendConfig, Config, FlowsConfig, with_backends

UI = {"x-toolwire-ui": "1"}


@pytest.fixture
def recorded(upstream: Upstream) -> Iterator[Gateway]:
    with gateway(with_backends(Config(server=server_config()), backends_of(upstream))) as running:
        yield running


@pytest.fixture
def other() -> Iterator[Gateway]:
    demo = BackendConfig(name="demo", kind="demo")
    with gateway(with_backends(Config(server=server_config()), (demo,))) as running:
        yield running


def listed(running: Gateway) -> list[Any]:
    return list(ask(running.port, "GET", "/ui/api/flows").json["flows"])


def record(running: Gateway, upstream: Upstream) -> list[str]:
    """One request of each dialect. Returns the ids of the flows, the newest first."""
    for dialect in DIALECTS:
        upstream.on(f"m-{dialect}", streamed(dialect, text=f"It rains in {dialect}."))
        assert ask(running.port, "POST", PATHS[dialect], question(dialect, f"{dialect}/m-{dialect}", stream=True)).body
    wait_until(lambda: [flow["outcome"] for flow in listed(running)] == ["ok"] * len(DIALECTS))
    return [flow["id"] for flow in listed(running)]


def save(running: Gateway, *ids: str) -> bytes:
    return ask(running.port, "POST", "/ui/api/cassette/save", {"ids": ids}, UI).body


def open_cassette(running: Gateway, lines: bytes) -> Answer:
    return ask(running.port, "POST", "/ui/api/cassette/open", lines, UI)


def test_saved_flows_are_replayed_without_a_model(recorded: Gateway, upstream: Upstream, tmp_path: Path) -> None:
    cassette = tmp_path / "saved.jsonl"
    cassette.write_bytes(save(recorded, *record(recorded, upstream)))
    replay = BackendConfig(name="replay", kind="replay", cassette=str(cassette))
    with gateway(with_backends(Config(server=server_config()), (replay,))) as running:
        for (
            dialect
        ) in DIALECTS:  # the requests are equal, so they are answered in the order in which they were recorded
            answer = ask(running.port, "POST", PATHS[dialect], question(dialect, f"replay/m-{dialect}", stream=False))
            assert f"It rains in {dialect}.".encode() in answer.body


def test_a_cassette_is_opened_in_another_inspector(recorded: Gateway, upstream: Upstream, other: Gateway) -> None:
    ids = record(recorded, upstream)
    lines = save(recorded, *ids)
    assert open_cassette(other, lines).json == {"opened": len(ids), "flows": len(ids), "skipped": 0}
    assert [flow["id"] for flow in listed(other)] == ids
    for flow_id in ids:
        here, there = (ask(running.port, "GET", f"/ui/api/flows/{flow_id}").json for running in (recorded, other))
        assert [event["type"] for event in there["events"]] == [event["type"] for event in here["events"]] != []
        for member in ("client", "upstream", "reports", "usage", "calls"):
            assert there[member] == here[member]
    assert open_cassette(other, lines).json["opened"] == 0
    assert save(other, *ids).count(b"\n") == len(ids)


def test_flows_that_were_deleted_are_opened_again(recorded: Gateway, upstream: Upstream) -> None:
    ids = record(recorded, upstream)
    lines = save(recorded, *ids)
    assert ask(recorded.port, "DELETE", "/ui/api/flows", headers=UI).status == 204
    assert open_cassette(recorded, lines).json["opened"] == len(ids)
    assert [ask(recorded.port, "GET", f"/ui/api/flows/{flow_id}").status for flow_id in ids] == [200] * len(ids)
    assert ask(recorded.port, "DELETE", f"/ui/api/flows/{ids[0]}", headers=UI).status == 204
    assert [flow["id"] for flow in listed(recorded)] == ids[1:]


def test_only_the_chosen_flows_are_saved_and_the_oldest_is_first(recorded: Gateway, upstream: Upstream) -> None:
    newest, *_, oldest = record(recorded, upstream)
    lines = save(recorded, newest, "flow_unknown", oldest).splitlines()
    assert [name.encode() in line for name, line in zip((oldest, newest), lines, strict=True)] == [True, True]


def test_damaged_lines_are_counted_and_left_out(recorded: Gateway, upstream: Upstream, other: Gateway) -> None:
    lines = save(recorded, *record(recorded, upstream))
    first, *rest = lines.splitlines(keepends=True)
    damaged = [first[:-20] + b"\n", b"not JSON\n", b"{}\n", b"\xff\xfe\n", b"[" * 5000 + b"\n", *rest]
    assert open_cassette(other, b"".join(damaged)).json == {"opened": len(rest), "flows": len(rest), "skipped": 5}


def test_a_cassette_that_is_older_than_the_limit_of_age_stays_listed(
    recorded: Gateway, upstream: Upstream, other: Gateway
) -> None:
    lines = save(recorded, record(recorded, upstream)[0])
    started = lines.index(b'"started":') + len(b'"started":')
    old = lines[:started] + b"1000000000.0" + lines[lines.index(b",", started) :]
    assert open_cassette(other, old).json["opened"] == 1
    assert [flow["started"] for flow in listed(other)] == [1e9]


@pytest.mark.parametrize("body", [b"", b"hello\nworld\n", b'{"choices": []}'])
def test_another_file_is_refused_with_the_reason(other: Gateway, body: bytes) -> None:
    answer = open_cassette(other, body)
    assert answer.status == 400
    assert "expected a cassette" in answer.json["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"ids": 7}', b'{"ids": [7]}', b"\xff"])
def test_a_request_without_ids_is_refused(other: Gateway, body: bytes) -> None:
    assert ask(other.port, "POST", "/ui/api/cassette/save", body, UI).status == 400


@pytest.mark.parametrize("what", ["open", "save"])
def test_other_methods_and_other_pages_are_refused(other: Gateway, what: str) -> None:
    path = f"/ui/api/cassette/{what}"
    assert ask(other.port, "GET", path, headers=UI).status == 405
    assert ask(other.port, "POST", path, b"{}", {**UI, "origin": "https://example.com"}).status == 403
    assert ask(other.port, "POST", path, b"{}").status == 403


def test_a_gateway_that_records_nothing_refuses_to_open(tmp_path: Path) -> None:
    demo = BackendConfig(name="demo", kind="demo")
    config = Config(server=server_config(), flows=FlowsConfig(enabled=False))
    with gateway(with_backends(config, (demo,))) as running:
        assert open_cassette(running, b"{}").json["error"]["code"] == "not_recorded"
