from __future__ import annotations

import pytest

from toolwire.check.deviations import DeviationLog
from toolwire.check.wire.frames import events, json_object, usage_of


def read(raw: bytes) -> tuple[list[object], set[str]]:
    log = DeviationLog()
    return [event.value for event in events(raw, log)], set(log.found)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_line_end_of_the_standard_is_accepted(line_end: str) -> None:
    text = ': hello\n\nevent: a\ndata: {"x": 1}\n\ndata:{"x": 2}\n\n'
    assert read(text.replace("\n", line_end).encode()) == ([{"x": 1}, {"x": 2}], set())


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'data: {"x": 1}\ndata: {"x": 2}\n\n', "stream.framing"),
        (b'data: {"x": 1}\n', "stream.framing"),
        (b'{"x": 1}', "stream.not_streamed"),
        (b"", "stream.framing"),
        (b'garbage\n\ndata: {"x": 1}\n\n', "stream.framing"),
        (b"data: [1]\n\n", "stream.bad_json"),
        (b'data: {"x": "\xff"}\n\n', "body.encoding"),
        ('data: {"x": "\ufffd"}\n\n'.encode(), "body.encoding"),
    ],
)
def test_irregular_framing_has_its_code(raw: bytes, code: str) -> None:
    assert code in read(raw)[1]


@pytest.mark.parametrize(
    ("raw", "code"), [(b"[]", "body.not_json"), (b"{", "body.not_json"), (b"data: {}\n\n", "body.is_stream")]
)
def test_a_body_must_be_a_json_object(raw: bytes, code: str) -> None:
    log = DeviationLog()
    assert json_object(raw, log) is None
    assert code in log.found


@pytest.mark.parametrize(
    "usage", [{"in": 1}, {"in": -1, "out": 2}, {"in": True, "out": 1}, {"in": 2, "out": 3, "sum": 4}]
)
def test_usage_must_be_counts_that_add_up(usage: object) -> None:
    log = DeviationLog()
    usage_of(usage, log, ("in", "out"), "sum")
    assert set(log.found) == {"usage.wrong"}


@pytest.mark.parametrize("usage", ["many", {"in": "1", "out": 2}, {"in": 1, "out": [2]}])
def test_counts_of_another_type_have_a_code_of_their_own(usage: object) -> None:
    log = DeviationLog()
    usage_of(usage, log, ("in", "out"))
    assert set(log.found) == {"usage.type"}
