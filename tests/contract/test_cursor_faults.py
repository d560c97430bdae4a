"""Every fault of the Cursor simulator ends in a correct answer or a correct error, in time, and no call runs twice.

The tables of the simulator are walked over, so that a fault which is added there is missed here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from tests.backends.cursor.stage import (
    QUICK,
    TRANSPORTS,
    Stage,
    calls_of,
    failure,
    next_request,
    on_stage,
    request,
    text_in,
    text_of,
)
from toolwire.backends.cursor.simulator.script import MakeCall, Say, Think, play
from toolwire.backends.cursor.simulator.settings import ERRORS, FAILURES, PLACES, Settings, SimulatorFaults
from toolwire.backends.cursor.wire import agent
from toolwire.errors import UpstreamError
from toolwire.events import Failed, FoldedAnswer, fold

BEFORE, AFTER = "Let me look around. ", "It is sunny there."
MODEL = play([Say(BEFORE), MakeCall("look", {"city": "Rome"})], [Say(AFTER)])
# Where nothing is waited for, a busy machine must not be taken for a silent server.
PATIENT = replace(QUICK, first=20.0, idle=20.0, silent=20.0)
HASTY = replace(QUICK, first=1.2, idle=1.2, silent=0.9, heartbeats=4)
PARKED = Settings(heartbeat=0.1, parked_seconds=0.2)
PLAIN = [name for name in FAILURES if name != "error:NAME"]
SLOW = ("stall", "silence")
# What a client is told of a trouble, and whether it may ask again where nothing was seen.
TOLD = {
    "stall": (504, "upstream_timeout", False),
    "silence": (504, "upstream_timeout", True),
    "drop": (502, "upstream_cut", True),
    "close": (502, "upstream_cut", True),
    "reset": (502, "upstream_cut", True),
    "goaway": (502, "upstream_cut", True),
    "half_frame": (502, "upstream_cut", True),
    "huge_frame": (502, "upstream_garbage", False),
    "junk_frame": (502, "upstream_garbage", False),
}
REFUSED = {
    "unauthorized": (401, "authentication_failed", False),
    "not_logged_in": (401, "authentication_failed", False),
    "token_expired": (401, "authentication_failed", False),
    "update_required": (426, "client_outdated", False),
    "outdated_client": (426, "client_outdated", False),
    "rate_limited": (429, "rate_limited", True),
    "rate_limited_changeable": (429, "rate_limited", True),
    "free_rate_limit": (429, "rate_limited", False),
    "pro_rate_limit": (429, "rate_limited", False),
    "free_usage_limit": (429, "insufficient_quota", False),
    "pro_usage_limit": (429, "insufficient_quota", False),
    "generic_limit": (429, "rate_limited", True),
    "high_load": (429, "rate_limited", True),
    "pricing_required": (429, "insufficient_quota", False),
    "slow_pool": (429, "rate_limited", True),
    "bad_model": (404, "model_not_found", False),
    "model_blocked": (403, "model_blocked", False),
    "max_mode_required": (400, "max_mode_required", False),
    "unsupported_region": (403, "unsupported_region", False),
    "too_long": (400, "context_length_exceeded", False),
    "bare": (502, "unexplained_refusal", True),
    "internal": (502, "upstream_error", True),
    "unavailable": (503, "overloaded", True),
    "permission_denied": (403, "permission_denied", False),
    "canceled": (502, "upstream_cut", False),
    "failed_precondition": (400, "upstream_error", False),
}
STATUSES = {
    401: (401, "authentication_failed", False),
    403: (401, "authentication_failed", False),
    404: (502, "upstream_refused", False),
    415: (502, "upstream_refused", False),
    429: (429, "rate_limited", True),
    464: (502, "http2_required", False),
    500: (500, "upstream_error", True),
    503: (503, "overloaded", True),
}

ONCE = pytest.mark.parametrize("transport", ["run", pytest.param("sse", marks=pytest.mark.slow)])


class Outcome(NamedTuple):
    """What a conversation of two requests came to: (status, code, retryable) where it failed."""

    texts: list[str]
    error: tuple[int, str, bool] | None
    runs: int
    executions: int  # results that the simulator got, for the call that it made
    seconds: float


def run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def outcome(transport: str, faults: SimulatorFaults, retries: int = 0) -> Outcome:
    began = time.monotonic()
    limits = HASTY if set(faults.at.values()) & set(SLOW) else PATIENT
    fields: dict[str, Any] = {"limits": limits, "settings": PARKED, "transport": transport, "retries": retries}
    async with on_stage(MODEL, faults=[faults], is_alone=False, **fields) as stage:
        texts: list[str] = []
        error: tuple[int, str, bool] | None = None
        current = request("hi")
        try:
            for _ in range(2):
                events = await stage.events(current)
                texts.append(text_in(events))
                if isinstance(events[-1], Failed):
                    raise events[-1].error
                if not calls_of(fold(events)):
                    break
                current = next_request(current, fold(events))
        except UpstreamError as raised:
            error = (raised.status, raised.code, raised.retryable)
        runs = stage.runs
        executions = sum(call.answers for run in runs for call in run.calls)
        return Outcome(texts, error, len(runs), executions, time.monotonic() - began)


async def outcomes(cases: dict[str, SimulatorFaults], transport: str, retries: int = 0) -> dict[str, Outcome]:
    """All at once: most of the time nothing happens."""
    found = await asyncio.gather(*(outcome(transport, faults, retries) for faults in cases.values()))
    return dict(zip(cases, found, strict=True))


def at(place: str, *troubles: str) -> dict[str, SimulatorFaults]:
    return {trouble: SimulatorFaults(at={place: trouble}) for trouble in troubles}


def test_every_fault_of_the_simulator_is_in_these_tables() -> None:
    assert set(TOLD) == set(PLAIN)
    assert set(REFUSED) == set(ERRORS)
    assert set(MEMBERS) | {"at", "poison", "status"} == set(SimulatorFaults.__struct_fields__)
    assert set(PLACES) == {"open", "text", "call", "parked", "result", "end"}


@ONCE
def test_a_rejection_has_the_matching_status(transport: str) -> None:
    async def main() -> None:
        errors = {name: SimulatorFaults(at={"open": f"error:{name}"}) for name in ERRORS}
        for name, found in (await outcomes(errors, transport)).items():
            assert (found.texts, found.error, found.runs) == ([], REFUSED[name], 1), name
        statuses = {str(status): SimulatorFaults(status=status) for status in STATUSES}
        for name, found in (await outcomes(statuses, transport)).items():
            assert (found.texts, found.error, found.runs) == ([], STATUSES[int(name)], 1), name

    run_in_loop(main())


@ONCE
def test_a_fault_before_the_first_text_is_an_error_with_a_status(transport: str) -> None:
    async def main() -> None:
        for name, found in (await outcomes(at("open", *PLAIN), transport)).items():
            assert (found.texts, found.error, found.runs) == ([], TOLD[name], 1), name
            assert found.seconds < 4, name

    run_in_loop(main())


@ONCE
@pytest.mark.parametrize("place", ["text", pytest.param("call", marks=pytest.mark.slow)])
def test_output_before_a_fault_is_kept_and_not_requested_again(transport: str, place: str) -> None:
    async def main() -> None:
        for name, found in (await outcomes(at(place, *PLAIN, "error:internal"), transport, retries=2)).items():
            status, code, _ = TOLD.get(name, (502, "upstream_error", False))
            [text] = found.texts
            assert len(text) > 5, name
            assert BEFORE.startswith(text), name
            assert place == "text" or text == BEFORE, name
            assert (found.error, found.runs, found.executions) == ((status, code, False), 1, 0), name

    run_in_loop(main())


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("place", ["parked", "result"])
def test_a_parked_run_that_ends_is_restarted_without_repeating_its_call(transport: str, place: str) -> None:
    async def main() -> None:
        found = await outcomes(at(place, *PLAIN, "error:internal", "error:rate_limited"), transport)
        for name, one in found.items():
            assert one.executions <= 1, name
            if name == "silence":
                assert (one.texts, one.runs) == ([BEFORE], 1), name
                assert one.error == (504, "upstream_timeout", False), name
                assert one.seconds < 4, name
            else:
                assert (one.texts, one.error, one.runs) == ([BEFORE, AFTER], None, 2), name

    run_in_loop(main())


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_faults_after_the_end_of_a_turn_have_no_effect(transport: str) -> None:
    async def main() -> None:
        for name, found in (await outcomes(at("end", *PLAIN, "error:internal"), transport)).items():
            assert (found.texts, found.error, found.runs) == ([BEFORE, AFTER], None, 1), name
            assert found.executions == 1, name

    run_in_loop(main())


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_only_transient_faults_are_retried_with_a_new_request_id_and_the_same_original(transport: str) -> None:
    passing = [name for name, (_, _, is_retryable) in TOLD.items() if is_retryable and name not in SLOW]

    async def main() -> None:
        cases = at("open", *passing, "error:unavailable", "error:bare", "error:rate_limited")
        for name, found in (await outcomes(cases, transport, retries=1)).items():
            assert (found.texts, found.error, found.runs) == ([BEFORE, AFTER], None, 2), name
        final = at("open", "huge_frame", "junk_frame", "error:unauthorized", "error:bad_model", "error:canceled")
        for name, found in (await outcomes(final, transport, retries=1)).items():
            assert (found.texts, found.runs) == ([], 1), name
            assert found.error is not None, name

        twice = [SimulatorFaults(at={"open": "drop"})] * 2
        async with on_stage(MODEL, faults=twice, transport=transport, limits=PATIENT) as stage:
            assert text_of(await stage.ask(request("hi"))) == BEFORE
            assert len({run.request_id for run in stage.runs}) == 3
            assert len({run.headers["x-original-request-id"] for run in stage.runs}) == 1
            assert len({run.conversation_id for run in stage.runs}) == 3

    run_in_loop(main())


def test_a_silent_server_is_not_retried() -> None:
    async def main() -> None:
        found = await outcome("run", SimulatorFaults(at={"open": "silence"}), retries=5)
        assert (found.error, found.runs) == (TOLD["silence"], 1)
        assert found.seconds < HASTY.silent + 1.0

    run_in_loop(main())


def test_a_poisoned_conversation_id_is_not_used_again() -> None:
    async def main() -> None:
        found = await outcome("run", SimulatorFaults(poison=True), retries=1)
        assert (found.texts, found.error, found.runs) == ([BEFORE, AFTER], None, 2)
        assert (await outcome("run", SimulatorFaults(poison=True))).error == REFUSED["bare"]

    run_in_loop(main())


# Faults that a right answer is made of all the same.
MEMBERS: dict[str, SimulatorFaults] = {
    "calls": SimulatorFaults(calls=3),
    "late": SimulatorFaults(calls=2, late=0.05),
    "newline_ids": SimulatorFaults(newline_ids=True),
    "prefixed_names": SimulatorFaults(prefixed_names=True),
    "native": SimulatorFaults(native="shell_stream"),
    "query": SimulatorFaults(query="web_search"),
    "repeat_exec": SimulatorFaults(repeat_exec=True),
    "text_as_blob": SimulatorFaults(text_as_blob=True),
    "endless": SimulatorFaults(endless="text"),
    "think_tags": SimulatorFaults(think_tags=True),
    "empty_usage": SimulatorFaults(empty_usage=True),
    "no_turn_ended": SimulatorFaults(no_turn_ended=True),
    "gzip": SimulatorFaults(gzip=True),
    "split": SimulatorFaults(split=True),
    "slow": SimulatorFaults(slow=0.005),
    "unknown": SimulatorFaults(unknown=True),
}
THINKING = play([Think("Where is it?"), Say(BEFORE), MakeCall("look", {"city": "Rome"})], [Say(AFTER)])


@ONCE
def test_harmless_server_behaviour_does_not_change_the_answer(transport: str) -> None:
    async def one(name: str, faults: SimulatorFaults) -> None:
        async with on_stage(THINKING, faults=[faults], transport=transport, is_alone=False, limits=PATIENT) as stage:
            first, rest = await _two_answers(stage)
            [run] = stage.runs
            calls = 3 if name == "calls" else 2 if name == "late" else 1
            assert len(calls_of(first)) == calls, name
            assert [call.answers for call in run.calls] == [1] * calls, name
            assert {call.args["city"] for call in calls_of(first) if call.args} == {"Rome"}, name
            if name == "text_as_blob":
                assert text_of(first) + rest == BEFORE + AFTER
            else:
                assert (text_of(first), rest) == (BEFORE, AFTER), name
            assert run.offences == [], name

    async def main() -> None:
        await asyncio.gather(*(one(name, faults) for name, faults in MEMBERS.items()))

    run_in_loop(main())


async def _two_answers(stage: Stage) -> tuple[FoldedAnswer, str]:
    current = request("hi")
    first = await stage.ask(current)
    events = await stage.events(next_request(current, first))
    ending = f" [{failure(events).error.code}]" if isinstance(events[-1], Failed) else ""
    return first, text_in(events) + ending


@pytest.mark.slow
def test_every_unsupported_exec_is_declined_and_the_turn_continues() -> None:
    fields = agent.ExecServerMessage.DESCRIPTOR.fields_by_name
    kinds = [name.removesuffix("_args") for name in fields if name.endswith("_args") and fields[name].message_type]
    assert len(kinds) > 20

    async def one(kind: str) -> None:
        async with on_stage(MODEL, faults=[SimulatorFaults(native=kind)], is_alone=False, limits=PATIENT) as stage:
            first, rest = await _two_answers(stage)
            assert (text_of(first), rest) == (BEFORE, AFTER), kind
            assert [run.offences for run in stage.runs] == [[]], kind
            assert all(call.answers == 1 for call in stage.runs[0].execs), kind

    async def main() -> None:
        await asyncio.gather(*(one(kind) for kind in kinds if kind != "mcp"))

    run_in_loop(main())


@pytest.mark.slow
def test_every_question_to_a_person_is_answered() -> None:
    fields = agent.InteractionQuery.DESCRIPTOR.fields_by_name
    kinds = [name for name in fields if fields[name].message_type]
    for ending in ("_request_query", "_interaction_query", "_args"):
        kinds = [kind.removesuffix(ending) for kind in kinds]
    assert len(kinds) > 5

    async def one(kind: str) -> None:
        async with on_stage(MODEL, faults=[SimulatorFaults(query=kind)], is_alone=False, limits=PATIENT) as stage:
            first, rest = await _two_answers(stage)
            assert (text_of(first), rest) == (BEFORE, AFTER), kind
            assert [run.offences for run in stage.runs] == [[]], kind

    async def main() -> None:
        await asyncio.gather(*(one(kind) for kind in kinds))

    run_in_loop(main())
