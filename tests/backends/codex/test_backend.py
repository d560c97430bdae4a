"""The Codex back end on app-servers that play their part: answers, failures, clients that leave, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.backends.codex.asking import (
    Stage,
    answered,
    calls_of,
    played,
    read,
    request,
    text_of,
    user,
    with_results,
)
from tests.backends.codex.listening import listening
from tests.backends.codex.processes import all_gone
from tests.backends.codex.starting import journal
from tests.backends.event_contract import check_events
from tests.telemetry.tracing import tracing
from toolwire.backends.base import ToolsUnsupported
from toolwire.errors import ConfigError, UpstreamError
from toolwire.events import Failed, Finished, Noted
from toolwire.telemetry import wire_trace
from toolwire.types import Loss, Message, Sampling, Text, ToolChoice

pytestmark = pytest.mark.slow


def test_a_plain_answer_and_what_codex_was_asked_for_it(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        reply = await stage.backend.open(request("plain"), is_verbatim=False)
        assert reply.how == "Codex 0.166.0, tier replay, with Codex's own instructions"
        events = await read(reply)
        check_events(events)
        assert text_of(events).startswith("Hello thread-")
        finished = events[-1]
        assert isinstance(finished, Finished)
        assert finished.usage is not None
        assert (finished.usage.input, finished.usage.output) == (5, 4)
        await stage.until_idle()

    stage = Stage(tmp_path)
    played(stage, play)
    assert stage.methods == [
        "initialize",
        "initialized",
        "thread/start",
        "thread/inject_items",
        "turn/start",
    ]
    [started] = stage.sent("thread/start")
    assert (started["approvalPolicy"], started["sandbox"], started["ephemeral"]) == ("never", "read-only", False)
    assert started["cwd"].startswith(str(tmp_path / "cache"))
    assert "baseInstructions" not in started
    assert stage.sent("turn/start")[0]["input"] == []


def test_what_is_asked_for_base_instructions_is_not_a_setting_of_codex(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await answered(stage, request("plain"))
        home = stage.backend.host.home
        assert home is not None
        text = (home.home / "config.toml").read_text()
        assert "base_instructions" not in text
        assert 'model_verbosity = "low"' in text

    stage = Stage(tmp_path, config={"base_instructions": "Be a model.", "model_verbosity": "low"})
    played(stage, play)
    assert stage.sent("thread/start")[0]["baseInstructions"] == "Be a model."


@pytest.mark.parametrize("tier", ["replay", "held"])
def test_a_tool_that_codex_left_out_is_reported_and_has_another_name_from_then_on(tmp_path: Path, tier: str) -> None:
    async def play(stage: Stage) -> None:
        replies = []
        for _ in range(2):
            replies.append(await stage.backend.open(request("plain", has_tools=True), is_verbatim=False))
            await read(replies[-1])
        skipped = [[loss.where for loss in reply.losses if loss.feature == "tool.skipped"] for reply in replies]
        assert skipped == [["get_weather"], []]

    stage = Stage(tmp_path, "--skips", "get_weather", tier=tier, workers=1)
    played(stage, play)
    offered = [[tool["name"] for tool in params["dynamicTools"]] for params in stage.sent("thread/start")]
    assert offered == [["get_weather"], ["client_get_weather"]]


@pytest.mark.parametrize(
    ("config", "name"), [({}, "view_image"), ({"features": {"view_image": True}}, "client_view_image")]
)
def test_names_of_built_in_tools_are_changed_where_the_owner_may_have_switched_them_on(
    tmp_path: Path, config: dict[str, Any], name: str
) -> None:
    async def play(stage: Stage) -> None:
        asked = request("plain", has_tools=True)
        await answered(stage, replace(asked, tools=(replace(asked.tools[0], name="view_image"),)))

    stage = Stage(tmp_path, config=config)
    played(stage, play)
    assert [tool["name"] for tool in stage.sent("thread/start")[0]["dynamicTools"]] == [name]


@pytest.mark.parametrize(
    ("word", "method"),
    [
        ("input", "item/tool/requestUserInput"),
        ("approve", "item/commandExecution/requestApproval"),
        ("ask", "toolwire/never/heard/of"),
    ],
)
def test_what_codex_asks_a_person_is_declined_and_reported(tmp_path: Path, word: str, method: str) -> None:
    async def play(stage: Stage) -> None:
        events = await answered(stage, request(word))
        check_events(events)
        assert text_of(events).startswith("Hello")
        lost = [event.note for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]
        assert [(loss.feature, loss.where) for loss in lost] == [("call.declined", method)]

    played(Stage(tmp_path), play)


def test_every_message_is_traced_with_the_request_it_belongs_to(tmp_path: Path) -> None:
    async def asked(stage: Stage, name: str, word: str) -> None:
        wire_trace.enter(name)
        await answered(stage, request(word, user(f"SECRET WORDS DO={word}"), has_tools=True))

    async def play(stage: Stage) -> None:
        await asyncio.gather(*(asyncio.create_task(asked(stage, name, "plain")) for name in ("req_1", "req_2")))
        await stage.until_idle()

    with tracing(tmp_path / "trace") as traced:
        played(Stage(tmp_path, workers=1), play)
    for name in ("req_1", "req_2"):
        kinds = [words.split(" ")[3] for asker, words in traced.lines if asker == name]
        sent = ["thread/start", "thread/inject_items", "turn/start"]
        assert [kind for kind in kinds if kind in sent] == sent
        assert {"turn/started", "item/agentMessage/delta", "turn/completed"} <= set(kinds)
    assert "wire codex -> initialize" in traced.words[0]
    assert any("an answer to thread/start" in words for words in traced.words)
    assert not [words for words in traced.words if "SECRET" in words]
    assert "SECRET WORDS" in (tmp_path / "trace").read_text()


def test_calls_end_the_answer_and_the_turn(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        asked = request("calls", has_tools=True)
        events = await answered(stage, asked)
        check_events(events)
        assert [(call.id, call.raw) for call in calls_of(events)] == [
            ("call_0", '{"city": "Paris"}'),
            ("call_1", '{"city": "Rome"}'),
        ]
        await stage.until_idle()
        assert stage.methods[-1] == "turn/interrupt"
        again = with_results(asked, events)
        await answered(stage, again)
        types = [item["type"] for item in stage.sent("thread/inject_items")[1]["items"]]
        assert types == ["function_call", "function_call", "function_call_output", "function_call_output"]

    stage = Stage(tmp_path)
    played(stage, play)
    assert stage.sent("thread/start")[0]["dynamicTools"][0]["name"] == "get_weather"


@pytest.mark.parametrize(("word", "status"), [("e500", 500), ("e429", 429), ("e401", 401), ("e400", 400)])
def test_a_failure_before_the_first_word_is_raised_with_its_status(tmp_path: Path, word: str, status: int) -> None:
    async def play(stage: Stage) -> None:
        with pytest.raises(UpstreamError) as caught:
            await stage.backend.open(request(word), is_verbatim=False)
        assert caught.value.status == status
        await stage.until_idle()

    played(Stage(tmp_path), play)


@pytest.mark.parametrize(("word", "tries"), [("e500", 3), ("e429", 3), ("e401", 1), ("e400", 1)])
def test_what_may_pass_is_tried_again_and_nothing_else(
    tmp_path: Path, word: str, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend._pause", lambda error, attempt: 0.0)

    async def play(stage: Stage) -> None:
        with pytest.raises(UpstreamError):
            await stage.backend.open(request(word), is_verbatim=False)

    stage = Stage(tmp_path, retries=2)
    played(stage, play)
    assert stage.methods.count("turn/start") == tries


def test_a_provider_that_cannot_be_reached_is_an_error_soon_and_the_turn_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend._pause", lambda error, attempt: 0.0)

    async def play(stage: Stage) -> None:
        async with asyncio.timeout(5):
            with pytest.raises(UpstreamError, match="cannot be reached: Connection failed") as caught:
                await stage.backend.open(request("offline"), is_verbatim=False)
        assert (caught.value.status, caught.value.code) == (502, "upstream_unreachable")
        await stage.until_heard("turn/interrupt", 3)

    stage = Stage(tmp_path, retries=2)
    played(stage, play)
    assert stage.methods.count("turn/start") == 3


def test_a_login_is_found_without_a_new_gateway_and_only_a_new_one_costs_a_process(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        for _ in range(2):
            with pytest.raises(UpstreamError) as caught:
                await stage.backend.open(request("login"), is_verbatim=False)
            assert caught.value.status == 401
        assert stage.methods.count("initialize") == 1
        own = stage.folder / "user" / ".codex"
        own.mkdir(parents=True)
        (own / "auth.json").write_text("{}")
        assert text_of(await answered(stage, request("login"))).startswith("Hello")
        with pytest.raises(UpstreamError):
            await stage.backend.open(request("e401"), is_verbatim=False)
        assert stage.methods.count("initialize") == 2

    played(Stage(tmp_path, workers=1), play)


def test_one_that_dies_in_the_middle_fails_its_turns_and_no_others(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        replies = [await stage.backend.open(request("slow"), is_verbatim=False) for _ in range(8)]
        victim, other = stage.backend.host.pool.workers
        os.kill(victim.channel.pid, signal.SIGKILL)
        reading = [asyncio.create_task(read(reply)) for reply in replies]
        async with asyncio.timeout(5):
            while len(done := [task for task in reading if task.done()]) < 4:
                await asyncio.sleep(0.01)
        waiting = [task for task in reading if not task.done()]
        errors = [events[-1].error for events in map(asyncio.Task.result, done) if isinstance(events[-1], Failed)]
        assert len(done) == len(errors) == 4
        assert {(error.status, error.code) for error in errors} == {(502, "codex_stopped")}
        assert "was ended by signal 9" in errors[0].message
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert other.is_alive
        assert text_of(await answered(stage, request("plain")))

    played(Stage(tmp_path), play)


def test_one_that_dies_before_the_first_word_is_replaced_without_a_word(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await answered(stage, request("plain"))
        [worker] = stage.backend.host.pool.workers
        os.kill(worker.channel.pid, signal.SIGKILL)
        assert text_of(await answered(stage, request("plain"))).startswith("Hello")

    stage = Stage(tmp_path, workers=1, retries=2)
    played(stage, play)
    assert len({line["pid"] for line in journal(stage.journal)}) == 2


def test_fifty_at_once_over_two_workers_each_have_their_own_answer(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        answers = await asyncio.gather(*(answered(stage, request("plain", user(str(number)))) for number in range(50)))
        for events in answers:
            check_events(events)
        said = {text_of(events) for events in answers}
        assert len(said) == 50
        counts = Counter(text.split("-")[1] for text in said)
        assert len(counts) == 2
        assert min(counts.values()) >= 15
        await stage.until_idle()

    played(Stage(tmp_path), play)


def test_a_client_that_leaves_stops_the_turn(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        reply = await stage.backend.open(request("slow"), is_verbatim=False)
        async for _ in reply.events:
            break
        await reply.close()
        await stage.until_heard("turn/interrupt")
        unread = await stage.backend.open(request("slow"), is_verbatim=False)
        await unread.close()
        await stage.until_heard("turn/interrupt", 2)
        waiting = asyncio.create_task(stage.backend.open(request("silent"), is_verbatim=False))
        await stage.until_heard("turn/start", 3)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await stage.until_heard("turn/interrupt", 3)
        await stage.until_idle()

    played(Stage(tmp_path), play)


def test_a_client_that_leaves_while_the_thread_opens_leaves_no_turn_running(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await answered(stage, request("plain"))
        for pauses in range(12):
            waiting = asyncio.create_task(stage.backend.open(request("slow"), is_verbatim=False))
            for _ in range(pauses):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await stage.until_idle()

    stage = Stage(tmp_path)
    played(stage, play)
    assert stage.methods.count("turn/start") - 1 == stage.methods.count("turn/interrupt")


def test_closing_ends_turns_whose_client_waits(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        reply = await stage.backend.open(request("slow"), is_verbatim=False)
        await stage.backend.close()
        events = await read(reply)
        assert isinstance(events[-1], Failed)

    played(Stage(tmp_path), play)


def test_a_stop_sequence_ends_the_answer_and_the_turn(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        events = await answered(stage, request("slow", stop=("w3",)))
        check_events(events)
        assert text_of(events) == "w0 w1 w2 "
        finished = events[-1]
        assert isinstance(finished, Finished)
        assert finished.choices[0].stop_sequence == "w3"
        await stage.until_heard("turn/interrupt")

    played(Stage(tmp_path), play)


def test_silence_is_not_waited_for_without_end(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        with pytest.raises(UpstreamError, match="sent nothing") as caught:
            await stage.backend.open(request("silent"), is_verbatim=False)
        assert caught.value.status == 504
        await stage.until_heard("turn/interrupt")

    played(Stage(tmp_path, first_byte_timeout=0.1), play)


def test_models_are_those_of_the_owner_or_asked_for_once(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        for _ in range(3):
            [model] = await stage.backend.models()
            assert (model.id, model.owner, model.title) == ("fake-1", "codex", "Fake One")
        assert stage.methods.count("model/list") == 1

    played(Stage(tmp_path), play)
    named = Stage(tmp_path, models=("a", "b"))
    assert [model.id for model in asyncio.run(named.backend.models())] == ["a", "b"]


def test_a_turn_that_is_held_goes_on_with_the_results(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        asked = request("calls", has_tools=True)
        events = await answered(stage, asked)
        assert len(calls_of(events)) == 2
        warm = replace(with_results(asked, events), sampling=Sampling(temperature=1.0))
        reply = await stage.backend.open(warm, is_verbatim=False)
        assert [loss.feature for loss in reply.losses] == ["sampling.temperature"]
        second = await read(reply)
        check_events(second)
        assert text_of(second).startswith("Hello")
        await stage.until_idle()

    stage = Stage(tmp_path, tier="held")
    played(stage, play)
    assert stage.methods.count("thread/start") == stage.methods.count("turn/start") == 1
    assert "turn/interrupt" not in stage.methods
    answers = [line for line in journal(stage.journal) if "method" not in line]
    assert [line["result"]["contentItems"][0]["text"] for line in answers] == [
        'sunny {"city": "Paris"}',
        'sunny {"city": "Rome"}',
    ]


@pytest.mark.parametrize("change", [{"tools": ()}, {"tool_choice": ToolChoice(mode="none")}])
def test_a_turn_that_waits_makes_way_for_a_request_that_wants_text(tmp_path: Path, change: dict[str, Any]) -> None:
    """The thread that waits has tools, and would call again."""

    async def play(stage: Stage) -> None:
        asked = request("calls", has_tools=True)
        again = with_results(asked, await answered(stage, asked))
        text = Message(role="user", parts=(Text(text="DO=plain"),))
        events = await answered(stage, replace(again, messages=(*again.messages, text), **change))
        assert (text_of(events)[:5], calls_of(events)) == ("Hello", [])

    stage = Stage(tmp_path, tier="held")
    played(stage, play)
    first, second = stage.sent("thread/start")
    assert ("dynamicTools" in first, "dynamicTools" in second) == (True, False)


def test_a_held_turn_whose_conversation_was_edited_or_whose_worker_died_is_started_again(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        asked = request("calls", has_tools=True)
        events = await answered(stage, asked)
        edited = with_results(request("calls", user("and something else"), has_tools=True), events)
        assert len(calls_of(await answered(stage, edited))) == 2
        assert stage.methods.count("thread/start") == 2
        for worker in stage.backend.host.pool.workers:
            os.kill(worker.channel.pid, signal.SIGKILL)
        while any(worker.is_alive for worker in stage.backend.host.pool.workers):
            await asyncio.sleep(0.01)
        assert len(calls_of(await answered(stage, with_results(asked, events)))) == 2

    played(Stage(tmp_path, tier="held"), play)


def test_an_old_version_gets_the_history_by_resuming_and_what_it_wrote_down_is_gone(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        said = Message(role="assistant", parts=(Text(text="Yes?"),))
        assert text_of(await answered(stage, request("plain", said, user("Go on."))))
        await stage.until_idle()
        home = stage.backend.host.home
        assert home is not None
        assert not list(home.home.glob("*.jsonl"))

    stage = Stage(tmp_path, "--version", "0.89.0", tier="sentinel")
    played(stage, play)
    [resumed] = stage.sent("thread/resume")
    assert [item["role"] for item in resumed["history"]] == ["user", "assistant"]
    assert stage.sent("turn/start")[0]["input"][0]["text"] == "Go on."
    assert stage.methods[-1] == "thread/archive"


def test_what_an_old_version_wrote_down_is_gone_also_when_it_died(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        events = await answered(stage, request("die"))
        assert isinstance(events[-1], Failed)
        await stage.until_idle()
        home = stage.backend.host.home
        assert home is not None
        assert not list(home.home.glob("*.jsonl"))

    played(Stage(tmp_path, "--version", "0.89.0", tier="sentinel"), play)


def test_a_program_that_cannot_start_is_an_error_and_no_hang(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        for asked in (stage.backend.models(), stage.backend.open(request("plain"), is_verbatim=False)):
            with pytest.raises(UpstreamError, match='"codex-that-is-not-there" is not on PATH'):
                await asked

    played(Stage(tmp_path, command=("codex-that-is-not-there", "app-server")), play)


def test_the_owner_alone_hears_the_last_words_of_a_program_that_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "starts").write_text("2")

    async def play(stage: Stage) -> None:
        with pytest.raises(UpstreamError, match="ended with code 3") as told:
            await stage.backend.open(request("plain"), is_verbatim=False)
        assert "no start today" not in told.value.sentence()
        assert "fake_app_server" not in told.value.sentence()
        with pytest.raises(UpstreamError, match=r"ended with code 3\. Its last output was .no start today") as shown:
            await stage.backend.program()
        assert "fake_app_server.py" in shown.value.hint
        assert str(await stage.backend.program()) == "Codex 0.166.0, tier replay, with Codex's own instructions"

    played(Stage(tmp_path, "--starts", str(tmp_path / "starts"), workers=1), play)


def test_a_tier_that_the_version_has_not_is_the_owners_mistake(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        with pytest.raises(ConfigError, match='no tier "replay"'):
            await stage.backend.open(request("plain"), is_verbatim=False)

    played(Stage(tmp_path, "--version", "0.98.0", tier="replay"), play)


def test_an_old_version_takes_requests_without_tools_only(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        with pytest.raises(ToolsUnsupported, match=r"0\.89\.0 takes no tools"):
            await stage.backend.open(request("plain", has_tools=True), is_verbatim=False)
        reply = await stage.backend.open(request("plain"), is_verbatim=False)
        await reply.close()

    played(Stage(tmp_path, "--version", "0.89.0"), play)


def test_one_that_listens_on_a_websocket_gets_its_settings_by_thread(tmp_path: Path) -> None:
    log = tmp_path / "journal"

    async def main() -> str:
        async with listening("--journal", str(log)) as listener:
            stage = Stage(tmp_path, command=(listener.address,), config={"model_provider": "mine", "tools": {"x": 1}})
            try:
                return text_of(await answered(stage, request("plain")))
            finally:
                await stage.backend.close()

    assert asyncio.run(main()).startswith("Hello")
    [started] = [line["params"] for line in journal(log) if line.get("method") == "thread/start"]
    assert started["config"]["features.shell_tool"] is False
    assert started["config"]["tools.x"] == 1
    assert "model_provider" not in started["config"]


def test_closing_does_not_wait_for_one_that_does_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend._CLOSE_SECONDS", 0.1)

    async def play(stage: Stage) -> None:
        asking = [asyncio.create_task(stage.backend.open(request("plain"), is_verbatim=False)) for _ in range(3)]
        await stage.until_heard("thread/start")
        asking[0].cancel()  # nobody waits for it, and it waits for its thread
        async with asyncio.timeout(10):
            await stage.backend.close()
            answers = await asyncio.gather(*asking, return_exceptions=True)
        assert isinstance(answers[0], asyncio.CancelledError)
        assert all(isinstance(answer, UpstreamError) for answer in answers[1:])

    played(Stage(tmp_path, "--deaf", "thread/start", workers=1), play)


def test_one_that_hangs_ends_with_a_gateway_that_is_killed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "--stubborn")
    program = f"""
import asyncio, os, signal
from pathlib import Path
from tests.backends.codex.asking import request
from toolwire.backends.codex.backend import CodexBackend
from toolwire.config.file import BackendConfig
async def main():
    config = BackendConfig(name="codex", kind="codex", command={stage.backend.host.command!r})
    backend = CodexBackend(config, os.environ, Path({str(tmp_path)!r}) / "cache")
    await backend.open(request("slow"), is_verbatim=False)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    root = Path(__file__).parents[3]
    name, _, value = stage.mark.partition("=")
    environ = {"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": f"{root / 'src'}:{root}", name: value}
    done = subprocess.run([sys.executable, "-c", program], env=environ, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert all_gone(stage.mark, seconds=20)


def test_a_list_of_models_without_an_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend._MAX_PAGES", 10**9)
    monkeypatch.setattr("toolwire.backends.codex.backend._LIST_SECONDS", 0.2)

    async def play(stage: Stage) -> None:
        async with asyncio.timeout(5):
            with pytest.raises(UpstreamError, match="no list of its models: nothing came within 0 seconds"):
                await stage.backend.models()
        assert stage.backend.host.pool.running == 0

    played(Stage(tmp_path, "--endless"), play)
