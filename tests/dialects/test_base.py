"""The bases of decoders: frames in, events out, and an honest end."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.dialects.playing import ALL, NAMES, events_in
from tests.dialects.wires import REGULAR
from toolwire.dialects import DIALECTS, Dialect
from toolwire.dialects.base import (
    BodyDecoder,
    FrameDecoder,
    bearer,
    count_of,
    forwarded_headers,
    is_count,
    is_mark,
    last_frames,
    object_in,
    shown,
)
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, PartDelta, PartEnded, Started
from toolwire.profiles import ANTHROPIC, GEMINI, PLAIN_CHAT, RESPONSES, Profile
from toolwire.types import Choice, Text
from toolwire.wire.sse import Frame, SseReader


class Echo(FrameDecoder):
    """Each frame is a start; the end of the stream is the end of the answer."""

    def __init__(self, limit: int = 1000) -> None:
        super().__init__()
        self._sse = SseReader(limit)

    def frame(self, frame: Frame) -> list[Event]:
        return [] if self.is_over else [Started(id=frame.data.decode(), model="")]

    def end(self) -> list[Event]:
        return [Finished(choices=(Choice(reason="stop"),))]


def test_frames_are_decoded_as_they_come_and_the_end_ends() -> None:
    decoder = Echo()
    assert decoder.feed(b"data: 1\n\nda") == [Started(id="1", model="")]
    assert decoder.feed(b"ta: {}") == []
    assert decoder.close() == [Started(id="{}", model=""), Finished(choices=(Choice(reason="stop"),))]


class Texts(FrameDecoder):
    """Each frame is more of one text; parsed counts the frames that were read in full. is_plain: a frame does nothing else."""

    def __init__(self, *, is_plain: bool) -> None:
        super().__init__()
        self.parsed = 0
        self._is_plain = is_plain
        self._growing, _ = self._assembly.start(Text(text=""))

    def frame(self, frame: Frame) -> list[Event]:
        self.parsed += 1
        growing = self.only_grows(self._growing) if self._is_plain else self._growing
        return [growing.grow(object_in(frame)["t"])]  # type: ignore[index] # all of them are objects

    def end(self) -> list[Event]:
        return self._assembly.end(self._growing)


@pytest.mark.parametrize(("is_plain", "parsed"), [(True, 1), (False, 3)])
def test_a_frame_like_the_last_one_is_parsed_unless_that_one_only_added_text(is_plain: bool, parsed: int) -> None:
    for is_whole in (True, False):
        decoder = Texts(is_plain=is_plain)
        frames = [b'data: {"t":"%d"}\n\n' % number for number in range(3)]
        events = [event for data in ([b"".join(frames)] if is_whole else frames) for event in decoder.feed(data)]
        assert events == [PartDelta(0, text) for text in "012"]
        assert decoder.parsed == parsed
        assert decoder.close() == [PartEnded(index=0, part=Text(text="012"))]


def test_where_the_end_has_begun_every_frame_is_parsed() -> None:
    decoder = Texts(is_plain=True)
    decoder.is_ending = True
    for number in range(3):
        decoder.feed(b'data: {"t":"%d"}\n\n' % number)
    assert decoder.parsed == 3


def test_a_frame_beyond_the_limit_is_a_failure_once() -> None:
    decoder = Echo(limit=10)
    (failed,) = decoder.feed(b"data: " + b"x" * 50)
    assert isinstance(failed, Failed)
    assert failed.error.code == "upstream_garbage"
    assert decoder.feed(b"x" * 50) == []
    assert decoder.close() == []


@pytest.mark.parametrize(
    ("rest", "count"),
    [
        (b"data: {}", 1),
        (b"data: [DONE]", 1),
        (b"data: [DON", 0),
        (b'data: {"a":1', 0),
        (b"data: words", 0),
        (b"data: [1]", 0),
        (b"", 0),
    ],
)
def test_half_a_frame_at_the_end_is_none(rest: bytes, count: int) -> None:
    reader = SseReader()
    reader.feed(rest)
    assert len(last_frames(reader)) == count


def test_a_body_is_read_once_it_is_whole() -> None:
    decoder = BodyDecoder(lambda value: ([Started(id=value["id"], model="")], "odd"))
    assert decoder.feed(b'{"id":') == []
    assert decoder.feed(b'"a"}') == []
    assert decoder.close() == [Started(id="a", model="")]
    assert decoder.irregular == "odd"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"a":', b"\xff"])
def test_a_body_that_is_no_object_is_a_failure_that_shows_it(body: bytes) -> None:
    decoder = BodyDecoder(lambda value: ([], ""))
    decoder.feed(body)
    (failed,) = decoder.close()
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UpstreamError)
    assert (failed.error.status, failed.error.code) == (502, "upstream_garbage")
    assert decoder.irregular == "not JSON"


def test_small_helpers() -> None:
    assert object_in(Frame("", b'{"a":1}', b"")) == {"a": 1}
    assert object_in(Frame("", b"[]", b"")) is None
    assert object_in(Frame("", b"{", b"")) is None
    assert len(shown(b"\xff\n" * 1000)) < 220
    assert bearer("k") == {"authorization": "Bearer k"}
    assert bearer("") == {}


@pytest.mark.parametrize(
    ("given", "count"),
    [(5, 5), (0, 0), (-1, 0), (True, 0), ("5", 0), (None, 0), (Decimal("5.0"), 5), (Decimal("5.5"), 0), (10**30, 0)],
)
def test_only_whole_numbers_are_counts(given: object, count: int) -> None:
    assert count_of(given) == count
    assert is_count(given) == (type(given) is int and given == count)


def test_a_mark_may_have_blanks_around_it() -> None:
    assert is_mark(b" [DONE]\t")
    assert not is_mark(b"[DONE] x")


def test_a_stream_that_is_called_a_body_is_read_as_one() -> None:
    for wire in (b"data: a\n\ndata: b\n\n", b"\n: hm\n\ndata: a\n\ndata: b\n\n", b"\xef\xbb\xbfdata: a\n\ndata: b\n\n"):
        decoder = BodyDecoder(lambda value: ([], ""), Echo)
        assert decoder.feed(wire) == []
        assert len(decoder.close()) >= 2
        assert decoder.irregular == "a stream where a body was due"


def test_a_byte_order_mark_before_a_body_is_irregular() -> None:
    decoder = BodyDecoder(lambda value: ([], ""))
    decoder.feed(b'\xef\xbb\xbf{"a": 1}')
    assert decoder.close() == []
    assert (decoder.value, decoder.irregular) == ({"a": 1}, "a byte order mark")


def test_a_document_is_its_own_last_frame_even_if_it_is_no_object() -> None:
    reader = SseReader()
    reader.feed(b"[1")
    assert [frame.data for frame in last_frames(reader)] == [b"[1"]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_token_count_survives_its_dialect(dialect: Dialect) -> None:
    assert dialect.decode_count(dialect.encode_count(17)) == 17
    assert dialect.decode_count(b"{}") is None
    assert dialect.decode_count(b"no JSON") is None


def test_no_two_dialects_have_a_path_in_common() -> None:
    paths = [path for dialect in DIALECTS.values() for path in dialect.routes]
    assert sorted(paths) == ["/chat/completions", "/messages", "/messages/count_tokens", "/responses"]
    assert not any(dialect.match(path, b"") for dialect in DIALECTS.values() for path in paths)


GIVEN = {
    "authorization": "Bearer client",
    "x-api-key": "client",
    "cookie": "c",
    "user-agent": "agent",
    "host": "h",
    "x-forwarded-for": "1.2.3.4",
    "traceparent": "t",
    "session-id": "s",
    "openai-beta": "ob",
    "anthropic-beta": "ab",
    "openai-organization": "org",
}
PROFILES = {"chat": PLAIN_CHAT, "responses": RESPONSES, "messages": ANTHROPIC}


@pytest.mark.parametrize("dialect", NAMES)
def test_the_clients_identity_stays_here(dialect: str) -> None:
    sent = DIALECTS[dialect].headers(PROFILES[dialect], "ours", GIVEN)
    assert "client" not in str(sent)
    assert {"cookie", "user-agent", "host", "x-forwarded-for", "openai-organization"}.isdisjoint(sent)
    assert (sent["traceparent"], sent["session-id"]) == ("t", "s")
    assert "ours" in sent.get("authorization", "") + sent.get("x-api-key", "")
    assert "ours" not in str(DIALECTS[dialect].headers(PROFILES[dialect], "", GIVEN))


def test_each_dialect_hands_on_its_own_features() -> None:
    assert DIALECTS["chat"].headers(PLAIN_CHAT, "", GIVEN)["openai-beta"] == "ob"
    assert "anthropic-beta" not in DIALECTS["chat"].headers(PLAIN_CHAT, "", GIVEN)
    assert DIALECTS["messages"].headers(ANTHROPIC, "", GIVEN)["anthropic-beta"] == "ab"
    assert forwarded_headers({}, "openai-beta") == {}


@pytest.mark.parametrize(
    ("profile", "version", "header"),
    [
        (ANTHROPIC, "", "x-api-key"),
        (ANTHROPIC, "2026-10-21", "authorization"),
        (Profile(key_header="authorization"), "", "authorization"),
    ],
)
def test_the_version_decides_how_the_key_travels(profile: Profile, version: str, header: str) -> None:
    given = {"anthropic-version": version} if version else {}
    sent = DIALECTS["messages"].headers(profile, "k", given)
    assert sent["anthropic-version"] == (version or "2023-06-01")
    assert "k" in sent[header]
    assert ({"x-api-key", "authorization"} - {header}).isdisjoint(sent)


def test_who_claims_a_request_that_the_path_does_not_tell() -> None:
    assert DIALECTS["messages"].claims({"anthropic-version": "x"})
    assert DIALECTS["messages"].claims({"x-api-key": "k"})
    assert not DIALECTS["messages"].claims({"x-api-key": "k", "authorization": "Bearer k"})
    assert DIALECTS["chat"].claims({})
    assert not DIALECTS["responses"].claims({})


@pytest.mark.parametrize("dialect", ALL)
def test_H151_a_heartbeat_says_nothing(dialect: str) -> None:
    beat = DIALECTS[dialect].heartbeat
    assert events_in(dialect, beat, REGULAR[dialect].replace(b"\n\n", b"\n\n" + beat)) == events_in(
        dialect, REGULAR[dialect]
    )


def test_geminis_key_has_a_header_of_its_own_and_a_token_is_a_bearer() -> None:
    plain = DIALECTS["gemini"].headers(GEMINI, "AIza-key", GIVEN)
    assert (plain["x-goog-api-key"], plain["traceparent"]) == ("AIza-key", "t")
    assert "client" not in str(plain)
    token = DIALECTS["gemini"].headers(GEMINI, "ya29.token", {})
    assert token == {"authorization": "Bearer ya29.token"}
    by_profile = DIALECTS["gemini"].headers(Profile(key_header="authorization"), "k", {})
    assert by_profile == {"authorization": "Bearer k"}
    assert DIALECTS["gemini"].headers(GEMINI, "", {}) == {}
    assert DIALECTS["gemini"].claims({"x-goog-api-client": "x"})
    assert not DIALECTS["gemini"].claims({"x-api-key": "k"})
