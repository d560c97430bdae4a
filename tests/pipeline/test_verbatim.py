"""The verbatim path: every byte as it came while it is right, and one whole answer when it stops being so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.codec_harness import ALL, NAMES, NOW, frames, make_request, numbered_ids, pieces
from tests.dialects.messages.stream_rules import well_formed as well_formed_messages
from tests.dialects.responses.stream_rules import well_formed as well_formed_responses
from tests.dialects.upstream_events import (
    DONE,
    REGULAR,
    TOP,
    block,
    call,
    call_item,
    chunk,
    event,
    gemini_call,
    gemini_chunk,
    message_end,
    message_start,
    response,
    sse,
    text_delta,
    tool_use,
    usage_chunk,
)
from tests.server.answers import PATHS, question
from tests.server.answers import frames as server_frames
from tests.server.conftest import backends_of, upstream
from tests.server.harness import LAST_CHUNK, Gateway, Upstream, ask, gateway, reply, server_config, stream_head
from tests.server.harness import chunk as http_chunk
from toolwire.calls.schemas import Schemas
from toolwire.calls.streamed_calls import CallRepairer
from toolwire.calls.turn import Turn
from toolwire.calls.validation import CallTally, CallValidator, ToolOffer
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.policy import Policy
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import AnswerContext
from toolwire.dialects.shared.answer_in import OpenPart
from toolwire.dialects.shared.model_field import Renamer
from toolwire.errors import UpstreamError
from toolwire.events import Event, PartDelta, fold
from toolwire.pipeline.verbatim import (
    BodyTap,
    RenamingTap,
    Tap,
    Translator,
    Untouched,
    tap_of,
    why_translated,
    with_model,
)
from toolwire.types import Request, Tool, ToolCall
from toolwire.wire.exact_json import decode

from .jobs import Closed, job_of

__all__ = ["upstream"]  # a fixture


def tapped(dialect: str, request: Request | None = None) -> Tap:
    request = request or make_request(dialect)
    mint = numbered_ids()
    encoder = DIALECTS[dialect].encoder(AnswerContext(request=request, mint=mint, now=NOW))
    return Tap(DIALECTS[dialect].stream_decoder(request), Turn(request, mint), lambda: encoder)


def through(tap: Translator, *chunks: bytes) -> tuple[bytes, list[Event]]:
    wire, events = b"", []
    for data in chunks:
        batch = tap.feed(data)
        wire += batch.wire
        events += batch.events
    batch = tap.close()
    return wire + batch.wire, events + batch.events


def well_formed(dialect: str, wire: bytes) -> None:
    """A client of the dialect can read it all, and it ends once."""
    found = frames(wire)
    match dialect:
        case "messages":
            well_formed_messages(wire)
        case "responses":
            well_formed_responses(wire)
        case _:
            values = [value for _, value in found if value != "[DONE]"]
            ends = [one["finish_reason"] for value in values for one in value["choices"] if one["finish_reason"]]
            assert len(ends) == 1
            assert len({value["id"] for value in values}) == 1
            assert [value for _, value in found].count("[DONE]") == 1
            assert found[-1][1] == "[DONE]"
            assert sum("usage" in value for value in values) == 1
            opened = [
                one
                for value in values
                for choice in value["choices"]
                for one in choice["delta"].get("tool_calls", ())
                if "id" in one
            ]
            assert [one["index"] for one in opened] == list(range(len(opened)))


@pytest.mark.parametrize("dialect", ALL)
def test_H078_a_regular_stream_passes_to_the_byte(dialect: str) -> None:
    wire = REGULAR[dialect]
    for cuts in ([], [1], [len(wire) // 2], range(0, len(wire), 7)):
        tap = tapped(dialect)
        out, events = through(tap, *pieces(wire, cuts))
        assert out == wire
        assert tap.took_over == ""
        assert tap.is_over
        assert [part.name for part in fold(events).parts_of(0) if isinstance(part, ToolCall)] == ["weather", "now"]


CITY = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}, "required": ["city"]}
OFFER = ToolOffer([Tool(name="weather", schema=CITY), Tool(name="now", schema={"type": "object"})])


def repairing(dialect: str) -> Tap:
    request, mint = make_request(dialect), numbered_ids()
    encoder = DIALECTS[dialect].encoder(AnswerContext(request=request, mint=mint, now=NOW))
    observer = CallRepairer(CallValidator(OFFER, Schemas(), CallTally()), has_tools=True)
    return Tap(DIALECTS[dialect].stream_decoder(request), Turn(request, mint, observer=observer), lambda: encoder)


@pytest.mark.parametrize("dialect", ALL)
def test_valid_calls_that_could_be_repaired_pass_to_the_byte(dialect: str) -> None:
    wire = REGULAR[dialect]
    for cuts in ([], [1], [len(wire) // 2], range(0, len(wire), 7), range(len(wire))):
        tap = repairing(dialect)
        out, _ = through(tap, *pieces(wire, cuts))
        assert out == wire
        assert tap.took_over == ""


@pytest.mark.parametrize("dialect", NAMES)
def test_a_repaired_call_is_one_whole_answer_with_the_bytes_before_it(dialect: str) -> None:
    """The number of the first call is sent as a string."""
    number = b"12345678901234567890123"
    wire = REGULAR[dialect].replace(number, b'\\"' + number + b'\\"')
    whole = fold(through(tapped(dialect), REGULAR[dialect])[1])
    for cuts in ([], [len(wire) // 2], range(0, len(wire), 7)):
        tap = repairing(dialect)
        out, _ = through(tap, *pieces(wire, cuts))
        assert tap.took_over == "a call was repaired"
        assert out.startswith(wire[: wire.index(b"weather")])
        well_formed(dialect, out)
        calls = [part for part in fold(through(tapped(dialect), out)[1]).parts_of(0) if isinstance(part, ToolCall)]
        meant = [part for part in whole.parts_of(0) if isinstance(part, ToolCall)]
        assert [(call.id, call.name, call.args) for call in calls] == [(one.id, one.name, one.args) for one in meant]


def lines(dialect: str) -> list[bytes]:
    """The frames of the regular answer, one each."""
    return [frame + b"\n\n" for frame in REGULAR[dialect].split(b"\n\n")[:-1]]


def spoiled(dialect: str, frame: bytes) -> bytes:
    """The same event, told irregularly: with another id of the answer, without its name, or without its number."""
    if dialect == "chat":
        return frame.replace(b'"chatcmpl-1"', b'"chatcmpl-2"')
    return b"data: " + frame.partition(b"data: ")[2]


@pytest.mark.parametrize("dialect", NAMES)
def test_an_irregular_frame_anywhere_leaves_one_whole_answer(dialect: str) -> None:
    regular = lines(dialect)
    whole = fold(through(tapped(dialect), *regular)[1])
    for place, frame in enumerate(regular):
        if frame == DONE:
            continue
        tap = tapped(dialect)
        out, events = through(tap, *regular[:place], spoiled(dialect, frame), *regular[place + 1 :])
        # What tells the end is held until it has ended, and written anew where something is wrong behind it.
        held = len(regular) - {"chat": 3, "messages": 2, "responses": 1}[dialect]
        before = b"".join(regular[: min(place, held)])
        assert tap.took_over, place
        assert out.startswith(before), place
        well_formed(dialect, out)
        again = fold(through(tapped(dialect), out)[1])
        assert again.parts_of(0) == whole.parts_of(0), place
        assert again.finished.choices == whole.finished.choices
        assert [event for event in events if isinstance(event, type(whole.finished))] != []


@pytest.mark.parametrize(
    ("dialect", "wrong", "right"),
    [
        ("chat", b'"finish_reason":"stop"', b'"finish_reason":"tool_calls"'),
        ("messages", b'"stop_reason":"end_turn"', b'"stop_reason":"tool_use"'),
    ],
)
def test_H028_a_reason_that_hides_a_call_is_put_right_before_it_leaves(
    dialect: str, wrong: bytes, right: bytes
) -> None:
    out, _ = through(tapped(dialect), REGULAR[dialect].replace(right, wrong))
    well_formed(dialect, out)
    assert wrong not in out
    assert out.count(right) == 1


@pytest.mark.parametrize("dialect", NAMES)
def test_H154_a_cut_ends_in_the_dialects_own_error(dialect: str) -> None:
    regular = lines(dialect)
    half = len(regular) // 2
    for rest in (b"", regular[half][:-3], b"data: <html>busy\n\n"):
        tap = tapped(dialect)
        out, _ = through(tap, *regular[:half], rest)
        assert out.startswith(b"".join(regular[:half]))
        assert tap.error is not None
        assert tap.error.code == ("upstream_garbage" if b"html" in rest else "upstream_cut")
        name, last = frames(out)[-1]
        assert {"chat": "error", "messages": "error", "responses": "response"}[dialect] in last
        assert name == {"chat": "", "messages": "error", "responses": "response.failed"}[dialect]
        if dialect == "responses":
            assert [value["sequence_number"] for _, value in frames(out)] == list(range(half + 1))


@pytest.mark.parametrize("dialect", ALL)
def test_a_transport_that_fails_ends_in_the_dialects_own_error(dialect: str) -> None:
    tap = tapped(dialect)
    first = tap.feed(lines(dialect)[0]).wire
    batch = tap.fail(UpstreamError("the connection broke.", code="upstream_cut"))
    assert first == lines(dialect)[0]
    assert b"the connection broke." in batch.wire
    assert tap.fail(UpstreamError("again")).wire == b""


MORE = {
    "chat": chunk({"content": " more"}),
    "messages": block(4, {"type": "text", "text": ""}, text_delta(" more")),
}


@pytest.mark.parametrize("dialect", sorted(MORE))
def test_H029_an_end_that_is_reported_leaves_only_when_nothing_follows(dialect: str) -> None:
    regular = lines(dialect)
    end = len(regular) - {"chat": 3, "messages": 2}[dialect]
    tap = tapped(dialect)
    assert b"".join(tap.feed(frame).wire for frame in regular[:end]) == b"".join(regular[:end])
    assert tap.feed(regular[end]).wire == b""
    out = tap.feed(MORE[dialect]).wire
    assert b" more" in out
    assert regular[end] not in out
    wire, _ = through(tapped(dialect), *regular[: end + 1], MORE[dialect], *regular[end:])
    well_formed(dialect, wire)
    assert b" more" in wire
    reason = {"chat": b'"finish_reason":"tool_calls"', "messages": b'"stop_reason":"tool_use"'}[dialect]
    assert wire.index(b" more") < wire.index(reason)


@pytest.mark.parametrize("dialect", sorted(MORE))
def test_H154_an_error_behind_the_reported_end_is_no_normal_end(dialect: str) -> None:
    regular = lines(dialect)
    end = len(regular) - {"chat": 3, "messages": 2}[dialect]
    for broken in (sse({"error": {"message": "busy"}}), b"data: <html>\n\n"):
        out, _ = through(tapped(dialect), *regular[: end + 1], broken, *regular[end + 1 :])
        assert regular[end] not in out
        assert "error" in frames(out)[-1][1]
    tap = tapped(dialect)
    for frame in regular[: end + 1]:
        tap.feed(frame)
    assert regular[end] not in tap.fail(UpstreamError("the connection broke.")).wire


def test_words_beside_a_held_finish_reason_are_not_lost_when_the_connection_breaks() -> None:
    tap = tapped("chat")
    tap.feed(chunk({"role": "assistant", "content": ""}))
    assert tap.feed(chunk({"content": "last words"}, finish="stop")).wire == b""
    out = tap.fail(UpstreamError("the connection broke.")).wire
    assert b"last words" in out
    assert b"the connection broke." in out
    assert b'"finish_reason":"stop"' not in out


def test_H145_usage_that_was_asked_for_and_did_not_come_is_added() -> None:
    wire = REGULAR["chat"].replace(usage_chunk(), b"")
    out, _ = through(tapped("chat"), wire)
    assert out.startswith(wire.removesuffix(DONE))
    well_formed("chat", out)
    quiet = make_request("chat", stream_options=None)
    assert through(tapped("chat", quiet), wire)[0] == wire


def test_a_chunk_without_choices_is_not_taken_for_usage() -> None:
    """Azure begins with what its filter found in the prompt."""
    first = sse({**TOP, "choices": [], "prompt_filter_results": []})
    out, _ = through(tapped("chat"), first + REGULAR["chat"].replace(usage_chunk(), b""))
    well_formed("chat", out)


def test_thoughts_without_a_signature_keep_the_numbers_of_blocks() -> None:
    thought = block(
        0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "hm"}
    )
    text = block(1, {"type": "text", "text": ""}, text_delta("a"))
    regular = [message_start(), thought, text]
    for odd in (b'event: odd\ndata: {"type":"ping"}\n\n',):
        for place in range(1, 3):
            out, _ = through(tapped("messages"), *regular[:place], odd, *regular[place:], message_end())
            well_formed("messages", out)
    inside = thought.split(b"\n\n")
    for place in range(1, len(inside)):
        spoilt = [*(frame + b"\n\n" for frame in inside[:place]), b'event: odd\ndata: {"type":"ping"}\n\n']
        rest = [frame + b"\n\n" for frame in inside[place:] if frame]
        out, _ = through(tapped("messages"), message_start(), *spoilt, *rest, text, message_end())
        well_formed("messages", out)
        assert out.count(b'"thinking":"hm"') == 1


@pytest.mark.parametrize("parts", [["c2ln"], ["c2", "ln"]])
def test_H081_a_signature_is_never_sent_twice(parts: list[str]) -> None:
    signatures = [{"type": "signature_delta", "signature": part} for part in parts]
    wire = message_start() + block(0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "hm"}, *signatures) + message_end()  # fmt: skip
    regular = [frame + b"\n\n" for frame in wire.split(b"\n\n")[:-1]]
    for place in range(1, len(regular)):
        out, _ = through(
            tapped("messages"), *regular[:place], spoiled("messages", regular[place]), *regular[place + 1 :]
        )
        told = [value["delta"]["signature"] for _, value in frames(out) if "signature" in value.get("delta", {})]
        assert "".join(told) == "c2ln", place


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "tool_use"])
def test_H031_a_call_without_arguments_ends_once(reason: str) -> None:
    wire, _ = through(tapped("messages"), message_start(), block(0, tool_use("a", "f")), message_end(reason))
    names = [name for name, _ in frames(wire)]
    assert names.count("content_block_stop") == 1
    assert names[-2:] == ["message_delta", "message_stop"]
    stop = {"end_turn": "tool_use"}.get(reason, reason)
    assert next(value for name, value in frames(wire) if name == "message_delta")["delta"]["stop_reason"] == stop


def test_H050_an_id_that_is_taken_is_replaced_before_it_leaves() -> None:
    wire = (
        chunk(call(0, "x", "a", "{}"))
        + chunk(call(1, "x", "a", "{}"))
        + chunk(finish="tool_calls")
        + usage_chunk()
        + DONE
    )
    out, _ = through(tapped("chat"), wire)
    ids = [one["id"] for _, value in frames(out) if value != "[DONE]" for choice in value["choices"] for one in choice["delta"].get("tool_calls", ()) if "id" in one]  # fmt: skip
    assert ids[0] == "x"
    assert len(set(ids)) == 2
    well_formed("chat", out)


def body_of(dialect: str) -> dict[str, Any]:
    match dialect:
        case "chat":
            message = {"role": "assistant", "content": "a"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return {
                **TOP,
                "object": "chat.completion",
                "choices": [choice],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1},
            }
        case "messages":
            end = {"stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
            return {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": "a"}],
                **end,
            }
        case _:
            content = [{"type": "output_text", "text": "a", "annotations": []}]
            item = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": content}
            return response("completed", [item, call_item(0, "a", "{}")])


@pytest.mark.parametrize("dialect", NAMES)
def test_a_body_passes_as_it_came_or_is_encoded_again(dialect: str) -> None:
    def tap() -> BodyTap:
        request = make_request(dialect, is_stream=False)
        encoder = DIALECTS[dialect].encoder(AnswerContext(request=request, mint=numbered_ids(), now=NOW))
        return BodyTap(DIALECTS[dialect].body_decoder(request), Turn(request, numbered_ids()), lambda: encoder)

    good = json.dumps({**body_of(dialect), "x_unknown": [1.10]}, indent=1).encode()
    assert through(tap(), *pieces(good, [5, 50]))[0] == good
    bad = {key: value for key, value in body_of(dialect).items() if key != "usage"}
    anew = tap()
    out, _ = through(anew, json.dumps(bad).encode())
    assert anew.took_over
    assert decode(out)["usage"]
    broken = tap()
    assert through(broken, b"<html>")[0] == b""
    assert broken.error is not None


@pytest.mark.parametrize(
    "wire",
    [
        b'{"model":"a","x":1.10}',
        b'{ "x" : [ {"model":"a"} ] ,\n"model"  :  "a" , "y":{"model":"b"} }',
        rb'{"tools":[{"properties":{"model":{"type":"string"}}}],"text":"\"model\": \"a\"","model":"a"}',
        rb'{"a":"{\"model\":\"a\"}","b":"\\","model":"\u0061"}',
        b'{"z":"model","model":"a"}',
        b'{"model":"a","last":"model"}',
        b'{"messages":[{"content":"[{"}],"model":"a"}',
    ],
)
def test_H078_only_the_models_value_is_replaced(wire: bytes) -> None:
    changed = with_model(wire, "a", 'b"\\é')
    spelled = next(one for one in (rb'"\u0061"', b'"a"') if one in wire)
    before, _, after = (
        wire.rpartition(spelled) if wire.count(spelled) > 1 and b'"y"' not in wire else wire.partition(spelled)
    )
    assert json.loads(changed) == {**json.loads(wire), "model": 'b"\\é'}
    if b'"y"' not in wire:
        assert changed == before + b'"b\\"\\\\\xc3\xa9"' + after
    else:
        assert changed == wire.replace(b':  "a"', b':  "b\\"\\\\\xc3\xa9"')
    assert with_model(wire, "a", "a") is wire


@pytest.mark.parametrize("wire", [rb'{"mod\u0065l":"a"}', b'{"model":"b","model":"a"}', b'{"model":5,"model":"model"}'])
def test_a_model_named_differently_is_encoded_again(wire: bytes) -> None:
    asked = json.loads(wire)["model"]
    assert json.loads(with_model(wire, asked, "new"))["model"] == "new"


def test_a_nested_model_of_the_same_name_is_not_the_one() -> None:
    wire = rb'{"mod\u0065l":"a","metadata":{"model":"a"}}'
    assert json.loads(with_model(wire, "a", "new")) == {"model": "new", "metadata": {"model": "a"}}


@pytest.mark.parametrize(
    ("dialect", "policy", "is_verbatim", "words"),
    [
        ("chat", "auto", True, ""),
        ("chat", "never", False, "never"),
        ("messages", "auto", False, "the client speaks chat, the back end messages"),
        ("", "auto", False, "in this process"),
    ],
)
def test_the_reason_for_a_translation(dialect: str, policy: str, is_verbatim: bool, words: str) -> None:
    job = job_of(make_request("chat"), Closed(dialect), policy=Policy(verbatim=policy))
    why = why_translated(job, job.backend)
    assert (why == "") is is_verbatim
    assert words in why


def test_a_request_without_bytes_is_written() -> None:
    job = job_of(Request(model="m", messages=(), origin="chat"))
    assert why_translated(job, job.backend) == "the request has no bytes of a client"


def test_a_changed_request_is_translated_for_the_first_reason() -> None:
    job = job_of(make_request("chat"))
    job.change(job.request, "first")
    job.change(job.request, "second")
    assert why_translated(job, job.backend) == "first"
    assert job.request.wire == b""


def test_frames_after_the_end_do_not_pass() -> None:
    tap = tapped("messages")
    out, _ = through(tap, REGULAR["messages"], event("ping"), message_start())
    assert out == REGULAR["messages"]


ASKED = 'mine "é" \\'


def renaming(dialect: str, name: str = ASKED) -> RenamingTap:
    request, mint = make_request(dialect, model=name), numbered_ids()
    encoder = DIALECTS[dialect].encoder(AnswerContext(request=request, mint=mint, now=NOW, is_renamed=True))
    tap = tap_of(
        DIALECTS[dialect].stream_decoder(request), Turn(request, mint), lambda: encoder, Renamer(dialect, name)
    )
    assert isinstance(tap, RenamingTap)
    return tap


def names_in(dialect: str, wire: bytes) -> set[str]:
    """Every name that the answer's own objects give."""
    holders = [value if dialect == "chat" else value.get("message") or value.get("response") for _, value in frames(wire) if value != "[DONE]"]  # fmt: skip
    return {holder["model"] for holder in holders if holder and "model" in holder}


