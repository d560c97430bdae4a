from __future__ import annotations

import json
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import Client
from tests.backends.cursor.simulator.single_run import QUICK, TRANSPORTS, call_and_report, run_once
from toolwire.backends.cursor.simulator.script import (
    AskPerson,
    Checkpoint,
    ClientResult,
    Disconnect,
    EndTurn,
    Fail,
    MakeCall,
    MakeCalls,
    Native,
    Pause,
    Raw,
    Say,
    SetBlob,
    Stall,
    Think,
    TurnUsage,
    With,
    play,
)
from toolwire.backends.cursor.simulator.settings import Settings, SimulatorFaults

pytestmark = pytest.mark.slow  # starts a server

TWO = MakeCalls((MakeCall("look", {"n": 1}, "c1"), MakeCall("look", {"n": 2}, "c2")))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("count", [2, 3])
def test_several_calls_are_out_before_the_first_result(transport: str, count: int) -> None:
    client, journal = run_once(transport, faults=SimulatorFaults(calls=count))
    first = client.kinds.index("mcp_args")
    assert client.kinds[first : first + count] == ["mcp_args"] * count
    assert len({call.tool_call_id for call in client.calls}) == count
    assert list(journal.runs[0].results.values()) == [1] * count
    assert client.text.endswith("It said fine.")


@pytest.mark.parametrize("is_announced", [True, False])
def test_the_second_call_may_be_late(is_announced: bool) -> None:
    step = MakeCalls(TWO.calls, 0.1, is_announced)
    client, journal = run_once(model=play([step], Say("{{result:0}} {{result:1}}")))
    one, two = journal.runs[0].calls
    assert two.sent_at - one.sent_at >= 0.09
    kinds = [kind for kind in client.kinds if kind in ("tool_call_started", "mcp_args")]
    announced = ["tool_call_started", "tool_call_started", "mcp_args", "mcp_args"]
    assert kinds == (announced if is_announced else ["tool_call_started", "mcp_args"] * 2)
    assert client.text == "fine fine"


def test_a_late_call_by_the_switch() -> None:
    _, journal = run_once(faults=SimulatorFaults(calls=2, late=0.08))
    one, two = journal.runs[0].calls
    assert two.sent_at - one.sent_at >= 0.07


def test_an_id_may_have_two_lines_and_a_name_a_prefix() -> None:
    client, _ = run_once(
        model=call_and_report(call_id="c1"), faults=SimulatorFaults(newline_ids=True, prefixed_names=True)
    )
    (call,) = client.calls
    assert call.tool_call_id.partition("\n")[:2] == ("c1", "\n")
    assert (call.name, call.tool_name) == ("mcp_tw_look", "")


def test_a_call_may_come_unannounced_and_a_tool_may_not_be_offered() -> None:
    client, _ = run_once(model=play([MakeCall("nothing", announce=False)], Say("ok")))
    assert "tool_call_started" not in client.kinds
    assert client.calls[0].name == "nothing"


def test_an_exec_may_be_sent_twice() -> None:
    client, journal = run_once(faults=SimulatorFaults(repeat_exec=True))
    assert client.kinds.count("mcp_args") == 2
    assert journal.runs[0].calls[0].answers == 2
    assert "result 2 for the exec" in journal.offences[0]


def test_native_execs_come_whatever_is_allowed() -> None:
    client, journal = run_once(faults=SimulatorFaults(native="read"), x_cursor_agent_allowed_tools="mcp_tool_call")
    assert "read_args" in client.kinds
    assert [(record.kind, record.result) for record in journal.runs[0].execs if record.kind == "read"] == [
        ("read", "rejected")
    ]


def test_what_a_step_brings_back_goes_into_the_model() -> None:
    brought: list[list[ClientResult]] = []

    class Curious:
        def start(self, seen: Any) -> Any:
            brought.append((yield Native("shell_stream", {"command": "ls"})))
            brought.append((yield Native("shell", {"command": "ls"})))
            brought.append((yield AskPerson("web_fetch")))
            brought.append((yield Say("x")))
            brought.append((yield TWO))

    run_once(model=Curious(), prepare=_answering)
    stream, shell, query, answer, two = brought
    assert (stream[0].kind, stream[0].text) == ("stdout", "out")
    assert (shell[0].kind, shell[0].text, shell[0].is_error) == ("rejected", "no", True)
    assert query[0].kind == "web_fetch_request_response"
    assert answer == []
    assert [(result.call_id, result.text) for result in two] == [("c1", "n=1.0"), ("c2", "n=2.0")]


def _answering(client: Client) -> None:
    client.on_call = lambda call: f"n={call.args['n'].number_value}"


@pytest.mark.parametrize(
    "kind", ["web_search", "ask_question", "switch_mode", "create_plan", "web_fetch", "replace_env"]
)
def test_questions(kind: str) -> None:
    client, journal = run_once(faults=SimulatorFaults(query=kind))
    assert client.kinds.count("interaction_query") == 1
    assert (client.error, journal.offences) == ({}, [])


def test_text_may_come_as_a_blob_alone() -> None:
    client, _ = run_once(model=play(Say("hidden")), faults=SimulatorFaults(text_as_blob=True))
    assert (client.text, client.end) == ("", {})
    assert [json.loads(blob) for blob in client.blobs.values()] == [
        {"role": "assistant", "content": [{"type": "text", "text": "hidden"}]}
    ]


def test_thinking_may_come_in_the_text() -> None:
    client, _ = run_once(model=play([Think("hm"), Say("ok")]), faults=SimulatorFaults(think_tags=True))
    assert (client.text, client.thought) == ("<think>hm</think>ok", "")


def test_the_small_steps() -> None:
    steps = [
        Pause(0.001),
        SetBlob({"role": "user", "content": "x"}),
        Checkpoint(7, 8),
        Raw("0a00"),
        Say("a", is_notice=True),
    ]
    client, _ = run_once(model=play([*steps, EndTurn(TurnUsage(1, 2, 3, 4, 5)), Say("never")]))
    assert client.kinds[1:4] == ["set_blob_args", "conversation_checkpoint_update", "interaction_update"]
    ended = client.updates("turn_ended")[0].turn_ended
    assert (ended.input_tokens, ended.output_tokens, ended.reasoning_tokens) == (1, 2, 5)
    assert client.text == "a"
    assert client.updates("text_delta")[0].text_delta.is_server_notice


def test_a_model_may_fail_drop_and_change_the_faults() -> None:
    assert run_once(model=play(Fail("rate_limited")))[0].error["code"] == "resource_exhausted"
    assert run_once(model=play(Fail(code="internal", message="boo")))[0].error == {"code": "internal", "message": "boo"}
    assert run_once(model=play([Say("a"), Disconnect("reset")]))[0].how == "reset"
    assert run_once(model=play([With(SimulatorFaults(at={"text": "goaway"})), Say("a")]))[0].how == "goaway"
    assert run_once(model=play([Native("nothing")]))[0].error["code"] == "internal"


def test_a_stalled_model_is_ended_by_the_client() -> None:
    with pytest.raises(TimeoutError):
        _impatient()


def _impatient() -> None:
    import tests.backends.cursor.simulator.client as module

    before, module.SECONDS = module.SECONDS, 0.1
    try:
        run_once(model=play([Stall(is_silent=True)]))
    finally:
        module.SECONDS = before


def test_a_precheck_is_a_switch() -> None:
    client, _ = run_once(settings=Settings(heartbeat=QUICK.heartbeat, has_precheck=False))
    assert "mcp_allowlist_precheck_args" not in client.kinds
