"""Calls held against what was offered: what is found, what is counted, what the model and the client are told."""

from __future__ import annotations

import time

import pytest

from tests.calls.streams import BROKEN, REPAIRABLE, RIGHT, SCHEMA, WEATHER, WRONG, call, checking
from toolwire.calls.arguments import Invalid, Repaired, Valid
from toolwire.calls.schemas import Schemas
from toolwire.calls.tools.encoded_arguments import ArgumentDecoder, Encoding
from toolwire.calls.tools.names import ToolNames
from toolwire.calls.validation import (
    CallMade,
    CallTally,
    CallValidator,
    CutCall,
    Finding,
    ToolOffer,
    UnknownCall,
    call_text,
    cut_choices,
    fault_text,
    is_open,
    span_of,
    why_of,
    with_span,
    without_end,
    without_span,
)
from toolwire.events import Finished
from toolwire.types import Choice, Tool, ToolCall


def test_what_is_neither_wrong_nor_unknown_nor_cut_was_accepted() -> None:
    assert CallTally(made=10, invalid=4, repaired=3, unknown=2, cut=1).accepted == 3


def test_two_answers_share_no_numbers() -> None:
    first, second = CallTally(), CallTally()
    first.repairs["typed"] += 1
    assert not second.repairs
    assert second.accepted == 0


def test_calls_are_named_up_to_a_bound_and_names_that_are_none_are_not() -> None:
    tally = CallTally()
    for number in range(200):
        tally.note(ToolCall(id=f"c{number}", name="f", raw=""), "right")
    assert len(tally.calls) == 100
    assert tally.unknown_names == ()

    tally = CallTally()
    for name, outcome in (("a", "unknown"), ("a", "unasked"), ("b", "barred"), ("some words", "unknown"), ("c", "cut")):
        tally.note(ToolCall(id="i" * 300, name=name, raw=""), outcome)
    assert tally.unknown_names == ("a", "b", "a name that no tool can have")
    assert tally.calls[0] == CallMade("i" * 100, "a", "unknown")
    assert CallTally().calls == []


SECRET = "sk-very-secret"


def find(found: CallValidator, made: ToolCall, *, is_cut: bool = False, may_repair: bool = True) -> Finding:
    return found.find(made, is_cut=is_cut, may_repair=may_repair)


def numbers(tally: CallTally) -> tuple[int, ...]:
    return tally.made, tally.invalid, tally.repaired, tally.unknown, tally.cut, tally.accepted


@pytest.mark.parametrize(
    ("made", "is_cut", "kind", "counted"),
    [
        (call(RIGHT), False, Valid, (1, 0, 0, 0, 0, 1)),
        (call(REPAIRABLE), False, Repaired, (1, 1, 1, 0, 0, 0)),
        (call(WRONG), False, Invalid, (1, 1, 0, 0, 0, 0)),
        (call(RIGHT, "climate"), False, UnknownCall, (1, 0, 0, 1, 0, 0)),
        (call(BROKEN), False, Invalid, (1, 1, 0, 0, 0, 0)),
        (call(BROKEN), True, CutCall, (1, 0, 0, 0, 1, 0)),
        (call(BROKEN, "climate"), True, CutCall, (1, 0, 0, 0, 1, 0)),
        (call(RIGHT), True, Valid, (1, 0, 0, 0, 0, 1)),
        (call(WRONG), True, Invalid, (1, 1, 0, 0, 0, 0)),
    ],
)
def test_each_call_is_found_to_be_one_thing(made: ToolCall, is_cut: bool, kind: type, counted: tuple[int, ...]) -> None:
    found = checking()
    assert type(find(found, made, is_cut=is_cut)) is kind
    assert numbers(found.tally) == counted


def test_where_nothing_may_be_repaired_nothing_is() -> None:
    found = checking()
    assert isinstance(find(found, call(REPAIRABLE), may_repair=False), Invalid)
    assert not found.tally.repairs


def test_repairs_are_counted_by_what_was_done() -> None:
    found = checking()
    find(found, call(REPAIRABLE))
    assert dict(found.tally.repairs) == {"typed": 1}


def test_free_text_is_never_wrong_and_never_cut() -> None:
    patch = Tool(name="apply_patch", kind="custom")
    found = checking(patch)
    assert isinstance(find(found, call("*** Begin", "apply_patch"), is_cut=True), Valid)
    native = ToolCall(id="c", name="anything", raw="ls", kind="custom")
    assert isinstance(find(found, native), Valid)
    assert found.tally.accepted == 2


