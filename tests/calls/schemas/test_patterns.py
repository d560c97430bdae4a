"""Patterns, kept harmless."""

from __future__ import annotations

import time

import pytest

from toolwire.calls.schemas.patterns import MOST, Patterns

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("pattern", ["^[a-z0-9-]{1,64}$", r"^\d{4}-\d\d-\d\d$", "^.{1,200}$", r"\p{L}+", "(a+)+$", ""])
def test_what_the_linear_engine_takes_is_not_slow(pattern: str) -> None:
    patterns = Patterns()
    assert patterns.read(pattern) == pattern
    assert not patterns.needs_backtracking


@pytest.mark.parametrize("pattern", ["^(?!x)", r"(a)\1", "(?<=a)b"])
def test_what_needs_the_other_engine_is_marked(pattern: str) -> None:
    patterns = Patterns()
    assert patterns.read(pattern) == pattern
    assert patterns.is_slow(pattern)


@pytest.mark.parametrize("pattern", ["(", "[", "a" * 2000, "((a{1,1000}){1,1000}){1,1000}"])
def test_what_cannot_be_run_is_left_out(pattern: str) -> None:
    assert Patterns().read(pattern) == ""


def test_many_large_patterns_cost_little() -> None:
    started = time.process_time()
    patterns = Patterns()
    read = [patterns.read(rf"(\p{{L}}{{1,200}}|x){number}") for number in range(500)]
    assert len([pattern for pattern in read if pattern]) <= MOST
    assert time.process_time() - started < 10


def test_only_a_few_large_patterns_are_compiled() -> None:
    patterns = Patterns()
    taken = [patterns.read(f"^.{{1,{number}}}$") for number in range(100, 120)]
    assert all(taken[:6])
    assert not any(taken[6:])
    assert patterns.read("^small$")
