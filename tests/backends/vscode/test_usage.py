"""Usage that nobody told: counted by the window in bounded time, else estimated, and always said to be so."""

from __future__ import annotations

import asyncio

import pytest

from tests.backends.vscode.test_window import chat, heard, hello
from toolwire.backends.vscode.usage import COUNTED, ESTIMATED, estimate, measured, prompt_of
from toolwire.backends.vscode.window import Window
from toolwire.backends.vscode.wire.shapes import (
    CallPart,
    Chat,
    ChatMessage,
    Count,
    Counted,
    DataPart,
    OfferedTool,
    ResultPart,
    TextPart,
)
from toolwire.types import Usage

pytestmark = pytest.mark.slow


async def answer_counts(window: Window, count: int) -> None:
    for _ in range(count):
        frame = await heard(window)
        assert isinstance(frame, Count)
        window.hear(Counted(id=frame.id, tokens=len(frame.text)), 10)


def test_both_sides_are_counted_at_once() -> None:
    async def main() -> None:
        window = Window(hello())
        answering = asyncio.create_task(answer_counts(window, 2))
        found = await measured(window, "copilot/gpt-4.1", chat(text="12345"), "123")
        await answering
        assert (found.usage, found.note) == (Usage(input=5, output=3), COUNTED)

    asyncio.run(main())


def test_a_window_that_does_not_count_costs_a_moment() -> None:
    async def main() -> None:
        window = Window(hello())
        found = await asyncio.wait_for(measured(window, "m", chat(text="12345678"), "é" * 4, 0.02), 1)
        assert (found.usage, found.note) == (Usage(input=2, output=2), ESTIMATED)
        assert window.is_idle
        window.close("gone")
        assert (await measured(window, "m", chat(text="1"), "")).usage == Usage(input=1, output=0)

    asyncio.run(main())


def test_a_window_that_goes_meanwhile_is_no_fault() -> None:
    async def main() -> None:
        window = Window(hello())
        counting = asyncio.create_task(measured(window, "m", chat(text="12345678"), "text", 5))
        await asyncio.sleep(0)
        window.close("gone")
        assert (await counting).note == ESTIMATED

    asyncio.run(main())


def test_long_conversations_are_not_counted() -> None:
    async def main() -> None:
        window = Window(hello())
        found = await measured(window, "m", chat(text="a" * 500_000), "b")
        assert (found.usage, found.note) == (Usage(input=125_000, output=1), ESTIMATED)
        window.close("done")
        assert await window.outbox.next() is None

    asyncio.run(main())


def test_an_estimate_is_by_bytes() -> None:
    assert [estimate(text) for text in ("", "a", "abcd", "abcde", "日本")] == [0, 1, 1, 2, 2]


def test_what_a_model_reads_is_counted_and_pictures_are_not() -> None:
    parts = (
        TextPart(text="one"),
        DataPart(mime="image/png", data="AAAA"),
        CallPart(id="c", name="f", input={"a": 1}),
        ResultPart(id="c", parts=(TextPart(text="two"), DataPart(mime="image/png", data="AAAA"))),
    )
    asked = Chat(
        id="r",
        model="m",
        messages=(ChatMessage(role="user", parts=parts),),
        tools=(OfferedTool(name="f", description="does", schema={"type": "object"}),),
    )
    assert prompt_of(asked).split("\n") == ['f does {"type":"object"}', "one", 'f {"a":1}', "two"]
