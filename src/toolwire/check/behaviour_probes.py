"""Probes of behaviour: whether the model uses tools as an agent needs, and whether tool choices have an effect."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from ..types import Message, Text, ToolChoice
from .questions import (
    LABELLED,
    RESULT,
    RESULT_MARK,
    TIME,
    TOOLS,
    WEATHER,
    WRITE,
    LabelledQuestion,
    ask,
    named,
    with_results,
)
from .results import CallDecision, Outcome
from .session import CheckSession, ProbeAnswer
from .wire.frames import SeenAnswer

_WEATHER = "What is the weather in Paris?"
_QUICK = 6
_LINES = 40


async def run(session: CheckSession, baseline: Sequence[bool] | None = None, baseline_name: str = "labels") -> None:
    """baseline: for each question, whether another endpoint called a tool; by default the labels of the questions."""
    await _choices(session)
    await _one_at_a_time(session)
    await _result(session)
    await _second_step(session)
    if not session.is_quick:
        await _two_calls(session)
        await _long_arguments(session)
        await _long_history(session)
    await _decisions(session, baseline, baseline_name)


async def decisions(session: CheckSession) -> list[bool]:
    """For each question, whether the endpoint calls a tool."""
    return [bool(answer and answer.calls) for answer in [await _decide(session, one) for one in questions(session)]]


def questions(session: CheckSession) -> tuple[LabelledQuestion, ...]:
    return LABELLED[:_QUICK] if session.is_quick else LABELLED


async def _decide(session: CheckSession, question: LabelledQuestion) -> SeenAnswer | None:
    return (await session.ask(ask(session.model, question.text, TOOLS), "question")).answer


async def _choices(session: CheckSession) -> None:
    """A server enforces tool choices, so they do not depend on the model."""
    for name, choice in (
        ("tool_choice none", ToolChoice(mode="none")),
        ("tool_choice required", ToolChoice(mode="required")),
        ("tool_choice named", named(TIME)),
    ):
        found = await session.ask(ask(session.model, _WEATHER, (WEATHER, TIME), choice), name)
        if found.refusal:
            found.log.add("choice.refused", "request", found.refusal)
            session.add(name, "behaviour", [found], outcome="unsupported", note=found.refusal)
            continue
        called = [call.name for call in found.answer.calls] if found.answer is not None else []
        is_right = {"none": not called, "required": bool(called), "named": bool(called) and set(called) == {TIME.name}}
        if found.answer is not None and not found.has_faults:
            found.log.expect(
                is_right[choice.mode], "choice.ignored", "calls", f"called: {', '.join(called) or 'nothing'}"
            )
        session.add(name, "behaviour", [found])


async def _one_at_a_time(session: CheckSession) -> None:
    text = "What is the weather in Paris and what time is it in Tokyo? Use both tools."
    found = await session.ask(ask(session.model, text, (WEATHER, TIME), parallel_calls=False), "one call at a time")
    calls = len(found.answer.calls) if found.answer is not None else 0
    if calls > 1:
        found.log.add("choice.parallel", "calls", f"{calls} calls")
    outcome: Outcome | None = "unsupported" if found.refusal else None if calls else "untested"
    session.add("one call at a time", "behaviour", [found], outcome=outcome, note=found.refusal)


async def _two_calls(session: CheckSession) -> None:
    text = "What is the weather in Paris, in Rome and in Oslo? Call the tool once for each city, all in one answer."
    found = await session.ask(ask(session.model, text, (WEATHER,), parallel_calls=True), "calls in parallel")
    calls = len(found.answer.calls) if found.answer is not None else 0
    session.add(
        "calls in parallel", "behaviour", [found], outcome=_shown(found, calls == 3), note=f"{calls} of 3 calls"
    )


async def _result(session: CheckSession) -> None:
    request = with_results(ask(session.model, _WEATHER, (WEATHER,)), (("get_weather", {"city": "Paris"}, RESULT),))
    question = Message(role="user", parts=(Text(text="Which code does the weather report have?"),))
    found = await session.ask(replace(request, messages=(*request.messages, question)), "result is used")
    is_used = found.answer is not None and RESULT_MARK in found.answer.text
    note = "" if is_used else "the answer does not contain the code of the result"
    session.add("result is used", "behaviour", [found], outcome=_shown(found, is_used), note=note)


async def _second_step(session: CheckSession) -> None:
    text = (
        "Get the weather in Paris with get_weather, and then the time in Tokyo with get_time. One tool after the other."
    )
    first = ask(session.model, text, (WEATHER, TIME))
    found = await session.ask(with_results(first, (("get_weather", {"city": "Paris"}, RESULT),)), "second step")
    called = [call.name for call in found.answer.calls] if found.answer is not None else []
    is_right = TIME.name in called
    session.add(
        "second step",
        "behaviour",
        [found],
        outcome=_shown(found, is_right),
        note="" if is_right else f"called: {', '.join(called) or 'nothing'}",
    )


async def _long_arguments(session: CheckSession) -> None:
    text = f"Write a file numbers.txt. Its content is the numbers from 1 to {_LINES}, each on its own line."
    found = await session.ask(
        ask(session.model, text, (WRITE,), named(WRITE), stream=True, max_tokens=2000), "long arguments"
    )
    length = 0
    if found.answer is not None and found.answer.calls:
        try:
            arguments = json.loads(found.answer.calls[0].arguments)
            length = len(str(arguments.get("content", "")).split()) if isinstance(arguments, dict) else 0
        except ValueError as error:
            found.log.add("schema.invalid_json", "arguments", str(error))
    is_right = length >= _LINES
    note = f"{length} of {_LINES} lines"
    session.add("long arguments", "behaviour", [found], outcome=_shown(found, is_right), note=note)


async def _long_history(session: CheckSession) -> None:
    cities = ("Oslo", "Rome", "Bern", "Riga", "Wien", "Prag", "Kiew", "Lima")
    calls = tuple(
        ("get_weather", {"city": city}, f"{city}: {number} degrees") for number, city in enumerate(cities, 11)
    )
    request = with_results(
        ask(session.model, "Get the weather of eight cities.", (WEATHER,)), calls, "How warm is it in Lima?"
    )
    found = await session.ask(request, "long history")
    if found.refusal:
        found.log.add("history.refused", "request", found.refusal)
    is_right = found.answer is not None and ("18" in found.answer.text or bool(found.answer.calls))
    session.add("long history", "behaviour", [found], outcome=_shown(found, is_right))


async def _decisions(session: CheckSession, baseline: Sequence[bool] | None, name: str) -> None:
    expected = [one.needs_call for one in questions(session)] if baseline is None else list(baseline)
    made = await decisions(session)
    counted = CallDecision(baseline=name)
    for wanted, called in zip(expected, made, strict=True):
        counted.right_calls += wanted and called
        counted.missed_calls += wanted and not called
        counted.extra_calls += called and not wanted
        counted.right_texts += not wanted and not called
    session.report.decision = counted
    note = f"F1 {counted.f1:.2f} against {name}: {counted.missed_calls} calls missed, {counted.extra_calls} too many"
    outcome: Outcome = "pass" if counted.f1 >= 0.73 else "unusual"  # what K2's verifier accepts
    session.add("calls where needed", "behaviour", [], outcome=outcome, note=note)


def _shown(found: ProbeAnswer, is_right: bool) -> Outcome | None:
    """What a weak model does not do is unusual, not a fault of the endpoint."""
    if found.refusal:
        return "unsupported"
    if any(deviation.is_fault for deviation in found.log.found.values()):
        return None
    return "pass" if is_right else "unusual"
