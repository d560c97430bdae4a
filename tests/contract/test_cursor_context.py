"""The start of a run of Cursor's service, behind a running gateway: its context, configurable encodings, hosts and tokens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.contract.cursor_harness import SCHEMA, CursorStage, after, running, simulating
from tests.contract.harness import NAMES, HistoryEntry, answered
from tests.server.harness import ask
from toolwire.backends.cursor.simulator.script import MakeCall, Native, Say, play
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import TOKEN, Settings
from toolwire.backends.cursor.wire.values import from_value
from toolwire.config.secret import Secret

pytestmark = pytest.mark.slow

STRICT = Settings(heartbeat=0.5, needs_context=True)
MODEL = play([Say("Let me look. "), MakeCall("look", {"city": "Rome"})], [Say("Sunny.")])
BOTH = pytest.mark.parametrize("transport", ["run", "sse"])


def task(stage: CursorStage, dialect: str = "chat", *steps: HistoryEntry) -> str:
    """A call, its result, and the text of the answer to that."""
    steps = steps or (HistoryEntry("user", "the weather, please"),)
    [call] = stage.calls(answered(dialect, stage.ask(*steps, dialect=dialect)))
    return stage.text(answered(dialect, stage.ask(*after(steps, [call], "clear"), dialect=dialect)))


def context_of(run: Any) -> Any:
    action = run.request.action
    return getattr(action, action.WhichOneof("action")).request_context


@BOTH
@pytest.mark.parametrize("park", [0, 600])
@pytest.mark.parametrize("results", ["message", "resume"])
def test_a_strict_service_gets_the_context_with_the_first_message(transport: str, park: int, results: Any) -> None:
    with running(MODEL, settings=STRICT, transport=transport, park_seconds=park, results=results) as stage:
        assert task(stage) == "Sunny."
        assert len(stage.runs) == (1 if park else 2)
        for run in stage.runs:
            context = context_of(run)
            assert context.env.os_version.split()[0] == os.uname().sysname.lower()
            assert context.env.shell
            assert context.env.time_zone
            assert list(context.env.workspace_paths) == [os.getcwd()]
            assert context.env_info_complete
            assert [tool.name for tool in context.tools] == ["look"]
            assert not context.git_repos
            assert run.offences == []
        if not park:
            assert stage.runs[1].action == {"message": "user_message_action", "resume": "resume_action"}[results]


@pytest.mark.parametrize("dialect", NAMES)
def test_the_folder_is_the_one_that_the_client_names(dialect: str, tmp_path: Path) -> None:
    with running(MODEL, settings=STRICT, workspace=str(tmp_path)) as stage:
        system = HistoryEntry("system", "You are an agent.\nWorking directory: /home/me/project\nBe kind.")
        steps = (
            (HistoryEntry("user", f"hi {system.text}"),)
            if dialect == "messages"
            else (system, HistoryEntry("user", "hi"))
        )
        assert task(stage, dialect, *steps) == "Sunny."
        assert list(context_of(stage.runs[0]).env.workspace_paths) == ["/home/me/project"]


def test_local_tools_describe_the_repository_in_the_context(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/topic\n")
    (tmp_path / "note.txt").write_text("plum")
    model = play([Native("read", {"path": "note.txt"}), Say("Read.")])
    with running(model, settings=STRICT, workspace=str(tmp_path), local_tools=("read",)) as stage:
        assert stage.text(stage.chat("Working directory: /elsewhere")) == "Read."
        context = context_of(stage.runs[0])
        assert list(context.env.workspace_paths) == [str(tmp_path)]
        assert [(repository.path, repository.branch_name) for repository in context.git_repos] == [
            (str(tmp_path), "topic")
        ]


@BOTH
def test_the_context_can_be_sent_only_on_request(transport: str) -> None:
    with running(MODEL, transport=transport, request_context="asked") as stage:
        assert task(stage) == "Sunny."
        assert not context_of(stage.runs[0]).ListFields()
    with running(MODEL, settings=STRICT, transport=transport, request_context="asked") as stage:
        answer = stage.ask(HistoryEntry("user", "hi"), stream=False)
        assert answer.status == 400
        assert "Request context is required" in answer.json["error"]["message"]


@pytest.mark.parametrize("schemas", ["value", "json", "both"])
def test_the_schema_encoding_is_configurable(schemas: Any) -> None:
    with running(MODEL, tool_schemas=schemas) as stage:
        assert task(stage) == "Sunny."
        [tool] = stage.runs[0].request.mcp_tools.mcp_tools
        assert tool.HasField("input_schema") == (schemas != "json")
        assert tool.HasField("input_schema_json") == (schemas != "value")
        if schemas != "json":
            assert from_value(tool.input_schema) == SCHEMA


@BOTH
def test_runs_may_use_another_host(transport: str) -> None:
    """Models are listed at one host, runs go to the other."""
    with (
        simulating(Simulator(model=MODEL, settings=Settings(heartbeat=0.5))) as second,
        running(MODEL, transport=transport, agent_url=second.url) as stage,
    ):
        assert task(stage) == "Sunny."
        listed = ask(stage.server.port, "GET", "/v1/models").json["data"]
        assert "cursor/composer-2" in [model["id"] for model in listed]
        assert stage.runs == []
        assert [run.transport for run in second.journal.runs] == [transport]


@BOTH
def test_a_rejected_token_is_read_again_from_its_file(transport: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("expired")
    file.chmod(0o600)
    with running(MODEL, transport=transport, token=Secret("expired", file)) as stage:
        answer = stage.ask(HistoryEntry("user", "hi"), stream=False)
        assert answer.status == 401
        file.write_text(TOKEN)
        assert task(stage) == "Sunny."
