"""Servers with one defect of their wire format: the right fault is named, and servers that are only unusual have none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.check.broken_server import Damage, GoodAnswer, broken_server
from tests.check.calibration import BROKEN, VALID
from tests.check.damages import (
    arguments_as_object,
    body_value,
    calls_as_text,
    check,
    delta_calls,
    drop_call_id,
    drop_index,
    drop_usage,
    errors_as_200,
    faults_of,
    html_errors,
    invalid_utf8,
    new_ids,
    no_streams,
    one_line_break,
    refuse_results,
    refuse_tools,
    resend_name,
    short_body,
    silent_close,
    stop_reason,
    stream_values,
    without_event,
    wrong_usage,
)

pytestmark = pytest.mark.slow

CHAT = {
    "call.index_missing": stream_values(drop_index),
    "call.id_missing": stream_values(drop_call_id),
    "call.name_resent": stream_values(resend_name),
    "call.arguments_type": body_value(arguments_as_object),
    "finish.missing": stream_values(stop_reason(None)),
    "finish.unknown": body_value(stop_reason("end")),
    "finish.calls_unreported": stream_values(stop_reason("stop")),
    "usage.lost_in_stream": stream_values(drop_usage),
    "usage.wrong": body_value(wrong_usage),
    "call.as_text": calls_as_text,
    "stream.not_streamed": no_streams,
    "stream.framing": one_line_break,
    "stream.done_missing": without_event("[DONE]"),
    "stream.id_changes": stream_values(new_ids),
    "body.encoding": invalid_utf8,
    "error.form": html_errors,
    "body.error": errors_as_200,
    "http.cut": short_body,
    "http.closes_silently": silent_close,
    "tools.refused": refuse_tools,
    "history.refused": refuse_results,
}


@pytest.mark.parametrize("code", CHAT)
def test_a_defect_of_a_chat_server_is_named(good: str, code: str) -> None:
    assert code in faults_of(good, "chat", CHAT[code])


MESSAGES = {
    "stream.end_missing": without_event("message_stop"),
    "stream.order": without_event("content_block_start"),
    "finish.missing": without_event("message_delta"),
    "stream.index": stream_values(lambda value: value.update(index=5) if "index" in value else None),
    "stream.event_name": lambda answer: (
        setattr(answer, "events", [("", value) for _, value in answer.events]) if answer.is_stream else None
    ),
}


@pytest.mark.parametrize("code", MESSAGES)
def test_a_defect_of_a_messages_server_is_named(good: str, code: str) -> None:
    assert code in faults_of(good, "messages", MESSAGES[code])


RESPONSES = {
    "stream.end_missing": without_event("response.completed"),
    "stream.part_end_missing": without_event("response.output_item.done"),
    "stream.order": without_event("response.output_item.added"),
    "stream.sequence": stream_values(lambda value: value.update(sequence_number=3)),
    "call.id_missing": body_value(
        lambda value: [item.pop("call_id", None) for item in value.get("output", ())] and None
    ),
}


@pytest.mark.parametrize("code", RESPONSES)
def test_a_defect_of_a_responses_server_is_named(good: str, code: str) -> None:
    assert code in faults_of(good, "responses", RESPONSES[code])


def args_as_text(value: dict[str, Any]) -> None:
    for candidate in value.get("candidates", ()):
        for part in candidate.get("content", {}).get("parts", ()):
            if "functionCall" in part:
                part["functionCall"]["args"] = json.dumps(part["functionCall"].get("args"))


def test_a_defect_of_a_gemini_server_is_named(good: str) -> None:
    assert "call.arguments_type" in faults_of(good, "gemini", body_value(args_as_text))


def _old_members(value: dict[str, Any]) -> None:
    for member in ("system_fingerprint", "service_tier", "created", "model"):
        value.pop(member, None)
    for call in delta_calls(value):
        call.pop("type", None)


def no_usage(answer: GoodAnswer) -> None:
    stream_values(drop_usage)(answer)
    body_value(drop_usage)(answer)


UNUSUAL: dict[str, Damage] = {
    "nothing": lambda answer: None,
    "missing members": stream_values(_old_members),
    "carriage returns": lambda answer: (
        setattr(answer, "body", answer.body.replace(b"\n", b"\r\n")) if answer.is_stream else None
    ),
    "comments": lambda answer: setattr(answer, "body", b": wait\n\n" + answer.body) if answer.is_stream else None,
    "announced close": lambda answer: answer.headers.update(connection="close"),
    "no usage": no_usage,
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_a_server_that_is_only_unusual_has_no_faults(good: str, kind: str) -> None:
    assert faults_of(good, "chat", UNUSUAL[kind]) == frozenset()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_server_has_exactly_its_faults(good: str, name: str) -> None:
    dialect, damage, expected = BROKEN[name]
    with broken_server(good, damage) as address:
        assert check(address, dialect, seconds=0.5 if "endless" in name else 5.0).faults == expected


@pytest.mark.parametrize("name", VALID)
def test_a_valid_server_is_not_accused(good: str, name: str) -> None:
    with broken_server(good, VALID[name]) as address:
        report = check(address, "chat", is_quick=False)
    assert report.faults == frozenset()
    assert report.schemas.valid > 20
