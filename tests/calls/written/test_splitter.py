"""Events of text become events of text and calls: the same for any cutting, numbered anew, nothing lost."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.schemas import Schemas
from toolwire.calls.validation import OfferedTools, ToolOffer, span_of
from toolwire.calls.written.splitter import CallSplitter, SplitterPolicy
from toolwire.errors import UpstreamError
from toolwire.events import (
    Event,
    Failed,
    Finished,
    FoldedAnswer,
    Noted,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
    content_of,
    fold,
)
from toolwire.types import Choice, Citation, Loss, Part, Reasoning, Text, Tool, ToolCall

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OFFER = ToolOffer([Tool(name="weather", schema=SCHEMA), Tool(name="tool_call", schema={"type": "object"})])
PARIS = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
ROME = PARIS.replace("Paris", "Rome")
UNKNOWN = PARIS.replace("weather", "teleport")
UNREADABLE = '<tool_call>\n{"name": weather!!, "arguments": [[[\n</tool_call>'
DONE = Finished(choices=(Choice(reason="stop"),))


def spoken(*, is_instructed: bool = True, **manner: Any) -> CallSplitter:
    numbers = itertools.count()
    return CallSplitter(
        OfferedTools(OFFER, Schemas(), is_instructed),
        OFFER,
        lambda prefix: f"{prefix}{next(numbers)}",
        SplitterPolicy(**manner),
    )


def said(*pieces: str, index: int = 0, choice: int = 0) -> list[Event]:
    return [
        PartStarted(index=index, part=Text(text=""), choice=choice),
        *(PartDelta(index, piece) for piece in pieces),
        PartEnded(index=index, part=Text(text="".join(pieces)), choice=choice),
    ]


def heard(events: list[Event], listener: CallSplitter, *, at_once: bool = False) -> list[Event]:
    whole = [Started(id="1", model="m"), *events, DONE]
    if at_once:
        return listener.send(whole)
    return [made for event in whole for made in listener.send([event])]


def checked(events: list[Event]) -> FoldedAnswer:
    """As an answer, after a look at the promises that all events keep."""
    open_parts: dict[int, list[str]] = {}
    starts = 0
    for event in events:
        match event:
            case PartStarted(index=index):
                assert index == starts
                starts += 1
                open_parts[index] = []
            case PartDelta(index=index):
                open_parts[index].append(event.text)
            case PartEnded(index=index):
                assert "".join(open_parts.pop(index)) == content_of(event.part)
            case _:
                pass
    assert not open_parts
    assert isinstance(events[-1], Finished | Failed)
    return fold(events)


def parts(*pieces: str, **manner: Any) -> list[Part]:
    return [ended.part for ended in checked(heard(said(*pieces), spoken(**manner))).parts]


def test_text_around_calls_keeps_its_order_and_whitespace_between_blocks_is_dropped() -> None:
    found = parts(f"Let me look.\n{PARIS}\n\n{ROME}\nSoon.")
    assert [type(part).__name__ for part in found] == ["Text", "ToolCall", "ToolCall", "Text"]
    assert [content_of(part) for part in found] == [
        "Let me look.\n",
        '{"city": "Paris"}',
        '{"city": "Rome"}',
        "\nSoon.",
    ]
    assert [part.id for part in found if isinstance(part, ToolCall)] == ["call_0", "call_1"]
    assert [part.args for part in found if isinstance(part, ToolCall)] == [{"city": "Paris"}, {"city": "Rome"}]


def test_an_answer_that_only_calls_has_no_text() -> None:
    assert [type(part) for part in parts(f"\n{PARIS}\n")] == [ToolCall]
    assert parts("  \n ") == [Text(text="  \n ")]
    assert parts("") == [Text(text="")]


def test_arguments_grow_as_they_are_written() -> None:
    events = heard(said(*PARIS), spoken())
    deltas = [event.text for event in events if isinstance(event, PartDelta)]
    assert len(deltas) > 5
    assert "".join(deltas) == '{"city": "Paris"}'


@given(cuts=st.lists(st.integers(0, 300), max_size=12))
def test_any_cutting_gives_the_same_parts(cuts: list[int]) -> None:
    text = (
        f"One. `<tool_call>` is code.\n{PARIS}\nTwo {{}} <b>\n```\n{ROME}\n```\n{UNKNOWN}\n{UNREADABLE}\nThree.\n{ROME}"
    )
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    for manner in ({}, {"is_held": True}, {"is_instructed": False}, {"is_single": True}, {"unknown": "text"}):
        assert parts(*pieces, **manner) == parts(text, **manner)
        assert checked(heard(said(*pieces), spoken(**manner), at_once=True)).parts


def test_what_has_no_call_in_it_stays_the_same_objects() -> None:
    for is_instructed in (True, False):
        listener = spoken(is_instructed=is_instructed)
        for events in ([Started(id="1", model="m")], said("Hello ", "<b>there</b>", " you"), [DONE]):
            assert listener.send(events) is events
        assert listener.changed == ""
    listener = spoken(is_instructed=False)
    for event in said("\n\n", "Hello ", "there"):
        events = [event]
        assert listener.send(events) is events
    logprobs: Event = PartDelta(0, "word", ({"token": "word"},))
    listener = spoken()
    assert [event for event in heard([said()[0], logprobs, *said()[1:]], listener) if event == logprobs] == [logprobs]


def test_other_parts_are_renumbered_and_notes_follow_theirs() -> None:
    thought = [
        PartStarted(index=1, part=Reasoning(text="")),
        PartDelta(1, "Hm."),
        PartEnded(index=1, part=Reasoning(text="Hm.")),
    ]
    cited = Noted(note=Citation(url="u"), index=2)
    last = said("Bye.", index=2)
    events: list[Event] = [*said(f"Hi.\n{PARIS}"), *thought, last[0], last[1], cited, last[2]]
    found = heard(events, spoken())
    answer = checked(found)
    assert [type(ended.part).__name__ for ended in answer.parts] == ["Text", "ToolCall", "Reasoning", "Text"]
    assert [event.index for event in found if isinstance(event, Noted)] == [3]


def test_choices_do_not_mix() -> None:
    first, second = said(PARIS[:20], PARIS[20:], choice=0), said("Hello", ".", index=1, choice=1)
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    answer = checked(heard(mixed, spoken()))
    assert answer.parts_of(0) == (
        ToolCall(id="call_0", name="weather", raw='{"city": "Paris"}', args={"city": "Paris"}),
    )
    assert answer.parts_of(1) == (Text(text="Hello."),)


def test_a_block_that_cannot_be_read_is_text_unless_a_correction_is_possible() -> None:
    assert parts(f"So:\n{UNREADABLE}\nSee?") == [Text(text=f"So:\n{UNREADABLE}\nSee?")]
    held = parts(f"So:\n{UNREADABLE}", is_held=True)
    assert isinstance(held[1], ToolCall)
    assert span_of(held[1]) == UNREADABLE
    events = heard(said(UNREADABLE), spoken(policy="error"))
    assert isinstance(events[-1], Failed)
    assert events[-1].error.code == "unreadable_call"


@pytest.mark.parametrize("is_held", [True, False])
def test_tools_that_do_not_exist(is_held: bool) -> None:
    for word in ("correct", "emit"):
        (call,) = parts(UNKNOWN, unknown=word, is_held=is_held)
        assert isinstance(call, ToolCall)
        assert call.name == "teleport"
    if is_held:  # whoever holds it decides
        assert isinstance(parts(UNKNOWN, unknown="error", is_held=True)[0], ToolCall)
        return
    (text,) = parts(UNKNOWN, unknown="text")
    assert isinstance(text, Text)
    assert "teleport" in text.text
    events = heard(said(UNKNOWN, "more"), spoken(unknown="error"))
    assert isinstance(events[-1], Failed)
    assert events[-1].error.code == "unknown_tool"


def test_one_call_where_one_is_wanted() -> None:
    events = heard(said(f"{PARIS}\n{ROME}\nBye."), spoken(is_single=True))
    answer = checked(events)
    assert [content_of(ended.part) for ended in answer.parts] == ['{"city": "Paris"}', "\nBye."]
    losses = [event.note.feature for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]
    assert losses == ["call.parallel"]


def test_a_choice_that_was_ignored_is_reported() -> None:
    events = heard(said("Hello."), spoken(must_call=True))
    assert [event.note.feature for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)] == [
        "tool_choice"
    ]
    assert not any(isinstance(event, Noted) for event in heard(said(PARIS), spoken(must_call=True)))


def test_a_result_that_the_model_imagined_ends_what_it_says() -> None:
    found = parts(f'{PARIS}\n<tool_result>{{"call": 1}}</tool_result>\nIt is sunny.')
    assert [type(part) for part in found] == [ToolCall]


def test_a_tool_may_be_called_like_the_tag() -> None:
    (call,) = parts('<tool_call>{"name": "tool_call", "arguments": {"a": 1}}</tool_call>')
    assert isinstance(call, ToolCall)
    assert (call.name, call.args) == ("tool_call", {"a": 1})


def test_H117_marked_thoughts_are_thoughts_and_the_final_words_are_text() -> None:
    text = (
        "<|channel|>analysis<|message|>Hm, the weather.<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
        '<|constrain|>json<|message|>{"city": "Paris"}<|call|>'
    )
    for pieces in ((text,), tuple(text)):
        thought, call = parts(*pieces)
        assert thought == Reasoning(text="Hm, the weather.")
        assert isinstance(call, ToolCall)
        assert (call.name, call.raw) == ("weather", '{"city": "Paris"}')
    final = (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>It is sunny.<|return|>"
    )
    assert parts(*final) == [Reasoning(text="Hm."), Text(text="It is sunny.")]


def test_arguments_beside_the_name_are_not_lost() -> None:
    for block in (
        '<tool_call>{"name": "weather", "city": "Paris"}</tool_call>',
        '<tool_call>{"type": "function", "function": {"name": "weather", "city": "Paris"}}</tool_call>',
    ):
        for pieces in ((block,), tuple(block)):
            (call,) = parts(*pieces)
            assert isinstance(call, ToolCall)
            assert call.args == {"city": "Paris"}
    wrong = '<tool_call>{"name": "weather", "city": 5}</tool_call>'
    assert isinstance(parts(wrong, is_held=True)[0], ToolCall)
    assert span_of(parts(wrong, is_held=True)[0]) == wrong


def test_H117_an_answer_of_final_words_alone_ends_as_it_streamed() -> None:
    for text in ("<|channel|>final<|message|>It is sunny.<|return|>", "<|channel|>final<|message|>It is sunny."):
        for pieces in ((text,), tuple(text)):
            assert parts(*pieces) == [Text(text="It is sunny.")]
            assert parts(*pieces, is_instructed=False) == [Text(text="It is sunny.")]


def test_what_was_held_is_reported_before_a_failure_is() -> None:
    for text in ("Let me look.\n<tool_c", 'Look <tool_call>{"name": "weather", "argu', "Look. `<tool_call>` <tool"):
        for is_instructed in (True, False):
            listener = spoken(is_instructed=is_instructed)
            events = heard(said(text)[:-1], listener)[:-1] + listener.send([Failed(error=UpstreamError("cut"))])
            assert "".join(event.text for event in events if isinstance(event, PartDelta)) == text
            assert isinstance(events[-1], Failed)
