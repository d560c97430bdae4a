"""Events for programs: one line each, whatever is in them."""

from __future__ import annotations

import io
import json

import pytest

from toolwire.agent.events import TextEvent, ToolCallEvent
from toolwire.cli.chat.reporter import JsonLines
from toolwire.cli.chat.terminal import Terminal

pytestmark = pytest.mark.slow


def test_each_event_is_one_line_of_ascii() -> None:
    stream, about = io.StringIO(), io.StringIO()
    reporter = JsonLines(stream, Terminal(about))
    texts = ["a\nb\u2028c", "\x1b[31m\x9b", "\ud800 half", "😀"]
    reporter.begin()
    for text in texts:
        reporter.take(TextEvent(text=text))
    reporter.take(ToolCallEvent(id="1", name="f", arguments={"n": 12345678901234567890123}))
    reporter.tick()
    reporter.note("a note")
    reporter.fault("a fault")
    lines = stream.getvalue().splitlines()
    assert stream.getvalue().isascii()
    assert [json.loads(line) for line in lines[:-1]] == [{"type": "text", "text": text} for text in texts]
    assert json.loads(lines[-1])["arguments"] == {"n": 12345678901234567890123}
    assert about.getvalue() == "a note\nerror: a fault\n"
