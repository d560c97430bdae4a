"""Secrets that a stream carries in several frames."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.flows.redact import FlowRedaction, WireRedaction
from toolwire.flows.split_secrets import apply_edits, stream_edits, without_split_secrets

KNOWN = "the-key-of-the-back-end"
FIND = WireRedaction([KNOWN]).spans


def chat(text: str, index: int = 0) -> dict[str, Any]:
    call = {"index": index, "function": {"arguments": text}}
    return {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def responses(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "item_id": f"fc_{index}", "delta": text}


def messages(text: str, index: int = 0) -> dict[str, Any]:
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "input_json_delta", "partial_json": text},
    }


def gemini(text: str, index: int = 0) -> dict[str, Any]:
    return {"candidates": [{"index": index, "content": {"parts": [{"text": text}]}}]}


def ollama(text: str, index: int = 0) -> dict[str, Any]:
    return {"model": f"m{index}", "message": {"role": "assistant", "content": text}, "type": str(index)}


FORMS = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini, "ollama": ollama}
SECRETS = {
    "known": f"it is {KNOWN}.",
    "form": "it is sk-live-abcdef123456.",
    "member": '{"n": 1, "password": "hunter2hunter2", "m": 2}',
    "escaped": '{"body": "{\\"api_key\\": \\"hunter2hunter2\\"}"}',
    "url": '{"url": "https://bob:hunter2hunter2@example.com/"}',
}


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def texts(form: str, stream: bytes) -> dict[str, str]:
    """What the frames add up to, by index."""
    found: dict[str, str] = {}
    for line in stream.splitlines():
        value = json.loads(line.removeprefix(b"data: ") or "{}")
        for index in range(2):
            example = json.dumps(FORMS[form]("@", index))
            before, _, after = example.partition("@")
            text = json.dumps(value)
            if text.startswith(before) and text.endswith(after):
                found[str(index)] = found.get(str(index), "") + json.loads(f'"{text[len(before) : -len(after)]}"')
    return found


@pytest.mark.parametrize("prefix", ["data: ", ""])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_in_pieces_is_hidden_and_the_rest_stays(form: str, secret: str, size: int, prefix: str) -> None:
    text = SECRETS[secret]
    other = "the other text is not changed"
    frames = []
    for piece, beside in zip(pieces(text, size), [*pieces(other, size), *[""] * 100], strict=False):
        frames += [FORMS[form](piece, 0), FORMS[form](beside, 1)]
    stream = "".join(f"{prefix}{json.dumps(frame)}\n\n" for frame in frames).encode()
    cleaner = FlowRedaction(WireRedaction([KNOWN]), "", [stream])
    shown, ends = cleaner.reply(stream, [len(stream) // 2, len(stream)])
    found = texts(form, shown)
    assert found["0"] == WireRedaction([KNOWN]).text(text)
    assert "hunter2" not in found["0"]
    assert found["0"].count("[hidden]") == 1
    assert other.startswith(found["1"])
    assert ends[-1] == len(shown)


def test_a_stream_without_secrets_is_not_changed() -> None:
    stream = b"".join(b"data: %s\n\n" % json.dumps(chat(piece)).encode() for piece in pieces("just a text", 2))
    assert stream_edits(stream + b"data: [DONE]\n\n" + b'data: {"trunc', FIND) == []


def test_equal_members_of_all_frames_are_no_text() -> None:
    frames = [{"id": "sk-", "n": number} for number in range(5)]
    assert without_split_secrets([json.dumps(frame).encode() for frame in frames], FIND) == {}


def test_broken_and_deep_frames_are_passed() -> None:
    deep = b"[" * 100_000
    assert without_split_secrets([b"{", deep, b'{"a": 1}', b'"text"', b"[[[[1]]]]"], FIND) == {}


@examples(200)
@given(st.binary(max_size=40), st.lists(st.integers(0, 40), max_size=6), st.lists(st.integers(0, 40), max_size=5))
def test_edits_move_the_ends_of_chunks(data: bytes, cuts: list[int], ends: list[int]) -> None:
    places = sorted(min(cut, len(data)) for cut in cuts)
    edits = [(start, end, b"<>") for start, end in zip(places[::2], places[1::2], strict=False)]
    ends = sorted(min(end, len(data)) for end in ends)
    edited, moved = apply_edits(data, ends, edits)
    expected = data
    for start, end, text in reversed(edits):
        expected = expected[:start] + text + expected[end:]
    assert edited == expected
    assert moved == sorted(moved)
    for end, now in zip(ends, moved, strict=True):
        if not any(start < end < stop for start, stop, _ in edits):
            assert edited[now:].endswith(data[end:]) or any(start >= end for start, _, _ in edits)
            assert len(edited) - now == len(data) - end + sum(
                len(text) - (stop - start) for start, stop, text in edits if start >= end
            )