def test_H126_a_tool_that_another_server_may_offer_is_not_unknown() -> None:
    found = checking(is_all=False)
    assert isinstance(find(found, call(WRONG, "climate")), Valid)
    assert isinstance(find(found, call(WRONG)), Invalid)


def test_nulls_that_the_schema_for_the_back_end_asked_for_are_no_fault() -> None:
    decoder = ArgumentDecoder({"weather": Encoding(has_nulls=True)}, [WEATHER], Schemas())
    found = CallValidator(ToolOffer([WEATHER]), Schemas(), CallTally(), decoder)
    decoded = found.decoded(call('{"city": "Oslo", "days": null}'))
    assert decoded.raw == '{"city":"Oslo"}'
    assert find(found, decoded) == Valid(args={"city": "Oslo"})
    assert numbers(found.tally) == (1, 0, 0, 0, 0, 1)


@pytest.mark.parametrize("name", ["functions.weather", "Weather", "tools/weather", "default_api:weather"])
def test_H116_a_name_written_another_way_means_the_same_tool(name: str) -> None:
    offer = ToolOffer([WEATHER, Tool(name="now")])
    assert offer.tool(name) is WEATHER
    assert offer.named(call(RIGHT, name)).name == "weather"


def test_a_name_that_two_tools_could_mean_means_neither() -> None:
    offer = ToolOffer([Tool(name="get_now"), Tool(name="get.now")])
    assert offer.tool("get-now") is None
    assert offer.named(call(RIGHT, "get-now")).name == "get-now"


def test_a_call_by_its_right_name_stays_the_same_object() -> None:
    made = call()
    assert ToolOffer([WEATHER]).named(made) is made


def test_a_tool_in_a_namespace_gives_its_call_the_namespace() -> None:
    offer = ToolOffer([Tool(name="close", namespace="agents", schema={"type": "object"})])
    named = offer.named(call("{}", "functions.close"))
    assert (named.name, named.namespace) == ("close", "agents")


def test_flat_names_are_left_to_the_map_that_made_them() -> None:
    names = ToolNames()
    tool = Tool(name="weather.now", schema=SCHEMA)
    label = names.add(tool)
    offer = ToolOffer([Tool(name=label, schema=SCHEMA)], names)
    made = call(RIGHT, f"functions.{label}")
    assert offer.named(made) is made
    assert offer.tool(made.name) is tool


def test_hosted_tools_are_not_the_models_to_call() -> None:
    found = checking(WEATHER, Tool(name="web_search", kind="hosted"))
    made = call("{}", "web_search")
    finding = find(found, made)
    assert isinstance(finding, UnknownCall)
    assert found.feedback(made, finding)["valid_tools"] == ["weather"]


def test_the_feedback_uses_the_name_that_the_model_used() -> None:
    found = checking()
    made = call(WRONG)
    finding = find(found, made)
    assert isinstance(finding, Invalid)
    told = found.feedback(made, finding)
    assert (told["error"], told["tool"], told["missing"]) == ("invalid_arguments", "weather", ["city"])


NESTED = {
    "type": "object",
    "properties": {
        "env": {"type": "object", "additionalProperties": {"type": "integer"}},
        "list": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        (f'{{"env": {{"{SECRET}": "{SECRET}"}}}}', "env"),
        (f'{{"{SECRET}": 1}}', "the whole"),
        (f'{{"list": [{{"{SECRET}": 1}}]}}', "list"),
        (f'"{SECRET}"', "not one JSON object"),
        (SECRET, "not one JSON object"),
    ],
)
def test_no_word_of_the_arguments_is_in_a_loss(raw: str, where: str) -> None:
    found = checking(Tool(name="run", schema=NESTED))
    made = call(raw, "run")
    finding = find(found, made)
    assert isinstance(finding, Invalid)
    [loss] = found.flag(made, finding)
    assert SECRET not in f"{loss}"
    assert where in loss.why
    assert loss.where == 'call "run"'


def test_a_loss_names_every_member_at_fault() -> None:
    properties = {"path": {"type": "string"}, "mode": {"type": "integer"}, "size": {"type": "integer"}}
    found = checking(Tool(name="run", schema={"properties": properties, "required": ["path"]}))
    made = call('{"mode": "x", "size": "y"}', "run")
    finding = find(found, made)
    assert isinstance(finding, Invalid)
    [loss] = found.flag(made, finding)
    assert loss.why == "missing: path; the arguments do not fit the schema at: mode, size"
    assert fault_text(finding).count("; expected integer") == 2


def test_a_name_with_arguments_in_it_is_not_reported() -> None:
    found = checking()
    made = call("{}", f'weather(city="{SECRET}")')
    finding = find(found, made)
    assert isinstance(finding, UnknownCall)
    [loss] = found.flag(made, finding)
    assert loss.feature == "call.unknown_tool"
    assert SECRET not in f"{loss}"


