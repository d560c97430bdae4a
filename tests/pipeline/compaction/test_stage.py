"""Compaction by the gateway: a summary is made, sealed, stored by the client, and known again in any dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pipeline.compaction.model import SECRETS, Knower, answer_of, decoded, prepare, texts_of
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.profiles import ANTHROPIC_API, OPENAI_RESPONSES
from toolwire.types import ToolCall

HELLO = {"role": "user", "content": "the word is CODE-tulip"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"at": "CODE-rose"}'}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "CODE-daisy"}
TRIGGER = {"type": "compaction_trigger"}


def known(body: Any) -> str:
    """The text of an answer, in either dialect."""
    parts = body.get("content") or [part for item in body["output"] for part in item.get("content", [])]
    return "".join(part.get("text", "") for part in parts)


def compacted(*items: Any, **how: Any) -> Any:
    """The item that a trigger makes of these items."""
    backend = how.pop("backend", None) or Knower()
    return answer_of(decoded("responses", input=[*items, TRIGGER]), backend, **how)


def test_a_trigger_makes_exactly_one_item_and_the_answer_is_complete() -> None:
    backend = Knower()
    body = compacted({"role": "developer", "content": "be brief"}, HELLO, CALL, RESULT, backend=backend)
    assert body["status"] == "completed"
    assert [item["type"] for item in body["output"]] == ["compaction"]
    assert body["output"][0]["encrypted_content"].startswith("twc1.")
    assert "CODE" not in body["output"][0]["encrypted_content"]
    assert body["usage"]["input_tokens"] == 100
    asked = backend.requests[0]
    assert (asked.tools, asked.source) == ((), {})
    assert not any(isinstance(part, ToolCall) for message in asked.messages for part in message.parts)


def test_a_summary_that_comes_back_is_known_beside_messages_that_the_client_retained() -> None:
    item = compacted(HELLO, CALL, RESULT)["output"][0]
    retained = {"role": "user", "content": "and CODE-moss"}
    body = answer_of(decoded("responses", input=[retained, item, {"role": "user", "content": "the words?"}]), Knower())
    assert known(body) == "I know CODE-moss CODE-tulip CODE-rose CODE-daisy"


def test_a_conversation_compacted_twice_still_knows_its_first_word() -> None:
    first = compacted(HELLO)["output"][0]
    second = compacted(first, {"role": "user", "content": "and CODE-fern"})["output"][0]
    body = answer_of(decoded("responses", input=[second, {"role": "user", "content": "the words?"}]), Knower())
    assert known(body) == "I know CODE-tulip CODE-fern"


def test_calls_that_wait_for_results_are_still_open_after_the_summary() -> None:
    item = compacted(HELLO, CALL)["output"][0]
    job = prepare(decoded("responses", input=[item, RESULT]), Knower())
    parts = [part for message in job.request.messages for part in message.parts]
    call = next(part for part in parts if isinstance(part, ToolCall))
    assert (call.id, call.name, call.args) == ("call_1", "look", {"at": "CODE-rose"})
    assert not job.losses


def test_an_item_crosses_to_the_other_dialect_and_back() -> None:
    item = compacted(HELLO)["output"][0]
    block = {"type": "compaction", "content": None, "encrypted_content": item["encrypted_content"]}
    ask = {"role": "user", "content": "the words?"}
    first = decoded("messages", messages=[{"role": "assistant", "content": [block]}, ask])
    assert known(answer_of(first, Knower())) == "I know CODE-tulip"
    made = answer_of(decoded("messages", messages=[HELLO], compaction={"type": "summarize"}), Knower())
    assert made["stop_reason"] == "compaction"
    assert [one["type"] for one in made["content"]] == ["compaction"]
    assert "CODE-tulip" in made["content"][0]["content"]
    sealed = {"type": "compaction", "encrypted_content": made["content"][0]["encrypted_content"]}
    assert known(answer_of(decoded("responses", input=[sealed, ask]), Knower())) == "I know CODE-tulip"


def test_a_block_replaces_all_messages_before_it() -> None:
    made = answer_of(decoded("messages", messages=[HELLO], compaction={"type": "summarize"}), Knower())
    later = [
        {"role": "user", "content": "old CODE-gone"},
        {"role": "assistant", "content": [*made["content"], {"type": "text", "text": "CODE-kept"}]},
        {"role": "user", "content": "the words?"},
    ]
    job = prepare(decoded("messages", system="be brief", messages=later), Knower())
    said = " ".join(texts_of(job.request.messages))
    assert "CODE-gone" not in said
    assert [word in said for word in ("be brief", "CODE-tulip", "CODE-kept", "the words?")] == [True] * 4


@pytest.mark.parametrize(
    ("owner", "secrets"),
    [("somebody else", SECRETS), ("me", (b"the secret of another gateway",))],
    ids=["key", "secret"],
)
def test_a_summary_is_useless_to_another_key_and_to_another_gateway(owner: str, secrets: tuple[bytes, ...]) -> None:
    item = compacted(HELLO)["output"][0]
    with pytest.raises(BadRequest, match="cannot open") as caught:
        prepare(decoded("responses", input=[item, HELLO]), Knower(), owner, secrets)
    assert (caught.value.code, caught.value.where) == ("compaction_unreadable", "input[0]")


def test_a_changed_bit_is_refused() -> None:
    item = compacted(HELLO)["output"][0]
    sealed = item["encrypted_content"]
    item["encrypted_content"] = sealed[:40] + ("A" if sealed[40] != "A" else "B") + sealed[41:]
    with pytest.raises(BadRequest, match="altered"):
        prepare(decoded("responses", input=[item, HELLO]), Knower())


def test_after_a_rotation_old_summaries_open() -> None:
    item = compacted(HELLO)["output"][0]
    body = answer_of(decoded("responses", input=[item, HELLO]), Knower(), secrets=(b"a newer secret of it", *SECRETS))
    assert "CODE-tulip" in known(body)


def test_an_item_of_a_provider_is_refused_elsewhere_and_never_dropped() -> None:
    foreign = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA-of-the-provider"}
    with pytest.raises(BadRequest, match="only the provider") as caught:
        prepare(decoded("responses", input=[foreign, HELLO]), Knower("chat"))
    assert caught.value.code == "compaction_unreadable"
    native = Knower("responses", OPENAI_RESPONSES)
    job = prepare(decoded("responses", input=[foreign, HELLO], store=False), native)
    assert job.stale == ""  # the client's bytes are sent


def test_the_readable_text_of_a_provider_is_used_elsewhere() -> None:
    block = {"type": "compaction", "content": "it was CODE-oak", "encrypted_content": "of-the-provider"}
    request = decoded(
        "messages", messages=[{"role": "assistant", "content": [block]}, {"role": "user", "content": "?"}]
    )
    assert known(answer_of(request, Knower())) == "I know CODE-oak"


def test_a_failed_compaction_is_no_summary() -> None:
    block = {"type": "compaction", "content": None}
    said = [HELLO, {"role": "assistant", "content": [block, {"type": "text", "text": "hi"}]}, HELLO]
    job = prepare(decoded("messages", messages=said), Knower())
    assert [message.role for message in job.request.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("dialect", ["responses", "messages"])
def test_a_provider_that_compacts_gets_the_request_as_it_is(dialect: str) -> None:
    profile = {"responses": OPENAI_RESPONSES, "messages": ANTHROPIC_API}[dialect]
    members: dict[str, Any] = (
        {"input": [HELLO, TRIGGER], "store": False}
        if dialect == "responses"
        else {"messages": [HELLO], "compaction": {"type": "summarize"}}
    )
    backend = Knower(dialect, profile)
    job = prepare(decoded(dialect, **members), backend)
    assert (job.stale, job.backend, backend.requests) == ("", backend, [])


def test_a_provider_that_compacts_does_not_get_summaries_of_the_gateway() -> None:
    item = compacted(HELLO)["output"][0]
    native = Knower("responses", OPENAI_RESPONSES)
    job = prepare(decoded("responses", input=[item, HELLO], store=False), native)
    encoded = DIALECTS["responses"].encode_request(job.request, OPENAI_RESPONSES).body
    assert b"twc1." not in encoded
    assert b"CODE-tulip" in encoded


LONG = "words " * 2000


@pytest.mark.parametrize("dialect", ["responses", "messages"])
def test_a_conversation_beyond_its_threshold_is_compacted_before_it_is_answered(dialect: str) -> None:
    said = [HELLO, {"role": "assistant", "content": LONG}, {"role": "user", "content": "go on with CODE-next"}]
    backend = Knower()
    body = answer_of(threshold(dialect, said, 1000), backend)
    shown = body["content"] if dialect == "messages" else body["output"]
    assert [one["type"] for one in shown] == ["compaction", "text" if dialect == "messages" else "message"]
    assert known(body).endswith("I know CODE-tulip CODE-next")
    assert len(backend.requests) == 2
    assert LONG not in texts_of(backend.requests[1].messages)
    assert body["usage"]["input_tokens"] == 200  # both requests
    again = [*said, *(shown if dialect == "responses" else [{"role": "assistant", "content": shown}]), HELLO]
    job = prepare(threshold(dialect, again, 1000), backend)
    said_now = "".join(texts_of(job.request.messages))
    assert len(backend.requests) == 2  # it is short again
    assert LONG not in said_now
    assert "go on with CODE-next" in said_now  # the last turn is in the item, word for word


def threshold(dialect: str, said: list[Any], tokens: int, **edit: Any) -> Any:
    if dialect == "responses":
        management: Any = [{"type": "compaction", "compact_threshold": tokens}]
        return decoded("responses", input=said, context_management=management)
    trigger = {"type": "input_tokens", "value": tokens}
    edits = [{"type": "compact_20260112", "trigger": trigger, **edit}]
    return decoded("messages", messages=said, context_management={"edits": edits})


def test_below_its_threshold_a_conversation_stays_as_it_is_and_the_back_end_gets_no_member_it_does_not_know() -> None:
    for dialect in ("responses", "messages"):
        job = prepare(threshold(dialect, [HELLO], 1000), backend := Knower(dialect))
        assert not backend.requests
        assert b"context_management" not in DIALECTS[dialect].encode_request(job.request, backend.profile).body


def test_an_answer_may_pause_after_the_summary() -> None:
    said = [HELLO, {"role": "assistant", "content": LONG}, HELLO]
    body = answer_of(threshold("messages", said, 1000, pause_after_compaction=True), Knower())
    assert (body["stop_reason"], [one["type"] for one in body["content"]]) == ("compaction", ["compaction"])


def test_a_conversation_with_open_calls_is_not_summarized_by_messages() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    said = [HELLO, {"role": "assistant", "content": [call]}]
    with pytest.raises(BadRequest, match="no result yet"):
        prepare(decoded("messages", messages=said, compaction={"type": "summarize"}), Knower())


def test_the_endpoint_returns_the_messages_of_the_user_and_one_item() -> None:
    endpoint = DIALECTS["responses"].routes["/responses/compact"].decode
    assert endpoint is not None
    body = {"model": "m", "input": [HELLO, {"role": "assistant", "content": "yes"}], "instructions": "be brief"}
    made = answer_of(endpoint(json.dumps(body).encode(), {}), Knower())
    assert made["object"] == "response.compaction"
    assert [item["type"] for item in made["output"]] == ["message", "compaction"]
    assert made["output"][0]["content"] == [{"type": "input_text", "text": HELLO["content"]}]
    assert made["usage"]["total_tokens"] == 110
    ask = {"role": "user", "content": "the words?"}
    assert known(answer_of(decoded("responses", input=[*made["output"], ask]), Knower())) == "I know CODE-tulip"
    with pytest.raises(BadRequest) as caught:
        endpoint(b'{"input":"x"}', {})
    assert (caught.value.status, caught.value.where) == (400, "model")


def test_a_trigger_must_be_the_last_item() -> None:
    with pytest.raises(BadRequest, match="last one"):
        decoded("responses", input=[TRIGGER, HELLO])


def test_edits_of_a_client_pass_where_the_back_end_speaks_its_dialect() -> None:
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    job = prepare(decoded("messages", messages=[HELLO], context_management=edits), Knower("messages"))
    assert job.stale == ""
    assert not prepare(decoded("messages", messages=[HELLO], context_management=edits), Knower("chat")).losses


def test_tools_that_the_conversation_has_found_stay_callable() -> None:
    tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"n": {"maximum": 0.5}}}}
    search = {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {}, "status": "completed"}
    output = {
        "type": "tool_search_output",
        "call_id": "c",
        "execution": "client",
        "status": "completed",
        "tools": [tool],
    }
    item = compacted(HELLO, search, output)["output"][0]
    job = prepare(decoded("responses", input=[item, HELLO]), Knower("chat"))
    assert [(found.name, found.schema) for found in job.request.tools] == [("look", tool["parameters"])]
    again = prepare(decoded("responses", input=[item, HELLO], tools=[{**tool, "description": "mine"}]), Knower("chat"))
    assert [found.description for found in again.request.tools] == ["mine"]


@pytest.mark.parametrize("dialect", ["responses", "messages"])
def test_an_edit_of_a_newer_provider_passes_in_its_dialect_and_is_reported_elsewhere(dialect: str) -> None:
    newer = {"type": "of_a_newer_provider", "value": 1}
    management: Any = [newer] if dialect == "responses" else {"edits": [newer]}
    said: Any = {"input" if dialect == "responses" else "messages": [HELLO], "context_management": management}
    own = prepare(decoded(dialect, **said), Knower(dialect))
    assert b"of_a_newer_provider" in DIALECTS[dialect].encode_request(own.request, own.backend.profile).body
    assert [loss.feature for loss in prepare(decoded(dialect, **said), Knower("chat")).losses] == ["context_management"]
