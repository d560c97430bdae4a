"""Ollama: requests of /api/chat, /api/generate and /api/pull."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.ollama.request_in import decode_generate, decode_pull, decode_request, is_generate
from toolwire.errors import BadRequest
from toolwire.types import Media, OutputFormat, Request, Text, Thinking

HI = {"role": "user", "content": "hi"}


def chat(**members: Any) -> Request:
    return decode_request(json.dumps({"model": "m", "messages": [HI], **members}).encode(), {})


def generate(**members: Any) -> Request:
    return decode_generate(json.dumps({"model": "m", "prompt": "hi", **members}).encode(), {})


def test_a_request_streams_unless_it_says_otherwise() -> None:
    assert chat().stream
    assert generate().stream
    assert not chat(stream=False).stream
    assert not generate(stream=False).stream


def test_options() -> None:
    request = chat(
        options={
            "num_predict": 100, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "seed": 7, "stop": ["END"],
            "presence_penalty": 1, "frequency_penalty": 2, "num_ctx": 8192,
        },
        keep_alive="5m",
    )  # fmt: skip
    sampling = request.sampling
    assert request.max_tokens == 100
    assert (str(sampling.temperature), str(sampling.top_p), sampling.top_k, sampling.seed) == ("0.5", "0.9", 40, 7)
    assert (sampling.stop, sampling.presence_penalty, sampling.frequency_penalty) == (("END",), 1, 2)
    assert request.extra == {"ollama": {"keep_alive": "5m", "options": {"num_ctx": 8192}}}
    assert chat(options={"stop": "END"}).sampling.stop == ("END",)


@pytest.mark.parametrize("limit", [-1, -2, 0])
def test_no_limit(limit: int) -> None:
    assert chat(options={"num_predict": limit}).max_tokens is None


@pytest.mark.parametrize(
    ("value", "thinking"),
    [
        (None, None), (True, Thinking(mode="on")), (False, Thinking(mode="off")),
        ("high", Thinking(effort="high")), ("max", Thinking(effort="max")),
    ],
)  # fmt: skip
def test_thinking(value: Any, thinking: Thinking | None) -> None:
    assert chat(think=value).thinking == thinking


def test_formats() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert chat(format="").output == chat().output == OutputFormat()
    assert chat(format="json").output.format == "json"
    assert chat(format=schema).output.schema == schema


def test_tools() -> None:
    function = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
    (tool, bare) = chat(tools=[{"type": "function", "function": function}, {"function": {"name": "g"}}]).tools
    assert (tool.name, tool.description, tool.schema) == ("f", "d", function["parameters"])
    assert (bare.name, bare.schema) == ("g", {"type": "object", "properties": {}})


def test_log_probabilities() -> None:
    assert (chat(logprobs=True, top_logprobs=3).sampling.logprobs, chat(top_logprobs=3).sampling.top_logprobs) == (
        True,
        3,
    )


def test_generate_is_a_conversation_of_one_message() -> None:
    request = generate(system="be brief", images=["aGk="], keep_alive=0)
    head, message = request.messages
    assert (head.role, head.is_head, head.parts) == ("system", True, (Text(text="be brief"),))
    assert message.parts == (Text(text="hi"), Media(kind="image", data="aGk="))
    assert is_generate(request)
    assert not is_generate(chat())


def test_requests_that_only_load_a_model_have_no_messages() -> None:
    assert chat(messages=[]).messages == chat(messages=None).messages == ()
    assert generate(prompt="").messages == generate(prompt="", system="x").messages == ()
    assert decode_pull(b'{"model":"m"}', {}).messages == ()


@pytest.mark.parametrize(
    ("members", "where"),
    [
        ({"think": "much"}, "think"), ({"think": 1}, "think"), ({"format": "xml"}, "format"), ({"format": 1}, "format"),
        ({"options": []}, "options"), ({"options": {"stop": [1]}}, "options.stop"),
        ({"options": {"num_predict": "1"}}, "options.num_predict"), ({"tools": {}}, "tools"),
        ({"tools": [{"type": "web"}]}, "tools[0].type"), ({"tools": [{"function": {}}]}, "tools[0].function.name"),
        ({"model": ""}, "model"), ({"stream": "yes"}, "stream"),
    ],
)  # fmt: skip
def test_wrong_members_are_named(members: dict[str, Any], where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        chat(**members)
    assert caught.value.where == where


@pytest.mark.parametrize("members", [{"suffix": "end"}, {"context": [1, 2]}], ids=["suffix", "context"])
def test_what_would_change_the_meaning_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(BadRequest) as caught:
        generate(**members)
    assert caught.value.where in members
    assert generate(suffix="", context=[]).messages
