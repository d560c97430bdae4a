"""How a back end's models are handled: the level of each, and what becomes of wrong calls."""

from __future__ import annotations

import pytest

from toolwire.config.file import BackendConfig
from toolwire.config.policy import Corrections, Policy, policy_of


@pytest.mark.parametrize(
    ("model", "level"),
    [("gpt-5", "check"), ("qwen-3", "retry"), ("qwen-3-off", "retry"), ("llama-off", "off"), ("QWEN-3", "check")],
)
def test_the_first_pattern_that_fits_goes_first(model: str, level: str) -> None:
    policy = Policy(guard="check", guards={"qwen-*": "retry", "*-off": "off"})
    assert policy.guard_for(model) == level


def test_without_patterns_all_are_treated_alike() -> None:
    assert Policy(guard="repair").guard_for("anything") == "repair"
    assert Policy().guard_for("anything") == "repair"


def test_what_the_owner_wrote_is_what_is_done() -> None:
    config = BackendConfig(
        name="b",
        kind="demo",
        guard="retry",
        guards={"a*": "off"},
        max_corrections=7,
        policy="text",
        verbatim="never",
    )
    assert policy_of(config) == Policy(
        verbatim="never", guard="retry", guards={"a*": "off"}, terms=Corrections(corrections=7, policy="text")
    )


def test_by_default_calls_are_repaired_and_would_be_corrected_twice() -> None:
    policy = policy_of(BackendConfig(name="b", kind="demo"))
    assert (policy.guard_for("m"), policy.terms) == ("repair", Corrections(corrections=2, policy="pass"))


def test_the_first_pattern_decides_the_context_window() -> None:
    policy = Policy(context_windows={"llama-3*": 8192, "llama-*": 4096})
    assert [policy.context_for(name) for name in ("llama-3-8b", "llama-2", "qwen")] == [8192, 4096, 0]
