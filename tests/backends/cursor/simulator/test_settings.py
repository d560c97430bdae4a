from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import opening
from tests.backends.cursor.simulator.single_run import TRANSPORTS, call_and_report, run_once
from toolwire.backends.cursor.simulator.script import Pause, Say, play
from toolwire.backends.cursor.simulator.settings import ERRORS, MODELS, Settings, SimulatorFaults, parse
from toolwire.backends.cursor.wire import agent
from toolwire.errors import BadRequest


def test_every_model_may_be_known() -> None:
    first = opening(requested_model={"model_id": "anything"})
    for knows, code in ((True, None), (False, "not_found")):
        client, _ = run_once(first=first, tools=[], model=play(Say("ok")), settings=Settings(knows_every_model=knows))
        assert client.error.get("code") == code


def test_the_models_are_usable_as_they_are() -> None:
    for name in MODELS:
        client, _ = run_once(first=opening(requested_model={"model_id": name}), tools=[], model=play(Say("ok")))
        assert client.error == {}


def test_heartbeats_come_as_often_as_set() -> None:
    client, _ = run_once(model=play([Pause(0.2), Say("ok")]), settings=Settings(heartbeat=0.05))
    assert 1 <= client.kinds.count("heartbeat") <= 5


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_comes_in_the_end_frame(name: str) -> None:
    client, journal = run_once(faults=SimulatorFaults(at={"open": f"error:{name}"}))
    known = ERRORS[name]
    assert (client.status, client.error["code"], client.messages) == (200, known.code, [])
    assert journal.runs[0].state == "refused"
    if not known.name:
        assert "details" not in client.error
        return
    (detail,) = client.error["details"]
    encoded = detail["value"]
    assert "=" not in encoded
    decoded: Any = agent.ErrorDetails.FromString(base64.b64decode(encoded + "=" * (-len(encoded) % 4)))
    number = agent.ErrorDetails_Error.Value(known.name)
    assert (decoded.error, decoded.details.title) == (number, detail["debug"]["details"]["title"])
    assert detail["debug"]["error"] == known.name


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_error_may_come_after_text(transport: str) -> None:
    client, _ = run_once(transport, faults=SimulatorFaults(at={"text": "error:high_load"}))
    assert client.text == "One "
    assert client.error["details"][0]["debug"]["error"] == "ERROR_RESOURCE_EXHAUSTED"


def test_faults_of_a_command_line() -> None:
    written = ["gzip", "calls=3", "late=0.2", "drop", "stall=parked", "error:bare=open", "native=read", "status=503"]
    assert parse(written) == SimulatorFaults(
        gzip=True,
        calls=3,
        late=0.2,
        native="read",
        status=503,
        at={"text": "drop", "parked": "stall", "open": "error:bare"},
    )
    assert parse([]) == SimulatorFaults()


@pytest.mark.parametrize("written", ["nonsense", "drop=nowhere", "error:nothing", "calls=x", "at"])
def test_a_fault_that_there_is_not(written: str) -> None:
    with pytest.raises(BadRequest, match=r"found the fault .* expected one of|wrong value"):
        parse([written])


def test_a_poisoned_conversation_stays_poisoned() -> None:
    client, _ = run_once(faults=[SimulatorFaults(poison=True)])
    assert client.error == {"code": "resource_exhausted", "message": "Error"}


def test_faults_as_a_list_are_for_one_run_each() -> None:
    client, _ = run_once(faults=[SimulatorFaults()], model=call_and_report())
    assert client.error == {}
