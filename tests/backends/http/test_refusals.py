"""Refusals foreseen: too many tools; and refusals that one more try can mend: reasoning of another account."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from toolwire.backends.http.refusals import changed_body, check_tools, is_passing
from toolwire.calls.tools.kinds import to_functions
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest, UpstreamError
from toolwire.profiles import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, PLAIN_CHAT, REMEDIES, RESPONSES
from toolwire.types import Request

SCHEMA = {"type": "object", "properties": {}}
BODY = json.dumps({"input": [{"type": "reasoning", "id": "rs_1"}, {"role": "user", "content": "x"}]}).encode()


def offering(dialect: str, names: list[str]) -> Request:
    tools: list[Any] = [{"name": name, "input_schema": SCHEMA} for name in names]
    if dialect == "chat":
        tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools, "max_tokens": 9}
    return DIALECTS[dialect].decode_request(json.dumps(body).encode(), {})


def spaces(*sizes: int) -> Request:
    """One namespace of each size."""
    tools = [
        {"type": "namespace", "name": f"space{number}", "tools": [
            {"type": "function", "name": f"f{index}", "parameters": SCHEMA} for index in range(size)
        ]}
        for number, size in enumerate(sizes)
    ]  # fmt: skip
    return DIALECTS["responses"].decode_request(json.dumps({"model": "m", "input": "x", "tools": tools}).encode(), {})


@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_H147_too_many_tools_are_counted_by_whose_they_are(dialect: str) -> None:
    names = [f"mcp__github__f{number}" for number in range(100)] + [f"mcp__jira__f{number}" for number in range(60)]
    names += [f"own{number}" for number in range(14)]
    with pytest.raises(BadRequest) as caught:
        check_tools(offering(dialect, names), OPENAI_CHAT)
    error = caught.value
    assert (error.status, error.code, error.where) == (400, "too_many_tools", "tools")
    for words in ("174 tools", "takes 128", '100 of "mcp__github"', '60 of "mcp__jira"', "14 without a namespace"):
        assert words in error.message
    check_tools(offering(dialect, names[:128]), OPENAI_CHAT)
    check_tools(offering(dialect, names), PLAIN_CHAT)


def test_H147_a_namespace_is_one_entry_where_it_is_known_and_many_where_it_is_not() -> None:
    request = spaces(100, 60)
    check_tools(request, OPENAI_RESPONSES)
    with pytest.raises(BadRequest, match=r'160 tools.*100 of "space0", 60 of "space1"'):
        check_tools(to_functions(request).request, OPENAI_CHAT)


def test_a_message_about_many_namespaces_is_bounded() -> None:
    with pytest.raises(BadRequest) as caught:
        check_tools(to_functions(spaces(*[1] * 500)).request, OPENAI_CHAT)
    assert "492 of others" in caught.value.message
    assert len(caught.value.message) < 2000


REFUSALS = [
    (400, "reasoning `encrypted_content` was not issued to this caller", {}),
    (400, "The encrypted content for item rs_1 could not be verified. Reason: organization_id did not match.", {}),
    (400, "no", {"code": "invalid_encrypted_content"}),
    (404, "Item with id 'rs_68af' not found. Items are not persisted when `store` is set to false.", {}),
]


@pytest.mark.parametrize(("status", "words", "details"), REFUSALS)
def test_H084_H166_reasoning_that_is_refused_is_left_out_and_said_to_be(
    status: int, words: str, details: dict[str, Any]
) -> None:
    better = changed_body("responses", BODY, UpstreamError(words, status=status, details=details), RESPONSES)
    assert better is not None
    assert json.loads(better.body)["input"] == [{"role": "user", "content": "x"}]
    assert better.loss.feature == "refused.reasoning"


@pytest.mark.parametrize(
    ("dialect", "body", "status", "words"),
    [
        ("responses", BODY, 400, "Encrypted content is not supported with this model."),  # and none was asked for
        ("responses", BODY, 400, "Unknown parameter: 'encrypted_content'."),
        ("responses", BODY, 403, REFUSALS[0][1]),
        ("responses", BODY, 404, "Item with id 'msg_1' not found."),
        ("responses", b'{"input":"x"}', 400, REFUSALS[0][1]),
        ("chat", BODY, 400, REFUSALS[0][1]),
        ("responses", BODY, 400, "x" * 5000 + str(REFUSALS[0][1])),
    ],
)
def test_other_refusals_are_final(dialect: str, body: bytes, status: int, words: str) -> None:
    assert changed_body(dialect, body, UpstreamError(words, status=status), RESPONSES) is None


CHAT = {
    "messages": [
        {"role": "developer", "content": "S"},
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": []},
    ]
}
THINKING = {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "x"}]}]}
PROOF = {"input": "x", "include": ["reasoning.encrypted_content"]}
QUIRKS = [
    ("chat", CHAT, 400, "unknown variant `developer`, expected one of `system`, `user`, `assistant`", "roles"),
    ("chat", CHAT, 422, "'developer' is not one of ['system', 'assistant', 'user', 'tool', 'function']", "roles"),
    ("chat", CHAT, 500, "Jinja Exception: System message must be at the beginning.", "roles"),
    ("chat", CHAT, 400, "Unexpected message role.", "roles"),
    ("chat", CHAT, 500, "Cannot subscript null at row 18, column 30", "texts"),
    ("chat", CHAT, 400, "can only concatenate str (not \"NoneType\") to str", "texts"),
    ("messages", THINKING, 400, "messages.1.content.0: Invalid `signature` in `thinking` block", "reasoning"),
    ("messages", THINKING, 400, "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", "reasoning"),
    ("responses", PROOF, 400, "Encrypted content is not supported with this model.", "proof"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "body", "status", "words", "change"), QUIRKS)
def test_H081_H083_H111_H112_H141_what_only_the_back_end_can_tell_is_put_right_once(
    dialect: str, body: dict[str, Any], status: int, words: str, change: str
) -> None:
    error = UpstreamError(words, status=status)
    better = changed_body(dialect, json.dumps(body).encode(), error, PLAIN_CHAT)
    assert better is not None
    assert better.loss.feature == f"refused.{change}"
    assert json.loads(better.body) != body
    assert changed_body(dialect, better.body, error, PLAIN_CHAT) is None


def test_H113_what_a_server_could_not_read_of_its_model_may_be_read_the_next_time() -> None:
    words = "error parsing tool call: raw='{\"city\":]', err=invalid character"
    assert is_passing(UpstreamError(words, status=500), PLAIN_CHAT)
    assert not is_passing(UpstreamError(words, status=400), PLAIN_CHAT)
    assert not is_passing(UpstreamError("no", status=500), PLAIN_CHAT)


def test_remedies_say_why_and_are_never_for_what_is_tried_again_anyway() -> None:
    assert all(remedy.why and not remedy.statuses & {429, 502, 503, 504, 529} for remedy in REMEDIES)


def test_a_long_refusal_costs_little() -> None:
    since = time.process_time()
    for words in ("encrypted content " * 60_000, "thinking" * 130_000, "item with id rs_" + "a" * 1_000_000):
        assert changed_body("responses", BODY, UpstreamError(words, status=400), RESPONSES) is None
    assert time.process_time() - since < 0.5


def test_a_block_of_another_conversation_may_be_dropped_and_the_feature_is_named() -> None:
    words = (
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    )
    better = changed_body("messages", b'{"messages": []}', UpstreamError(words, status=400), ANTHROPIC)
    assert better is not None
    assert (better.loss.feature, better.feature) == (
        "refused.binding",
        ("anthropic-beta", "thinking-binding-controls-2026-08-01"),
    )
    assert changed_body("messages", better.body, UpstreamError(words, status=400), ANTHROPIC) is None


def test_a_forced_call_that_the_model_refuses_is_left_to_it() -> None:
    words = "tool_choice: `tool_choice` of type `any` or `tool` is not supported for this model."
    body = b'{"tool_choice": {"type": "any"}}'
    better = changed_body("messages", body, UpstreamError(words, status=400), ANTHROPIC)
    assert better is not None
    assert (better.loss.feature, json.loads(better.body)) == ("refused.choice", {"tool_choice": {"type": "auto"}})
    assert changed_body("messages", better.body, UpstreamError(words, status=400), ANTHROPIC) is None
