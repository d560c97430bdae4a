from __future__ import annotations

import pytest

from tests.check.damages import KINDS, check
from toolwire.check.results import AREAS
from toolwire.check.runner import CheckOptions, plan


@pytest.mark.slow
@pytest.mark.parametrize("dialect", KINDS)
def test_the_demo_model_passes_in_every_dialect(good: str, dialect: str) -> None:
    report = check(good, dialect, is_quick=False)
    assert report.faults == frozenset()
    assert [report.verdict(area) for area in AREAS].count("fail") == 0
    assert report.schemas.valid == report.schemas.total == 25
    assert report.requests <= plan(CheckOptions()).requests * 1.1


def test_an_unreachable_endpoint_fails_with_one_result() -> None:
    report = check("http://127.0.0.1:9", "chat")
    assert [result.name for result in report.results] == ["text"]
    assert report.faults == {"http.unreachable"}


def test_a_quick_check_sends_half_of_the_requests() -> None:
    assert plan(CheckOptions(is_quick=True)).requests * 1.9 < plan(CheckOptions()).requests