def with_name(dialect: str, wire: bytes, name: str) -> bytes:
    """The same stream, written again with another name in the answer's own objects."""
    for spelled in {json.dumps(one) for one in names_in(dialect, wire)}:
        for blank in ("", " "):
            mark = f'"model":{blank}{spelled}'
            wire = wire.replace(mark.encode(), f'"model":{blank}{json.dumps(name, ensure_ascii=False)}'.encode())
    return wire


@pytest.mark.parametrize("dialect", NAMES)
def test_a_renamed_stream_differs_in_the_name_alone(dialect: str) -> None:
    wire = REGULAR[dialect]
    wanted = with_name(dialect, wire, ASKED)
    assert wanted != wire
    frame_ends = [place + 2 for place in range(len(wire)) if wire.startswith(b"\n\n", place)]
    for cuts in ([], [1], [len(wire) // 2], range(0, len(wire), 7), frame_ends[:-1], frame_ends[:-1:3]):
        tap = renaming(dialect)
        out, events = through(tap, *pieces(wire, cuts))
        assert out == wanted
        assert tap.took_over == ""
        assert fold(events).started.model == ASKED
        assert fold(events).parts_of(0) == fold(through(tapped(dialect), wire)[1]).parts_of(0)


@pytest.mark.parametrize("dialect", NAMES)
def test_a_renamed_stream_keeps_its_name_when_the_encoder_takes_over(dialect: str) -> None:
    regular = lines(dialect)
    for place, frame in enumerate(regular):
        if frame == DONE:
            continue
        tap = renaming(dialect)
        out, _ = through(tap, *regular[:place], spoiled(dialect, frame), *regular[place + 1 :])
        assert tap.took_over
        assert names_in(dialect, out) == {ASKED}, place
        well_formed(dialect, out)


def test_frames_like_the_last_one_are_renamed_on_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortcut has learned the client's name, so a stream with another name takes it as often as any."""
    taken = {}
    for name, tap in (("m", tapped("chat")), ("mine/x", renaming("chat", "mine/x"))):
        found, match = list[Any](), OpenPart.match
        counted = lambda part, block, match=match, found=found: found.append(match(part, block)) or found[-1]  # noqa: E731
        with monkeypatch.context() as patched:
            patched.setattr(OpenPart, "match", counted)
            deltas = [chunk({"content": f"word {number} "}) for number in range(50)]
            out, _ = through(
                tap, chunk({"role": "assistant", "content": ""}), *deltas, chunk(finish="stop"), usage_chunk(), DONE
            )
        taken[name] = sum(one is not None for one in found)
        assert names_in("chat", out) == {name}
    assert taken["mine/x"] == taken["m"] >= 48


@pytest.mark.parametrize("name", ["m", "mine/x"])
def test_frames_of_one_read_that_only_add_text_are_one_event(name: str) -> None:
    deltas = [chunk({"content": f"word {number} "}) for number in range(50)]
    odd = chunk({"content": 'a "quote"\n'})
    wire = [
        chunk({"role": "assistant", "content": ""}),
        *deltas,
        odd,
        *deltas,
        chunk(finish="stop"),
        usage_chunk(),
        DONE,
    ]
    tap = tapped("chat") if name == "m" else renaming("chat", name)
    out, events = through(tap, b"".join(wire))
    assert out == with_name("chat", b"".join(wire), name)
    assert sum(isinstance(event, PartDelta) for event in events) == 6  # four that are parsed, and two runs
    assert len(getattr(fold(events).parts_of(0)[0], "text", "")) == 2 * sum(len(f"word {n} ") for n in range(50)) + 10


@given(
    st.lists(
        st.sampled_from(["a", '"model":"m"', '\\"model\\": \\"m\\"', "\n", "\\", '"', "é"]), min_size=1, max_size=8
    )
)
def test_text_about_models_passes_as_it_came(words: list[str]) -> None:
    deltas = [chunk({"content": word}) for word in words]
    wire = b"".join([chunk({"role": "assistant", "content": ""}), *deltas, chunk(finish="stop"), usage_chunk(), DONE])
    out, events = through(renaming("chat"), *(frame + b"\n\n" for frame in wire.split(b"\n\n")[:-1]))
    assert getattr(fold(events).parts_of(0)[0], "text", "") == "".join(words)
    said = [
        value["choices"][0]["delta"].get("content")
        for _, value in frames(out)
        if value != "[DONE]" and value["choices"]
    ]
    assert said[1 : 1 + len(words)] == words


@pytest.fixture(scope="module")
def naming(upstream: Upstream) -> Any:
    """Each kind twice, verbatim and written anew, with names that the client's are only like."""
    backends = backends_of(upstream, models=("m-5.5", "dated-1-20260101"))
    aliases = {f"fast-{backend.name}": f"{backend.name}/m-5.5" for backend in backends}
    aliases |= {f"any-{backend.name}-*": f"{backend.name}/m-5.5" for backend in backends}
    config = Config(server=server_config(), aliases=aliases)
    with gateway(with_backends(config, backends)) as running:
        yield running


def named_answers(dialect: str, name: str) -> tuple[bytes, bytes]:
    """A body and a stream in which the back end calls itself by a dated name, and talk of models."""
    talk = 'a "model":"m-5.5-20260202" and \\"model\\"'
    stream = b"".join(server_frames(dialect, talk, '{"model": "m-5.5-20260202", "city": "\\"model\\":\\"m\\""}'))
    whole = {**body_of(dialect), "metadata": {"model": "m-5.5-20260202"}}
    for spelled in {json.dumps(one) for one in names_in(dialect, stream)}:
        stream = stream.replace(f'"model": {spelled}'.encode(), f'"model": "{name}"'.encode())
    return json.dumps({**whole, "model": name}).encode(), stream


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("form", ["{}/m-5.5", "fast-{}", "FAST-{}", "any-{}-thing", "fast-{}:high"])
def test_the_answer_names_what_the_client_asked_for(
    naming: Gateway, upstream: Upstream, dialect: str, form: str
) -> None:
    body, stream = named_answers(dialect, "m-5.5-20260202")
    answers = {}
    for backend in (dialect, f"{dialect}-anew"):
        model = form.format(backend)
        upstream.on("m-5.5", [reply(200, body)], [stream_head(), http_chunk(stream), LAST_CHUNK])
        whole = ask(naming.port, "POST", PATHS[dialect], question(dialect, model))
        streamed = ask(naming.port, "POST", PATHS[dialect], question(dialect, model, stream=True))
        assert (whole.status, streamed.status) == (200, 200), whole.body
        assert whole.json["model"] == model
        assert names_in(dialect, streamed.body) == {model}
        answers[backend] = upstream.received[-1].json
        assert answers[backend]["model"] == "m-5.5"
    assert ("high" in json.dumps(answers[dialect])) == form.endswith("high")
    assert _without_usage_wish(answers[dialect]) == _without_usage_wish(answers[f"{dialect}-anew"])


def _without_usage_wish(request: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key != "stream_options"}


@pytest.mark.parametrize("dialect", NAMES)
def test_a_name_that_went_up_unchanged_comes_back_as_the_back_end_has_it(upstream: Upstream, dialect: str) -> None:
    body, stream = named_answers(dialect, "m-5.5-20260202")
    for backend in (one for one in backends_of(upstream, models=("m-5.5",)) if one.name.startswith(dialect)):
        upstream.on("m-5.5", [reply(200, body)], [stream_head(), http_chunk(stream), LAST_CHUNK])
        with gateway(with_backends(Config(server=server_config()), (backend,))) as running:
            whole = ask(running.port, "POST", PATHS[dialect], question(dialect, "m-5.5"))
            streamed = ask(running.port, "POST", PATHS[dialect], question(dialect, "m-5.5", stream=True))
        assert whole.json["model"] == "m-5.5-20260202"
        assert names_in(dialect, streamed.body) == {"m-5.5-20260202"}
        if backend.verbatim == "auto":
            assert (whole.body, streamed.body) == (body, stream)


def test_models_and_aliases_are_listed_and_found(naming: Gateway) -> None:
    lines = {line["id"]: line for line in ask(naming.port, "GET", "/v1/models").json["data"]}
    assert {"chat/m-5.5", "fast-chat", "fast-messages-anew"} <= set(lines)
    assert lines["fast-chat"]["owned_by"] == "chat"
    assert not [name for name in lines if "*" in name]
    for name in ("fast-chat", "FAST-chat", "any-chat-x", "fast-chat:high"):
        found = ask(naming.port, "GET", f"/v1/models/{name}")
        assert (found.status, found.json["id"]) == (200, name)
    assert ask(naming.port, "GET", "/v1/models/chat/unlisted").status == 404
    assert ask(naming.port, "GET", "/v1/models/dated-1").status == 404  # six back ends have it
    anthropic = {"anthropic-version": "2023-06-01"}
    assert ask(naming.port, "GET", "/v1/models/fast-chat", headers=anthropic).json["type"] == "model"


def test_one_back_end_is_asked_for_its_list_once_for_a_name_with_a_suffix(upstream: Upstream) -> None:
    upstream.on("/names/models", [reply(200, b'{"data":[{"id":"gpt-7"}]}')])
    upstream.on("gpt-7", [reply(200, json.dumps(body_of("chat")).encode())])
    backend = BackendConfig(name="names", kind="openai-chat", base_url=f"{upstream.url}/names", retries=0)
    with gateway(with_backends(Config(server=server_config()), (backend,))) as running:
        for name in ("gpt-7", "gpt-7-high", "gpt-7-codex", "gpt-7-2026-01-01", "openai/gpt-7"):
            answer = ask(running.port, "POST", PATHS["chat"], question("chat", name))
            assert (answer.status, answer.json["model"]) == (200, "m" if name == "gpt-7" else name)
        assert [one.json.get("reasoning_effort") for one in upstream.requests("gpt-7")] == [
            None,
            "high",
            None,
            None,
            None,
        ]
        assert len(upstream.requests("/names/models")) == 1
        found = ask(running.port, "GET", "/v1/models/gpt-7-2026-01-01").json
        assert (found["id"], found["owned_by"]) == ("gpt-7-2026-01-01", "names")


@pytest.mark.parametrize("body", [b'{"id": "resp_1",  "status": "queued", "model": "b"}', b"not JSON"])
def test_what_is_only_queued_passes_untouched(body: bytes) -> None:
    request = make_request("responses")
    encoder = DIALECTS["responses"].encoder(AnswerContext(request=request, mint=numbered_ids(), now=NOW))
    pipe = Untouched(DIALECTS["responses"].body_decoder(request), Turn(request, numbered_ids()), lambda: encoder)
    assert pipe.feed(body[:9]).wire == pipe.feed(body[9:]).wire == b""
    assert pipe.close().wire == body
    assert pipe.is_over
    final = pipe.final()
    assert (final or {}).get("id") == ("resp_1" if body.startswith(b"{") else None)


def test_H050_a_call_without_an_id_is_encoded_again_and_what_left_before_stays() -> None:
    before = gemini_chunk({"text": "I look."})
    rest = gemini_chunk(gemini_call("", "weather", {})) + gemini_chunk({"text": ""}, finish="STOP")
    tap = tapped("gemini")
    out, _ = through(tap, before, rest)
    assert out.startswith(before)
    assert "id" in tap.took_over
    again = fold(through(tapped("gemini"), out)[1])
    assert [part.id for part in again.parts_of(0) if isinstance(part, ToolCall)] == ["call_000000000000000000000001"]
    assert len([value for _, value in frames(out) if "finishReason" in value["candidates"][0]]) == 1


def test_H029_without_an_end_mark_the_last_bytes_are_the_end_and_what_was_held_leaves_then() -> None:
    pieces_of = [gemini_chunk({"text": "a"}, finish="STOP"), gemini_chunk({"text": "b"}), gemini_chunk(finish="STOP")]
    tap = tapped("gemini")
    assert tap.feed(pieces_of[0]).wire == b""
    assert tap.feed(pieces_of[1]).wire == pieces_of[0] + pieces_of[1]
    assert tap.feed(pieces_of[2]).wire == b""
    assert tap.close().wire == pieces_of[2]
    assert (tap.took_over, tap.is_over) == ("", True)


def test_usage_that_is_missing_is_added_to_an_end_that_has_no_mark() -> None:
    tap = tapped("gemini")
    out, _ = through(tap, gemini_chunk({"text": "a"}, finish="STOP", usageMetadata={}))
    assert tap.took_over == "usage was missing"
    ends = [value for _, value in frames(out) if "finishReason" in value["candidates"][0]]
    assert len(ends) == 1
    assert ends[0]["usageMetadata"]["promptTokenCount"] > 0


def test_a_cut_without_an_end_mark_is_reported_as_an_error() -> None:
    tap = tapped("gemini")
    out, _ = through(tap, gemini_chunk({"text": "a"}))
    assert tap.error is not None
    assert tap.error.code == "upstream_cut"
    assert "error" in frames(out)[-1][1]
