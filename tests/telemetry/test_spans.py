"""Records as spans: names and attributes of the conventions, and nothing of the conversation."""

from __future__ import annotations

from collections import Counter

from toolwire.calls.validation import CallTally, LocalCall, RepairedCall
from toolwire.telemetry.record import Record
from toolwire.telemetry.spans import spans_of
from toolwire.types import Loss, Usage


def record(**members: object) -> Record:
    given = {"request_id": "req_1", "dialect": "chat", "model": "fast", "sent_model": "gpt-x", "backend": "openai"}
    return Record(**{**given, "started": 100.0, "first_token": 100.5, "ended": 102.0, "status": 200, **members})


def test_a_request_is_a_client_span() -> None:
    usage = Usage(input=10, output=5, cached=4, cache_written=1, reasoning=2)
    (span,) = spans_of(record(is_stream=True, usage=usage), "openai-chat")
    assert (span.name, span.kind, span.start, span.end, span.error) == ("chat gpt-x", "client", 100.0, 102.0, "")
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.request.stream": True,
        "gen_ai.response.time_to_first_chunk": 0.5,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_write.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "http.response.status_code": 200,
        "toolwire.request.id": "req_1",
        "toolwire.client.dialect": "chat",
        "toolwire.backend": "openai",
        "toolwire.outcome": "ok",
        "toolwire.verbatim": False,
    }


def test_unknown_things_are_left_out() -> None:
    (span,) = spans_of(record(dialect="gemini", sent_model="", model="", first_token=0.0, status=0), "mine")
    assert span.name == "generate_content"
    assert span.attributes["gen_ai.provider.name"] == "mine"
    assert not {"gen_ai.request.model", "gen_ai.request.stream", "gen_ai.usage.input_tokens"} & set(span.attributes)


def test_what_was_done_is_an_event() -> None:
    tally = CallTally(
        made=2,
        invalid=1,
        corrections=1,
        corrected=1,
        repaired_calls=[RepairedCall(id="call_1", name="read", members=("path",), repairs=("quotes",))],
    )
    losses = [Loss("image", "messages[0]", "secret words")]
    (span,) = spans_of(
        record(tally=tally, losses=losses, history=Counter({"orphan": 2}), hops=["a/x:429"]), "anthropic"
    )
    assert {event.name: dict(event.attributes) for event in span.events} == {
        "toolwire.fallback": {"toolwire.hop": "a/x:429"},
        "toolwire.correction": {"toolwire.count": 1, "toolwire.corrected_calls": 1},
        "toolwire.loss": {"toolwire.feature": "image", "toolwire.where": "messages[0]"},
        "toolwire.repair": {
            "gen_ai.tool.name": "read",
            "gen_ai.tool.call.id": "call_1",
            "toolwire.repairs": "quotes",
        },
        "toolwire.history_repair": {"toolwire.repair": "orphan", "toolwire.count": 2},
    }
    assert (span.attributes["toolwire.calls"], span.attributes["toolwire.invalid_calls"]) == (2, 1)


def test_an_error_has_its_code() -> None:
    (span,) = spans_of(record(outcome="error", error="upstream_timeout", status=504), "openai-chat")
    assert (span.error, span.attributes["error.type"]) == ("upstream_timeout", "upstream_timeout")


def test_tools_that_the_gateway_ran_are_spans_of_their_own() -> None:
    local = [LocalCall(name="read", outcome="ok", seconds=0.5), LocalCall(name="shell", outcome="refused", seconds=0.0)]
    _, read, shell = spans_of(record(local=local), "cursor")
    assert (read.name, read.kind, read.error) == ("execute_tool read", "internal", "")
    assert (shell.name, shell.error) == ("execute_tool shell", "refused")
    assert 100.0 <= read.start <= read.end <= shell.start <= shell.end == 102.0
    assert read.attributes["gen_ai.operation.name"] == "execute_tool"
