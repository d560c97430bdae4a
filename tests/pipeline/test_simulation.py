"""A back end that answers in words, with its calls taken out of them: what it is sent, and what it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolwire.backends.base import EventReply, Model
from toolwire.calls.schemas import Schemas
from toolwire.calls.validation import CallTally, CallValidator, OfferedTools, ToolOffer
from toolwire.calls.written.splitter import SplitterPolicy
from toolwire.config.policy import Corrections
from toolwire.events import Event, Finished, PartDelta, PartEnded, PartStarted, Started, fold
from toolwire.pipeline.correction import CorrectingBackend
from toolwire.pipeline.simulation import ScanningBackend, SimulatingBackend, simulated_profile
from toolwire.profiles import OPENAI_RESPONSES, PLAIN
from toolwire.types import Choice, Message, Request, Text, Tool, ToolCall, ToolChoice

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = Tool(name="weather", schema=SCHEMA)
CALLING = '<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>'
ASKED = Request(model="m", messages=(Message(role="user", parts=(Text(text="Hi"),)),), tools=(TOOL,))


class Talker:
    """Says one thing after the other, the last of them again and again, piece by piece, and remembers what it was asked."""

    name = "talker"
    dialect = ""
    profile = PLAIN
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, *texts: str) -> None:
        self._texts = texts
        self.asked: list[Request] = []
        self.is_stopped = False

    async def models(self) -> list[Model]:
        return [Model(id="m")]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        assert not is_verbatim
        self.asked.append(request)
        text = self._texts[min(len(self.asked), len(self._texts)) - 1]
        return EventReply(events=self._events(text), how="by talking")

    async def _events(self, text: str) -> AsyncIterator[list[Event]]:
        try:
            yield [Started(id="1", model="m"), PartStarted(index=0, part=Text(text=""))]
            for letter in text:
                yield [PartDelta(0, letter)]
            yield [PartEnded(index=0, part=Text(text=text)), Finished(choices=(Choice(reason="stop"),))]
        finally:
            self.is_stopped = True

    async def close(self) -> None:
        raise AssertionError("it belongs to somebody else")


def parts_of(backend: Any, request: Request) -> list[Any]:
    async def main() -> list[Any]:
        reply = await backend.open(request, is_verbatim=False)
        events = [event async for batch in reply.events for event in batch]
        await reply.close()
        await backend.close()
        return [ended.part for ended in fold(events).parts]

    return asyncio.run(main())


def corrected(talker: Talker) -> CorrectingBackend:
    """As the guard does it where tools are words."""
    schemas = Schemas()
    checking = CallValidator(ToolOffer([TOOL]), schemas, CallTally())
    return CorrectingBackend(
        SimulatingBackend(talker, schemas, SplitterPolicy(is_held=True)), checking, Corrections(policy="text")
    )


def test_a_simulated_back_end_is_told_in_words_and_heard_in_calls() -> None:
    talker = Talker(f"Well.\n{CALLING}")
    text, call = parts_of(SimulatingBackend(talker, Schemas(), SplitterPolicy()), ASKED)
    assert text == Text(text="Well.\n")
    assert isinstance(call, ToolCall)
    assert (call.name, call.args) == ("weather", {"city": "Paris"})
    (sent,) = talker.asked
    assert (sent.tools, sent.tool_choice, sent.wire) == ((), None, b"")
    assert "weather" in str(sent.messages[0])
    assert talker.is_stopped


def test_one_that_is_only_listened_to_gets_the_request_as_it_is() -> None:
    talker = Talker(CALLING)
    (call,) = [
        part for part in parts_of(ScanningBackend(talker, Schemas(), SplitterPolicy()), ASKED) if part != Text(text="")
    ]
    assert isinstance(call, ToolCall)
    assert talker.asked == [ASKED]


def test_without_tools_nobody_listens() -> None:
    for request in (
        Request(model="m", messages=ASKED.messages),
        Request(model="m", messages=ASKED.messages, tools=(TOOL,), tool_choice=ToolChoice(mode="none")),
    ):
        assert parts_of(SimulatingBackend(Talker(CALLING), Schemas(), SplitterPolicy()), request) == [
            Text(text=CALLING)
        ]


@pytest.mark.parametrize(
    "block",
    [
        '<tool_call>\nweather(city="Paris")\n</tool_call>',
        '<tool_call>weather {"city": "Paris"}</tool_call>',
        "<tool_call>\nname: weather\ncity: Paris\n</tool_call>",
        "<tool_call>\n</tool_call>",
    ],
)
def test_a_block_without_json_is_asked_for_again_and_never_shown(block: str) -> None:
    talker = Talker(f"Well.\n{block}\nSo.", CALLING)
    first, second, call = parts_of(corrected(talker), ASKED)
    assert (first, second, call.args) == (Text(text="Well.\n"), Text(text="\nSo."), {"city": "Paris"})
    said, told = (
        "".join(part.text for part in message.parts if isinstance(part, Text))
        for message in talker.asked[1].messages[-2:]
    )
    assert block in said
    assert "it holds no JSON object" in told


def test_a_block_without_json_that_is_written_again_and_again_is_text_in_its_place() -> None:
    block = "<tool_call>\nweather(Paris)\n</tool_call>"
    talker = Talker(f"Well.\n{block}\nSo.")
    texts = [part.text for part in parts_of(corrected(talker), ASKED)]
    assert texts == ["Well.\n", "\nSo.", "Well.\n", "\nSo.", "Well.\n", block, "\nSo."]


def test_whoever_leaves_stops_the_back_end() -> None:
    async def main() -> Talker:
        talker = Talker("Hello " * 100)
        reply = await SimulatingBackend(talker, Schemas(), SplitterPolicy()).open(ASKED, is_verbatim=False)
        async for _ in reply.events:
            break
        await reply.close()
        assert reply.how == "by talking; tools are described in the prompt"
        return talker

    assert asyncio.run(main()).is_stopped


def test_tools_that_are_words_obey_no_rule_for_tools() -> None:
    profile = simulated_profile(OPENAI_RESPONSES)
    assert (profile.tool_kinds, profile.max_tools, profile.keeps_state, profile.strict_schemas) == (
        frozenset(),
        0,
        False,
        None,
    )
    assert profile.has_files


def test_arguments_fit_a_tool_or_not() -> None:
    tools = OfferedTools(ToolOffer([TOOL]), Schemas(), True)
    assert tools.fits("weather", '{"city": "Paris"}')
    assert tools.fits("functions.weather", '{"city": "Paris"}')
    assert not tools.fits("weather", "{}")
    assert not tools.fits("weather", '{"city": ')
    assert not tools.fits("teleport", "{}")
    assert tools.tool("teleport") is None
