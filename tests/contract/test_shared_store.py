"""The gateway with PostgreSQL: two of them share state, and each works without stored state while the database is down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres_server import PostgresServer
from tests.server.harness import Answer, Process, ask, process, wait_until
from tests.server.state_harness import scripted

pytestmark = pytest.mark.slow

TOML = """
[server]
default = "m"
[store]
url = "file:URL"
[backends.m]
kind = "scripted"
"""


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    started = PostgresServer()
    started.start()
    yield started
    started.close()


def respond(gateway: Process, **body: object) -> Answer:
    return ask(gateway.port, "POST", "/v1/responses", {"model": "m/x", **body})


def test_state_is_shared_and_an_outage_costs_only_what_is_stored(database: PostgresServer, tmp_path: Path) -> None:
    url = database.url.replace("toolwire@", "toolwire:hunter2@")
    (tmp_path / "url").write_text(url)
    (tmp_path / "url").chmod(0o600)
    toml = TOML.replace("file:URL", f"file:{tmp_path / 'url'}")
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    with process(folders[0], toml) as first, process(folders[1], toml) as second:
        stored = respond(first, input=scripted({"text": "one"})).json
        again = respond(second, input=scripted({"echo": True}), previous_response_id=stored["id"])
        assert again.status == 200
        assert "one" in again.json["output"][-1]["content"][0]["text"]
        assert ask(second.port, "GET", f"/v1/responses/{stored['id']}").json["id"] == stored["id"]

        database.stop()
        wait_until(lambda: ask(first.port, "GET", "/readyz").status == 503)
        assert ask(first.port, "GET", "/healthz").status == 200
        answer = respond(first, input=scripted({"text": "two"}))
        assert (answer.status, answer.headers["x-toolwire-loss"]) == (200, "store")
        assert "x-toolwire-loss" not in respond(first, input=scripted({"text": "two"}), store=False).headers
        refused = respond(first, input="go on", previous_response_id=stored["id"])
        assert (refused.status, refused.json["error"]["code"]) == (503, "store_unavailable")

        database.start()
        wait_until(lambda: ask(first.port, "GET", "/readyz").status == 200)
        assert respond(first, input="go on", previous_response_id=stored["id"]).status == 200
        assert "hunter2" not in first.output + second.output
        wait_until(lambda: "the store is available again" in first.output)
        assert "the store is unavailable" in first.output
