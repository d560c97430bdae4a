"""The Codex back end with the oldest and the newest real program: behaviour of the processes that no recording shows."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.backends.codex.asking import answered, calls_of, read, request, text_of, user, with_results
from tests.backends.codex.processes import all_gone, marked, zombies
from tests.backends.codex.provider import Provider, providing
from tests.backends.event_contract import check_events
from tests.programs.codex_backend.binaries import NEWEST, OLDEST, VERSIONS, codex
from tests.programs.installed import ROOT, search_path
from toolwire.backends.base import ToolsUnsupported
from toolwire.backends.codex.backend import CodexBackend
from toolwire.backends.codex.wire.settings import toml
from toolwire.config.file import BackendConfig
from toolwire.errors import UpstreamError
from toolwire.events import Failed, Finished, Noted
from toolwire.types import Loss, Message, Text

pytestmark = pytest.mark.slow

# An entry of a model catalogue that has no tools of its own.
_MODEL = {
    "slug": "some-model",
    "base_instructions": "",
    "display_name": "some-model",
    "supported_reasoning_levels": [],
    "shell_type": "disabled",
    "visibility": "list",
    "supported_in_api": True,
    "priority": 1,
    "support_verbosity": True,
    "truncation_policy": {"mode": "tokens", "limit": 10000},
    "experimental_supported_tools": [],
    "tool_mode": None,
    "multi_agent_version": None,
    "apply_patch_tool_type": None,
    "use_responses_lite": False,
}
_KEY = "sk-fake-key-of-the-tests"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as made:
        yield made


class RealStage:
    """Clean environment, fake key; everything outside loopback goes to a closed port."""

    def __init__(self, version: str, provider: Provider, folder: Path, **settings: Any) -> None:
        self.provider = provider
        self.folder = folder
        (folder / "user").mkdir(exist_ok=True)
        mark = secrets.token_hex(8)
        self.mark = f"TOOLWIRE_TEST_MARK={mark}"
        self.environ = {
            "PATH": search_path(),
            "HOME": str(folder / "user"),
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
            "GW_KEY": _KEY,
            "TOOLWIRE_TEST_MARK": mark,
        }
        table = {"name": "gw", "base_url": provider.address, "env_key": "GW_KEY", "wire_api": "responses"}
        self.settings = {
            "command": (str(codex(version)), "app-server"),
            "config": {"model_provider": "gw", "model_providers": {"gw": table}},
            "retries": 0,
            **settings,
        }
        config = BackendConfig(name="codex", kind="codex", **self.settings)
        self.backend = CodexBackend(config, self.environ, folder / "cache")


def run_on_stage(stage: RealStage, play: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        try:
            await play(stage)
        finally:
            await stage.backend.close()

    asyncio.run(main())
    assert all_gone(stage.mark)
    assert zombies() == []
    assert not list((stage.folder / "cache").glob("*"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plain_answer_streams(version: str, provider: Provider, tmp_path: Path) -> None:
    async def play(stage: Any) -> None:
        assert version in str(await stage.backend.program())
        events = await answered(stage, request("plain"))
        check_events(events)
        assert text_of(events) == "Hello world."
        finished = events[-1]
        assert isinstance(finished, Finished)
        assert finished.usage is not None
        assert (finished.usage.input, finished.usage.cached, finished.usage.output) == (100, 40, 20)

    run_on_stage(RealStage(version, provider, tmp_path), play)


@pytest.mark.parametrize(("version", "tier"), [(NEWEST, "auto"), (NEWEST, "held")])
def test_parallel_calls_and_the_answer_to_their_results(
    version: str, tier: str, provider: Provider, tmp_path: Path
) -> None:
    async def play(stage: Any) -> None:
        asked = request("calls", has_tools=True)
        events = await answered(stage, asked)
        check_events(events)
        assert [(call.id, call.name, call.raw) for call in calls_of(events)] == [
            ("call_p1", "get_weather", '{"city": "Paris"}'),
            ("call_p2", "get_weather", '{"city":"Rome"}'),
        ]
        assert text_of(await answered(stage, with_results(asked, events))) == "It is sunny."
        told = [json.dumps(item) for item in provider.requests[-1]["input"] if item["type"] == "function_call_output"]
        assert ["Paris" in told[0], "Rome" in told[1], len(provider.requests)] == [True, True, 2]

    run_on_stage(RealStage(version, provider, tmp_path, tier=tier), play)


def test_a_version_without_client_tools_is_reported(provider: Provider, tmp_path: Path) -> None:
    async def play(stage: Any) -> None:
        with pytest.raises(ToolsUnsupported, match=r"Codex 0\.89\.0 takes no tools"):
            await stage.backend.open(request("calls", has_tools=True), is_verbatim=False)

    run_on_stage(RealStage(OLDEST, provider, tmp_path), play)


@pytest.mark.parametrize("version", VERSIONS)
def test_failures_have_the_status_of_the_provider(version: str, provider: Provider, tmp_path: Path) -> None:
    statuses = {"e500": 500, "e429": 429, "e401": 401, "e400": 400, "context": 400, "failed": 502}

    async def play(stage: Any) -> None:
        for word, status in statuses.items():
            with pytest.raises(UpstreamError) as caught:
                await stage.backend.open(request(word), is_verbatim=False)
            assert (word, caught.value.status) == (word, status)
            assert provider.address not in caught.value.sentence()
        cut = (await answered(stage, request("cut")))[-1]
        assert isinstance(cut, Failed)
        assert cut.error.status == 502

    run_on_stage(RealStage(version, provider, tmp_path), play)
    assert len(provider.requests) == len(statuses) + 1  # Codex itself does not retry


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_that_keeps_calling_what_codex_refuses_is_stopped_also_without_native_tools(
    version: str, provider: Provider, tmp_path: Path
) -> None:
    async def play(stage: Any) -> None:
        async with asyncio.timeout(30):
            events = await answered(stage, request("stuck"))
        check_events(events)
        assert [call.name for call in calls_of(events)] == ["no_such_tool"]  # which the pipeline turns into text

    run_on_stage(RealStage(version, provider, tmp_path, tier="sentinel"), play)
    assert len(provider.requests) < 10


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_that_keeps_calling_is_also_stopped_in_a_conversation_with_history(
    version: str, provider: Provider, tmp_path: Path
) -> None:
    async def play(stage: Any) -> None:
        told = Message(role="assistant", parts=(Text(text="Hello."),))
        async with asyncio.timeout(60):
            events = await answered(stage, request("plain", told, user("DO=stuck")))
        check_events(events)
        assert [call.name for call in calls_of(events)] == ["no_such_tool"]

    run_on_stage(RealStage(version, provider, tmp_path, tier="sentinel"), play)
    assert len(provider.requests) < 20


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_disconnects_stops_the_provider(version: str, provider: Provider, tmp_path: Path) -> None:
    async def play(stage: Any) -> None:
        reply = await stage.backend.open(request("slow"), is_verbatim=False)
        async for _ in reply.events:
            break
        await reply.close()
        async with asyncio.timeout(5):
            while provider.running:
                await asyncio.sleep(0.02)
        assert provider.cut == 1
        assert text_of(await answered(stage, request("plain"))) == "Hello world."

    run_on_stage(RealStage(version, provider, tmp_path), play)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kill_in_the_middle_fails_the_turn_and_the_next_one_has_a_new_process(
    version: str, provider: Provider, tmp_path: Path
) -> None:
    async def play(stage: Any) -> None:
        reply = await stage.backend.open(request("slow"), is_verbatim=False)
        for pid in marked(stage.mark):  # the script and the program
            os.kill(pid, signal.SIGKILL)
        failed = (await read(reply))[-1]
        assert isinstance(failed, Failed)
        assert (failed.error.status, failed.error.code) == (502, "codex_stopped")
        assert text_of(await answered(stage, request("plain"))) == "Hello world."

    run_on_stage(RealStage(version, provider, tmp_path, workers=1), play)


@pytest.mark.parametrize("version", VERSIONS)
def test_fifty_at_once(version: str, provider: Provider, tmp_path: Path) -> None:
    async def play(stage: Any) -> None:
        answers = await asyncio.gather(*(answered(stage, request("wait")) for _ in range(50)))
        assert {text_of(events) for events in answers} == {"one two three"}
        assert len(stage.backend.host.pool.workers) == 2

    run_on_stage(RealStage(version, provider, tmp_path), play)
    assert provider.most > 10


@pytest.mark.parametrize("is_hung", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_gateway_that_is_killed_leaves_no_process(
    version: str, is_hung: bool, provider: Provider, tmp_path: Path
) -> None:
    """A hanging Codex, here a stopped one, does not notice the end of its input."""
    stage = RealStage(version, provider, tmp_path)
    program = f"""
