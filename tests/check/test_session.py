from __future__ import annotations

import pytest

from tests.check.broken_server import GoodAnswer
from tests.check.damages import check_damaged, delta_calls, stop_reason, stream_values


@pytest.mark.slow
def test_a_server_that_ignores_tools_is_reported_once_and_does_not_fail(good: str) -> None:
    def ignore(answer: GoodAnswer) -> None:
        if answer.status == 200 and not answer.is_stream:
            value = answer.value
            message = {"role": "assistant", "content": "I do not know."}
            value["choices"] = [{"index": 0, "finish_reason": "stop", "message": message}]
            answer.value = value
        elif answer.is_stream:
            events = []
            for name, value in answer.events:
                if isinstance(value, dict) and list(delta_calls(value)):
                    value["choices"][0]["delta"] = {"content": "no"}
                events.append((name, value))
            answer.events = events
            stream_values(stop_reason("stop"))(answer)

    report = check_damaged(good, "chat", ignore)
    assert "tools.ignored" in {one.code for one in report.deviations}
    assert not report.faults
    assert report.verdict("schema") == "unsupported"
