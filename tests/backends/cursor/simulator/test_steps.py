from __future__ import annotations

from typing import Any

import msgspec
import pytest

from toolwire.backends.cursor.simulator import Call, CallTogether, Seen, Step
from toolwire.backends.cursor.simulator.steps import parts_of, result_text


def test_steps_are_told_apart_by_what_they_do() -> None:
    steps = msgspec.convert(
        [{"do": "call", "name": "x"}, {"do": "together", "calls": [{"do": "call", "name": "y", "args": {"a": 1}}]}],
        list[Step],
    )
    assert steps == [Call("x"), CallTogether((Call("y", {"a": 1}),))]


def test_what_nobody_knows_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"do": "say", "txt": "x"}, Step)


def test_answers_and_results_of_a_prompt() -> None:
    result = {"type": "tool-result", "toolCallId": "c", "toolName": "t"}
    seen = Seen(
        messages=(
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "assistant", "content": "c"},
            {"role": "tool", "content": [{**result, "result": "one"}, {**result, "result": [{"text": "two"}]}]},
            {"role": "assistant", "content": "d"},
        )
    )
    assert (seen.answers, seen.results) == (2, ["one", "two"])
    assert (Seen().answers, Seen().results) == (0, [])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("a", "a"),
        (None, ""),
        (7, "7"),
        ({"text": "b"}, "b"),
        ({"content": [{"type": "text", "text": "c"}]}, "c"),
        ({"x": 1}, ""),
        (["a", {"text": "b"}], "ab"),
    ],
)
def test_the_text_of_a_result(result: Any, text: str) -> None:
    assert result_text(result) == text


def test_parts_of_a_message() -> None:
    assert parts_of({"content": "x"}) == [{"type": "text", "text": "x"}]
    assert parts_of({"content": [{"type": "image"}, 7]}) == [{"type": "image"}]
    assert parts_of({}) == []
