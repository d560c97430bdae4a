"""Models: names as clients give them, and lists as the server does."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.models import requested_model, usable_models
from toolwire.errors import UpstreamError
from toolwire.types import Thinking

ANSWER = agent.GetUsableModelsResponse(
    models=[
        agent.ModelDetails(
            model_id="claude-4.6-opus",
            display_name="Opus 4.6",
        ),
        agent.ModelDetails(model_id="default"),
        agent.ModelDetails(model_id="default"),
        agent.ModelDetails(display_name="without an id"),
    ]
).SerializeToString()


def test_a_list_of_models() -> None:
    assert usable_models(ANSWER) == {"claude-4.6-opus": "Opus 4.6", "default": ""}


def test_no_models_are_no_models() -> None:
    assert usable_models(b"") == {}


@pytest.mark.parametrize("data", [b"<html>", b"\x0a\xff", b"\x00\x00\x00\x00\x02\xff\xff", b'{"models":[]}'])
def test_anything_else_is_an_error_of_the_back_end(data: bytes) -> None:
    with pytest.raises(UpstreamError, match="GetUsableModelsResponse"):
        usable_models(data)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with suppress(UpstreamError):
        assert all(usable_models(data))


@pytest.mark.parametrize(
    ("model", "id", "parameters"),
    [
        ("auto", "default", {}),
        ("", "default", {}),
        ("gpt-5.1-codex-high", "gpt-5.1-codex", {"reasoning": "high"}),
        ("gpt-5.1-codex-max-xhigh-fast", "gpt-5.1-codex-max", {"fast": "true", "reasoning": "xhigh"}),
        ("gpt-5.2-extra-high", "gpt-5.2", {"reasoning": "xhigh"}),
        ("gpt-5.1-codex-max", "gpt-5.1-codex-max", {}),
        ("o3-low", "o3", {"reasoning": "low"}),
        ("claude-4.5-opus-high-thinking", "claude-4.5-opus-high-thinking", {}),
        ("composer-2.5", "composer-2.5", {}),
    ],
)
def test_an_effort_in_the_name_of_an_openai_model_is_reported_beside_it(
    model: str, id: str, parameters: dict[str, str]
) -> None:
    found = requested_model(model)
    assert (found.id, found.parameters, found.max_mode, found.losses) == (id, parameters, False, ())


def test_the_large_context_is_asked_for_by_a_mark() -> None:
    found = requested_model("claude-4.6-sonnet[1m]")
    assert (found.id, found.max_mode) == ("claude-4.6-sonnet", True)
    assert requested_model("[1m]").id == "default"


@pytest.mark.parametrize(
    ("model", "thinking", "parameters"),
    [
        ("gpt-5.1-low", Thinking(effort="high"), {"reasoning": "high"}),
        ("gpt-5.1", Thinking(effort="max"), {"reasoning": "xhigh"}),
        ("gpt-5.1", Thinking(mode="on"), {}),
        ("claude-4.6-opus", Thinking(mode="adaptive", effort="high"), {"thinking": "true", "effort": "high"}),
        ("claude-4.6-opus", Thinking(effort="minimal"), {"effort": "low"}),
        ("claude-4.6-opus", Thinking(mode="off"), {"thinking": "false"}),
        ("claude-4.6-opus-thinking", Thinking(mode="on"), {}),
        ("composer-2.5", Thinking(mode="on"), {}),
    ],
)
def test_thinking_is_a_parameter_of_the_model(model: str, thinking: Thinking, parameters: dict[str, str]) -> None:
    found = requested_model(model, thinking)
    assert (found.parameters, found.losses) == (parameters, ())


@pytest.mark.parametrize(
    ("model", "thinking", "feature"),
    [
        ("gpt-5.1", Thinking(effort="huge"), "thinking.effort"),
        ("gpt-5.1", Thinking(mode="off"), "thinking"),
        ("claude-4.6-opus", Thinking(effort="huge"), "thinking.effort"),
        ("claude-4.6-opus", Thinking(budget=4000), "thinking.budget"),
        ("composer-2.5", Thinking(effort="high"), "thinking"),
    ],
)
def test_what_a_model_has_no_setting_for_is_a_loss(model: str, thinking: Thinking, feature: str) -> None:
    found = requested_model(model, thinking)
    assert [loss.feature for loss in found.losses] == [feature]
    assert found.parameters == {}
