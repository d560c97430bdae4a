"""`toolwire doctor`: each thing that can be wrong, in plain words and with advice."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.backends.codex.starting import fake
from tests.cli.listener import http, listening
from tests.tools.mcp.servers import bare
from toolwire.catalog.discovery import VSCODE
from toolwire.cli.doctor import Finding, doctor, examine, of_aliases, of_backend, of_mcp_server, of_store
from toolwire.cli.models import ModelListing
from toolwire.config.file import BackendConfig, Config, McpServerConfig, StoreConfig, with_backends
from toolwire.errors import UpstreamError
from toolwire.memory.store import open_store

OPENAI = BackendConfig(name="openai", kind="openai-chat", base_url="https://api.openai.com/v1")


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store of whoever runs the tests is left alone."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def failed(status: int, backend: BackendConfig = OPENAI) -> Finding:
    return of_backend(backend, ModelListing(backend="openai", error=UpstreamError("no.", status=status)))


def test_a_back_end_that_answers_is_well() -> None:
    assert of_backend(OPENAI, ModelListing(backend="openai", models=("a",))).text == "answers, and lists 1 model."
    assert of_backend(OPENAI, ModelListing(backend="openai", models=("a", "b"))).text == "answers, and lists 2 models."


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "refuses the key"), (403, "refuses the key"), (404, "base_url"), (429, "wait"), (502, "is running")],
)
def test_what_is_wrong_comes_with_advice(status: int, advice: str) -> None:
    finding = failed(status)
    assert finding.is_wrong
    assert finding.text == "no."
    assert advice in finding.advice


def test_a_missing_key_is_named() -> None:
    backend = BackendConfig(name="openai", kind="openai-chat", missing="OPENAI_API_KEY is not set")
    finding = of_backend(backend, ModelListing(backend="openai", error=UpstreamError("OPENAI_API_KEY is not set.")))
    assert finding.is_wrong
    assert finding.text == "OPENAI_API_KEY is not set."
    assert "[backends.openai]" in finding.advice


def test_a_back_end_without_a_list_is_well_if_the_file_has_one() -> None:
    backend = BackendConfig(name="openai", kind="openai-chat", models=("a",))
    assert not failed(404, backend).is_wrong
    assert failed(502, backend).is_wrong


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic", "gemini"])
def test_a_back_end_is_queried_although_the_file_lists_its_models(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text(f'[backends.c]\nkind = "{kind}"\nbase_url = "http://127.0.0.1:9"\nkey = "k"\nmodels = ["m"]\n')
    finding = next(one for one in asyncio.run(examine(path)) if one.subject == "back end c")
    assert finding.is_wrong, finding.text


def test_models_of_the_file_that_it_does_not_list_are_named() -> None:
    backend = BackendConfig(name="openai", kind="openai-chat", models=("a", "b"))
    finding = of_backend(backend, ModelListing(backend="openai", models=("a",)))
    assert finding.text == "answers, and lists 1 model; missing from the list, but configured: b."
    assert not finding.is_wrong  # many servers answer for more than they list


def examined(tmp_path: Path, answer: bytes | None, server: str = "", rest: str = "") -> dict[str, Finding]:
    """The findings for a file whose port is taken by a program with this answer, or free if there is none."""

    async def main() -> list[Finding]:
        path = tmp_path / "toolwire.toml"
        async with listening(answer or b"") as listener:
            path.write_text(f"[server]\nport = {listener.port}\n{server}\n{rest}")
            if answer is not None:
                return await examine(path)
        return await examine(path)

    return {finding.subject: finding for finding in asyncio.run(main())}


def test_a_free_address(tmp_path: Path) -> None:
    findings = examined(tmp_path, None)
    assert list(findings) == ["configuration", "address", "store", "back end demo"]
    assert not any(finding.is_wrong for finding in findings.values())
    assert findings["configuration"].text == f"{tmp_path / 'toolwire.toml'} is in use."
    assert findings["address"].text.endswith(" is free.")


def test_an_address_in_use_by_another_program(tmp_path: Path) -> None:
    finding = examined(tmp_path, http(b'{"data": [{"id": "llama"}]}'))["address"]
    assert finding.is_wrong
    assert "is in use by " in finding.text
    if sys.platform == "linux":
        assert f"(process {os.getpid()})" in finding.text
    assert "--port" in finding.advice


def test_an_address_in_use_by_toolwire_itself(tmp_path: Path) -> None:
    finding = examined(tmp_path, http(b'{"data": [{"id": "demo/echo-tools"}]}'), 'keys = ["tw-1"]')["address"]
    assert not finding.is_wrong
    assert finding.text.startswith("toolwire is running at ")


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    finding = examined(tmp_path, None, 'host = "192.0.2.1"\nkeys = ["k"]')["address"]
    assert finding.is_wrong
    assert "cannot be used" in finding.text


def test_the_command_counts_and_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("sk-secret")
    (tmp_path / "key").chmod(0o644)
    examined(
        tmp_path, None, 'keys = ["file:key"]', '[backends.a]\nkind = "anthropic"\nkey = "env:TOOLWIRE_TEST_NOT_SET"'
    )
    assert doctor(config=tmp_path / "toolwire.toml") == 1
    shown = capsys.readouterr().out
    assert "WRONG back end a: TOOLWIRE_TEST_NOT_SET is not set.\n      Set it before" in shown
    assert "note  configuration: The file" in shown
    assert "chmod 600" in shown
    assert shown.endswith("1 of 6 checks found something wrong.\n")
    assert "sk-secret" not in shown


def test_the_command_exits_with_zero_when_all_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examined(tmp_path, None)
    assert doctor(config=tmp_path / "toolwire.toml") == 0
    assert capsys.readouterr().out.endswith("Everything is in order.\n")


def test_a_program_is_started_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = ", ".join(f'"{word}"' for word in fake())
    (tmp_path / "toolwire.toml").write_text(f'[backends.mine]\nkind = "codex"\ncommand = [{command}]')
    (finding,) = [one for one in asyncio.run(examine(tmp_path / "toolwire.toml")) if one.subject == "back end mine"]
    assert not finding.is_wrong
    assert finding.text.startswith("answers, and lists ")
    assert finding.text.endswith("It is Codex 0.166.0, tier replay, with Codex's own instructions.")


def test_a_program_that_is_not_there_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "toolwire.toml").write_text(
        '[backends.mine]\nkind = "codex"\ncommand = ["no-such-codex", "app-server"]'
    )
    (finding,) = [one for one in asyncio.run(examine(tmp_path / "toolwire.toml")) if one.subject == "back end mine"]
    assert finding.is_wrong
    assert "no-such-codex" in finding.text


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/proc/x/y.db", "cannot be created"),
        (".", "Is a directory"),
        ("text", "it is not a database"),
        ("text/y.db", "cannot be created: Not a directory"),
    ],
)
def test_a_store_with_which_nothing_starts_is_wrong(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "text").write_text("no database " * 100)
    finding = examined(tmp_path, None, rest=f'[store]\npath = "{path}"')["store"]
    assert finding.is_wrong
    assert reason in finding.text


def test_a_store_that_is_not_there_yet_is_left_to_be_made(tmp_path: Path) -> None:
    finding = examined(tmp_path, None, rest='[store]\npath = "folder/state.db"')["store"]
    assert not finding.is_wrong
    assert finding.text == f"{tmp_path / 'folder/state.db'} is created at the first start."
    assert not (tmp_path / "folder").exists()


def test_a_store_in_use_and_one_in_memory_are_well(tmp_path: Path) -> None:
    place = tmp_path / "state.db"
    open_store(kind="sqlite", path=str(place), default_path=place, max_age_days=1, max_mb=16)
    assert of_store(StoreConfig(path=str(place))) == Finding(subject="store", text=f"{place} can be used.")
    assert of_store(StoreConfig(kind="memory")) == Finding(subject="store", text="in memory.")


def test_a_default_store_that_cannot_be_made_stops_nothing(data_folder: Path) -> None:
    data_folder.write_text("no folder")
    finding = of_store(StoreConfig())
    assert finding.mark == "note"
    assert "cannot be created" in finding.text


def test_a_search_program_is_looked_for(tmp_path: Path) -> None:
    search = '[search]\nkind = "command"\ncommand = "{}"'
    finding = examined(tmp_path, None, rest=search.format("no-such-program"))["search"]
    assert finding.is_wrong
    assert finding.text == 'found no program "no-such-program" that can be run.'
    assert not examined(tmp_path, None, rest=search.format(sys.executable))["search"].is_wrong


def test_aliases_that_lead_nowhere_are_wrong(tmp_path: Path) -> None:
    models = '[models]\n"x" = "nosuch/model"\n"y-*" = "nosuch/model"\n"z-*" = "demo/*"\n"w" = "demo/echo-tools"'
    findings = examined(tmp_path, None, rest=models)
    assert [name for name in findings if name.startswith("alias")] == ['alias "x"', 'alias "y-*"']
    assert findings['alias "x"'].is_wrong
    assert findings['alias "x"'].text == 'its target is "nosuch/model", and no back end has that model.'


def test_an_alias_of_a_back_end_that_does_not_answer_may_be_right() -> None:
    config = with_backends(Config(aliases={"x": "some/model"}), [OPENAI, replace(OPENAI, name="other")])
    listed = ModelListing(backend="demo", models=("echo-tools",))
    silent = ModelListing(backend="openai", error=UpstreamError("no."))
    (finding,) = of_aliases(config, [silent, silent, listed])
    assert not finding.is_wrong
    assert "no back end that answers" in finding.text
    assert not list(of_aliases(config, [silent, ModelListing(backend="other", models=("some/model",)), listed]))


def test_an_alias_for_a_name_with_a_slash_may_mean_the_default() -> None:
    config = with_backends(Config(aliases={"x": "meta/llama"}), [OPENAI])
    answers = [ModelListing(backend="openai", models=("a",)), ModelListing(backend="demo", models=("echo-tools",))]
    (finding,) = of_aliases(config, answers)
    assert finding.mark == "note"
    assert (
        'there is no back end "meta". Unless a back end lists "meta/llama", requests go to the default' in finding.text
    )


def test_what_could_not_be_checked_is_not_called_in_order(
    capsys: pytest.CaptureFixture[str], data_folder: Path
) -> None:
    data_folder.write_text("no folder")
    assert doctor(config=None) == 0
    shown = capsys.readouterr().out
    assert "note  store: " in shown
    assert shown.endswith("Nothing is wrong; read the lines with note (1).\n")


def test_vscode_without_a_window_is_wrong_only_if_a_gateway_runs() -> None:
    listing = ModelListing(backend="vscode", error=UpstreamError("no window."))
    assert of_backend(VSCODE, listing, is_running=True).mark == "WRONG"
    assert of_backend(VSCODE, listing, is_running=False).mark == "note"


@pytest.mark.slow
def test_mounted_servers_are_started(tmp_path: Path) -> None:
    good = McpServerConfig(name="box", command=tuple(bare()), approvals={"where": "allow", "die": "deny"})
    found = asyncio.run(of_mcp_server(good))
    assert not found.is_wrong
    assert "works, with 10 tools: 2 are run by the gateway, 7 need" in found.text
    missing = asyncio.run(of_mcp_server(McpServerConfig(name="lost", command=("/no/such/program",))))
    assert missing.is_wrong
    assert "cannot be run" in missing.text
    assert "[mcp.servers.lost]" in missing.advice
