from __future__ import annotations

import pytest

from tests.check.damages import body_value, cut_arguments, faults_of, other_name, other_type
from toolwire.check.questions import WEATHER
from toolwire.check.schema_probes import judge_call
from toolwire.check.wire.frames import SeenCall

DEFECTS = {"schema.invalid_json": cut_arguments, "schema.unknown_name": other_name, "schema.mismatch": other_type}


@pytest.mark.slow
@pytest.mark.parametrize("code", DEFECTS)
def test_damaged_arguments_are_counted_in_their_bucket(good: str, code: str) -> None:
    assert code in faults_of(good, "chat", body_value(DEFECTS[code]))


@pytest.mark.parametrize(
    ("name", "arguments", "bucket"),
    [
        ("get_weather", '{"city": "Oslo"}', "valid"),
        ("get_weather", '{"city": "Oslo"', "invalid_json"),
        ("get_weather", "", "invalid_json"),
        ("weather", '{"city": "Oslo"}', "unknown_name"),
        ("get_weather", '{"city": 7}', "schema_mismatch"),
        ("get_weather", "{}", "schema_mismatch"),
        ("get_weather", '{"city": "Oslo", "more": 1}', "schema_mismatch"),
    ],
)
def test_a_call_belongs_to_one_bucket(name: str, arguments: str, bucket: str) -> None:
    assert judge_call(SeenCall(id="c", name=name, arguments=arguments), WEATHER)[0] == bucket
