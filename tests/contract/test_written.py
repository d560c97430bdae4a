"""Calls in text are parsed correctly, and prose produces none: every format and damage of bench/written."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest
from bench.written.cases import Case, from_samples, is_right
from bench.written.measure import Measurement, Tally, every_damage
from bench.written.rounds import SETTINGS, run
from bench.written.tables import show_forms, show_prose

from tests.thorough import is_thorough
from toolwire.calls.schemas import Schemas

from .client_answers import Seen, see
from .client_requests import request_for
from .malformed.gateway import UpstreamReply, pieces, stage
from .malformed.kinds import DIALECTS
from .malformed.regular import ReplyContent, sse, stream

SEED = 3


@cache
def cases() -> list[Case]:
    return from_samples(SEED)


def measurement(every: int, verbatim_every: int = 0) -> Measurement:
    return Measurement(cases()[::every], SEED, verbatim_every)


def many(every: int, usually: int, verbatim_every: int = 0) -> Measurement:
    return measurement(every if is_thorough() else usually, verbatim_every)


def assert_good(is_good: bool, lines: list[str], tallies: list[Tally]) -> None:
    bad = [(tally.name, *example) for tally in tallies for example in tally.examples if example[0] != "broken"]
    assert is_good, "\n".join([*lines, *map(str, bad[:5])])


def assert_never_wrong(tallies: list[Tally]) -> None:
    wrong = [
        (tally.name, *example) for tally in tallies for example in tally.examples if example[0] in ("wrong", "uneven")
    ]
    assert all(tally.total for tally in tallies if tally.name != "single_backslashes")
    assert wrong == []


def assert_forms_are_read(found: Measurement) -> None:
    lines: list[str] = []
    told, untold = list(found.forms(is_instructed=True)), list(found.forms(is_instructed=False))
    assert_good(show_forms(told, untold, lines.append), lines, told + untold)
    assert all(tally.total for tally in told + untold)


def assert_prose_calls_nothing(found: Measurement) -> None:
    lines: list[str] = []
    told, untold = found.prose(is_instructed=True, count=7), found.prose(is_instructed=False, count=7)
    assert_good(show_prose(told, untold, lines.append), lines, told + untold)
    assert all(tally.total for tally in told + untold)


def test_the_cases_are_valid() -> None:
    schemas = Schemas()
    assert len(cases()) > 300
    assert [case.name for case in cases() if not is_right(case, schemas)] == []


def test_calls_come_back_in_every_form() -> None:
    assert_forms_are_read(measurement(60))


@pytest.mark.slow
def test_many_calls_come_back_in_every_form() -> None:
    assert_forms_are_read(many(4, usually=9, verbatim_every=3))


def test_prose_calls_nothing() -> None:
    assert_prose_calls_nothing(measurement(15))


@pytest.mark.slow
def test_much_prose_calls_nothing() -> None:
    assert_prose_calls_nothing(many(1, usually=2))


@pytest.mark.slow
def test_prose_calls_nothing_on_the_verbatim_path() -> None:
    assert_prose_calls_nothing(many(2, usually=7, verbatim_every=1))


@pytest.mark.slow
@pytest.mark.parametrize("is_instructed", [True, False])
def test_damage_never_produces_another_call(is_instructed: bool) -> None:
    assert_never_wrong(list(many(3, usually=6).damages(every_damage(), is_instructed=is_instructed)))


@pytest.mark.slow
@pytest.mark.parametrize("is_instructed", [True, False])
def test_no_cut_makes_another_call_where_the_limit_is_known(is_instructed: bool) -> None:
    assert_never_wrong(list(measurement(1).cuts(is_instructed=is_instructed, is_known=True)))


LINE = '{"type": "tool_call", "name": "get_weather", "arguments": {"location": "Paris"}}'


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(
    "dialect", [name for name in DIALECTS if name != "gemini"]
)  # its models write no calls as text
def test_a_json_line_after_a_sentence_is_a_call_for_every_client(dialect: str, client: str, is_stream: bool) -> None:
    async def ask(text: str) -> Seen:
        content = ReplyContent(tuple(text[start : start + 5] for start in range(0, len(text), 5)))
        upstream_reply = UpstreamReply(
            pieces(sse(stream(dialect, content)), "frames"), "text/event-stream", is_cut=False
        )
        async with stage() as opened:
            reply = await opened.ask(
                client, request_for(client, f"auto-{dialect}/m", "hi", stream=is_stream), upstream_reply
            )
        return see(client, reply.body, stream=is_stream)

    seen = asyncio.run(ask(f"I will look.\n{LINE}"))
    assert seen.text.strip() == "I will look."
    assert [(call.name, call.arguments) for call in seen.calls] == [("get_weather", {"location": "Paris"})]
    assert seen.finish == "tool_calls"
    wrong = LINE.replace('"Paris"', "5")
    seen = asyncio.run(ask(f"I will look.\n{wrong}"))
    assert (seen.text, seen.calls, seen.finish) == (f"I will look.\n{wrong}", (), "stop")


def test_corrections_increase_the_share_of_correct_answers() -> None:
    clear = [damage for damage in every_damage() if damage.hope == "clear"]
    check, _, retry, required = (run(cases()[::12], clear, 0.5, setting, SEED)["right"] for setting in SETTINGS)
    assert check < retry <= required
