"""Calls that are corrected before they leave, on a back end that plays one answer after the other."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.backends.event_contract import check_events
from tests.calls.streams import (
    BROKEN,
    RAWS,
    REPAIRABLE,
    RIGHT,
    SCHEMA,
    WEATHER,
    WRONG,
    call,
    checking,
    events_of,
    quickly,
    streams,
)
from toolwire.backends.base import EventReply, Model
from toolwire.calls.validation import CallValidator
from toolwire.config.policy import Corrections
from toolwire.errors import GatewayError, UpstreamError
from toolwire.events import Event, Failed, Noted, PartDelta, PartEnded, PartStarted, Started, content_of, fold
from toolwire.pipeline.correction import CorrectingBackend
from toolwire.pipeline.grammar import GrammarMemory, GrammarSupport
from toolwire.profiles import LLAMA_CPP, PLAIN, PLAIN_CHAT, IdRule
from toolwire.types import Loss, Message, Part, Reasoning, Request, Sampling, Text, Tool, ToolCall, ToolResult, Usage
from toolwire.wire.exact_json import BadJson

Answer: TypeAlias = list[Event] | GatewayError | BadJson


class Played:
    """Each request gets the next answer, past the end the last one again; an error is raised."""

    name = "played"
    dialect = ""
    profile = PLAIN
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, *answers: Answer, losses: tuple[Loss, ...] = ()) -> None:
        self.asked: list[Request] = []
        self.closed = 0
        self._answers = list(answers)
        self._losses = losses

    async def models(self) -> list[Model]:
        return [Model(id="m")]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        assert not is_verbatim
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return EventReply(events=self._play(answer), losses=self._losses, headers={"x": str(len(self.asked))})

    async def close(self) -> None:
        raise AssertionError("it belongs to somebody else")

    async def _play(self, events: list[Event]) -> AsyncIterator[list[Event]]:
        try:
            for event in events:
                if isinstance(event, Failed) and event.error.code == "raised":
                    raise event.error
                yield [event]
        finally:
            self.closed += 1


REQUEST = Request(model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),), tools=(WEATHER,))


def run(
    inner: Played,
    found: CallValidator | None = None,
    corrections: int = 2,
    policy: str = "pass",
    grammar: GrammarSupport | None = None,
    request: Request = REQUEST,
) -> list[Event]:
    async def main() -> list[Event]:
        terms = Corrections(corrections=corrections, policy=policy)
        backend = CorrectingBackend(inner, found or checking(), terms, grammar)
        reply = await backend.open(request, is_verbatim=True)
        return [event async for events in reply.events for event in events]

    events = asyncio.run(main())
    check_events(events)
    return events


def parts_in(events: list[Event]) -> list[Part]:
    return list(fold(events).parts_of(0))


def calls_in(events: list[Event]) -> list[ToolCall]:
    return [part for part in parts_in(events) if isinstance(part, ToolCall)]


def losses_in(events: list[Event]) -> list[Loss]:
    return [event.note for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]


def results_in(request: Request) -> list[ToolResult]:
    return [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]


def counts(found: CallValidator) -> dict[str, int]:
    tally = found.tally
    names = (
        "made",
        "accepted",
        "invalid",
        "repaired",
        "unknown",
        "cut",
        "corrections",
        "corrected",
        "refused",
        "exhausted",
    )
    return {name: number for name in names if (number := getattr(tally, name))}


def test_it_stands_for_the_back_end_behind_it() -> None:
    inner = Played(events_of(call()))
    backend = CorrectingBackend(inner, checking(), Corrections())
    assert (backend.name, backend.profile, backend.dialect) == ("played", PLAIN, "")
    assert asyncio.run(backend.models()) == [Model(id="m")]
    asyncio.run(backend.close())


def test_a_right_call_is_asked_for_once_and_leaves_as_it_came() -> None:
    inner, found = Played(events_of(Text(text="hi"), call(), usage=Usage(input=1))), checking()
    assert run(inner, found) == events_of(Text(text="hi"), call(), usage=Usage(input=1))
    assert len(inner.asked) == 1
    assert counts(found) == {"made": 1, "accepted": 1}
    assert inner.closed == 1


def test_a_wrong_call_is_reported_to_the_model_and_never_to_the_client() -> None:
    usage = Usage(input=10, output=3)
    inner = Played(
        events_of(Text(text="one"), call(WRONG), usage=usage), events_of(Text(text="two"), call(), usage=usage)
    )
    found = checking()
    events = run(inner, found)
    assert [type(part) for part in parts_in(events)] == [Text, Text, ToolCall]
    assert [made.raw for made in calls_in(events)] == [RIGHT]
    assert fold(events).finished.usage == Usage(input=20, output=6)
    assert counts(found) == {"made": 2, "accepted": 1, "invalid": 1, "corrections": 1, "corrected": 1}
    assert found.tally.held_seconds > 0
    told = inner.asked[1]
    assert [message.role for message in told.messages] == ["user", "assistant", "tool"]
    [result] = results_in(told)
    assert (result.call_id, result.is_error) == ("c", True)
    text = result.parts[0]
    assert isinstance(text, Text)
    assert json.loads(text.text)["missing"] == ["city"]
    assert inner.closed == 2


@pytest.mark.parametrize("corrections", [0, 1, 2, 5])
def test_a_model_that_never_learns_is_asked_so_often_and_no_more(corrections: int) -> None:
    answers = [events_of(call(f'{{"days": {number}}}')) for number in range(30)]
    inner, found = Played(*answers), checking()
    events = run(inner, found, corrections)
    assert len(inner.asked) == corrections + 1
    assert [loss.feature for loss in losses_in(events)] == ["call.invalid_arguments"]
    assert found.tally.corrections == corrections
    assert found.tally.exhausted == bool(corrections)
    assert found.tally.corrected == 0


def test_the_same_failure_three_times_ends_it_early() -> None:
    inner = Played(events_of(call(WRONG)))
    run(inner, corrections=20)
    assert len(inner.asked) == 3


def test_three_equal_calls_in_one_answer_are_no_loop() -> None:
    inner = Played(events_of(*(call(WRONG, call_id=one) for one in "abc")), events_of(call()))
    found = checking()
    assert [made.raw for made in calls_in(run(inner, found))] == [RIGHT]
    assert found.tally.corrected == 1


@pytest.mark.parametrize("policy", ["pass", "text", "error"])
def test_the_policy_says_what_becomes_of_it_and_all_are_reported(policy: str) -> None:
    inner, found = Played(events_of(Text(text="so"), call(WRONG))), checking()
    events = run(inner, found, 1, policy)
    assert counts(found)["exhausted"] == 1
    if policy == "error":
        end = events[-1]
        assert isinstance(end, Failed)
        assert (end.error.status, end.error.code) == (502, "invalid_tool_arguments")
        assert end.error.message == (
            'the model called "weather", but the arguments do not fit ("city" is missing; it is required) '
            "after 1 correction."
        )
        return
    assert [type(part) for part in parts_in(events)] == [Text, Text, {"pass": ToolCall, "text": Text}[policy]]
    assert [loss.feature for loss in losses_in(events)] == ["call.invalid_arguments"]


def test_H126_an_unknown_tool_is_an_error_of_its_own() -> None:
    events = run(Played(events_of(call(RIGHT, "climate"))), corrections=0, policy="error")
    end = events[-1]
    assert isinstance(end, Failed)
    assert (end.error.code, end.error.message) == (
        "unknown_tool",
        'the model called "climate", a tool that was not offered.',
    )


def test_right_siblings_wait_and_come_once() -> None:
    oslo, paris = '{"city": "Oslo"}', '{"city": "Paris"}'
    for second in ([call(paris, call_id="z")], [call('{"city":"Oslo"}', call_id="y"), call(paris, call_id="z")]):
        inner = Played(events_of(call(oslo, call_id="x"), call(WRONG, call_id="w")), events_of(*second))
        found = checking()
        assert [(made.id, made.raw) for made in calls_in(run(inner, found))] == [("x", oslo), ("z", paris)]
        waiting, refused = results_in(inner.asked[1])
        assert (waiting.is_error, refused.is_error) == (False, True)
        assert "accepted" in str(waiting.parts[0])
        assert found.tally.corrected == 1


def test_the_same_name_in_another_namespace_is_another_call() -> None:
    one, other = replace(call("{}", call_id="a"), kind="typed"), call(WRONG, call_id="w")
    inner = Played(events_of(one, other), events_of(replace(one, id="b", namespace="n")))
    assert [made.id for made in calls_in(run(inner))] == ["a", "b"]


def test_a_model_that_takes_its_call_back_has_corrected_nothing() -> None:
    inner, found = Played(events_of(call(WRONG)), events_of(Text(text="never mind"), reason="stop")), checking()
    assert [type(part) for part in parts_in(run(inner, found))] == [Text]
    assert counts(found) == {"made": 1, "invalid": 1, "corrections": 1}


def test_a_model_that_only_repeats_what_was_right_has_corrected_nothing() -> None:
    inner = Played(events_of(call(call_id="a"), call(WRONG, call_id="b")), events_of(call(call_id="c")))
    found = checking()
    assert [made.id for made in calls_in(run(inner, found))] == ["a"]
    assert found.tally.corrected == 0


def test_H050_H051_ids_that_a_server_counts_from_zero_are_made_different() -> None:
    inner = Played(
        events_of(call(call_id=""), call(WRONG, call_id="0")), events_of(call('{"city": "Bergen"}', call_id="0"))
    )
    made = calls_in(run(inner))
    assert len({one.id for one in made} | {""}) == 3
    said = [part for message in inner.asked[1].messages for part in message.parts]
    assert [part.call_id for part in said if isinstance(part, ToolResult)] == [
        part.id for part in said if isinstance(part, ToolCall)
    ]


def test_items_that_a_server_counts_from_zero_are_made_different() -> None:
    first, second = call(call_id="a"), call('{"city": "Bergen"}', call_id="b")
    inner = Played(
        events_of(replace(first, item_id="fc_0"), replace(call(WRONG, call_id="w"), item_id="fc_1")),
        events_of(replace(second, item_id="fc_0")),
    )
    assert [(made.id, made.item_id) for made in calls_in(run(inner))] == [("a", "fc_0"), ("b", "")]


def test_ids_that_the_back_end_would_not_take_are_fitted_for_it_alone() -> None:
    inner = Played(events_of(call(WRONG, call_id="")), events_of(call(call_id="d")))
    inner.profile = replace(PLAIN, ids=IdRule(letters="base62", length=9))
    assert [made.id for made in calls_in(run(inner))] == ["d"]
    [result] = results_in(inner.asked[1])
    assert len(result.call_id) == 9
    assert result.call_id.isalnum()


def test_a_result_has_the_kind_of_its_call() -> None:
    patch = ToolCall(id="p", name="apply_patch", raw="*** Begin", kind="custom")
    inner = Played(events_of(patch, call(WRONG)), events_of(call(call_id="d")))
    assert [made.name for made in calls_in(run(inner))] == ["apply_patch", "weather"]
    assert [result.kind for result in results_in(inner.asked[1])] == ["custom", "function"]


def test_H080_thoughts_and_their_proofs_survive_both_rounds() -> None:
    thoughts = [Reasoning(text=word, signature=f"proof-{word}") for word in ("one", "two", "three")]
    inner = Played(
        events_of(thoughts[0], call(call_id="a"), thoughts[1], call(WRONG, call_id="b")),
        events_of(thoughts[2], call('{"city": "Bergen"}', call_id="d")),
    )
    first, second = call(call_id="a"), call('{"city": "Bergen"}', call_id="d")
    assert parts_in(run(inner)) == [thoughts[0], first, thoughts[1], thoughts[2], second]
    told = [part for message in inner.asked[1].messages for part in message.parts]
    assert [part for part in told if isinstance(part, Reasoning)] == thoughts[:2]
    assert [part.id for part in told if isinstance(part, ToolCall)] == ["a", "b"]


def said_around(word: str, *calls: ToolCall) -> list[Event]:
    """Text before the calls and behind each of them."""
    behind = [(made, Text(text=f"behind {made.id} {word}")) for made in calls]
    return events_of(Text(text=f"before {word}"), *(part for pair in behind for part in pair))


def outline(events: list[Event]) -> list[str]:
    """Texts as they are, calls by their ids."""
    return [part.id if isinstance(part, ToolCall) else content_of(part) for part in parts_in(events)]


def test_what_was_said_behind_a_corrected_call_comes_before_the_correction() -> None:
    inner = Played(said_around("one", call(WRONG, call_id="w")), said_around("two", call(call_id="r")))
    assert outline(run(inner)) == ["before one", "behind w one", "before two", "r", "behind r two"]


@pytest.mark.parametrize("policy", ["pass", "text", "error"])
def test_rounds_that_all_fail_are_reported_in_their_order(policy: str) -> None:
    wrong = [call(WRONG, call_id=f"w{number}") for number in range(3)]
    inner = Played(*(said_around(str(number), made) for number, made in enumerate(wrong)))
    events = run(inner, policy=policy)
    parts = [event.part for event in events if isinstance(event, PartEnded)]
    texts = [content_of(part) for part in parts if isinstance(part, Text) and not part.text.startswith("The model")]
    assert texts == [f"{place} {number}" for number in range(3) for place in ("before", f"behind w{number}")]
    assert len(parts) == (6 if policy == "error" else 7)
    if policy != "error":
        assert (outline(events)[5] == "w2") == (policy == "pass")


def test_while_a_right_call_waits_so_does_what_the_next_answers_say() -> None:
    first = said_around("one", call(WRONG, call_id="w"), call(call_id="a"), call(WRONG, call_id="v"))
    second = said_around("two", call(BROKEN, call_id="x"))
    third = said_around("three", call('{"city": "Bergen"}', call_id="b"))
    inner = Played(first, second, third)
    behind = ["a", "behind a one", "behind v one", "before two", "behind x two", "before three", "b", "behind b three"]
    assert outline(run(inner)) == ["before one", "behind w one", *behind]


def test_words_leave_with_the_first_word_of_the_correction_and_not_at_its_end() -> None:
    inner = Played(said_around("one", call(WRONG, call_id="w")), said_around("two", call()))

    async def main() -> list[str]:
        reply = await CorrectingBackend(inner, checking(), Corrections()).open(REQUEST, is_verbatim=False)
        texts = []
        async for events in reply.events:
            texts += [event.text for event in events if isinstance(event, PartDelta)]
            if texts[-1:] == ["before two"]:
                break
        await reply.close()
        return texts

    assert asyncio.run(main()) == ["before one", "behind w one", "before two"]


def test_a_correction_that_dies_silently_leaves_the_wrong_call_where_it_was() -> None:
    first = said_around("one", call(call_id="a"), call(WRONG, call_id="w"))
    dying: list[Event] = [*said_around("two", call())[:3], Failed(error=UpstreamError("gone"))]
    events = run(Played(first, dying))
    assert outline(events) == ["before one", "a", "behind a one", "w", "behind w one"]
    assert "call.correction" in {loss.feature for loss in losses_in(events)}


def test_a_correction_that_dies_in_its_words_loses_none_of_those_before_it() -> None:
    dying: list[Event] = [*said_around("two", call())[:3], Failed(error=UpstreamError("gone"))]
    events = run(Played(said_around("one", call(WRONG, call_id="w")), dying))
    texts = [event.text for event in events if isinstance(event, PartDelta)]
    assert texts == ["before one", "behind w one", "before two"]
    assert isinstance(events[-1], Failed)


def test_a_model_that_must_call_is_reminded_also_if_it_spoke_behind_a_wrong_call() -> None:
    silent = events_of(Text(text="no"), reason="stop")
    inner = Played(said_around("one", call(WRONG, call_id="w")), silent, events_of(call(call_id="r")))

    async def main() -> list[Event]:
        backend = CorrectingBackend(inner, checking(), Corrections(reminder="You must call a tool."))
        reply = await backend.open(REQUEST, is_verbatim=False)
        return [event async for events in reply.events for event in events]

    assert outline(asyncio.run(main())) == ["before one", "behind w one", "no", "r"]
    assert inner.asked[2].messages[-1].parts == (Text(text="You must call a tool."),)


@pytest.mark.parametrize("reason", ["length", "refused"])
def test_an_answer_that_was_cut_is_never_corrected(reason: Any) -> None:
    inner = Played(events_of(call(), call(BROKEN, call_id="d"), reason=reason))
    found = checking()
    events = run(inner, found)
    assert [made.raw for made in calls_in(events)] == [RIGHT, BROKEN]
    assert fold(events).finished.choices[0].reason == reason
    assert len(inner.asked) == 1
    assert counts(found) == {"made": 2, "accepted": 1, "cut": 1}


def test_a_repaired_call_needs_no_correction() -> None:
    inner, found = Played(events_of(call(REPAIRABLE))), checking()
    assert [made.args for made in calls_in(run(inner, found))] == [{"city": "Oslo", "days": 3}]
    assert len(inner.asked) == 1
    assert counts(found) == {"made": 1, "invalid": 1, "repaired": 1}


DEATHS: list[Answer] = [
    UpstreamError("sk-secret said no", status=400),
    UpstreamError("no", status=500),
    BadJson("it nests too deep"),
    [Failed(error=UpstreamError("cut", code="upstream_cut"))],
    [Started(id="b", model="m"), Failed(error=UpstreamError("reset", code="raised"))],
    [
        Started(id="b", model="m"),
        PartStarted(index=0, part=ToolCall(id="x", name="weather", raw="")),
        PartDelta(0, "{"),
        Failed(error=UpstreamError("stalled")),
    ],
]


@pytest.mark.parametrize("policy", ["pass", "text", "error"])
@pytest.mark.parametrize("death", DEATHS)
def test_a_correction_that_dies_before_its_first_word_leaves_the_policy(death: Answer, policy: str) -> None:
    first = events_of(Text(text="so"), call(call_id="a"), call(WRONG, call_id="b"), usage=Usage(input=5))
    inner, found = Played(first, death), checking()
    events = run(inner, found, policy=policy)
    assert len(inner.asked) == 2
    assert "call.correction" in {loss.feature for loss in losses_in(events)}
    assert "sk-secret" not in str(losses_in(events))
    assert found.tally.refused == (isinstance(death, UpstreamError) and death.status == 400)
    if policy == "error":
        assert isinstance(events[-1], Failed)
        assert events[-1].error.code == "invalid_tool_arguments"
        return
    assert [made.id for made in calls_in(events)] == (["a", "b"] if policy == "pass" else ["a"])
    assert fold(events).finished.usage == Usage(input=5)


@pytest.mark.parametrize("code", ["upstream_cut", "raised"])
def test_a_correction_that_dies_after_its_first_word_is_a_failure(code: str) -> None:
    dying: list[Event] = [
        Started(id="b", model="m"),
        PartStarted(index=0, part=Text(text="")),
        PartDelta(0, "so"),
        Failed(error=UpstreamError("gone", code=code)),
    ]
    inner = Played(events_of(call(WRONG)), dying)
    events = run(inner)
    assert isinstance(events[-1], Failed)
    assert events[-1].error.code == code
    assert not any(isinstance(event, PartStarted) and isinstance(event.part, ToolCall) for event in events)
    assert inner.closed == 2


class Unread:
    """A reply in bytes that nothing of is read."""

    headers: dict[str, str] = {}
    content_type = "text/event-stream"
    is_complete = False
    losses = (Loss("top_k", "request", "new"),)
    aborted = 0

    async def read(self) -> bytes:
        raise AssertionError("not read")

    def abort(self) -> None:
        self.aborted += 1


def test_a_correction_is_stopped_by_a_client_that_disconnects_at_its_losses() -> None:
    unread = Unread()

    class Changing(Played):
        async def open(self, request: Request, *, is_verbatim: bool) -> Any:
            reply = await super().open(request, is_verbatim=is_verbatim)
            return reply if len(self.asked) == 1 else unread

    async def main() -> None:
        backend = CorrectingBackend(Changing(events_of(call(WRONG))), checking(), Corrections(corrections=2))
        reply = await backend.open(REQUEST, is_verbatim=True)
        async for events in reply.events:
            if any(isinstance(event, Noted) for event in events):
                break
        await reply.close()
        assert unread.aborted == 1

    asyncio.run(main())


def test_a_first_answer_that_fails_is_a_failure() -> None:
    inner, found = Played([Started(id="a", model="m"), Failed(error=UpstreamError("no"))]), checking()
    assert isinstance(run(inner, found)[-1], Failed)
    assert (len(inner.asked), counts(found)) == (1, {})


def test_a_first_request_that_is_refused_raises() -> None:
    with pytest.raises(UpstreamError, match="no"):
        run(Played(UpstreamError("no")))


def test_an_answer_without_an_end_has_none_here_either() -> None:
    async def main() -> list[Event]:
        backend = CorrectingBackend(Played(events_of(call())[:-1]), checking(), Corrections())
        reply = await backend.open(REQUEST, is_verbatim=False)
        return [event async for events in reply.events for event in events]

    assert asyncio.run(main()) == [Started(id="a", model="m")]


def test_losses_of_later_rounds_are_reported_once() -> None:
    loss = Loss("n", "", "")
    inner = Played(events_of(call(WRONG)), events_of(call()), losses=(loss,))

    async def main() -> tuple[tuple[Loss, ...], list[Event]]:
        reply = await CorrectingBackend(inner, checking(), Corrections()).open(REQUEST, is_verbatim=False)
        assert reply.headers == {"x": "1"}
        return reply.losses, [event async for events in reply.events for event in events]

    losses, events = asyncio.run(main())
    assert losses == (loss,)
    assert losses_in(events) == []


@pytest.mark.parametrize("taken", [0, 1, 2, 5, 6])
def test_who_stops_reading_stops_the_back_end(taken: int) -> None:
    inner = Played(events_of(Text(text="one"), call(WRONG)), events_of(Text(text="two"), call()))

    async def main() -> None:
        reply = await CorrectingBackend(inner, checking(), Corrections()).open(REQUEST, is_verbatim=False)
        for _ in range(taken):
            await anext(reply.events)
        await reply.close()
        # A generator that was never begun has nothing to close; what it would have read is let go of.
        assert inner.closed == (len(inner.asked) if taken else 0)

    asyncio.run(main())


def test_nineteen_wrong_calls_of_twenty_are_each_reported_once() -> None:
    made = [call(WRONG, call_id=f"c{number}") for number in range(19)]
    fixed = [call(f'{{"city": "C{number}"}}', call_id=f"d{number}") for number in range(19)]
    inner, found = Played(events_of(*made[:7], call(call_id="ok"), *made[7:]), events_of(*fixed)), checking()
    sent = calls_in(run(inner, found))
    assert [one.id for one in sent] == ["ok", *(f"d{number}" for number in range(19))]
    assert sum(result.is_error for result in results_in(inner.asked[1])) == 19
    assert counts(found) == {"made": 39, "accepted": 20, "invalid": 19, "corrections": 1, "corrected": 19}


@pytest.mark.slow
def test_ten_thousand_wrong_calls_are_not_reported_one_by_one() -> None:
    made = [call(WRONG, call_id=f"c{number}") for number in range(10_000)]
    inner, found = Played(events_of(*made)), checking()
    start = time.process_time()
    events = run(inner, found)
    assert time.process_time() - start < 5.0
    assert len(inner.asked) == 1
    assert len(calls_in(events)) == 10_000
    features = [loss.feature for loss in losses_in(events)]
    assert (features.count("call.invalid_arguments"), features.count("call.correction")) == (100, 1)


def test_arguments_of_five_megabytes_are_corrected_in_bounded_time_and_reported_briefly() -> None:
    inner = Played(events_of(call(json.dumps({"town": "x" * 5_000_000}))), events_of(call()))
    start = time.process_time()
    assert [made.raw for made in calls_in(run(inner))] == [RIGHT]
    assert time.process_time() - start < 3.0
    assert len(str(results_in(inner.asked[1])[0].parts[0])) < 10_000


def test_lone_surrogates_in_arguments_go_to_the_model_and_back() -> None:
    wrong = call('{"town": "\\ud800"}')
    inner = Played(events_of(wrong, call('{"city": "\\ud800"}', call_id="d")), events_of(call(call_id="e")))
    assert [made.raw for made in calls_in(run(inner))] == ['{"city": "\\ud800"}', RIGHT]


def test_no_word_of_the_arguments_is_in_a_loss() -> None:
    secret = "sk-very-secret"
    for policy in ("pass", "text"):
        events = run(Played(events_of(call(f'{{"{secret}": "{secret}"}}'))), policy=policy)
        assert losses_in(events)
        assert secret not in str(losses_in(events))


@quickly
@given(st.lists(streams(), min_size=1, max_size=5), st.integers(0, 3), st.sampled_from(["pass", "text", "error"]))
def test_whatever_a_model_answers_it_is_one_answer_in_order(
    answers: list[list[Event]], corrections: int, policy: str
) -> None:
    inner, found = Played(*answers), checking()
    events = run(inner, found, corrections, policy)
    tally = found.tally
    assert len(inner.asked) == 1 + tally.corrections <= 1 + corrections
    assert tally.accepted >= 0
    assert tally.corrected <= tally.invalid + tally.unknown
    assert tally.exhausted <= 1
    played = [*answers, *([answers[-1]] * corrections)][: len(inner.asked)]
    texts = [part.text for one in played for part in fold(one).parts_of(0) if isinstance(part, Text) and part.text]
    ended = sorted((event for event in events if isinstance(event, PartEnded)), key=lambda event: event.index)
    shown = [event.part.text for event in ended if isinstance(event.part, Text)]
    assert [text for text in shown if text and not text.startswith("The model called")] == texts
    if isinstance(events[-1], Failed):
        assert policy == "error"
    else:
        _check_calls(calls_in(events), losses_in(events), policy, is_cut=_is_cut(played[-1]))


def _is_cut(events: list[Event]) -> bool:
    return fold(events).finished.choices[0].reason in ("length", "refused")


def _check_calls(made: list[ToolCall], losses: list[Loss], policy: str, *, is_cut: bool) -> None:
    """A call that is wrong leaves only flagged, and one that was cut only where the answer says so; no two have one id."""
    assert len({one.id for one in made}) == len(made)
    wrong = [one for one in made if one.name != "weather" or one.args is None or "city" not in one.args]
    flagged = sum(loss.feature in ("call.invalid_arguments", "call.unknown_tool") for loss in losses)
    unreadable = sum(one.args is None for one in wrong)
    assert len(wrong) <= flagged + (unreadable if is_cut else 0)
    assert policy == "pass" or all(one.args is None for one in wrong)


@quickly
@given(st.lists(st.sampled_from(RAWS), min_size=1, max_size=6))
def test_right_calls_come_once_and_to_the_byte_whatever_stands_beside_them(raws: list[str]) -> None:
    first = [call(raw, call_id=f"c{place}") for place, raw in enumerate(raws)]
    inner = Played(events_of(*first), events_of(Text(text="I give up"), reason="stop"))
    sent = [made.raw for made in calls_in(run(inner))]
    right = [raw for raw in raws if raw in RAWS[:2]]
    assert [raw for raw in sent if raw in RAWS[:2]] == right


def test_several_tools_are_judged_each_by_its_own_schema() -> None:
    other = Tool(name="forecast", schema={**SCHEMA, "required": ["days"]})
    inner = Played(
        events_of(call(RIGHT), call(RIGHT, "forecast", "d")), events_of(call('{"days": 1}', "forecast", "e"))
    )
    assert [(made.name, made.raw) for made in calls_in(run(inner, checking(WEATHER, other)))] == [
        ("weather", RIGHT),
        ("forecast", '{"days": 1}'),
    ]


NOW = Tool(name="now", schema={"type": "object", "properties": {"zone": {"type": "string"}}})


class Constrained(Played):
    """A back end that constrains its output to a schema."""

    profile = LLAMA_CPP


class Untried(Played):
    profile = PLAIN_CHAT


def support(inner: Played, memory: GrammarMemory | None = None) -> GrammarSupport:
    return (memory or GrammarMemory()).support(inner, "m", "auto")  # type: ignore[arg-type] # has what is read


def test_a_constrained_correction_asks_for_the_arguments_alone() -> None:
    usage = Usage(input=10, output=3)
    first = events_of(Text(text="one"), call(WRONG, call_id="c1"), usage=usage)
    inner, found = Constrained(first, events_of(Text(text=RIGHT), reason="stop", usage=usage)), checking()
    events = run(inner, found, grammar=support(inner), request=replace(REQUEST, sampling=Sampling(stop=("}",))))
    assert parts_in(events) == [Text(text="one"), replace(call(call_id="c1"), raw='{"city":"Oslo"}')]
    assert fold(events).finished.usage == Usage(input=20, output=6)
    assert counts(found) == {"made": 2, "accepted": 1, "invalid": 1, "corrections": 1, "corrected": 1}
    asked = inner.asked[1]
    assert (asked.tools, asked.tool_choice, asked.sampling.stop) == ((), None, ())
    assert (asked.output.format, asked.output.schema) == ("schema", SCHEMA)
    [result] = results_in(asked)
    assert isinstance(result.parts[0], Text)
    told = json.loads(result.parts[0].text)
    assert told["missing"] == ["city"]
    assert "nothing but its arguments" in told["hint"]
    assert told["tools"] == [{"name": "weather", "parameters": SCHEMA}]
    assert inner.closed == 2


def test_an_unknown_tool_is_corrected_to_one_of_those_offered() -> None:
    answer = '{"name": "now", "arguments": {"zone": "UTC"}}'
    inner = Constrained(events_of(call("{}", "clock", "c1")), events_of(Text(text=answer), reason="stop"))
    request = replace(REQUEST, tools=(WEATHER, NOW))
    events = run(inner, checking(WEATHER, NOW), grammar=support(inner), request=request)
    assert [(made.id, made.name, made.raw) for made in calls_in(events)] == [("c1", "now", '{"zone":"UTC"}')]
    schema = inner.asked[1].output.schema
    assert schema is not None
    assert [one["properties"]["name"]["enum"] for one in schema["anyOf"]] == [["weather"], ["now"]]


def test_several_wrong_calls_are_corrected_in_one_request_and_keep_their_places() -> None:
    parts = call(WRONG, call_id="a"), call(call_id="b"), call('{"days": []}', call_id="c")
    answer = '{"call_1": {"city": "Rome"}, "call_2": {"city": "Bonn", "days": 2}}'
    inner, found = Constrained(events_of(*parts), events_of(Text(text=answer), reason="stop")), checking()
    events = run(inner, found, grammar=support(inner))
    assert [(made.id, made.args) for made in calls_in(events)] == [
        ("a", {"city": "Rome"}),
        ("b", {"city": "Oslo"}),
        ("c", {"city": "Bonn", "days": 2}),
    ]
    assert (len(inner.asked), found.tally.corrected) == (2, 2)


@pytest.mark.parametrize(
    "answer",
    [
        events_of(Text(text="Sorry."), reason="stop"),
        events_of(Text(text="{}"), reason="stop"),
        events_of(Text(text='{"city": "Os'), reason="length"),
        UpstreamError("no response_format", status=400, code="bad"),
        [Started(id="a", model="m"), Failed(error=UpstreamError("gone", status=502, code="raised"))],
    ],
)
def test_a_constrained_correction_that_fails_is_followed_by_one_in_text(answer: Answer) -> None:
    inner, found = Constrained(events_of(call(WRONG)), answer, events_of(call())), checking()
    assert [made.raw for made in calls_in(run(inner, found, grammar=support(inner)))] == [RIGHT]
    assert inner.asked[2].tools == (WEATHER,)
    assert inner.asked[2].output.format == "text"
    assert [loss.feature for loss in found.notes if "refused" in loss.why] == []


def test_the_limit_counts_the_constrained_correction() -> None:
    inner, found = Constrained(events_of(call(WRONG)), events_of(Text(text="{}"), reason="stop")), checking()
    run(inner, found, corrections=1, grammar=support(inner))
    assert (len(inner.asked), found.tally.corrections, found.tally.exhausted) == (2, 1, 1)


def test_a_server_that_refuses_a_schema_is_not_asked_again() -> None:
    memory = GrammarMemory()
    refusal = UpstreamError("no response_format", status=400, code="bad")
    inner = Untried(events_of(call(WRONG)), refusal, events_of(call()))
    assert [made.raw for made in calls_in(run(inner, grammar=support(inner, memory)))] == [RIGHT]
    later = Untried(events_of(call(WRONG)), events_of(call()))
    assert [made.raw for made in calls_in(run(later, grammar=support(later, memory)))] == [RIGHT]
    assert [request.output.format for request in later.asked] == ["text", "text"]


def test_a_server_that_calls_again_instead_of_obeying_the_schema_needs_no_other_round() -> None:
    memory = GrammarMemory()
    inner, found = Untried(events_of(call(WRONG)), events_of(call())), checking()
    assert [made.raw for made in calls_in(run(inner, found, grammar=support(inner, memory)))] == [RIGHT]
    assert (len(inner.asked), found.tally.corrected) == (2, 1)
    assert not support(inner, memory).may_constrain


class Stuck(Constrained):
    """Its second answer never ends."""

    async def _play(self, events: list[Event]) -> AsyncIterator[list[Event]]:
        is_second = len(self.asked) == 2
        async for one in super()._play(events):
            yield one
            if is_second:
                await asyncio.sleep(60)


def test_a_client_that_leaves_stops_a_constrained_correction() -> None:
    inner = Stuck(events_of(call(WRONG)))

    async def main() -> None:
        backend = CorrectingBackend(inner, checking(), Corrections(), support(inner))
        reply = await backend.open(REQUEST, is_verbatim=True)

        async def read() -> None:
            async for _ in reply.events:
                pass

        task = asyncio.create_task(read())
        while len(inner.asked) < 2:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await reply.close()

    asyncio.run(main())
    assert inner.closed == 2
