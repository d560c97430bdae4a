from __future__ import annotations

import asyncio
from typing import Any

from tests.backends.cursor.simulator.client import Client
from tests.backends.cursor.simulator.single_run import QUICK, call_and_report, run_once
from toolwire.backends.cursor.simulator.journal import CallRecord, Journal, Run
from toolwire.backends.cursor.simulator.pending import Pending
from toolwire.backends.cursor.simulator.script import ClientResult, MakeCall, Say
from toolwire.backends.cursor.simulator.settings import Settings
from toolwire.backends.cursor.wire import agent


def run() -> Run:
    return Run(number=0, transport="run", http="2", request_id="r", headers={}, at=0.0)


def result(number: int = 1, exec_id: str = "e", **member: Any) -> Any:
    return agent.ExecClientMessage(id=number, exec_id=exec_id, **(member or {"mcp_result": {"success": {}}}))


def offences(*messages: Any, kind: str = "mcp") -> list[str]:
    async def main() -> list[str]:
        journal, record = Journal(), CallRecord(id=1, exec_id="e", kind=kind, call_id="c")
        pending = Pending(run(), journal, needs_close=False)
        pending.expect(record)
        for message in messages:
            pending.exec(message) if message.DESCRIPTOR.name == "ExecClientMessage" else pending.control(message)
        return journal.offences

    return asyncio.run(main())


def closing(number: int = 1) -> Any:
    return agent.ExecClientControlMessage(stream_close={"id": number})


def test_one_result_and_its_close_are_fine() -> None:
    assert offences(result()) == []
    assert offences(result(), closing()) == []


def test_what_answers_nothing_is_an_offence() -> None:
    assert "never sent" in offences(result(2))[0]
    assert "exec_id" in offences(result(exec_id="x"))[0]
    assert "which was mcp_args" in offences(result(read_result={}))[0]
    assert "result 2 for the exec 1" in offences(result(), result())[0]
    assert "second stream_close" in offences(result(), closing(), closing())[0]
    assert "never sent" in offences(closing(9))[0]
    thrown = agent.ExecClientControlMessage(throw={"id": 1, "error": "x"})
    assert "throw after a result" in offences(result(), thrown)[0]


def test_a_shell_stream_has_many_results_and_ends_with_its_close() -> None:
    out = result(shell_stream={"stdout": {"data": "x"}})
    assert offences(out, out, result(shell_result={"success": {}}), closing(), kind="shell_stream") == []
    assert "result 2" in offences(out, closing(), out, kind="shell_stream")[0]


def test_an_answer_to_no_question_is_an_offence() -> None:
    async def main() -> list[str]:
        journal = Journal()
        pending = Pending(run(), journal, needs_close=False)
        pending.expect_other("query", 1)
        pending.other("query", 1, "yes")
        pending.other("query", 1, "yes")
        pending.other("get_blob", 7, "yes")
        return journal.offences

    assert asyncio.run(main()) == [
        "an answer to query 1, which was answered before",
        "an answer to get_blob 7, which was never sent",
    ]


def test_a_failed_tool_is_a_success_with_an_error_in_it() -> None:
    seen: list[ClientResult] = []

    class Listening:
        def start(self, _: Any) -> Any:
            seen.extend((yield MakeCall("look")))
            yield Say("heard")

    image: Any = {"image": {"data": b"png", "mime_type": "image/png"}}
    mcp_result = agent.McpResult(success={"content": [{"text": {"text": "no file"}}, image], "is_error": True})
    client, _ = run_once(model=Listening(), prepare=lambda c: setattr(c, "on_call", lambda call: mcp_result))
    assert client.text == "heard"
    (one,) = seen
    assert (one.kind, one.text, one.is_error, one.images) == ("success", "no file", True, (("image/png", b"png"),))


def test_the_error_member_stops_the_turn() -> None:
    mcp_result = agent.McpResult(error={"error": "boo"})
    client, _ = run_once(prepare=lambda c: setattr(c, "on_call", lambda call: mcp_result))
    assert client.error == {"code": "internal", "message": "Tool execution failed: boo"}


def test_a_close_may_be_demanded() -> None:
    settings = Settings(heartbeat=QUICK.heartbeat, needs_close=True)
    client, _ = run_once(settings=settings)
    assert client.text.endswith("It said fine.")


def test_a_result_without_a_close_is_accepted() -> None:
    def leave_open(client: Client) -> None:
        client.closes = False

    client, journal = run_once(model=call_and_report(), prepare=leave_open)
    assert (client.error, journal.offences, journal.runs[0].calls[0].is_closed) == ({}, [], False)


def test_a_throw_is_an_answer() -> None:
    async def main() -> ClientResult:
        pending = Pending(run(), Journal(), needs_close=False)
        future = pending.expect(CallRecord(id=1, exec_id="e", kind="read"))
        pending.control(agent.ExecClientControlMessage(throw={"id": 1, "error": "unknown"}))
        return await future

    answer = asyncio.run(main())
    assert (answer.kind, answer.text, answer.is_error) == ("thrown", "unknown", True)


def test_heartbeats_of_an_exec_are_kept() -> None:
    async def main() -> int:
        pending, record = Pending(run(), Journal(), needs_close=False), CallRecord(id=1, exec_id="e", kind="mcp")
        pending.expect(record)
        pending.control(agent.ExecClientControlMessage(heartbeat={"id": 1}))
        return len(record.heartbeats)

    assert asyncio.run(main()) == 1
