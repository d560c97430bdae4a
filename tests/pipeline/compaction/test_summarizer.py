"""The request for a summary: without tools, in pieces if the conversation is too long for the model."""

from __future__ import annotations

import asyncio

import pytest

from tests.pipeline.compaction.model import Knower, texts_of
from toolwire.errors import UpstreamError
from toolwire.pipeline.compaction.summarizer import Summarizer
from toolwire.types import Media, Message, Reasoning, Request, Text, ToolCall, ToolResult

REQUEST = Request(model="m", messages=())


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def summary_of(backend: Knower, *messages: Message, instructions: str = "") -> tuple[str, Summarizer]:
    summarizer = Summarizer(backend, REQUEST, instructions)
    return asyncio.run(summarizer.summarize(messages)), summarizer


def test_calls_and_results_are_text_and_reasoning_and_media_are_left_out() -> None:
    backend = Knower()
    picture = Media(kind="image", mime="image/png", data="AAAA", name="cat.png")
    said = Message(role="assistant", parts=(Reasoning(text="hm"), ToolCall(id="c", name="look", raw='{"a":1}')))
    result = Message(role="tool", parts=(ToolResult(call_id="c", parts=(Text(text="CODE-x"), picture)),))
    text, _ = summary_of(backend, Message(role="user", parts=(picture, Text(text="hi"))), said, result)
    assert text == "Summary: CODE-x"
    sent = backend.requests[0].messages
    assert {type(part) for message in sent for part in message.parts} == {Text}
    assert "[image cat.png]" in "".join(texts_of(sent))
    assert "look" in "".join(texts_of(sent))
    assert "hm" not in texts_of(sent)


def test_instructions_of_the_client_replace_ours() -> None:
    backend = Knower()
    summary_of(backend, user("CODE-a"), instructions="Only the names.")
    assert texts_of(backend.requests[0].messages)[-1] == "Only the names."


def test_a_conversation_that_is_too_long_is_summarized_in_pieces_and_its_start_is_not_lost() -> None:
    backend = Knower(window=8000)
    messages = [user(f"CODE-{number} " + "x" * 3000) for number in range(6)]
    text, summarizer = summary_of(backend, *messages)
    assert text.split() == ["Summary:", *(f"CODE-{number}" for number in range(6))]
    assert summarizer.usage is not None
    answered = summarizer.usage.input // 100
    assert 3 <= answered < len(backend.requests) <= 16
    assert not summarizer.losses


def test_a_single_message_that_is_too_long_is_cut_and_reported() -> None:
    text, summarizer = summary_of(Knower(window=9000), user("CODE-start " + "x" * 30000 + " CODE-end"))
    assert text == "Summary: CODE-start CODE-end"
    assert {loss.feature for loss in summarizer.losses} == {"compaction"}


def test_a_window_that_is_too_small_for_anything_ends_with_the_error_of_the_back_end() -> None:
    backend = Knower(window=10)
    with pytest.raises(UpstreamError) as caught:
        summary_of(backend, *(user("x" * 3000) for _ in range(40)))
    assert caught.value.code == "context_length_exceeded"
    assert len(backend.requests) <= 16


def test_a_summary_without_text_is_an_error() -> None:
    with pytest.raises(UpstreamError, match="without text") as caught:
        summary_of(Knower(summary=""), user("hi"))
    assert caught.value.code == "compaction_failed"
