"""Which tools the model gets where it cannot get all."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.mcp_tools import recorded_tools
from toolwire.calls.search.index import ToolIndex
from toolwire.calls.search.selection import ToolCatalog, ToolLimits, token_cost, token_total
from toolwire.types import Message, Request, Text, Tool, ToolCall, ToolChoice

TOOLS = recorded_tools()
JIRA = "mcp__atlassian__jira_create_issue"


def catalog(tools: tuple[Tool, ...] = TOOLS, count: int = 40, tokens: int = 0) -> ToolCatalog:
    return ToolCatalog(tools, ToolIndex(tools), ToolLimits(count, tokens))


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def called(name: str, call_id: str = "c") -> Message:
    return Message(role="assistant", parts=(ToolCall(id=call_id, name=name, raw="{}", args={}),))


def names(
    *messages: Message, of: ToolCatalog | None = None, found: Any = (), before: Any = None, **more: Any
) -> list[str]:
    request = Request(model="m", messages=messages, tools=TOOLS, **more)
    return [tool.name for tool in (of or catalog()).select(request, found, before or (lambda call: ()))]


def test_the_base_fits_the_first_message_in_the_order_of_the_client() -> None:
    given = names(user("File a Jira ticket"))
    assert JIRA in given
    assert len(given) == 10
    assert given == [tool.name for tool in TOOLS if tool.name in given]


def test_the_list_only_grows() -> None:
    history = [
        user("File a Jira ticket"),
        called(JIRA),
        user("And post it on Slack"),
        called("mcp__time__convert_time", "d"),
    ]
    lists = [names(*history[:length]) for length in range(1, 5)]
    for shorter, longer in pairwise(lists):
        assert longer[: len(shorter)] == shorter
    assert lists[3][-1] == "mcp__time__convert_time"


def test_tools_that_were_found_before_a_call_stay() -> None:
    found = ("mcp__time__convert_time", "mcp__time__get_current_time")
    first = names(user("hi"), found=found)
    later = names(user("hi"), called(found[1], "x"), before=lambda call: found if call.id == "x" else ())
    assert later == first


def test_forced_tools_are_always_present() -> None:
    choice = ToolChoice(mode="named", names=("mcp__figma__get_figma_data",))
    assert "mcp__figma__get_figma_data" in names(user("time in Rome"), of=catalog(count=1), tool_choice=choice)


def test_the_clients_own_tools_are_present() -> None:
    own = (Tool(name="Bash"), Tool(name="TodoWrite"))
    assert names(user("time in Rome"), of=catalog((*TOOLS, *own)))[-2:] == ["Bash", "TodoWrite"]
    plain = (Tool(name="bash"), *(Tool(name=f"server_{number}") for number in range(60)))
    assert names(user("?"), of=catalog(plain)) == ["bash"]


def test_tools_that_only_the_provider_knows_stay() -> None:
    tools = (*TOOLS, Tool(name="web_search", kind="hosted"), Tool(name="later", is_deferred=True))
    assert {"web_search", "later"} <= set(names(user("hi"), of=catalog(tools)))


def test_the_oldest_tools_that_were_not_called_leave_a_full_list() -> None:
    many = tuple(tool.name for tool in TOOLS[:60])
    given = names(user("zebra"), called(many[0]), of=catalog(count=8), found=many[1:20], before=lambda _: many[30:40])
    assert len(given) == 8
    assert given[0] == many[0]
    assert given[1:] == list(many[13:20])


def test_called_tools_leave_the_list_only_for_the_limit() -> None:
    calls = [called(tool.name, str(place)) for place, tool in enumerate(TOOLS[:12])]
    assert names(user("zebra"), *calls, of=catalog(count=5)) == [tool.name for tool in TOOLS[7:12]]


def test_a_budget_of_tokens() -> None:
    history = (user("Create a Notion page"), *(called(tool.name, str(place)) for place, tool in enumerate(TOOLS[:60])))
    given = names(*history, of=catalog(count=10_000, tokens=2000))
    cost = {tool.name: token_cost(tool) for tool in TOOLS}
    assert 0 < sum(cost[name] for name in given) <= 2000
    assert token_total(TOOLS) == sum(cost.values())


def test_a_search_among_allowed_tools() -> None:
    assert catalog().find("create a jira issue")[0] == JIRA
    assert catalog().find("create a jira issue", ["mcp__github__create_issue"]) == ("mcp__github__create_issue",)


def test_the_overview_names_the_servers() -> None:
    overview = catalog().overview()
    assert "github (26)" in overview
    assert "atlassian (98)" in overview


def test_own_tools_do_not_take_the_places_of_those_that_fit() -> None:
    own = tuple(Tool(name=f"Time{number}", description="Tells the time.") for number in range(15))
    given = names(user("What time is it?"), of=catalog((*own, *TOOLS)))
    assert "mcp__time__get_current_time" in given
    assert len(given) == 25


def test_the_last_text_of_a_message_is_the_question() -> None:
    message = Message(
        role="user", parts=(Text(text="<reminder>Create a Jira issue.</reminder>"), Text(text="time in Rome"))
    )
    assert JIRA not in names(message)
    assert "mcp__time__get_current_time" in names(message)
