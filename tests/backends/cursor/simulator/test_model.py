from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import Client, blobs_of, opening, tool
from tests.backends.cursor.simulator.single_run import TRANSPORTS, run_once
from tests.programs.stage import calling, final_text, prompt, reading
from toolwire.backends.cursor.simulator.model import DefaultModel, demo, prompted

pytestmark = pytest.mark.slow  # starts a server

TOOLS = [tool("client_read"), tool("write_it")]
TASK = prompt(
    reading("read", arguments={"path": "a"}), calling("write_it", arguments={"text": "{{result:0}}"}), final_text()
)


def answering(client: Client) -> None:
    client.on_call = lambda call: "the word is SECRET-0a1b" if call.name == "client_read" else "written"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_script_in_the_prompt_plays_on_one_parked_run(transport: str) -> None:
    client, journal = run_once(
        transport, model=prompted(), first=opening(TASK, tools=TOOLS), tools=TOOLS, prepare=answering
    )
    assert client.text == "I will read it.ALLDONE SECRET-0a1b"
    assert [(call.name, call.args) for call in journal.runs[0].calls] == [
        ("client_read", {"path": "a"}),
        ("write_it", {"text": "the word is SECRET-0a1b"}),
    ]
    assert (len(journal.runs), journal.offences) == (1, [])


def test_a_new_run_goes_on_from_its_history() -> None:
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "client_read", "args": {"path": "a"}}
    answer = [{"type": "text", "text": "I will read it."}, call]
    result = {"type": "tool-result", "toolCallId": "c", "toolName": "client_read", "result": "SECRET-9"}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": TASK}]},
        {"role": "assistant", "content": answer},
        {"role": "tool", "id": "c", "content": [result]},
    ]
    blobs = blobs_of(history)
    client, journal = run_once(
        model=DefaultModel(),
        first=opening(roots=blobs, action={"resume_action": {}}, tools=TOOLS),
        tools=TOOLS,
        prepare=lambda c: c.blobs.update(blobs),
    )
    assert client.text == "ALLDONE SECRET-9"
    assert [call.name for call in journal.runs[0].calls] == ["write_it"]


def test_a_history_that_was_altered_is_reported() -> None:
    history = [{"role": "user", "content": TASK}, {"role": "assistant", "content": "something else"}]
    blobs = blobs_of(history)
    client, _ = run_once(
        model=prompted(), first=opening(roots=blobs, tools=TOOLS), tools=TOOLS, prepare=lambda c: c.blobs.update(blobs)
    )
    assert client.text.startswith("HISTORY-ALTERED")


def test_the_demo_model_calls_the_tool_that_fits_and_repeats_its_result() -> None:
    schema = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
    weather = [tool("get_weather", schema, description="The weather of a city")]
    client, journal = run_once(
        model=demo(), first=opening("What is the weather of the city Oslo?", tools=weather), tools=weather
    )
    (call,) = journal.runs[0].calls
    assert (call.name, list(call.args)) == ("get_weather", ["city"])
    assert "get_weather said: fine" in client.text


def test_without_tools_the_demo_model_talks() -> None:
    client, _ = run_once(model=DefaultModel(), first=opening("hi"), tools=[])
    assert "You said" in client.text


def test_what_a_model_cannot_do_is_an_error_of_the_run() -> None:
    broken = base64.b64encode(b"{").decode()
    client, _ = run_once(model=DefaultModel(), first=opening(f"[[script:{broken}]]"), tools=[])
    assert client.error["code"] == "internal"
