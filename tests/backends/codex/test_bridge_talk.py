"""The MCP server of a thread, without I/O."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.backends.codex.bridge_talk import MOST_WAITING, Talk, contents
from toolwire.types import Loss, Media, Opaque, Text, Tool, ToolCall, ToolResult

pytestmark = pytest.mark.slow

TOOLS = (
    Tool(name="look", description="Looks.", schema={"type": "object", "properties": {"at": {"minLength": 1}}}),
    Tool(name="bare"),
)


def ask(talk: Talk, method: str, id: Any = 1, **params: Any) -> Any:
    said = talk.feed(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
    return json.loads(said) if said else None


def call(number: int, raw: str = "{}", name: str = "look") -> ToolCall:
    return ToolCall(id=f"call_{number}", name=name, raw=raw)


def result(text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id="any", parts=(Text(text=text),), is_error=is_error)


def text_in(said: Any) -> str:
    message = json.loads(said) if isinstance(said, bytes) else said
    return str(message["result"]["content"][0]["text"])


def test_it_introduces_itself_in_the_version_that_is_asked_for() -> None:
    talk = Talk(TOOLS)
    said = ask(talk, "initialize", id=0, protocolVersion="2025-03-26", capabilities={})
    assert said["id"] == 0
    assert said["result"]["protocolVersion"] == "2025-03-26"
    assert said["result"]["capabilities"] == {"tools": {}}
    assert ask(talk, "initialize")["result"]["protocolVersion"] == "2025-06-18"
    assert talk.feed(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == b""
    assert ask(talk, "ping", id="p") == {"jsonrpc": "2.0", "id": "p", "result": {}}


def test_the_tools_have_their_own_schemas() -> None:
    talk = Talk(TOOLS)
    assert not talk.is_listed
    tools = ask(talk, "tools/list")["result"]["tools"]
    assert tools == [
        {"name": "look", "description": "Looks.", "inputSchema": TOOLS[0].schema},
        {"name": "bare", "inputSchema": {"type": "object", "properties": {}}},
    ]
    assert talk.is_listed


def test_a_call_waits_for_its_result() -> None:
    talk = Talk(TOOLS)
    assert ask(talk, "tools/call", id=7, name="look", arguments={"at": 1}) is None
    assert talk.waiting == 1
    said = json.loads(talk.give(call(1, '{"at":1.0}'), result("seen")))
    assert said == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"content": [{"type": "text", "text": "seen"}], "isError": False},
    }
    assert talk.waiting == 0


def test_a_result_waits_for_its_call() -> None:
    """Codex 0.89 asks for the second tool only when it has the result of the first."""
    talk = Talk(TOOLS)
    assert ask(talk, "tools/call", id=1, name="look", arguments={"at": "a"}) is None
    assert talk.give(call(2, '{"at": "b"}'), result("B")) == b""
    said = talk.give(call(1, '{"at": "a"}'), result("A"))
    assert (json.loads(said)["id"], text_in(said)) == (1, "A")
    assert text_in(ask(talk, "tools/call", id=2, name="look", arguments={"at": "b"})) == "B"


def test_results_go_to_the_calls_with_their_arguments() -> None:
    talk = Talk(TOOLS)
    for number, at in enumerate("abc"):
        ask(talk, "tools/call", id=number, name="look", arguments={"at": at})
    said = b"".join(talk.give(call(1, f'{{"at": "{at}"}}'), result(at)) for at in "cab")
    found = {json.loads(line)["id"]: text_in(line) for line in said.splitlines()}
    assert found == {0: "a", 1: "b", 2: "c"}


def test_equal_calls_are_answered_in_order() -> None:
    talk = Talk(TOOLS)
    talk.give(call(1), result("first"))
    talk.give(call(2), result("second"))
    assert text_in(ask(talk, "tools/call", name="look", arguments={})) == "first"
    assert text_in(ask(talk, "tools/call", name="look")) == "second"


@pytest.mark.parametrize(
    ("written", "passed_on"),
    [
        ("123456789012345678901234567890", 1.2345678901234568e29),
        ("0.1000000000000000000000000000001", 0.1),
        ('[1.0, {"deep": 12345678901234567890}]', [1, {"deep": 1.2345678901234567e19}]),
        ('[true, null, "1"]', [True, None, "1"]),
    ],
)
def test_numbers_that_lost_digits_on_their_way_part_no_call_from_its_result(written: str, passed_on: Any) -> None:
    talk = Talk(TOOLS)
    ask(talk, "tools/call", id=1, name="look", arguments={"at": "other"})
    ask(talk, "tools/call", id=2, name="look", arguments={"at": passed_on})
    assert json.loads(talk.give(call(1, f'{{"at": {written}}}'), result("seen")))["id"] == 2


def test_numbers_beyond_all_bounds_do_no_harm() -> None:
    talk = Talk(TOOLS)
    ask(talk, "tools/call", id=1, name="look", arguments={"at": 1})
    assert talk.give(call(1, '{"at": 1' + "0" * 400 + "}"), result("seen")) == b""


def test_neither_do_arguments_that_nest_deep() -> None:
    talk = Talk(TOOLS)
    for depth in (100, 800, 100_000):
        assert talk.give(call(1, '{"at": ' * depth + "1" + "}" * depth), result("seen")) == b""
    assert (
        text_in(ask(talk, "tools/call", name="look", arguments=json.loads('{"at": ' * 100 + "1.0" + "}" * 100)))
        == "seen"
    )


def test_calls_that_are_taken_back_no_longer_wait() -> None:
    talk = Talk(TOOLS)
    ask(talk, "tools/call", id=3, name="look", arguments={})
    talk.feed(b'{"method": "notifications/cancelled", "params": {"requestId": 3}}')
    assert talk.waiting == 0
    assert talk.give(call(1), result("late")) == b""
    assert text_in(ask(talk, "tools/call", id=4, name="look", arguments={})) == "late"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b"[]\n", -32600),
        (b'"text"\n', -32600),
        (b'{"id": 1, "method": "resources/list"}\n', -32601),
        (b'{"id": 1, "method": "tools/call"}\n', -32602),
        (b'{"id": 1, "method": "tools/call", "params": []}\n', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "other"}}\n', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": ["look"]}}\n', -32602),
    ],
)
def test_what_cannot_be_understood_is_refused(line: bytes, code: int) -> None:
    said = json.loads(Talk(TOOLS).feed(line))
    assert said["error"]["code"] == code
    assert len(said["error"]["message"]) < 500


@pytest.mark.parametrize(
    "line", [b'{"id": 1, "result": {}}', b'{"method": 5}', b'{"method": "notifications/cancelled"}', b"{}"]
)
def test_what_wants_no_answer_gets_none(line: bytes) -> None:
    assert Talk(TOOLS).feed(line) == b""


def test_neither_calls_nor_results_pile_up_without_end() -> None:
    talk = Talk(TOOLS)
    for number in range(MOST_WAITING):
        assert ask(talk, "tools/call", id=number, name="bare", arguments={"n": number}) is None
    assert "error" in ask(talk, "tools/call", name="bare")
    for number in range(MOST_WAITING + 1):
        assert talk.give(call(number), result("never asked for")) == b""
    assert (talk.waiting, len(talk._given)) == (MOST_WAITING, MOST_WAITING)


def test_a_failed_call_says_so_where_the_model_reads_it() -> None:
    told = contents(result("no such file", is_error=True), [])
    assert told == {
        "content": [{"type": "text", "text": "Error: the tool call failed.\nno such file"}],
        "isError": True,
    }


def test_images_go_along_and_other_media_are_named() -> None:
    losses: list[Loss] = []
    parts = (
        Text(text="see"),
        Media(kind="image", mime="image/png", data="AAAA"),
        Media(kind="image", url="https://example.com/a.png"),
        Media(kind="file", mime="application/pdf", data="AAAA", name="a.pdf"),
        Opaque(dialect="messages", value={"type": "search_result", "title": "T", "content": "found"}),
    )
    content = contents(ToolResult(call_id="c", parts=parts), losses)["content"]
    assert content[:2] == [{"type": "text", "text": "see"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]
    assert "https://example.com/a.png" in content[2]["text"]
    assert "a.pdf" in content[3]["text"]
    assert "found" in content[4]["text"]
    assert len(losses) == 3


def test_an_empty_result_is_an_empty_text() -> None:
    assert contents(ToolResult(call_id="c", parts=()), [])["content"] == [{"type": "text", "text": ""}]


def test_a_name_as_deep_as_it_can_be_read_is_refused_too() -> None:
    for depth in range(1000, 800, -1):
        name = b"[" * depth + b"]" * depth
        said = json.loads(Talk(TOOLS).feed(b'{"id": 1, "method": "tools/call", "params": {"name": %b}}' % name))
        assert said["error"]["code"] in (-32602, -32700)
