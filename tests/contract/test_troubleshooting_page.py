"""docs/troubleshooting.md is correct: its first request calls a tool, and its codes, losses, samples and links exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.server.harness import ask, gateway, server_config
from toolwire import profiles
from toolwire.cli.clients.table import clients
from toolwire.config.file import Config, load, with_backends

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "toolwire").rglob("*.py"))


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_first_section_is_about_missing_calls() -> None:
    assert HEADINGS[0] == "Tool calls are not made"
    assert [name for name, _ in re.findall(r"^- \[(.+)\]\(#(.+)\)$", PAGE, re.MULTILINE)] == HEADINGS


def test_the_first_request_calls_the_tool_as_curl_sends_it() -> None:
    body = re.search(r"-d '(.*?)'", PAGE, re.DOTALL)
    assert body is not None
    form = {"content-type": "application/x-www-form-urlencoded"}
    with gateway(with_backends(Config(server=server_config()), ())) as running:
        answer = ask(running.port, "POST", "/v1/chat/completions", body[1].encode(), form)
    assert answer.json["choices"][0]["finish_reason"] == "tool_calls"
    assert b'"finish_reason":"tool_calls"' in answer.body


def test_it_counts_the_clients() -> None:
    assert f"settings of {len(clients())} clients" in PAGE


@pytest.mark.parametrize("code", sorted(set(re.findall(r"`([a-z]+_[a-z_]+)`", PAGE)) - {"get_weather", "base_url"}))
def test_every_code_and_key_exists(code: str) -> None:
    assert re.search(rf"\b{code}\b", SOURCE), code


@pytest.mark.parametrize("feature", ["tool.hosted", "tool_choice", "call.unasked", "history.missing_result"])
def test_every_loss_exists(feature: str) -> None:
    assert f"`{feature}`" in PAGE
    assert feature in SOURCE or feature.partition(".")[2] in SOURCE


def test_every_profile_exists() -> None:
    assert {"ollama", "vllm", "llamacpp", "lmstudio"} <= set(profiles.BY_NAME)


@pytest.mark.parametrize("sample", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_every_sample_loads(sample: str, tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text(sample, encoding="utf-8")
    assert load(path, {}).backends[0].is_simulated


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", PAGE))))
def test_every_link_target_exists(link: str) -> None:
    name, _, place = link.partition("#")
    page = PAGE
    if name:
        target = ROOT / "docs" / name
        assert target.exists(), link
        page = target.read_text(encoding="utf-8") if target.is_file() else ""
    if place:
        assert place in [anchor(heading) for heading in re.findall(r"^#+ (.+)$", page, re.MULTILINE)], link


def test_the_debug_report_is_as_documented() -> None:
    asked = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "a secret"}]}
    with gateway(with_backends(Config(server=server_config()), ())) as running:
        answer = ask(running.port, "POST", "/v1/chat/completions", asked, {"x-toolwire-debug": "1"})
    told = json.loads(answer.headers["x-toolwire-debug"])
    assert told["request"] == answer.headers["x-request-id"]
    assert "secret" not in answer.headers["x-toolwire-debug"]
