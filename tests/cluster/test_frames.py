"""Requests and events survive the way to another process, whatever they contain."""

from __future__ import annotations

from decimal import Decimal

import pytest

from toolwire.cluster.frames import (
    RunFrame,
    decode_frame,
    decode_request,
    encode_frame,
    encode_request,
    error_in,
    error_out,
    events_in,
    events_out,
)
from toolwire.errors import BadRequest, GatewayError, InternalError, UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import (
    Choice,
    Citation,
    Loss,
    Media,
    Message,
    Opaque,
    Reasoning,
    RecurringTools,
    Request,
    Sampling,
    Source,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)

CALL = ToolCall(id="call_1", name="read", raw='{"n":1.50}', args={"n": Decimal("1.50"), "big": 2**70})
REQUEST = Request(
    model="m",
    messages=(
        Message(role="user", parts=(Text(text="hé\u2028"), Media(kind="image", data="aGk=", mime="image/png"))),
        Message(role="assistant", parts=(Reasoning(text="r", signature="s"), CALL), source=Source("chat", {"x": [1]})),
        Message(role="tool", parts=(ToolResult(call_id="call_1", parts=(Text(text="out"),), is_error=True),)),
    ),
    tools=RecurringTools([Tool(name="read", schema={"type": "object"}, extra={"chat": {"a": None}})]),
    tool_choice=ToolChoice(mode="named", names=("read",)),
    sampling=Sampling(temperature=Decimal("0.70"), stop=("x",)),
    owner="ann",
    origin="chat",
    stream=True,
)
EVENTS: list[Event] = [
    Started(id="a", model="m", usage=Usage(input=3)),
    PartStarted(index=0, part=Text(text="")),
    PartDelta(0, "words", ({"logprob": Decimal("-0.10")},)),
    PartEnded(index=0, part=Text(text="words", citations=(Citation(url="u"),))),
    PartStarted(index=1, part=ToolCall(id="c", name="f", raw="")),
    PartEnded(index=1, part=CALL),
    Noted(note=Usage(output=2)),
    Noted(note=Loss("a", "b", "c"), index=0),
    Noted(note=Citation(url="u", start=1)),
    Noted(note=Opaque(dialect="chat", value={"n": Decimal("2.50")})),
    Finished(choices=(Choice(reason="tool_calls"),), usage=Usage(input=1, output=2)),
]


def test_a_request_comes_back_without_bytes_and_keys() -> None:
    sent = Request(
        **{name: getattr(REQUEST, name) for name in REQUEST.__struct_fields__}
        | {"wire": b"bytes", "source": {"a": 1}, "headers": {"Authorization": "Bearer key", "user-agent": "x"}}
    )
    wire = encode_request("cursor", sent)
    assert b"Bearer key" not in wire
    found = decode_request(wire)
    assert found.backend == "cursor"
    assert found.request.headers == {"user-agent": "x"}
    expected = {name: getattr(REQUEST, name) for name in REQUEST.__struct_fields__} | {"headers": {"user-agent": "x"}}
    assert {name: getattr(found.request, name) for name in found.request.__struct_fields__} == expected
    assert str(found.request.sampling.temperature) == "0.70"


def test_events_come_back() -> None:
    frame = decode_frame(encode_frame(RunFrame(events=events_out(EVENTS))))
    assert events_in(frame.events) == EVENTS


@pytest.mark.parametrize("text", ["half \ud83d of a pair", "\0", "\n\n"])
def test_any_text_survives(text: str) -> None:
    request = Request(model="m", messages=(Message(role="user", parts=(Text(text=text),)),))
    assert decode_request(encode_request("b", request)).request.messages == request.messages
    events: list[Event] = [PartDelta(0, text), Noted(note=Loss(text, "", ""))]
    line = encode_frame(RunFrame(events=events_out(events)))
    assert line.count(b"\n") == 1
    assert events_in(decode_frame(line).events) == events


@pytest.mark.parametrize(
    "error",
    [
        UpstreamError("full", status=429, code="x", headers={"retry-after": "3"}, retryable=True, hint="wait"),
        BadRequest("no", where="messages[0]", details={"type": "t"}),
        InternalError("ours"),
    ],
)
def test_errors_come_back_with_their_class(error: GatewayError) -> None:
    frame = decode_frame(encode_frame(RunFrame(error=error_out(error), events=events_out([Failed(error=error)]))))
    assert frame.error is not None
    (failed,) = events_in(frame.events)
    assert isinstance(failed, Failed)
    for found in (error_in(frame.error), failed.error):
        assert type(found) is type(error)
        expected = {"status": error.status, "code": error.code, **error.__dict__}
        assert found.__dict__ == expected


def test_what_cannot_be_decoded_is_an_error() -> None:
    for line in (b"{", b"[]", b'{"events":[{"type":"unknown"}]}', b'{"events":3}'):
        with pytest.raises(UpstreamError):
            decode_frame(line)
    with pytest.raises(BadRequest):
        decode_request(b'{"backend":"x"}')
    later = decode_frame(b'{"how":"x","member_of_a_later_version":1}')
    assert later.how == "x"
