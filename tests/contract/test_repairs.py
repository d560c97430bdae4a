"""Damaged calls are restored or stay invalid: real schemas, every damage of bench/repairs, and truncation at every position."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import pytest
from bench.repairs.damage import Damage
from bench.repairs.measure import Measurement, Tally, every_damage, pairs, same, show
from bench.repairs.samples import Sample, bundled, livened
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples, is_thorough
from toolwire.calls.arguments import Invalid, Repaired, judge
from toolwire.calls.arguments.completion import completion
from toolwire.calls.arguments.stream import ArgumentStream
from toolwire.calls.schemas import Schemas
from toolwire.types import Tool, ToolCall
from toolwire.wire.exact_json import decode, encode

SCHEMAS = Schemas()


@cache
def samples() -> list[Sample]:
    return bundled()


def measured(chosen: list[Sample], damages: list[Damage], seed: int) -> list[Tally]:
    return list(Measurement(seed).run(chosen, damages))


def assert_good(tallies: list[Tally]) -> None:
    lines: list[str] = []
    is_good = show(tallies, lines.append)
    wrong = [(tally.name, *example) for tally in tallies for example in tally.examples if example[0] == "wrong"]
    assert is_good, "\n".join([*lines, *map(str, wrong[:5])])


def test_the_samples_are_valid() -> None:
    measurement = Measurement()
    assert len(samples()) > 150
    assert [sample.tool for sample in samples() if not measurement.is_right(sample)] == []


def test_H025_H113_H130_H131_damaged_calls_come_back_equal() -> None:
    tallies = measured(samples()[::8], every_damage(), seed=1)
    assert_good(tallies)
    assert all(sum(tally.counts.values()) for tally in tallies if tally.name not in ("null_as_text", "triple_quotes"))


def test_streamed_calls_are_repaired_like_whole_ones() -> None:
    """What was sent while a call grew never prevents its repair, and is never changed by it."""
    measurement, repaired = Measurement(), 0
    for damage in every_damage():
        for index, sample in enumerate(samples()[::24]):
            found = measurement.damaged(damage, sample, Random(f"{damage.name}/{index}"))
            repaired += found is not None and is_repaired_in_pieces(*found)
    assert repaired > 500


def is_repaired_in_pieces(sample: Sample, text: str) -> bool:
    tool = Tool(name=sample.tool, schema=sample.schema)
    whole = judge(ToolCall(id="c", name=tool.name, raw=text), tool, SCHEMAS)
    checker = SCHEMAS.of(tool.schema).checker
    if not isinstance(whole, Repaired) or checker is None:
        return False
    for size in (1, 6):
        arguments = ArgumentStream(checker.shape, tool.name)
        for start in range(0, len(text), size):
            arguments.feed(text[start : start + size])
        rest = completion(arguments.sent, whole.args)
        assert rest is not None, (text, arguments.sent, whole.args)
        assert same(decode(arguments.sent + rest), whole.args)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3] if is_thorough() else [2])
def test_every_damage_and_two_at_once(seed: int) -> None:
    assert_good(measured(samples(), every_damage() + pairs(seed, 60), seed))


@pytest.mark.slow
def test_H020_H031_truncated_calls_are_never_completed() -> None:
    tallies = list(Measurement(4).run_cuts(samples(), 40))
    assert [(tally.name, tally.wrong) for tally in tallies if tally.wrong] == []
    assert tallies[0].counts.keys() == {"missed"}, "a call that is known to be cut was repaired"


def verdict(sample: Sample, text: str, is_cut: bool) -> Any:
    call = ToolCall(id="call_1", name=sample.tool, raw=text)
    return judge(call, Tool(name=sample.tool, schema=sample.schema), SCHEMAS, is_cut=is_cut)


names = st.text(st.sampled_from("abcdé_- "), min_size=1, max_size=6)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


def described(value: Any, more: list[str]) -> dict[str, Any]:
    """A schema that this value fits and that knows all its members, with a few more that may be left out."""
    if isinstance(value, dict):
        known = {name: described(inner, more[1:]) for name, inner in value.items()}
        return {"type": "object", "properties": {**{name: {} for name in more[:1]}, **known}}
    if isinstance(value, list):
        return {"type": "array", "items": described(value[0], []) if len(value) == 1 else {}}
    kinds = {str: "string", bool: "boolean", int: "integer", type(None): "null"}
    return {"type": kinds[type(value)]}


@pytest.mark.slow
@examples(60)
@given(st.dictionaries(names, values, min_size=1, max_size=5), st.lists(names, max_size=3))
def test_H031_no_prefix_of_a_call_becomes_another_call(arguments: dict[str, Any], more: list[str]) -> None:
    """Cut and known to be: invalid. Not known to be: invalid, or the very call, where only brackets were missing."""
    assert_no_prefix_is_another_call(Sample("tool", described(arguments, more), arguments))


@pytest.mark.parametrize("index", range(0, 190, 12))
def test_H031_no_prefix_of_a_real_call_becomes_another_call(index: int) -> None:
    assert_no_prefix_is_another_call(livened(samples()[index], Random(index)))


def assert_no_prefix_is_another_call(sample: Sample) -> None:
    text = encode(sample.arguments).decode()
    for end in range(len(text)):
        assert isinstance(verdict(sample, text[:end], is_cut=True), Invalid), text[:end]
        found = verdict(sample, text[:end], is_cut=False)
        if isinstance(found, Repaired):
            assert same(found.args, sample.arguments), text[:end]
            assert set(text[end:]) <= set("}]"), text[:end]
        else:
            assert isinstance(found, Invalid), text[:end]
