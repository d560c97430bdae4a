"""The command as a user runs it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.check.broken_server import GoodAnswer, broken_server
from tests.check.damages import drop_call_id, stream_values
from toolwire.cli.app import run
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.testing.background import BackgroundGateway


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_a_back_end_without_an_address_is_checked_through_a_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "demo", "--quick", "--dialect", "all", "--html", str(tmp_path / "c.html")]) == 0
    shown = capsys.readouterr()
    assert "The endpoint conforms." in shown.out
    assert "works                Claude Code (messages)" in shown.out
    assert "about 4" in shown.err
    assert "<h2>gemini</h2>" in (tmp_path / "c.html").read_text()


@pytest.mark.slow
def test_the_budget_of_all_requests_is_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    received = 0

    def count(answer: GoodAnswer) -> None:
        nonlocal received
        received += 1

    demo = with_backends(Config(), (BackendConfig(name="demo", kind="demo"),))
    with BackgroundGateway(demo) as good, broken_server(good.address, count) as address:
        assert run(["check", f"{address}/v1", "--quick", "--model", "demo/echo-tools"]) == 0
    budget = sum(int(number) for number in re.findall(r"about (\d+) requests", capsys.readouterr().err))
    assert 0.7 * budget <= received <= 1.2 * budget


@pytest.mark.slow
def test_clients_of_other_dialects_work_with_a_back_end_behind_the_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "demo", "--quick"]) == 0
    shown = capsys.readouterr().out
    assert "works with toolwire  Codex CLI (responses)" in shown
    assert "works with toolwire  Ollama's library, Python (ollama)" in shown
    assert "does not work" not in shown


@pytest.mark.slow
def test_a_broken_endpoint_exits_with_1_and_works_with_toolwire(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = with_backends(Config(), (BackendConfig(name="demo", kind="demo"),))
    with BackgroundGateway(demo) as good, broken_server(good.address, stream_values(drop_call_id)) as address:
        code = run(
            ["check", f"{address}/v1", "--quick", "--model", "demo/echo-tools", "--json", str(tmp_path / "c.json")]
        )
    assert code == 1
    value = json.loads((tmp_path / "c.json").read_text())
    assert value["dialects"][0]["verdicts"]["wire"] == "fail"
    outcomes = {one["client"]: one["outcome"] for one in value["clients"]}
    assert outcomes["opencode"] == outcomes["claude-code"] == "repaired"
    assert "call.id_missing" in capsys.readouterr().out


def test_an_endpoint_that_cannot_be_tried_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "http://127.0.0.1:9/v1", "--quick"]) == 2
    assert "cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], 'found "nowhere"; expected a URL or one of the back ends'),
        (["http://127.0.0.1:9/v1", "--key", "sk-123456789"], "expected env:NAME or file:PATH"),
        (["http://127.0.0.1:9/v1", "--key", "env:NOT_SET"], "NOT_SET is not set"),
        (["demo", "--baseline", "nobody/m"], "expected BACKEND/MODEL"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "sk-123456789" not in shown.out + shown.err
