"""An answer as a person sees it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable

import pytest

from tests.cli.chat.typist import SEQUENCE, rendered
from toolwire.agent.events import (
    ApprovalEvent,
    CompleteEvent,
    Ending,
    ErrorEvent,
    LoopEvent,
    ReasoningEvent,
    StatusEvent,
    TextEvent,
    ToolCallEvent,
    ToolErrorEvent,
    ToolResultEvent,
)
from toolwire.cli.chat.display import Display, JsonLines
from toolwire.cli.chat.terminal import Terminal
from toolwire.types import Media, Text, Usage

USAGE = Usage(input=1200, output=34, cached=1000)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def complete(reason: Ending = "done") -> CompleteEvent:
    return CompleteEvent(text="", reason=reason, iterations=1, usage=USAGE)


def call(id: str = "1", name: str = "read", **arguments: str) -> ToolCallEvent:
    return ToolCallEvent(id=id, name=name, arguments=arguments)


def result(text: str, id: str = "1", name: str = "read", seconds: float = 0.0) -> ToolResultEvent:
    return ToolResultEvent(id=id, name=name, parts=(Text(text=text),), seconds=seconds)


def in_a_pipe(events: Iterable[LoopEvent]) -> tuple[str, str]:
    words, about = io.StringIO(), io.StringIO()
    show = Display(Terminal(words), Terminal(about), Clock())
    for event in events:
        show.take(event)
    return words.getvalue(), about.getvalue()


def on_a_screen(events: Iterable[LoopEvent]) -> str:
    stream = io.StringIO()
    terminal = Terminal(stream, has_screen=True, has_colour=True)
    show = Display(terminal, terminal, Clock())
    for event in events:
        show.take(event)
    return stream.getvalue()


def test_in_a_pipe_text_and_notes_are_separate() -> None:
    events = [
        StatusEvent(status="asking", detail="1"), ReasoningEvent(text="Hm"), ReasoningEvent(text="."), TextEvent(text="Let me look"),
        call(path="a"), result("one\ntwo\n\nthree\nfour\nfive", seconds=1.25), TextEvent(text="Done"), complete(),
    ]  # fmt: skip
    assert in_a_pipe(events) == (
        "Let me look\nDone\n",
        'thinking: Hm.\n* read {"path":"a"}\n  one\n  two\n  three ... 2 more lines (1.2 s)\n'
        "  1,200 tokens in (1,000 cached), 34 out, 0.0 s, 1 call\n",
    )


def test_a_growing_call_is_one_line_that_stays_when_it_is_whole() -> None:
    pieces = ['{"path"', ': "a', '.txt"}']
    events = [
        TextEvent(text="Look"), StatusEvent(status="calling", id="1", name="read"),
        *(StatusEvent(status="arguments", detail=piece, id="1", name="read") for piece in pieces),
        call(path="a.txt"), result("hello"),
    ]  # fmt: skip
    raw = on_a_screen(events)
    assert rendered(raw) == 'Look\n* read {"path":"a.txt"}\n  hello\n'
    assert "* read \x1b[0m" in raw


def test_long_arguments_show_their_length() -> None:
    clock, stream = Clock(), io.StringIO()
    terminal = Terminal(stream, has_screen=True)
    show = Display(terminal, terminal, clock)
    show.take(StatusEvent(status="calling", id="1", name="write"))
    for _ in range(1001):
        clock.now += 0.01
        show.take(StatusEvent(status="arguments", detail="x" * 100, id="1", name="write"))
    drawings = stream.getvalue().count("\r\x1b[K")
    assert "* write [100100 characters] xxx" in rendered(stream.getvalue())
    assert 150 <= drawings <= 210  # one in 50 ms, not one for each piece


def test_side_by_side_results_say_whose_they_are() -> None:
    events = [call("1", "read"), call("2", "grep"), result("found", "2", "grep"), result("text", "1", "read")]
    assert "  grep: found\n  read: text\n" in in_a_pipe(events)[1]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [("failed", "  failed: No.\n"), ("timeout", "  timed out: No.\n"), ("denied", "  No.\n")],
)
def test_errors_of_tools(kind: str, shown: str) -> None:
    error = ToolErrorEvent(id="1", name="read", kind=kind, message="No.")  # type: ignore[arg-type] # one of the parameters
    denied = ApprovalEvent(id="1", name="read", arguments={}, is_allowed=kind != "denied")
    assert in_a_pipe([call(), denied, error])[1].endswith(shown)


def test_a_call_that_was_never_whole_is_shown_with_its_fault() -> None:
    events = [
        StatusEvent(status="calling", id="1", name="read"),
        StatusEvent(status="arguments", detail='{"path": ', id="1", name="read"),
        ToolErrorEvent(id="1", name="read", kind="invalid", message="path is missing"),
    ]
    assert in_a_pipe(events)[1] == '* read {"path": \n  wrong arguments: path is missing\n'


def test_what_is_no_text_is_list_names() -> None:
    image = ToolResultEvent(id="1", name="read", parts=(Media(kind="image", data="AA=="),))
    assert in_a_pipe([call(), image])[1].endswith("  [image]\n")
    assert in_a_pipe([call(), result("  \n")])[1].endswith("  (nothing)\n")


@pytest.mark.parametrize(
    ("reason", "words"),
    [("max_iterations", "--max-iterations"), ("interrupted", "interrupted"), ("loop", "same calls")],
)
def test_an_unusual_end_is_reported(reason: Ending, words: str) -> None:
    note, usage = in_a_pipe([StatusEvent(status="last", detail=reason), complete(reason)])[1].splitlines()[1:]
    assert words in note
    assert usage.startswith("  1,200 tokens in")


def test_errors_are_on_a_line_of_their_own() -> None:
    raw = on_a_screen([TextEvent(text="half a"), ErrorEvent(code="x", message="It broke."), complete("error")])
    assert SEQUENCE.sub("", raw).startswith("half a\nerror: It broke.\n")


def test_an_unreachable_back_end_is_an_error_that_says_what_to_do() -> None:
    events = [ErrorEvent(code="upstream_unreachable", message="host:1 refused the connection."), complete("error")]
    shown = in_a_pipe(events)[1]
    assert "error: host:1 refused the connection. Start its server" in shown
    assert "toolwire doctor" in shown


def test_waiting_shows_what_is_running() -> None:
    clock, stream = Clock(), io.StringIO()
    terminal = Terminal(stream, has_screen=True)
    show = Display(terminal, terminal, clock)
    show.take(StatusEvent(status="asking"))
    show.tick()
    assert stream.getvalue() == ""
    clock.now = 3.0
    show.tick()
    assert rendered(stream.getvalue()) == "  waiting 3 s"
    show.take(call(name="shell", command="sleep"))
    clock.now = 8.0
    show.tick()
    assert rendered(stream.getvalue()).endswith("\n  running shell 5 s")
    show.take(StatusEvent(status="running", detail="3/10 files", id="1", name="shell"))
    show.tick()
    assert rendered(stream.getvalue()).endswith("\n  running shell 3/10 files 5 s")
    show.take(result("done", name="shell"))
    assert "running" not in rendered(stream.getvalue())


def test_unknown_token_counts_are_not_shown() -> None:
    assert in_a_pipe([CompleteEvent(text="", reason="interrupted", iterations=1, usage=Usage())])[1] == (
        "interrupted\n  0.0 s, 0 calls\n"
    )


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
