"""Which requests get a tool search, and what the search does within one request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.mcp_tools import questions, recorded_tools
from tests.pipeline.jobs import Closed, job_of
from toolwire.calls.search.index import ToolIndexes
from toolwire.calls.search.selection import SearchPlan, ToolLimits
from toolwire.config.policy import Policy, ToolsBudget
from toolwire.pipeline.prepare import Preparation
from toolwire.pipeline.tool_search import DEFAULT_COUNT, FoundTools, ToolSearch, with_native_search
from toolwire.profiles import ANTHROPIC, ANTHROPIC_API, OPENAI_CHAT, OPENAI_RESPONSES, PLAIN
from toolwire.types import Message, Opaque, Request, Sampling, Text, Tool, ToolCall, ToolChoice

TOOLS = recorded_tools()


def request(count: int = 500, **more: Any) -> Request:
    return Request(
        **{"model": "m", "messages": (Message(role="user", parts=(Text(text="hi"),)),), "tools": TOOLS[:count], **more}
    )


def plan(count: int, profile: Any = PLAIN, guard: Any = "check", **policy: Any) -> SearchPlan | None:
    job = job_of(request(count), Closed(profile=profile), guard, policy=Policy(**policy))
    Preparation().plan_tool_search(job)
    return job.search


def limits(found: SearchPlan | None) -> ToolLimits | None:
    return None if found is None else found.limits


@pytest.mark.parametrize(
    ("count", "options", "expected"),
    [
        (500, {}, None),
        (128, {"profile": OPENAI_CHAT}, None),
        (129, {"profile": OPENAI_CHAT}, ToolLimits(DEFAULT_COUNT)),
        (129, {"profile": OPENAI_CHAT, "guard": "off"}, None),
        (129, {"profile": OPENAI_CHAT, "tool_search": "off"}, None),
        (129, {"profile": OPENAI_CHAT, "max_tools": 0}, None),
        (20, {"max_tools": 10}, ToolLimits(9)),
        (20, {"tools_budget": ToolsBudget(count=20)}, None),
        (21, {"tools_budget": ToolsBudget(count=20), "guard": "off"}, ToolLimits(20)),
        (500, {"tools_budget": ToolsBudget(tokens=200_000)}, None),
        (500, {"tools_budget": ToolsBudget(tokens=5000)}, ToolLimits(10_000, 5000)),
        (500, {"tools_budget": ToolsBudget(tokens=5000), "max_tools": 128}, ToolLimits(127, 5000)),
    ],
)
def test_the_search_is_off_unless_needed(count: int, options: Any, expected: ToolLimits | None) -> None:
    assert limits(plan(count, **options)) == expected


def search(memory: FoundTools | None = None, owner: str = "") -> ToolSearch:
    return ToolSearch(SearchPlan(limits=ToolLimits(40), why="w"), ToolIndexes(), memory or FoundTools(), owner)


def query(text: Any, call_id: str = "c") -> ToolCall:
    args = {"query": text}
    return ToolCall(id=call_id, name="find_tools", raw=json.dumps(args), args=args)


def find(tools: ToolSearch, call: ToolCall) -> tuple[str, bool, bool]:
    outcome = asyncio.run(tools.start(call, lambda: 0).outcome)
    [text] = outcome.parts
    assert isinstance(text, Text)
    return text.text, outcome.is_error, outcome.is_refused


def test_found_tools_are_appended() -> None:
    tools = search()
    first = tools.begin(request())
    assert first.tools[0].name == "find_tools"
    assert "github (26)" in str(first.tools[0].description)
    text, *_ = find(tools, query("convert time zones"))
    assert "- mcp__time__convert_time: Convert time between timezones" in text
    second = tools.resume(first)
    assert second.tools[: len(first.tools)] == first.tools
    assert "mcp__time__convert_time" in [tool.name for tool in second.tools]


def test_the_loss_says_what_was_done() -> None:
    tools = search()
    tools.begin(request())
    [loss] = tools.losses
    assert loss.why == "w: the model gets 0 of 500 tools, and the model finds the others with find_tools"


@pytest.mark.parametrize("wrong", [None, 5, "", "  "])
def test_a_search_without_words_is_an_error_for_the_model(wrong: Any) -> None:
    tools = search()
    tools.begin(request())
    assert find(tools, query(wrong))[1:] == (True, False)


def test_a_search_that_finds_nothing() -> None:
    tools = search()
    tools.begin(request())
    assert find(tools, query("zebra"))[0].startswith("No tool")


def test_the_searches_of_a_request_are_limited() -> None:
    tools = search()
    sent = tools.begin(request())
    refused = [find(tools, query("time"))[2] for _ in range(6)]
    assert refused == [False] * 5 + [True]
    assert "find_tools" not in [tool.name for tool in tools.resume(sent).tools]


def test_the_name_of_the_function_is_free() -> None:
    tools = search()
    sent = tools.begin(request(tools=(*TOOLS, Tool(name="find_tools"))))
    assert sent.tools[0].name == "find_tools_2"
    assert not tools.owns(query("x"))
    assert tools.owns(ToolCall(id="c", name="functions.find_tools_2", raw="{}"))


def test_found_tools_are_remembered_for_their_owner() -> None:
    memory, made = FoundTools(), ToolCall(id="x", name="mcp__time__convert_time", raw="{}", args={})
    tools = search(memory, "anna")
    tools.begin(request())
    find(tools, query("convert time zones"))
    tools.end([made], "")
    history = (*request().messages, Message(role="assistant", parts=(made,)))

    def names(owner: str) -> list[str]:
        return [tool.name for tool in search(memory, owner).begin(request(messages=history)).tools]

    assert "mcp__time__get_current_time" in names("anna")
    assert names("bob") == ["find_tools", made.name]


def test_only_allowed_tools_are_found() -> None:
    tools = search()
    tools.begin(request(tool_choice=ToolChoice(mode="allowed", names=("mcp__time__convert_time",))))
    assert "get_current_time" not in find(tools, query("time"))[0]


def test_several_choices_cannot_be_continued() -> None:
    tools = search()
    sent = tools.begin(request(sampling=Sampling(choices=2)))
    assert "find_tools" not in [tool.name for tool in sent.tools]
    assert "cannot be called" in tools.losses[0].why


def test_a_correction_without_tools_is_left_alone() -> None:
    tools, plain = search(), request(0)
    assert tools.begin(plain) is plain
    assert tools.resume(plain) is plain


@pytest.mark.parametrize(
    ("dialect", "profile", "model", "is_native"),
    [
        ("messages", ANTHROPIC_API, "claude-opus-5", True),
        ("messages", ANTHROPIC_API, "claude-3-haiku", False),
        ("messages", ANTHROPIC, "claude-opus-5", False),
        ("responses", OPENAI_RESPONSES, "gpt-5.5", True),
        ("responses", OPENAI_RESPONSES, "gpt-4.1", False),
    ],
)
def test_a_back_end_with_a_search_of_its_own_uses_it(dialect: str, profile: Any, model: str, is_native: bool) -> None:
    backend = Closed(dialect, profile, profile.tool_kinds)
    policy = Policy(tools_budget=ToolsBudget(count=12))
    job = job_of(request(100), backend, policy=policy, model=model)
    asyncio.run(Preparation().run(job))
    assert (job.backend is backend) == is_native
    if is_native:
        search, *tools = job.request.tools
        assert (search.kind, len(tools)) == ("hosted", 100)
        assert sum(tool.is_deferred for tool in tools) >= 90
        assert [loss.feature for loss in job.losses] == ["tools.search"]


def test_the_gateway_searches_where_the_limit_of_the_back_end_is_exceeded_or_the_owner_wants_it() -> None:
    backend = Closed("responses", OPENAI_RESPONSES, OPENAI_RESPONSES.tool_kinds)
    for count, way in ((200, "auto"), (100, "gateway")):
        policy = Policy(tools_budget=ToolsBudget(count=12), tool_search=way)  # type: ignore[arg-type]  # one of the ways
        job = job_of(request(count), backend, policy=policy, model="gpt-5.5")
        Preparation().plan_tool_search(job)
        assert job.search is not None
        assert not job.search.is_native


def test_called_tools_are_loaded_unless_a_search_in_the_history_has_found_them() -> None:
    one, two = TOOLS[50].name, TOOLS[60].name
    value = {"type": "tool_search_tool_result", "content": {"tool_references": [{"tool_name": two}]}}
    calls = [ToolCall(id=name, name=name, raw="{}", args={}) for name in (one, two)]
    history = (*request().messages, Message(role="assistant", parts=(Opaque(dialect="messages", value=value), *calls)))
    plan = SearchPlan(limits=ToolLimits(12), why="w", is_native=True)
    sent, _ = with_native_search(request(messages=history), plan, ToolIndexes(), "messages")
    assert [tool.name for tool in sent.tools[1:] if not tool.is_deferred] == [one]


def test_the_right_tool_is_found_and_called_for_95_of_100_questions() -> None:
    """With a first message that says nothing, so that only the search of the model can find the tool."""
    memory, indexes, hits = FoundTools(), ToolIndexes(), 0
    for question in questions():
        tools = ToolSearch(SearchPlan(limits=ToolLimits(40), why="w"), indexes, memory, "")
        first = tools.begin(request())
        assert not any(tool.name in question.answers for tool in first.tools)
        find(tools, query(question.text))
        hits += any(tool.name in question.answers for tool in tools.resume(first).tools)
    assert hits >= 190