import asyncio, os, signal
from pathlib import Path
from tests.backends.codex.asking import request
from tests.backends.codex.processes import marked
from toolwire.backends.codex.backend import CodexBackend
from toolwire.config.file import BackendConfig
from toolwire.backends.codex.wire.settings import toml
async def main():
    config = BackendConfig(name="codex", kind="codex", **{stage.settings!r})
    backend = CodexBackend(config, os.environ, Path({str(tmp_path)!r}) / "cache")
    await backend.open(request("slow"), is_verbatim=False)
    for pid in marked({stage.mark!r}) if {is_hung} else ():
        os.kill(pid, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    environ = stage.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run([sys.executable, "-c", program], env=environ, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert all_gone(stage.mark, seconds=10)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_login_is_written_through_the_link_and_the_users_settings_are_not_touched(
    version: str, provider: Provider, tmp_path: Path
) -> None:
    own = tmp_path / "user" / ".codex"
    own.mkdir(parents=True)
    (own / "auth.json").write_text('{"OPENAI_API_KEY": "sk-before"}')
    (own / "config.toml").write_text('model = "mine"')

    async def play(stage: Any) -> None:
        lease = await stage.backend.host.pool.lease()
        await lease.worker.ask("account/login/start", {"type": "apiKey", "apiKey": "sk-after"})
        lease.release(is_good=True)
        await answered(stage, request("plain"))

    run_on_stage(RealStage(version, provider, tmp_path), play)
    assert json.loads((own / "auth.json").read_text())["OPENAI_API_KEY"] == "sk-after"
    assert (own / "config.toml").read_text() == 'model = "mine"'
    assert sorted(path.name for path in own.iterdir()) == ["auth.json", "config.toml"]


def test_models_that_codex_knows_have_the_clients_tools_and_no_others(provider: Provider, tmp_path: Path) -> None:
    """Otherwise they would run their own code tool, and the client's tools would only be in its description."""

    async def play(stage: Any) -> None:
        for model in await stage.backend.models():
            asked = request("calls", has_tools=True)
            events = await answered(stage, with_model(asked, model.id))
            assert len(calls_of(events)) == 2
        assert len(provider.requests) >= 3

    run_on_stage(RealStage(NEWEST, provider, tmp_path), play)
    for sent in provider.requests:
        assert [tool["name"] for tool in sent["tools"]] == ["get_weather"]
        assert not [item for item in sent["input"] if item["type"] == "additional_tools"]


def test_a_tool_that_is_left_out_is_reported_and_gets_another_name(provider: Provider, tmp_path: Path) -> None:
    """A model catalogue of the user may add tools that the back end has no setting for."""
    models = {"models": [_MODEL]}
    models["models"][0]["apply_patch_tool_type"] = "freeform"
    (tmp_path / "models.json").write_text(json.dumps(models))
    stage = RealStage(NEWEST, provider, tmp_path)
    stage.settings["config"] |= {"model_catalog_json": str(tmp_path / "models.json")}

    async def play(stage: Any) -> None:
        asked = request("plain", has_tools=True)
        asked = replace(asked, tools=(*asked.tools, replace(asked.tools[0], name="apply_patch")))
        told = []
        for _ in range(2):
            reply = await stage.backend.open(asked, is_verbatim=False)
            await read(reply)
            told.append([loss.where for loss in reply.losses if loss.feature == "tool.skipped"])
        assert told == [["apply_patch"], []]

    run_on_stage(stage, play)
    offered = [{tool["name"] for tool in sent["tools"] if tool["type"] == "function"} for sent in provider.requests]
    assert offered == [{"get_weather"}, {"get_weather", "client_apply_patch"}]


def test_a_thread_that_is_not_needed_any_more_leaves_no_file(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend.STORED_SECONDS", 2.0)

    async def play(stage: Any) -> None:
        asked = request("calls", has_tools=True)
        events = await answered(stage, asked)
        assert text_of(await answered(stage, with_results(asked, events))) == "It is sunny."
        sessions = stage.backend.host.home.home / "sessions"
        assert len([path for path in sessions.rglob("*") if path.is_file()]) == 2
        async with asyncio.timeout(20):
            while [path for path in sessions.rglob("*") if path.is_file()]:
                await asyncio.sleep(0.05)

    run_on_stage(RealStage(NEWEST, provider, tmp_path), play)
    assert len({sent["prompt_cache_key"] for sent in provider.requests}) == 1


def test_the_clients_cache_key_decides_the_providers(provider: Provider, tmp_path: Path) -> None:
    """Also in other conversations, at the same time, in another process and in another run; a UUID is passed as it is."""
    own = "01a1e07f-b731-7943-b42c-dd7468e6fddf"
    keys = ["mine", "mine", "mine", "mine", own, own]

    async def converse(stage: Any, number: int) -> None:
        asked = request("calls", user(f"conversation {number}"), has_tools=True)
        for rounds in range(3):
            keyed = replace(asked, extra={"responses": {"prompt_cache_key": keys[number]}})
            reply = await stage.backend.open(keyed, is_verbatim=False)
            assert reply.losses == ()
            events = await read(reply)
            check_events(events)
            assert len(calls_of(events)) == (2 if rounds == 0 else 0)
            more = replace(asked, messages=(*asked.messages, user("?")))
            asked = with_results(asked, events) if rounds == 0 else more

    async def play(stage: Any) -> None:
        await asyncio.gather(*(converse(stage, number) for number in range(len(keys))))

    seen: list[set[str]] = []
    for run in range(2):
        (folder := tmp_path / str(run)).mkdir()
        run_on_stage(RealStage(NEWEST, provider, folder, workers=2), play)
        by_client: dict[str, set[str]] = {}
        for sent in provider.requests[run * 18 :]:
            number = int(json.dumps(sent["input"]).partition("conversation ")[2][0])
            by_client.setdefault(keys[number], set()).add(sent["prompt_cache_key"])
        assert by_client[own] == {own}
        assert len(by_client["mine"]) == 1
        seen.append(by_client["mine"])
    assert len(provider.requests) == 36
    assert seen[0] == seen[1]


def test_a_cache_key_changes_nothing_else_for_the_provider(provider: Provider, tmp_path: Path) -> None:
    async def play(stage: Any) -> None:
        for extra in ({}, {"chat": {"prompt_cache_key": "mine"}}):
            await answered(stage, replace(request("plain", user("and more"), has_tools=True), extra=extra))

    run_on_stage(RealStage(NEWEST, provider, tmp_path), play)
    plain, keyed = (
        {name: value for name, value in sent.items() if name not in ("prompt_cache_key", "client_metadata")}
        for sent in provider.requests
    )
    assert _without_ids(plain) == _without_ids(keyed)


def _without_ids(value: Any) -> Any:
    """Codex gives each item an id of its own."""
    if isinstance(value, list):
        return [_without_ids(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_ids(one) for name, one in value.items() if name != "id"}
    return value


@pytest.mark.parametrize("version", VERSIONS)
def test_tools_of_codex_that_the_owner_has_switched_on_are_offered(
    version: str, provider: Provider, tmp_path: Path
) -> None:
    async def play(stage: Any) -> None:
        asked = request("searches", has_tools=version == NEWEST)
        own = [replace(tool, name="view_image") for tool in asked.tools]
        events = await answered(stage, replace(asked, tools=(*asked.tools, *own)))
        check_events(events)
        assert text_of(events) == "Found it."  # the provider's search is not a call of the client

    run_on_stage(RealStage(version, provider, tmp_path, built_in_tools=("web_search", "view_image")), play)
    names = [str(tool.get("name", tool["type"])) for tool in provider.requests[0]["tools"]]
    assert {"web_search", "view_image"} <= set(names)
    if version == NEWEST:  # the client's tool of the same name has another one
        assert {"get_weather", "client_view_image"} <= set(names)
    assert len(names) == len(set(names))


def test_a_model_that_prompts_a_person_is_declined_and_it_is_reported(provider: Provider, tmp_path: Path) -> None:
    async def play(stage: Any) -> None:
        events = await answered(stage, request("asks"))
        assert text_of(events) == "It is sunny."
        lost = [event.note for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]
        assert ("call.declined", "item/tool/requestUserInput") in [(loss.feature, loss.where) for loss in lost]

    stage = RealStage(NEWEST, provider, tmp_path)
    stage.settings["config"] |= {
        "tools": {"experimental_request_user_input": {"enabled": True}},
        "features": {"default_mode_request_user_input": True},
    }
    run_on_stage(stage, play)


def with_model(asked: Any, model: str) -> Any:
    return type(asked)(model=model, messages=asked.messages, tools=asked.tools)


def test_one_that_listens_on_a_websocket_answers_as_one_of_ours(provider: Provider, tmp_path: Path) -> None:
    stage = RealStage(NEWEST, provider, tmp_path)
    home = tmp_path / "user" / ".codex"
    home.mkdir(parents=True)
    (home / "config.toml").write_text(toml(stage.settings["config"]))
    with subprocess.Popen(
        [str(codex(NEWEST)), "app-server", "--listen", "ws://127.0.0.1:0"],
        env=stage.environ,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as listening:
        try:
            assert listening.stderr is not None
            address = next(word for line in listening.stderr for word in line.split() if word.startswith("ws://127"))
            stage = RealStage(NEWEST, provider, tmp_path, command=(address,), config={})

            async def play(stage: Any) -> None:
                asked = request("calls", has_tools=True)
                events = await answered(stage, asked)
                assert len(calls_of(events)) == 2
                assert text_of(await answered(stage, with_results(asked, events))) == "It is sunny."

            run_on_stage(stage, play)
        finally:
            os.killpg(listening.pid, signal.SIGKILL)
    assert [tool["name"] for tool in provider.requests[0]["tools"]] == ["get_weather"]
