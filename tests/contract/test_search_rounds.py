"""One answer from several rounds with searches between them, on a back end that plays one list of parts after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolwire.backends.base import EventReply, Model
from toolwire.backends.search import Searcher
from toolwire.dialects.shared.web_search import SearchHit
from toolwire.errors import GatewayError, UpstreamError
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
    emptied,
    fold,
)
from toolwire.pipeline.search import Searching
from toolwire.profiles import PLAIN
from toolwire.types import (
    Choice,
    Loss,
    Message,
    Opaque,
    Part,
    Reason,
    Reasoning,
    Request,
    Source,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from toolwire.wire.exact_json import object_of

QUERY = '{"query":"q"}'


def search(call_id: str = "c", raw: str = QUERY, name: str = "web_search") -> ToolCall:
    return ToolCall(id=call_id, name=name, raw=raw, args=object_of(raw))


class ScriptedBackend:
    """Each request gets the next answer; an error is raised, or said in mid-answer where it stands among parts."""

    name = "played"
    dialect = ""
    profile = PLAIN
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, *answers: Any, reason: Reason = "stop", losses: tuple[Loss, ...] = ()) -> None:
        self.asked: list[Request] = []
        self.is_closed = False
        self._answers = list(answers)
        self._reason = reason
        self._losses = losses

    async def models(self) -> list[Model]:
        return []

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        assert not is_verbatim
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, GatewayError):
            raise answer
        return EventReply(events=self._play(answer), losses=self._losses)

    async def close(self) -> None:
        pass

    async def _play(self, parts: list[Part | GatewayError | None]) -> AsyncIterator[list[Event]]:
        try:
            yield [Started(id="g", model="m")]
            for index, part in enumerate(parts):
                if part is None:
                    return
                if isinstance(part, GatewayError):
                    yield [Failed(error=part)]
                    return
                yield [PartStarted(index=index, part=emptied(part))]
                if content_of(part):
                    yield [PartDelta(index, content_of(part))]
                yield [PartEnded(index=index, part=part), Noted(note=Usage(input=9))]
            usage = Usage(input=10, output=3, cached=2, reasoning=1)
            yield [Finished(choices=(Choice(reason=self._reason),), usage=usage)]
        finally:
            self.is_closed = True


class Engine:
    def __init__(self, pause: float = 0.0, error: UpstreamError | None = None) -> None:
        self.asked: list[str] = []
        self.ended = 0
        self._pause = pause
        self._error = error

    async def find(self, query: str, count: int) -> list[SearchHit]:
        self.asked.append(query)
        try:
            await asyncio.sleep(self._pause)
        finally:
            self.ended += 1
        if self._error is not None:
            raise self._error
        return [SearchHit("T", "https://a.b", f"about {query}")]


def request_of(client: str = "messages", *tools: Tool, choice: ToolChoice | None = None, **limits: Any) -> Request:
    kind = "web_search_20250305" if client == "messages" else "web_search"
    hosted = Tool(name="web_search", kind="hosted", source=Source(client, {"type": kind, **limits}))
    message = Message(role="user", parts=(Text(text="hi"),))
    return Request(model="m", messages=(message,), tools=(hosted, *tools), tool_choice=choice, origin=client)


async def run_search(inner: ScriptedBackend, engine: Engine, request: Request) -> tuple[EventReply, list[Event]]:
    searching = Searching(Searcher(engine, timeout=1.0, results=3))
    backend, lowered = searching.around(inner, request)
    reply = await backend.open(lowered, is_verbatim=False)
    assert isinstance(reply, EventReply)
    return reply, [event async for events in reply.events for event in events]


def run(inner: ScriptedBackend, request: Request | None = None, engine: Engine | None = None) -> list[Event]:
    _, events = asyncio.run(run_search(inner, engine or Engine(), request or request_of()))
    _check(events)
    return events


def _check(events: list[Event]) -> None:
    """Indices are dense in order of start, and every part that starts ends."""
    started = [event.index for event in events if isinstance(event, PartStarted)]
    ended = [event.index for event in events if isinstance(event, PartEnded)]
    assert started == list(range(len(started)))
    assert not isinstance(events[-1], Finished) or sorted(ended) == started
    assert sum(isinstance(event, Started) for event in events) == 1


def kinds(answer: FoldedAnswer) -> list[str]:
    return [
        part.value["type"] if isinstance(part, Opaque) else content_of(part) or type(part).__name__
        for part in answer.parts_of(0)
    ]


def test_the_model_gets_another_request_with_the_results() -> None:
    thought = Reasoning(text="hm", signature="s")
    inner, engine = ScriptedBackend([thought, Text(text="I look."), search()], [Text(text="So.")]), Engine()
    answer = fold(run(inner, engine=engine))
    assert kinds(answer) == ["hm", "I look.", "server_tool_use", "web_search_tool_result", "So."]
    assert engine.asked == ["q"]
    before, after = inner.asked
    assert after.messages[:1] == before.messages
    assert after.messages[1].parts == (thought, Text(text="I look."), search())
    (result,) = after.messages[2].parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error, after.messages[2].role) == ("c", False, "tool")
    assert "about q" in str(result.parts)
    usage = answer.finished.usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cached, usage.reasoning) == (20, 6, 4, 2)
    assert usage.extra["messages"]["server_tool_use"]["web_search_requests"] == 1


def test_an_answer_without_a_search_passes() -> None:
    inner = ScriptedBackend([Text(text="So.")])
    answer = fold(run(inner, request_of("responses")))
    assert kinds(answer) == ["So."]
    assert len(inner.asked) == 1


def test_text_is_sent_before_the_search_is_done() -> None:
    async def main() -> list[type]:
        searching = Searching(Searcher(Engine(pause=9), timeout=9.0, results=3))
        backend, lowered = searching.around(ScriptedBackend([Text(text="I look."), search()]), request_of())
        reply = await backend.open(lowered, is_verbatim=False)
        assert isinstance(reply, EventReply)
        seen: list[type] = []
        async for events in reply.events:
            seen += [type(event) for event in events]
            if isinstance(events[-1], PartEnded) and isinstance(events[-1].part, Opaque):
                break
        return seen

    assert PartDelta in asyncio.run(main())


def test_several_searches_of_one_turn_run_at_once() -> None:
    inner, engine = ScriptedBackend([search("a"), search("b", '{"query":"r"}')], [Text(text="So.")]), Engine(pause=0.05)
    answer = fold(run(inner, engine=engine))
    assert kinds(answer) == ["server_tool_use"] * 2 + ["web_search_tool_result"] * 2 + ["So."]
    assert engine.asked == ["q", "r"]
    uses, results = answer.parts_of(0)[:2], answer.parts_of(0)[2:4]
    assert [part.value["id"] for part in uses if isinstance(part, Opaque)] == [
        part.value["tool_use_id"] for part in results if isinstance(part, Opaque)
    ]


def test_ids_are_unique_for_the_back_end() -> None:
    inner = ScriptedBackend([search("x"), search("")], [search("x")], [Text(text="So.")])
    run(inner)
    ids = [part.id for message in inner.asked[-1].messages for part in message.parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == 3
    assert all(ids)


def test_H092_a_clients_own_call_ends_the_turn() -> None:
    own = ToolCall(id="o", name="note", raw="{}", args={})
    inner = ScriptedBackend([own, search()], reason="tool_calls")
    answer = fold(run(inner))
    assert kinds(answer) == ["{}", "server_tool_use", "web_search_tool_result"]
    assert answer.finished.choices[0].reason == "tool_calls"
    assert len(inner.asked) == 1


def test_searches_are_bounded() -> None:
    inner, engine = ScriptedBackend([search()]), Engine()
    answer = fold(run(inner, engine=engine))
    assert len(engine.asked) == 5
    assert len(inner.asked) == 6
    assert inner.asked[5].tool_choice == ToolChoice(mode="none")
    assert kinds(answer)[-1] == "web_search_tool_result"


def test_the_clients_bound_counts_and_other_tools_stay() -> None:
    note = Tool(name="note", schema={})
    inner, engine = ScriptedBackend([search("a"), search("b")], [Text(text="So.")]), Engine()
    answer = fold(run(inner, request_of("messages", note, max_uses=1), engine))
    assert len(engine.asked) == 1
    assert inner.asked[1].tools == (note,)
    refused = answer.parts_of(0)[3]
    assert isinstance(refused, Opaque)
    assert refused.value["content"]["error_code"] == "max_uses_exceeded"
    assert kinds(answer)[-1] == "So."


def test_no_client_may_ask_for_endless_searches() -> None:
    engine = Engine()
    run(ScriptedBackend([search()]), request_of(max_uses=10**9), engine)
    assert len(engine.asked) == 50


def test_arguments_that_are_none() -> None:
    for raw in ("{", "[]", "{}", '{"query":7}', '{"query":" "}'):
        inner, engine = ScriptedBackend([search(raw=raw)], [Text(text="So.")]), Engine()
        answer = fold(run(inner, engine=engine))
        part = answer.parts_of(0)[1]
        assert isinstance(part, Opaque)
        assert part.value["content"]["error_code"] == "invalid_tool_input"
        assert not engine.asked
        (result,) = inner.asked[1].messages[-1].parts
        assert isinstance(result, ToolResult)
        assert result.is_error


def test_a_failed_search_is_reported_and_recorded() -> None:
    inner = ScriptedBackend([search()], [Text(text="So.")])
    events = run(inner, request_of("responses"), Engine(error=UpstreamError("it is down.")))
    assert Noted(note=Loss("web_search", "answer", "it is down.")) in events
    (result,) = inner.asked[1].messages[-1].parts
    assert isinstance(result, ToolResult)
    assert result.parts == (Text(text="The search failed: it is down."),)


def test_a_prefix_that_models_invent() -> None:
    engine = Engine()
    run(ScriptedBackend([search(name="functions.web_search")], [Text(text="So.")]), engine=engine)
    assert engine.asked == ["q"]


@pytest.mark.parametrize(
    ("choice", "later"),
    [
        (None, None),
        (ToolChoice(mode="auto"), ToolChoice(mode="auto")),
        (ToolChoice(mode="required"), ToolChoice(mode="auto")),
        (ToolChoice(mode="named", names=("web_search",)), ToolChoice(mode="auto")),
        (
            ToolChoice(mode="allowed", names=("web_search", "note"), is_required=True),
            ToolChoice(mode="allowed", names=("web_search", "note")),
        ),
    ],
)
def test_what_was_forced_is_free_after_the_first_search(choice: ToolChoice | None, later: ToolChoice | None) -> None:
    inner = ScriptedBackend([search()], [Text(text="So.")])
    run(inner, request_of("messages", Tool(name="note", schema={}), choice=choice))
    assert inner.asked[1].tool_choice == later


@pytest.mark.parametrize(("names", "later"), [(("web_search", "note"), "allowed"), (("web_search",), "none")])
def test_a_used_up_search_is_no_longer_allowed(names: tuple[str, ...], later: str) -> None:
    inner = ScriptedBackend([search()], [Text(text="So.")])
    allowed = ToolChoice(mode="allowed", names=names)
    run(inner, request_of("messages", Tool(name="note", schema={}), choice=allowed, max_uses=1))
    assert inner.asked[1].tool_choice is not None
    assert inner.asked[1].tool_choice.mode == later
    assert "web_search" not in inner.asked[1].tool_choice.names


def test_an_answer_that_was_cut_short_is_not_continued() -> None:
    inner = ScriptedBackend([search()], reason="length")
    answer = fold(run(inner))
    assert answer.finished.choices[0].reason == "length"
    assert len(inner.asked) == 1


def test_errors_of_the_back_end_are_its_own() -> None:
    with pytest.raises(UpstreamError, match="no"):
        run(ScriptedBackend(UpstreamError("no")))
    with pytest.raises(UpstreamError, match="later"):
        run(ScriptedBackend([search()], UpstreamError("later")))
    events = run(ScriptedBackend([Text(text="I"), UpstreamError("in between")]))
    assert isinstance(events[-1], Failed)


def test_an_answer_without_an_end_has_none() -> None:
    events = run(ScriptedBackend([Text(text="I"), None]))
    assert not any(isinstance(event, Finished | Failed) for event in events)


def test_losses_are_reported_once() -> None:
    lost, inner = Loss("a", "b", "c"), [[search()], [Text(text="So.")]]
    request = request_of(user_location={"city": "Oslo"})
    reply, events = asyncio.run(run_search(ScriptedBackend(*inner, losses=(lost,)), Engine(), request))
    assert [loss.feature for loss in reply.losses] == ["a", "web_search.user_location"]
    assert not [event for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]


def test_a_client_that_goes_stops_everything() -> None:
    async def main() -> None:
        inner, engine = ScriptedBackend([search()]), Engine(pause=9)
        searching = Searching(Searcher(engine, timeout=9.0, results=3))
        backend, lowered = searching.around(inner, request_of())
        reply = await backend.open(lowered, is_verbatim=False)
        assert isinstance(reply, EventReply)

        async def read() -> None:
            async for _ in reply.events:
                pass

        task = asyncio.create_task(read())
        while not engine.asked:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.01)
        assert engine.ended == 1
        assert inner.is_closed

    asyncio.run(main())
