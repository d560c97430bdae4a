"""`toolwire stats`: what it adds up, what it shows, and what it says where there is nothing."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.harness import ask, gateway, server_config
from toolwire.calls.validation import CallTally
from toolwire.cli.app import run
from toolwire.cli.stats import StatsRange, as_json, rates, render_text, stats
from toolwire.config.file import Config, StoreConfig, with_backends
from toolwire.errors import ConfigError
from toolwire.memory.store.sqlite import SqliteStore
from toolwire.server.stats_writer import Recorder
from toolwire.telemetry import Record
from toolwire.telemetry.hourly import HOUR, SUMS, Counts, HourLine, HourlyCounts

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "stats.md").read_text(encoding="utf-8")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "toolwire.toml"
    path.write_text(f'[store]\npath = "{tmp_path / "store.db"}"\n[backends.demo]\nkind = "demo"\n')
    return path


def fill(config: Path, *, days_ago: int = 0) -> None:
    """A good back end and a bad one."""

    async def main() -> None:
        history = HourlyCounts(lambda: time.time() - days_ago * 86400)
        for number in range(10):
            good = CallTally(made=4, invalid=1, repaired=1)
            history.closed(Record(backend="good", sent_model="m", status=200, tally=good))
            outcome, status = ("error", 400) if number < 4 else ("ok", 200)
            bad = CallTally(made=2, invalid=1, corrections=1, corrected=1)
            failed = Record(backend="bad", sent_model="n", status=status, outcome=outcome, tally=bad)
            failed.error = "upstream_error" if outcome == "error" else ""
            failed.has_reached_bound = number > 7
            history.closed(failed)
        store = SqliteStore(config.parent / "store.db", max_bytes=8 << 20, max_age=1e9)
        await Recorder(store, history, lambda error, _: None).write()
        await store.close()

    asyncio.run(main())


def run_json(config: Path, capsys: pytest.CaptureFixture[str], **flags: Any) -> Any:
    assert stats(config=config, json=True, **flags) == 0
    return json.loads(capsys.readouterr().out)


def test_back_ends_are_compared(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(config)
    assert stats(config=config) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.split(r"\s{2,}", lines[1]) == [
        "back end", "model", "requests", "errors", "400s", "calls", "right", "repaired", "corrections",
        "at bound", "seconds", "cost",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", lines[2]) == [
        "bad",
        "n",
        "10",
        "40.0%",
        "4",
        "20",
        "50.0%",
        "50.0%",
        "10/10",
        "2",
        "0.0",
        "-",
    ]
    assert re.split(r"\s{2,}", lines[3]) == [
        "good",
        "m",
        "10",
        "0.0%",
        "0",
        "40",
        "75.0%",
        "100.0%",
        "-",
        "0",
        "0.0",
        "-",
    ]


def test_a_trend_by_day(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(config, days_ago=2)
    fill(config)
    fill(config)
    found = run_json(config, capsys)
    assert [(row["backend"], row["requests"]) for row in found["days"]] == [
        ("bad", 10), ("good", 10), ("bad", 20), ("good", 20),
    ]  # fmt: skip
    assert found["days"][0]["day"] < found["days"][2]["day"] == found["to"]
    assert [(row["model"], row["requests"]) for row in found["models"]] == [("n", 30), ("m", 30)]
    assert [row["requests"] for row in run_json(config, capsys, days=2)["models"]] == [20, 20]
    assert [row["backend"] for row in run_json(config, capsys, backend="good")["models"]] == ["good"]


def test_programs_get_every_number_and_rate(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(config)
    bad = run_json(config, capsys, backend="bad")["models"][0]
    assert bad.keys() == {"backend", "model", *SUMS, *rates(Counts())}
    assert (bad["error_rate"], bad["accuracy_before"], bad["accuracy_after"], bad["refused"]) == (0.4, 0.5, 0.5, 4)


def test_without_a_file_nothing_was_counted_and_none_is_made(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stats(config=config) == 0
    assert capsys.readouterr().out.startswith("Nothing was counted from ")
    assert not (config.parent / "store.db").exists()
    assert run_json(config, capsys)["models"] == []


def test_what_has_no_whole_has_no_rate() -> None:
    assert rates(Counts()) == dict.fromkeys(rates(Counts()))
    lines = (HourLine(hour=1, backend="b", model="m", counts=Counts(requests=1)),)
    found = StatsRange(first=0, last=0, lines=lines)
    assert re.split(r"\s{2,}", render_text(found)[2]) == [
        "b",
        "m",
        "1",
        "0.0%",
        "0",
        "0",
        "-",
        "-",
        "-",
        "0",
        "0.0",
        "-",
    ]
    assert as_json(found)["days"][0]["day"] == "1970-01-01"


def test_cost_is_shown_by_model_day_and_key() -> None:
    known, partly = Counts(requests=1, priced=1, cost=1_250_000_000), Counts(requests=2, priced=1, unpriced=1, cost=1)
    lines = (
        HourLine(hour=1, backend="b", model="m", owner="ann", counts=known),
        HourLine(hour=1, backend="b", model="m", owner="", counts=partly),
    )
    found = StatsRange(first=0, last=0, lines=lines)
    text = render_text(found)
    assert [line.split()[-1] for line in text if line.endswith(("+", "$1.2500"))] == ["$1.2500+", "$1.2500+", "$1.2500"]
    key = as_json(found)["keys"]
    assert [(row["key"], row["day"], row["model"], row["cost"]) for row in key] == [("ann", "1970-01-01", "m", 1.25)]
    assert as_json(found)["models"][0]["cost"] == 1.250000001


def test_names_that_clients_chose_cannot_reach_the_terminal() -> None:
    lines = (HourLine(hour=1, backend="b", model="\x1b[31mred\n", counts=Counts(requests=1)),)
    text = "\n".join(render_text(StatsRange(first=0, last=0, lines=lines)))
    assert "\x1b" not in text
    assert "\\u001b[31mred\\u000a" in text


@pytest.mark.parametrize("days", ["0", "-1", "367", "x"])
def test_days_that_are_none(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stats", "--days", days]) == 2
    assert "--days" in capsys.readouterr().err


def test_a_store_in_memory_has_nothing_to_tell(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text('[store]\nkind = "memory"\n')
    with pytest.raises(ConfigError, match="in memory"):
        stats(config=path)


def test_it_works_while_the_gateway_runs(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = StoreConfig(kind="sqlite", path=str(config.parent / "store.db"))
    body = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "hi"}]}
    with gateway(with_backends(Config(server=server_config(), store=store), ())) as running:
        assert ask(running.port, "POST", "/v1/chat/completions", body).status == 200
        fill(config)
        assert {row["backend"] for row in run_json(config, capsys)["models"]} == {"good", "bad"}
        assert ask(running.port, "POST", "/v1/chat/completions", body).status == 200
    assert {row["backend"]: row["requests"] for row in run_json(config, capsys)["models"]} == {
        "bad": 10, "good": 10, "demo": 2,
    }  # fmt: skip


def test_the_page_names_every_column_and_number(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(config)
    listed = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert listed == {*SUMS, *rates(Counts())}
    (sample,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    stats(config=config)
    assert sample.splitlines()[1].split() == capsys.readouterr().out.splitlines()[1].split()
    assert HOUR == 3600


def test_an_unusable_store_is_reported(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (config.parent / "store.db").write_text("some words\n" * 100)
    assert run(["stats", "--config", str(config)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        f"toolwire: {config.parent / 'store.db'}: this is where the store should be, but it is not a database. "
        "Move it away to start with an empty store, or set path under [store] to another file.\n"
    )


def test_a_damaged_store_is_reported_with_its_path(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(config)
    path = config.parent / "store.db"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    assert run(["stats", "--config", str(config)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"toolwire: {path}: ")
    assert "Move it away" in told
    assert "Requests" not in told


@pytest.mark.parametrize("json_flag", [False, True])
def test_an_unknown_back_end_gets_a_hint(config: Path, capsys: pytest.CaptureFixture[str], json_flag: bool) -> None:
    assert stats(config=config, backend="dmeo", json=json_flag) == 1
    assert capsys.readouterr().err == 'There is no back end "dmeo"; did you mean "demo"?\n'
    assert stats(config=config, backend="zzz", json=json_flag) == 1
    assert capsys.readouterr().err == 'There is no back end "zzz"; the back ends are demo.\n'
    assert stats(config=config, backend="demo", json=json_flag) == 0
