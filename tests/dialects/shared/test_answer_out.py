"""Between texts that become one string goes a blank line, unless they were one or are apart already."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.codec_harness import ALL, body_in, body_out, events_in, make_request, out
from tests.dialects.upstream_events import block, json_delta, message_end, message_start, text_delta, tool_use
from toolwire.dialects.shared.answer_out import Seams, join_texts, separator, with_seams
from toolwire.events import Event, Finished, FoldedAnswer, PartDelta, PartEnded, PartStarted, Started, fold, unfold
from toolwire.types import Choice, Citation, Part, Reasoning, Refusal, Text, ToolCall
from toolwire.wire.exact_json import encode

SOURCE = (Citation(url="https://a"),)


def text(words: str, **members: Any) -> Text:
    return Text(text=words, **members)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([text("I look."), text("Done.")], "I look.\n\nDone."),
        ([text("I look.\n"), text("Done.")], "I look.\nDone."),
        ([text("I look."), text(" Done.")], "I look. Done."),
        ([text("It is "), text("blue", citations=SOURCE), text(", says A.")], "It is blue, says A."),
        ([text("Let m"), text("e look.", is_continuation=True)], "Let me look."),
        ([text("a"), text(""), text("b")], "a\n\nb"),
        ([text(""), text("b")], "b"),
        ([], ""),
    ],
)
def test_texts_as_one_string(parts: list[Text], whole: str) -> None:
    assert join_texts(parts) == whole


def test_the_seam_reads_only_the_first_text() -> None:
    assert separator(text("a"), text(""), "b") == "\n\n"
    assert separator(text("a"), text(""), "") == ""
    assert separator(Reasoning(text="a"), Reasoning(text=""), "b") == "\n\n"
    assert separator(Refusal(text="a"), Refusal(text="", is_continuation=True), "b") == ""


CALL = ToolCall(id="c", name="f", raw="{}", args={})
WORDS = st.text(alphabet="ab. \n", max_size=3)
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=WORDS, is_continuation=st.booleans(), citations=st.sampled_from([(), SOURCE])),
    st.builds(Reasoning, text=WORDS, is_continuation=st.booleans()),
    st.just(CALL),
)


def events_of(parts: list[Part]) -> list[Event]:
    ended = tuple(PartEnded(index=0, part=part) for part in parts)
    finished = Finished(choices=(Choice(reason="stop"),))
    return unfold(FoldedAnswer(started=Started(id="a", model="m"), parts=ended, finished=finished))


def streamed(parts: list[Part], *, is_strict: bool) -> list[str]:
    """The deltas of each part, with what goes before them."""
    seams, found = Seams(is_strict=is_strict), dict.fromkeys(range(len(parts)), "")
    for event in events_of(parts):
        match event:
            case PartStarted():
                seams.begin(event)
            case PartDelta() if event.index in found:
                for letter in event.text:
                    found[event.index] += seams.before(PartDelta(event.index, letter)) + letter
            case PartEnded():
                seams.end(event)
    return list(found.values())


@given(st.lists(PARTS, max_size=6))
def test_a_stream_has_the_seams_of_the_whole(parts: list[Part]) -> None:
    for kind in (Text, Reasoning):
        words = [part for part in parts if isinstance(part, kind)]
        found = [
            one for one, part in zip(streamed(parts, is_strict=False), parts, strict=True) if isinstance(part, kind)
        ]
        assert "".join(found) == join_texts(words)
    whole = [part.raw if isinstance(part, ToolCall) else getattr(part, "text", "") for part in with_seams(parts)]
    assert streamed(parts, is_strict=True) == whole


def text_block(*words: str) -> tuple[dict[str, str], ...]:
    return ({"type": "text", "text": ""}, *map(text_delta, words))


ADJACENT = [block(0, *text_block("I ", "look.")), block(1, *text_block("Done", "."))]
CALLING = [
    block(0, *text_block("I ", "look.")),
    block(1, tool_use("c", "f"), json_delta("{}")),
    block(2, *text_block("Done.")),
]


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize("blocks", [ADJACENT, CALLING], ids=["adjacent", "with a call between"])
def test_a_streamed_answer_with_two_texts_is_the_whole_one(client: str, blocks: list[bytes]) -> None:
    events = events_in("messages", message_start(), *blocks, message_end("tool_use"), request=make_request(client))
    texts = [
        [part.text for part in fold(found).parts_of(0) if isinstance(part, Text)]
        for found in (events_in(client, out(client, events)), body_in(client, encode(body_out(client, events))))
    ]
    one_string = client == "chat" or (client == "gemini" and blocks is ADJACENT)
    for found in texts:
        assert "".join(found) == ("I look.\n\nDone." if one_string else "I look.Done.")
        assert one_string or found == ["I look.", "Done."]
