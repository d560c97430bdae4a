"""Models of windows: which of them a client's name means."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.backends.vscode.wire.agreed import MODEL
from toolwire.backends.vscode.wire.models import find, listing, unique_models
from toolwire.backends.vscode.wire.shapes import ListedModel
from toolwire.dialects.base import ModelLine


def model(id: str, vendor: str = "copilot", family: str = "", name: str = "") -> ListedModel:
    return replace(MODEL, key=f"{vendor}/{id}", id=id, vendor=vendor, family=family or id, name=name or id)


MODELS = [
    model("gpt-5", vendor="customendpoint"),
    model("gpt-5"),
    model("gpt-5-mini"),
    model("claude-sonnet-4.5", name="Claude Sonnet 4.5"),
    model("claude-sonnet-4"),
    model("claude-haiku-4.5"),
    model("x1", family="gemini-2.5-pro"),
    model("o4-mini-2025-04-16", family="o4-mini"),
    model("echo", vendor="toolwire"),
]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("copilot/gpt-5", "copilot/gpt-5"),
        ("customendpoint/gpt-5", "customendpoint/gpt-5"),
        ("gpt-5", "copilot/gpt-5"),
        ("GPT-5", "copilot/gpt-5"),
        ("openai/gpt-5", "copilot/gpt-5"),
        ("gpt-5-mini", "copilot/gpt-5-mini"),
        ("claude-sonnet-4-5", "copilot/claude-sonnet-4.5"),
        ("claude-sonnet-4-5-20250929", "copilot/claude-sonnet-4.5"),
        ("anthropic/claude-sonnet-4.5", "copilot/claude-sonnet-4.5"),
        ("claude-sonnet-4-5[1m]", "copilot/claude-sonnet-4.5"),
        ("claude-haiku-4-5-20251001", "copilot/claude-haiku-4.5"),
        ("claude-sonnet-4-20250514", "copilot/claude-sonnet-4"),
        ("gemini-2.5-pro", "copilot/x1"),
        ("gemini-2-5-pro", "copilot/x1"),
        ("o4-mini", "copilot/o4-mini-2025-04-16"),
        ("o4-mini-2025-04-16", "copilot/o4-mini-2025-04-16"),
        ("sonnet", "copilot/claude-sonnet-4.5"),
        ("claude-haiku-latest", "copilot/claude-haiku-4.5"),
    ],
)
def test_names_that_mean_a_model(name: str, key: str) -> None:
    found = find(name, MODELS)
    assert found is not None
    assert found.key == key


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpt-6",
        "claude-opus-4-5",
        "opus",
        "claude-3-5-haiku-20241022",
        "echo",
        "toolwire/echo",
        "o4-mini-2026-01-01",
    ],
)
def test_no_name_means_another_model(name: str) -> None:
    assert find(name, MODELS) is None


def test_our_own_models_are_not_lent_back() -> None:
    assert "toolwire/echo" not in [one.key for one in unique_models(MODELS)]
    assert unique_models([MODELS[1], MODELS[1]]) == [MODELS[1]]


def test_the_list_has_plain_ids_where_they_say_enough() -> None:
    lines = listing(MODELS)
    assert [line.id for line in lines][:4] == [
        "customendpoint/gpt-5",
        "copilot/gpt-5",
        "gpt-5-mini",
        "claude-sonnet-4.5",
    ]
    sonnet = next(model for model in MODELS if model.id == "claude-sonnet-4.5")
    assert (
        ModelLine(id="claude-sonnet-4.5", owner="copilot", title="Claude Sonnet 4.5", context=sonnet.max_input_tokens)
        in lines
    )
    assert all(find(line.id, MODELS) is not None for line in lines)
    assert len({line.id for line in lines}) == len(lines)