def test_a_name_that_only_the_client_could_think_of_is_reported() -> None:
    found = checking(Tool(name="my tool", schema=SCHEMA))
    assert found.where(call(name="my tool")) == 'call "my tool"'


def test_ten_thousand_wrong_calls_are_counted_and_the_first_are_reported() -> None:
    found = checking()
    losses = []
    for _ in range(10_000):
        made = call(WRONG)
        finding = find(found, made)
        assert isinstance(finding, Invalid)
        losses += found.flag(made, finding)
    assert len(losses) == 100
    assert "only counted" in losses[-1].why
    assert found.tally.invalid == 10_000


def test_who_gets_everything_wrong_is_not_repaired_for_ever() -> None:
    found = checking()
    findings = [find(found, call(REPAIRABLE)) for _ in range(150)]
    assert found.tally.repaired == 100
    assert {type(finding) for finding in findings[100:]} == {Invalid}


def test_a_thousand_tools_and_as_many_calls_by_wrong_names_cost_little() -> None:
    offer = ToolOffer([Tool(name=f"tool_{number}") for number in range(1000)])
    start = time.process_time()
    for number in range(1000):
        assert offer.named(call(RIGHT, f"functions.tool_{number}")).name == f"tool_{number}"
    assert time.process_time() - start < 1.0


def test_the_choices_that_ended_early() -> None:
    reasons = ("stop", "length", "tool_calls", "refused", "other")
    choices = tuple(Choice(reason=reason, index=index) for index, reason in enumerate(reasons))  # type: ignore[arg-type] # they are
    assert cut_choices(Finished(choices=choices)) == {1, 3}


def test_reasons_are_sentences_of_bounded_length() -> None:
    found = checking()
    finding = find(found, call('{"city": "' + "x" * 5000 + '", "days": []}'))
    assert isinstance(finding, Invalid)
    assert fault_text(finding).startswith("but the arguments do not fit (days: ")
    assert len(fault_text(finding)) < 500
    assert fault_text(UnknownCall()) == "a tool that was not offered"


def test_a_call_as_words_keeps_its_arguments_to_the_byte() -> None:
    assert call_text(call('{"a":  1e400}', "x"), "why") == 'The model called "x", why: {"a":  1e400}'


@pytest.mark.parametrize(
    ("made", "is_cut", "kind", "counted"),
    [
        (with_span(call("{}", "tool_call"), "<tool_call>{", "no end"), False, Invalid, (1, 1, 0, 0, 0, 0)),
        (with_span(call("{}", "tool_call"), "<tool_call>{", "no end"), True, CutCall, (1, 0, 0, 0, 1, 0)),
        (with_span(call("{}"), "<tool_call>{", "no end"), False, Invalid, (1, 1, 0, 0, 0, 0)),
        (with_span(call(REPAIRABLE), "<tool_call>{", "no end"), False, Repaired, (1, 1, 1, 0, 0, 0)),
        (without_end(call(RIGHT)), False, Valid, (1, 0, 0, 0, 0, 1)),
        (without_end(call(RIGHT)), True, CutCall, (1, 0, 0, 0, 1, 0)),
    ],
)
def test_written_calls_that_have_no_end(made: ToolCall, is_cut: bool, kind: type, counted: tuple[int, ...]) -> None:
    found = checking()
    finding = find(found, made, is_cut=is_cut)
    assert type(finding) is kind
    assert numbers(found.tally) == counted
    if isinstance(finding, Invalid):
        assert found.feedback(made, finding)["error"] == "unreadable_call"
        assert call_text(made, "x") == "<tool_call>{"


CALL = ToolCall(id="call_1", name="weather", raw="{", extra={"chat": {"x": 1}})


def test_a_span_comes_back_and_goes_away() -> None:
    marked = with_span(CALL, "<tool_call>{", "it has no end")
    assert (span_of(marked), why_of(marked)) == ("<tool_call>{", "it has no end")
    assert marked.extra["chat"] == {"x": 1}
    assert without_span(marked) == CALL


def test_any_other_call_has_none() -> None:
    assert (span_of(CALL), why_of(CALL)) == ("", "")
    assert without_span(CALL) is CALL


def test_a_call_without_its_end_says_so() -> None:
    marked = without_end(CALL)
    assert is_open(marked)
    assert (span_of(marked), why_of(marked)) == ("", "")
    assert not is_open(CALL)
    assert not is_open(with_span(CALL, "x", "y"))
    assert without_span(marked) == CALL
