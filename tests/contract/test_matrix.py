"""Every client dialect through every kind of back end: the judge finds no error, and the client gets the model's answer.

Each cell is asked twice, with verbatim "auto" and with "never"; both must say the same.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, NamedTuple

import jsonschema
import pytest

from tests.clients.gateway import Gateway, scripted
from toolwire.dialects.shared.sealed_reasoning import MARK, is_sealed

from .client_answers import Call, Seen, Used, exact, see
from .client_requests import DIALECTS, TOOLS, Exchange, Reply, ask, request_for
from .judge.validate import check

pytestmark = pytest.mark.slow  # a gateway and its upstream as processes

WAYS = ("auto", "never")
CELLS = [(client, upstream, stream) for client in DIALECTS for upstream in DIALECTS for stream in (False, True)]
CELL_NAMES = [f"{client}-{upstream}-{'stream' if stream else 'whole'}" for client, upstream, stream in CELLS]

UNICODE = 'Zürich ☃ 日本 🙂 \u2028 \u0000 "q" \\ \n\t é e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 \ufeff'
PARIS = {"id": "call_1", "name": "get_weather", "arguments": '{"location": "Paris"}'}
OSLO = {"id": "call_2", "name": "get_weather", "arguments": '{"location":"Oslo","days":2}'}
CLOCK = {"id": "call_3", "name": "get_time", "arguments": "{}"}


class Case(NamedTuple):
    """What the model says and what every client must see of it; None where the cell decides."""

    turn: dict[str, Any]
    text: str | None = ""
    calls: tuple[dict[str, str], ...] = ()
    finish: str = "stop"
    refusal: str | None = ""
    reasoning: str = ""
    usage: Used | None = None


CASES = {
    "text": Case({"text": "Hello, world."}, text="Hello, world."),
    "text then call": Case(
        {"text": "Let me look.", "calls": [PARIS]}, text="Let me look.", calls=(PARIS,), finish="tool_calls"
    ),
    "call": Case({"calls": [PARIS]}, calls=(PARIS,), finish="tool_calls"),
    "parallel calls": Case(
        {"calls": [PARIS, OSLO, CLOCK], "chunk": 3}, calls=(PARIS, OSLO, CLOCK), finish="tool_calls"
    ),
    "call without arguments": Case({"calls": [CLOCK]}, calls=(CLOCK,), finish="tool_calls"),
    "H109 call with nothing for arguments": Case(
        {"calls": [CLOCK | {"arguments": ""}]}, calls=(CLOCK,), finish="tool_calls"
    ),
    "reasoning": Case({"reasoning": "Let me think.", "text": "Done."}, text="Done.", reasoning="Let me think."),
    "reasoning then call": Case(
        {"reasoning": "Let me think.", "signature": "c2lnbmVk", "calls": [PARIS]},
        reasoning="Let me think.",
        calls=(PARIS,),
        finish="tool_calls",
    ),
    "usage": Case(
        {"text": "Hi.", "usage": {"input": 120, "output": 30, "cached": 20, "reasoning": 7}},
        text="Hi.",
        usage=Used(120, 30, 20, 7),
    ),
    "usage of a call": Case(
        {"calls": [PARIS], "usage": {"input": 99, "output": 11}},
        calls=(PARIS,),
        finish="tool_calls",
        usage=Used(99, 11, 0, 0),
    ),
    "length": Case({"text": "It goes on and", "finish": "length"}, text="It goes on and", finish="length"),
    "refusal": Case({"refusal": "I cannot help with that."}, text=None, finish="refused", refusal=None),
    "two texts": Case({"parts": [{"text": "First. "}, {"text": "Second."}]}, text="First. Second."),
    "text, call, text": Case(
        {"parts": [{"text": "Before. "}, {"call": PARIS}, {"text": "After."}]},
        text="Before. After.",
        calls=(PARIS,),
        finish="tool_calls",
    ),
    "unicode": Case({"text": UNICODE, "chunk": 1}, text=UNICODE),
    "long text": Case({"text": "word " * 2000, "chunk": 1000}, text="word " * 2000),
}

DEEP = '{"a":' * 200 + "[]" + "}" * 200
RAW_ARGUMENTS = {
    "unicode": json.dumps({"location": UNICODE, "日本": "é"}, ensure_ascii=False),
    "escapes": r'{"location": "\u00e9\ud83d\ude42 \/ \\ \" \b\f\n\r\t <>&\u2028"}',
    "long integers": '{"n": 1234567890123456789012345, "m": -9007199254740993, "o": 0}',
    "large exponent": '{"n": 1e400, "m": 1E-400, "o": 0.1000000000000000055511151231257827}',
    "negative zero": '{"n": -0.0, "m": 1.0, "o": 1.50}',
    "deep": DEEP,
    "long string": json.dumps({"location": "0123456789abcdef" * 65536}),
    "duplicate keys": '{"a": 1, "a": 2, "b": {"c": 1, "c": 3}}',
    "lone surrogates": r'{"location": "\ud800 and \udfff"}',
    "empty objects": '{"a": {}, "b": [], "c": [{}], "": ""}',
    "spacing": ' { "location" :\t"Paris"\n,  "days":2 } ',
}
# An echo repeats what it echoes in its text, so long arguments go only one way.
PAST_ARGUMENTS = {name: raw for name, raw in RAW_ARGUMENTS.items() if len(raw) < 5000}


@pytest.fixture(scope="module")
def connection(gateway: Gateway) -> Iterator[HTTPConnection]:
    opened = HTTPConnection(gateway.address.removeprefix("http://"), timeout=30)
    yield opened
    opened.close()


class Desk:
    """Asks one cell, has the judge look at the answer, and says what a client sees."""

    def __init__(self, gateway: Gateway, connection: HTTPConnection, cell: tuple[str, str, bool]) -> None:
        self._gateway = gateway
        self._connection = connection
        self.dialect, self.upstream, self.stream = cell

    def reply(self, turn: dict[str, Any], way: str, exchange: Exchange | None = None) -> Reply:
        model = self._gateway.model(self.upstream, way)
        request = request_for(
            self.dialect, model, scripted(turn), stream=self.stream, exchange=exchange, usage="usage" in turn
        )
        reply = ask(self._connection, self.dialect, self._gateway.key, request, exchange)
        report = check(self.dialect, reply.body, reply.status, reply.content_type, request)
        assert not report.errors, f"{way}: {report.text()}\n{reply.body[:3000]!r}"
        return reply

    def seen(self, turn: dict[str, Any], way: str, exchange: Exchange | None = None) -> Seen:
        reply = self.reply(turn, way, exchange)
        assert reply.status == 200, reply.body
        seen = see(self.dialect, reply.body, stream=self.stream)
        # A seal holds the ids of one answer; what is in it is sealed.py's to test.
        signature = b64decode(seen.signature).decode() if self.dialect == "gemini" else seen.signature
        return seen._replace(signature=MARK) if is_sealed(signature) else seen

    def is_whole_call(self, turn: dict[str, Any]) -> bool:
        """Gemini sends a call whole, so nothing comes before the middle of it."""
        return self.upstream == "gemini" and "calls" in turn

    @property
    def carries_text(self) -> bool:
        """Whether arguments travel as text all the way: Gemini and a whole Anthropic message hold them as an object."""
        ends = (self.dialect, self.upstream)
        return "gemini" not in ends and (self.stream or "messages" not in ends)


@pytest.fixture
def desk(gateway: Gateway, connection: HTTPConnection, cell: tuple[str, str, bool]) -> Desk:
    return Desk(gateway, connection, cell)


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_client_gets_the_answer_of_the_model(desk: Desk, case: Case) -> None:
    auto, never = (desk.seen(case.turn, way) for way in WAYS)
    assert auto == never
    assert case.text is None or auto.text == case.text
    assert [(call.id, call.name, call.arguments) for call in auto.calls] == [
        (call["id"], call["name"], exact(call["arguments"])) for call in case.calls
    ]
    if desk.carries_text:
        assert [call.raw for call in auto.calls] == [call["arguments"] for call in case.calls]
    assert auto.finish == case.finish
    assert auto.reasoning == case.reasoning
    assert case.usage is None or auto.usage == case.usage
    assert (auto.usage is None) == (desk.dialect == "chat" and desk.stream and case.usage is None)


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
def test_refusal_keeps_its_text(desk: Desk) -> None:
    auto, never = (desk.seen({"refusal": "I cannot help with that."}, way) for way in WAYS)
    assert auto == never
    assert "I cannot help with that." in (auto.refusal, auto.text)


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
def test_signature_stays_where_both_sides_have_one(desk: Desk) -> None:
    turn = {"reasoning": "Let me think.", "signature": "c2lnbmVk", "text": "Done."}
    auto, never = (desk.seen(turn, way) for way in WAYS)
    assert auto == never
    own = "c2lnbmVk" if desk.upstream == "messages" else MARK
    wanted = {"messages": own, "gemini": "" if desk.upstream == "chat" else MARK}
    assert auto.signature == wanted.get(desk.dialect, "")


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
def test_length_in_the_middle_of_a_call(desk: Desk) -> None:
    cut_call = PARIS | {"arguments": '{"location": "Par'}
    turn = {"text": "Let me look.", "calls": [cut_call], "finish": "length", "chunk": 4}
    auto, never = (desk.seen(turn, way) for way in WAYS)
    assert auto == never
    assert auto.finish == "length"
    assert auto.text == "Let me look."
    if desk.carries_text:
        assert [(call.id, call.raw) for call in auto.calls] == [("call_1", '{"location": "Par')]


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
def test_result_reaches_the_model(desk: Desk) -> None:
    exchange = Exchange("call_9", "get_weather", '{"location": "Zürich"}', "18 °C ☂\nrain")
    for way in WAYS:
        seen = desk.seen({"text": "It says: {{result:0}}"}, way, exchange)
        assert seen.text == "It says: 18 °C ☂\nrain"
        assert seen.finish == "stop"


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503, 529])
def test_error_before_the_first_byte(desk: Desk, status: int) -> None:
    error = {"status": status, "message": f"The model says {status}.", "code": "script_error"}
    for way in WAYS:
        reply = desk.reply({"error": error}, way)
        assert reply.status == status
        assert f"The model says {status}." in see(desk.dialect, reply.body, stream=False).error


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
@pytest.mark.parametrize("turn", [{"text": "one two three four"}, {"calls": [PARIS]}], ids=["text", "call"])
def test_error_in_mid_stream(desk: Desk, turn: dict[str, Any]) -> None:
    error = {"status": 529, "message": "Overloaded in the middle.", "after": 2}
    for way in WAYS:
        reply = desk.reply({**turn, "chunk": 4, "error": error}, way)
        is_stream = desk.stream and not desk.is_whole_call(turn)
        seen = see(desk.dialect, reply.body, stream=is_stream)
        assert "Overloaded in the middle." in seen.error
        assert not seen.finish
        if is_stream:
            assert reply.status == 200
            assert seen.text == turn.get("text", "")[:8]
        else:
            assert reply.status >= 500


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
@pytest.mark.parametrize("turn", [{"text": "one two three four"}, {"calls": [PARIS]}], ids=["text", "call"])
def test_cut_in_mid_stream(desk: Desk, turn: dict[str, Any]) -> None:
    for way in WAYS:
        reply = desk.reply({**turn, "chunk": 4, "cut": 2}, way)
        seen = see(desk.dialect, reply.body, stream=desk.stream and not desk.is_whole_call(turn))
        assert seen.error
        assert not seen.finish


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
@pytest.mark.parametrize("raw", RAW_ARGUMENTS.values(), ids=list(RAW_ARGUMENTS))
def test_H071_H072_arguments_keep_every_digit_and_character(desk: Desk, raw: str) -> None:
    call = PARIS | {"arguments": raw}
    turn = {"calls": [call], "chunk": 3 if len(raw) < 5000 else 60_000}
    auto, never = (desk.seen(turn, way) for way in WAYS)
    assert auto == never
    assert [(call.name, call.arguments) for call in auto.calls] == [("get_weather", exact(raw))]
    if desk.carries_text:
        assert auto.calls[0].raw == raw


@pytest.mark.parametrize("cell", CELLS, ids=CELL_NAMES)
@pytest.mark.parametrize("raw", PAST_ARGUMENTS.values(), ids=list(PAST_ARGUMENTS))
def test_arguments_of_past_calls_reach_the_model(desk: Desk, raw: str) -> None:
    exchange = Exchange("call_9", "get_weather", raw, "18 C")
    for way in WAYS:
        echoed = json.loads(desk.seen({"echo": True}, way, exchange).text)
        calls = [part for message in echoed for part in message["parts"] if part["kind"] == "tool_call"]
        assert [part["name"] for part in calls] == ["get_weather"]
        assert calls[0]["id"] == "call_9" or desk.upstream == "gemini"  # its calls have ids of their own
        if not {"messages", "gemini"} & {desk.dialect, desk.upstream}:
            assert calls[0]["raw"] == raw
        else:
            assert exact(calls[0]["raw"]) == exact(raw)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_first_minute_with_the_embedded_model(
    gateway: Gateway, connection: HTTPConnection, dialect: str, stream: bool
) -> None:
    def turn(exchange: Exchange | None) -> Seen:
        request = request_for(
            dialect, "demo/echo-tools", "What is the weather in Paris?", stream=stream, exchange=exchange
        )
        reply = ask(connection, dialect, gateway.key, request, exchange)
        report = check(dialect, reply.body, reply.status, reply.content_type, request)
        assert not report.errors, report.text()
        return see(dialect, reply.body, stream=stream)

    first = turn(None)
    assert first.finish == "tool_calls"
    call: Call = first.calls[0]
    jsonschema.validate(call.arguments, TOOLS[call.name])
    last = turn(Exchange(call.id, call.name, json.dumps(call.arguments), "18 degrees and drizzle"))
    assert "18 degrees and drizzle" in last.text
    assert last.finish == "stop"
    assert not last.calls
