"""Model names: what is spelling, what is a wish, and what is another model."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.wire.model_names import EFFORTS, Spelling, is_adorned, readings_of, spelling_of


def stems(name: str) -> list[str]:
    return [reading.stem for reading in readings_of(name, ())]


@pytest.mark.parametrize(
    ("name", "stem", "date", "provider"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5", "", ""),
        ("Claude-Sonnet-4.5", "claude-sonnet-4-5", "", ""),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", "20250929", ""),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5", "20250929", ""),
        ("gpt-5.5-2026-04-01", "gpt-5-5", "20260401", ""),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku", "", ""),
        ("llama3:latest", "llama3", "", ""),
        ("anthropic/claude-3.5-haiku", "claude-3-5-haiku", "", "anthropic"),
        ("models/gemini-2.5-pro", "gemini-2-5-pro", "", ""),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "20250929", "anthropic"),
        ("us.anthropic.claude-opus-4-20250514-v1:0", "claude-opus-4", "20250514", "anthropic"),
        ("qwen3:8b", "qwen3:8b", "", ""),
        ("deepseek/deepseek-r1:free", "deepseek-r1:free", "", "deepseek"),
        ("gpt-5.5-high", "gpt-5-5-high", "", ""),
        ("llama-3.8b", "llama-3.8b", "", ""),
        ("some-user/llama-3", "some-user/llama-3", "", ""),
        ("azure/gpt-5.5", "azure/gpt-5-5", "", ""),
        ("gpt-4-1106-preview", "gpt-4-1106-preview", "", ""),
        ("model-20261399", "model-20261399", "", ""),
        ("-latest", "-latest", "", ""),
        ("-20250929", "-20250929", "", ""),
        ("claude-sonnet-4-5-v1:0", "claude-sonnet-4-5-v1:0", "", ""),
    ],
)
def test_the_meaning_of_a_listed_name(name: str, stem: str, date: str, provider: str) -> None:
    spelling = spelling_of(name)
    assert spelling is not None
    assert (spelling.stem, spelling.date, spelling.provider, spelling.effort) == (stem, date, provider, "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-sonnet-4-5[1m]", ["claude-sonnet-4-5[1m]", "claude-sonnet-4-5"]),
        ("anthropic/claude-opus-4:thinking", ["claude-opus-4:thinking", "claude-opus-4"]),
        ("gpt-5.5-high", ["gpt-5-5-high", "gpt-5-5"]),
        ("gpt-5.5-2026-04-01-high", ["gpt-5-5-2026-04-01-high", "gpt-5-5"]),
        ("gpt-5.5-codex", ["gpt-5-5-codex", "gpt-5-5"]),
        ("gpt-5-codex:high", ["gpt-5-codex:high", "gpt-5-codex", "gpt-5"]),
        ("gpt-5.1-codex-max", ["gpt-5-1-codex-max"]),
        ("gpt-5.1-codex-mini", ["gpt-5-1-codex-mini"]),
        ("mistral-medium", ["mistral-medium"]),
        ("mistral(medium)", ["mistral(medium)", "mistral"]),
        ("qwen-max", ["qwen-max"]),
        ("qwen3:8b", ["qwen3:8b"]),
        ("gpt-5.5-high-low", ["gpt-5-5-high-low", "gpt-5-5-high"]),
        ("x1[1m]:free(high):thinking", ["x1[1m]:free(high):thinking", "x1[1m]:free(high)", "x1[1m]:free", "x1[1m]"]),
        ("(high)", ["(high)"]),
    ],
)
def test_what_can_be_meant_the_nearest_first(name: str, expected: list[str]) -> None:
    assert stems(name) == expected


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize(
    "form", ["gpt-5.5-{}", "gpt-5.5:{}", "gpt-5.5({})", "gpt-5.5[{}]", "GPT-5.5-{}", "openai/gpt-5.5-{}"]
)
def test_an_effort_in_a_name(form: str, effort: str) -> None:
    last = readings_of(form.format(effort), ())[-1]
    assert (last.stem, last.effort) == ("gpt-5-5", effort)


def test_a_name_that_begins_with_a_back_end_is_not_read() -> None:
    assert readings_of("openai/gpt-5.5-high", {"openai"}) == []
    assert readings_of("OpenAI/gpt-5.5-high", {"openai"}) == []
    assert readings_of("anthropic/x", {"openai"}) != []


@pytest.mark.parametrize("name", ["", "x" * 201, "modèle-20250929", "gpt‑5.5"])
def test_what_is_not_read(name: str) -> None:
    assert readings_of(name, ()) == []
    assert spelling_of(name) is None
    assert not is_adorned(name)


def test_other_snapshots_and_makers_do_not_fit() -> None:
    plain, dated = Spelling("a"), Spelling("a", "20250101")
    assert plain.fits(dated)
    assert dated.fits(plain)
    assert not dated.fits(Spelling("a", "20250102"))
    assert not Spelling("a", "", "openai").fits(Spelling("a", "", "google"))
    assert Spelling("a", "", "openai").fits(plain)


def test_adorned_names() -> None:
    adorned = ["a-20250101", "gpt-5.5-high", "a[1m]", "openai/a", "gpt-5.5-codex", "models/a", "a-2025-01-01"]
    assert [name for name in adorned if not is_adorned(name)] == []
    assert [name for name in ["gpt-5.5", "GPT-5.5", "qwen3:8b", "local/a"] if is_adorned(name)] == []


@given(st.text(alphabet="ab1-.:@[]()/ codexhigh2025", max_size=60))
def test_stems_only_get_shorter_and_stay_a_beginning(name: str) -> None:
    readings = readings_of(name, ())
    assert len(readings) <= 8
    whole = name.lower().replace(".", "-")
    for reading in readings:
        assert reading.stem
        assert reading.stem.replace(".", "-") in whole


def test_reading_is_quick_whatever_comes() -> None:
    before = time.process_time()
    for name in ("-high" * 40, "[1m]" * 50, "1.1" * 66, "-2025" * 40, "a/" * 100):
        for _ in range(100):
            readings_of(name, ())
    assert time.process_time() - before < 1
