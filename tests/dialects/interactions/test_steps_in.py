"""Interactions: steps in."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.interactions.steps_in import history_reader, messages_in, steps_of
from toolwire.dialects.shared.sealed_reasoning import sealed_out
from toolwire.errors import BadRequest
from toolwire.types import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "data": "aGk=", "mime_type": "image/png"}


def read(*steps: Any) -> tuple[Message, ...]:
    return messages_in(list(steps), history_reader())


def part_of(step: Any) -> Part:
    ((part,),) = (message.parts for message in read(step))
    return part


@pytest.mark.parametrize("given", ["hi", TEXT, [TEXT], [{"type": "user_input", "content": [TEXT]}]])
def test_every_form_of_input_is_steps(given: Any) -> None:
    (message,) = read(*steps_of(given))
    assert (message.role, message.parts) == ("user", (Text(text="hi"),))


def test_contents_and_steps_may_be_mixed() -> None:
    steps = steps_of([TEXT, {"type": "model_output", "content": [TEXT]}])
    assert [message.role for message in read(*steps)] == ["user", "assistant"]
    assert steps_of(None) == steps_of("") == steps_of([]) == []


def test_media() -> None:
    (message,) = read(*steps_of([TEXT, IMAGE, {"type": "document", "uri": "https://x.test/a.pdf"}]))
    assert message.parts == (
        Text(text="hi"), Media(kind="image", mime="image/png", data="aGk="), Media(kind="file", url="https://x.test/a.pdf"),
    )  # fmt: skip


def test_calls_and_results() -> None:
    call = part_of({"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}})
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.raw) == ("c", "f", '{"a":1}')


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("18", (Text(text="18"),)), ({"a": 1}, (Text(text='{"a":1}'),)), ([TEXT], (Text(text="hi"),)), (None, ()),
        ([1], (Text(text="[1]"),)), ([IMAGE], (Media(kind="image", mime="image/png", data="aGk="),)),
    ],
)  # fmt: skip
def test_results_of_every_form(given: Any, parts: Any) -> None:
    found = part_of({"type": "function_result", "call_id": "c", "name": "f", "result": given, "is_error": True})
    assert isinstance(found, ToolResult)
    assert (found.call_id, found.name, found.parts, found.is_error) == ("c", "f", parts, True)


def test_a_thought_gets_its_proof_back() -> None:
    thought = Reasoning(text="hm", signature="sig", extra={"messages": {}})
    step = {"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": sealed_out(thought)}
    assert part_of(step) == thought
    foreign = part_of({"type": "thought", "signature": "c2lnbmVk"})
    assert isinstance(foreign, Reasoning)
    assert foreign.signature is foreign.encrypted is None
    assert read({"type": "thought"})[0].parts == ()


def test_steps_of_the_providers_tools_are_carried() -> None:
    assert isinstance(part_of({"type": "google_search_call", "id": "x", "arguments": {}}), Opaque)


def test_messages_of_other_dialects_are_understood_and_reported() -> None:
    reader = history_reader()
    (message,) = messages_in([{"role": "user", "content": "hi"}], reader)
    assert (message.role, message.parts) == ("user", (Text(text="hi"),))
    assert reader.losses


@pytest.mark.parametrize(
    ("step", "where"),
    [(7, "input[0]"), ({"type": ["text"]}, "input[0].type"), ({"type": 5, "id": "x"}, "input[0].type")],
)
def test_a_step_without_meaning_is_refused(step: Any, where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(*steps_of([step]))
    assert caught.value.where == where
