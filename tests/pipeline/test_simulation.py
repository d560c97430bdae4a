"""A back end that answers in words, with its calls taken out of them: what it is sent, and what it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from toolwire.backends.base import EventReply, Model
from toolwire.calls.schemas import Schemas
from toolwire.calls.validation import CallTally, CallValidator, OfferedTools, ToolOffer
from toolwire.calls.written.splitter import SplitterPolicy
from toolwire.config.policy import Corrections
from toolwire.errors import GatewayError, UpstreamError
from toolwire.events import Event, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, fold
from toolwire.pipeline.correction import CorrectingBackend
from toolwire.pipeline.grammar import GrammarMemory
from toolwire.pipeline.simulation import ScanningBackend, SimulatingBackend, simulated_profile
from toolwire.profiles import LLAMA_CPP, OPENAI_RESPONSES, PLAIN, PLAIN_CHAT
from toolwire.types import Choice, Loss, Message, Request, Sampling, Text, Tool, ToolCall, ToolChoice

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

    def __init__(self, *texts: str | GatewayError) -> None:
        self._texts = texts
        self.asked: list[Request] = []
        self.is_stopped = False

    async def models(self) -> list[Model]:
        return [Model(id="m")]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        assert not is_verbatim
        self.asked.append(request)
        text = self._texts[min(len(self.asked), len(self._texts)) - 1]
        if isinstance(text, GatewayError):
            raise text
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


def test_a_simulated_back_end_is_sent_text_and_decoded_to_calls() -> None:
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


def test_without_tools_text_is_not_scanned() -> None:
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


def test_a_client_that_disconnects_stops_the_back_end() -> None:
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


class Untried(Talker):
    profile = PLAIN_CHAT


class Constraining(Talker):
    profile = LLAMA_CPP


CALLED = '{"calls": [{"name": "weather", "arguments": {"city": "Paris"}}]}'
REFUSAL = UpstreamError("response_format is not supported", status=400, code="bad")


def answered(
    talker: Talker, request: Request = ASKED, memory: GrammarMemory | None = None, **manner: Any
) -> tuple[list[Any], list[Loss], list[Event]]:
    """The parts, the losses and the events of one request."""
    grammar = (memory or GrammarMemory()).support(talker, "m", "auto")  # type: ignore[arg-type] # has what is read
    backend = SimulatingBackend(talker, Schemas(), SplitterPolicy(**manner), grammar)  # type: ignore[arg-type] # the same

    async def main() -> tuple[list[Any], list[Loss], list[Event]]:
        reply = await backend.open(request, is_verbatim=False)
        events = [event async for batch in reply.events for event in batch]
        await reply.close()
        noted = [event.note for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]
        return [ended.part for ended in fold(events).parts], [*reply.losses, *noted], events

    return asyncio.run(main())


def test_a_constrained_answer_is_text_or_calls_and_text_streams() -> None:
    talker = Constraining('{"text": "Hi \\"you\\".", "calls": [{"name": "weather", "arguments": {"city": "Paris"}}]}')
    (text, call), losses, events = answered(talker)
    assert (text, call.name, call.args) == (Text(text='Hi "you".'), "weather", {"city": "Paris"})
    assert losses == []
    assert [event.text for event in events if isinstance(event, PartDelta)][:4] == ["H", "i", " ", '"']
    (sent,) = talker.asked
    assert sent.output.format == "schema"
    assert (sent.tools, sent.wire) == ((), b"")


def test_a_refused_schema_is_left_out_in_the_same_request_and_reported() -> None:
    for kind, again in ((Untried, []), (Constraining, ["grammar"])):
        memory, talker = GrammarMemory(), kind(REFUSAL, CALLING)
        (call,), losses, _ = answered(talker, memory=memory)
        assert call.args == {"city": "Paris"}
        assert [loss.feature for loss in losses] == ["grammar"]
        assert [sent.output.format for sent in talker.asked] == ["schema", "text"]
        later = kind(CALLING)
        (_,), losses, _ = answered(later, memory=memory)
        assert [sent.output.format for sent in later.asked] == ["text"]
        assert [loss.feature for loss in losses] == again


def test_an_error_that_is_not_about_the_schema_is_not_blamed_on_it() -> None:
    memory = GrammarMemory()
    for error, requests in ((UpstreamError("slow down", status=429), 1), (REFUSAL, 2)):
        talker = Untried(error)
        with pytest.raises(UpstreamError):
            answered(talker, memory=memory)
        assert len(talker.asked) == requests
    assert memory.support(Untried(), "m", "auto").may_constrain  # type: ignore[arg-type] # has what is read


@pytest.mark.parametrize("kind", [Untried, Constraining])
def test_a_server_that_ignores_the_schema_is_read_as_one_without(kind: type[Talker]) -> None:
    for answer in ("Well.", CALLING, f"Well.\n{CALLING}", '{"name": "weather", "arguments": {"city": "Paris"}}'):
        memory = GrammarMemory()
        parts, losses, _ = answered(kind(answer), memory=memory)
        assert [part.text for part in parts if isinstance(part, Text)] == ["Well.\n" * ("\n<" in answer) or "Well."][
            : "Well" in answer
        ]
        assert [part.args for part in parts if isinstance(part, ToolCall)] == [{"city": "Paris"}] * ("Paris" in answer)
        assert "grammar" in [loss.feature for loss in losses]
        later = kind(answer)
        answered(later, memory=memory)
        assert later.asked[0].output.format == ("text" if kind is Untried else "schema")


def test_a_server_that_obeyed_is_asked_again() -> None:
    memory = GrammarMemory()
    for _ in range(2):
        talker = Untried(CALLED)
        (call,), losses, _ = answered(talker, memory=memory)
        assert (call.args, losses, talker.asked[0].output.format) == ({"city": "Paris"}, [], "schema")


def test_corrections_of_an_answer_that_ignored_the_schema_do_without() -> None:
    talker, memory = Constraining("Well.", CALLING), GrammarMemory()
    checking = CallValidator(ToolOffer([TOOL]), Schemas(), CallTally())
    grammar = memory.support(talker, "m", "auto")  # type: ignore[arg-type] # has what is read
    inner = SimulatingBackend(talker, Schemas(), SplitterPolicy(is_held=True), grammar)  # type: ignore[arg-type] # the same
    terms = Corrections(policy="text", reminder="Call it.")
    forced = replace(ASKED, tool_choice=ToolChoice(mode="required"))
    _, call = parts_of(CorrectingBackend(inner, checking, terms, grammar), forced)
    assert call.args == {"city": "Paris"}
    assert [sent.output.format for sent in talker.asked] == ["schema", "text"]


def test_stop_sequences_apply_to_the_text_inside_of_the_object() -> None:
    talker = Constraining('{"text": "One. Two: \\"}\\" and END of it."}')
    request = replace(ASKED, sampling=Sampling(stop=("END", '"}"x')))
    (text,), _, events = answered(talker, request)
    assert text == Text(text='One. Two: "}" and ')
    assert isinstance(events[-1], Finished)
    assert events[-1].choices[0].stop_sequence == "END"
    assert talker.asked[0].sampling.stop == ()
    assert talker.is_stopped


def test_a_constrained_request_forbids_nothing_that_none_forbids() -> None:
    talker = Constraining(CALLING)
    parts, losses, _ = answered(talker, replace(ASKED, tool_choice=ToolChoice(mode="none")))
    assert parts == [Text(text=CALLING)]
    assert losses == []
    assert talker.asked[0].output.format == "text"
