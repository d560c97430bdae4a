"""Ollama: errors, lists and descriptions of models."""

from __future__ import annotations

import json

import pytest

from toolwire.dialects.base import ModelLine
from toolwire.dialects.ollama.models import encode_error, encode_model, encode_models, name_in, pull_answer
from toolwire.errors import BadRequest
from toolwire.types import Request


def test_an_error_is_one_message() -> None:
    error = BadRequest("it is missing.", where="model", hint="Send one.")
    assert json.loads(encode_error(error, "req_1")) == {"error": "model: it is missing. Send one."}


def test_every_model_is_listed_under_both_names() -> None:
    body = json.loads(encode_models([ModelLine(id="openai/gpt-5.5", created=1_800_000_000), ModelLine(id="fast")]))
    first, second = body["models"]
    assert first["name"] == first["model"] == "openai/gpt-5.5"
    assert first["modified_at"] == "2027-01-15T08:00:00Z"
    assert len(first["digest"]) == 64
    assert first["digest"] != second["digest"]
    assert {"tools", "completion"} <= set(second["capabilities"])


def test_a_description_has_what_github_copilot_reads() -> None:
    body = json.loads(encode_model(ModelLine(id="demo/echo-tools", title="Echo")))
    architecture = body["model_info"]["general.architecture"]
    assert body["model_info"][f"{architecture}.context_length"] > 4096
    assert body["model_info"]["general.basename"] == "Echo"
    assert "tools" in body["capabilities"]


def test_a_description_has_the_context_window() -> None:
    body = json.loads(encode_model(ModelLine(id="a", context=8192)))
    assert body["model_info"]["toolwire.context_length"] == 8192


@pytest.mark.parametrize("body", [b'{"model":"m"}', b'{"name":"m"}', b'{"model":"m","verbose":true}'])
def test_a_model_is_named_in_one_of_two_members(body: bytes) -> None:
    assert name_in(body) == "m"


@pytest.mark.parametrize("body", [b"{}", b'{"model":""}', b'{"model":1}', b"[]"])
def test_a_body_without_a_name_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        name_in(body)


def test_a_pull_ends_at_once() -> None:
    assert json.loads(pull_answer(Request(model="m", messages=()), 0)) == {"status": "success"}
