"""Events and the whole they fold into."""

from __future__ import annotations

import pytest

from tests.backends.event_contract import check_events
from tests.garbage import held_by_cycles
from toolwire.errors import GatewayError, UpstreamError
from toolwire.events import (
    Event,
    Failed,
    Finished,
    FoldedAnswer,
    Folder,
    Noted,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
    content_of,
    emptied,
    fold,
    unfold,
)
from toolwire.types import Choice, Citation, Media, Opaque, Part, Reasoning, Refusal, Text, ToolCall, Usage

PARTS: list[Part] = [
    Reasoning(text="hm", signature="s", item_id="r"),
    Reasoning(text="", redacted="x"),
    Reasoning(text="sum", encrypted="e", is_summary=True),
    Text(text="a", citations=(Citation(url="u"), Citation(url="v")), logprobs=({"token": "a"},), item_id="m"),
    Text(text=""),
    Refusal(text="no"),
    ToolCall(id="c", name="f", raw='{"a":1}', args={"a": 1}, namespace="n"),
    ToolCall(id="d", name="g", raw="free", kind="custom"),
    Opaque(dialect="chat", value={"x": 1}),
    Media(kind="image", url="u"),
]
STARTED = Started(id="a", model="m")
FINISHED = Finished(choices=(Choice(reason="stop"), Choice(reason="stop", index=1)), usage=Usage(input=1))


def test_an_answer_unfolds_into_a_stream_that_keeps_the_contract() -> None:
    parts = tuple(PartEnded(index=index, part=part, choice=index % 2) for index, part in enumerate(PARTS))
    answer = FoldedAnswer(started=STARTED, parts=parts, finished=FINISHED)
    events = unfold(answer)
    check_events(events)
    assert fold(events) == answer
    assert answer.parts_of(1) == tuple(PARTS[1::2])
    assert [event.note for event in events if isinstance(event, Noted)] == [Citation(url="u"), Citation(url="v")]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_an_emptied_part_has_no_content_and_is_empty_for_good(part: Part) -> None:
    assert content_of(emptied(part)) == ""
    assert emptied(emptied(part)) == emptied(part)
    assert type(emptied(part)) is type(part)


def test_parts_are_put_in_order_of_their_start() -> None:
    ends: list[Event] = [PartEnded(index=1, part=Text(text="b")), PartEnded(index=0, part=Text(text="a"))]
    answer = fold([STARTED, *ends, FINISHED])
    assert answer.parts_of(0) == (Text(text="a"), Text(text="b"))


def test_there_is_no_answer_before_its_end() -> None:
    folder = Folder()
    for event in (STARTED, PartStarted(index=0, part=Text(text="")), PartDelta(0, "a")):
        folder.send(event)
    assert not folder.is_done
    with pytest.raises(GatewayError, match="no end"):
        folder.answer()


def test_a_failure_ends_it_and_is_raised() -> None:
    folder = Folder()
    folder.send(Failed(error=UpstreamError("gone")))
    assert folder.is_done
    with pytest.raises(UpstreamError, match="gone"):
        folder.answer()


def test_a_failure_holds_no_frame_of_the_place_where_its_error_was_caught() -> None:
    def fails() -> None:
        folder = Folder()
        try:
            raise UpstreamError("gone")
        except UpstreamError as error:
            folder.send(Failed(error=error))
        with pytest.raises(UpstreamError, match="gone"):
            folder.answer()

    assert held_by_cycles(fails) == []
