"""Streams are decoded correctly and without delay, however the back end splits arguments and numbers its calls.

For each cut of the arguments, each way of naming calls and each client: the calls are equal to what the back end sent, and what it has
sent is with the client before the next frame arrives. Blanks behind complete arguments may be dropped. Two dialects cannot show everything at once: a Messages client gets one block after
the other, so that parts behind a call wait until its arguments are complete; a Gemini client gets calls whole.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.codec_harness import ALL, NOW, make_request, numbered_ids
from tests.thorough import examples, is_thorough, thin_out
from toolwire.calls.turn import Turn
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import AnswerContext
from toolwire.pipeline.verbatim import Tap, Translator
from toolwire.types import Request

from .live.script import TOOLS, Call, Frame, Words, cut, every_cut
from .live.upstreams import Leaving, Manner, chat, gemini, messages, responses
from .live.views import Shown, View

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {}, "b": {}}}
OFFERED: dict[str, dict[str, Any]] = {
    "chat": {"tools": [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in TOOLS]},
    "responses": {"tools": [{"type": "function", "name": name, "parameters": SCHEMA} for name in TOOLS]},
    "messages": {"tools": [{"name": name, "input_schema": SCHEMA} for name in TOOLS]},
    "gemini": {"tools": [{"functionDeclarations": [{"name": name, "parameters": SCHEMA} for name in TOOLS]}]},
}
REQUESTS: dict[str, Request] = {dialect: make_request(dialect, **OFFERED[dialect]) for dialect in ALL}
ONE, TWO = '{"a":1}', '{"b":2}'
BEFORE, BETWEEN, AFTER = Words(("I ", "look. ")), Words(("And ", "now. ")), Words(("Done", ". "))
MANNERS = [
    manner
    for manner in itertools.starmap(
        Manner,
        itertools.product(("right", "absent", "zero"), ("first", "every", "absent"), ("sequential", "interleaved")),
    )
    if manner.is_decidable
]
LEGACY = Manner("zero", "absent", is_legacy=True)


def named(manner: Manner) -> str:
    return "legacy" if manner.is_legacy else f"index {manner.index}, ids {manner.ids}, {manner.order}"


def pipe(upstream: str, client: str, *, is_verbatim: bool) -> Translator:
    request, mint = REQUESTS[client], numbered_ids()
    decoder = DIALECTS[upstream].stream_decoder(request)
    encoder = DIALECTS[client].encoder(AnswerContext(request=request, mint=mint, now=NOW))
    kind = Tap if is_verbatim and upstream == client else Translator
    return kind(decoder, Turn(request, mint), lambda: encoder)


def clients(upstream: str) -> list[tuple[str, bool]]:
    return [*((client, True) for client in ALL), (upstream, False)]


def check(upstream: str, frames: list[Frame], *, is_complete: bool = True) -> None:
    """Each client sees what came, when it came, and the right end."""
    for client, is_verbatim in clients(upstream):
        running, view = pipe(upstream, client, is_verbatim=is_verbatim), View(client)
        for number, frame in enumerate(frames):
            shown = view.feed(running.feed(frame.wire).wire)
            if not frame.tells_end:
                assert not late(client, frame.received, shown), (client, is_verbatim, number, frame, shown)
        shown = view.feed(running.close().wire)
        assert bool(shown.error) != is_complete, (client, is_verbatim, shown)
        if is_complete:
            check_whole(frames[-1].received, shown, f"{client} {is_verbatim}")


def check_at_once(upstream: str, frames: list[Frame]) -> None:
    """The same answer, read in one piece."""
    for client, is_verbatim in clients(upstream):
        running = pipe(upstream, client, is_verbatim=is_verbatim)
        wire = running.feed(b"".join(frame.wire for frame in frames)).wire + running.close().wire
        check_whole(frames[-1].received, View(client).feed(wire), f"{client} {is_verbatim}, in one piece")


def check_whole(received: Iterable[tuple[str, str, bool]], shown: Shown, who: str) -> None:
    parts = [(name, content) for name, content, _ in received]
    assert shown.text == "".join(content for name, content in parts if not name), (who, shown)
    assert plain(shown.calls) == plain((name, content) for name, content in parts if name), (who, shown)
    assert shown.end, who


def plain(calls: Iterable[tuple[str, str]]) -> list[tuple[str, Any]]:
    return [(name, json.loads(content)) for name, content in calls]


def late(client: str, received: tuple[tuple[str, str, bool], ...], shown: Shown) -> str:
    """What was received and could be seen, and is not."""
    due = [part for part in received if part[0] or part[1]]
    if client in ("chat", "responses"):
        text = "".join(content for name, content, _ in due if not name)
        calls = [(name, content.rstrip()) for name, content, _ in due if name]
        found = [(name, content.rstrip()) for name, content in shown.calls]
        return "" if (shown.text, found) == (text, calls) else f"expected {text!r} and {calls}"
    seen = list(shown.parts)
    for name, content, is_closed in due:
        if client == "gemini" and name and not is_closed:
            return ""
        if not seen:
            return f"expected {name} {content!r}"
        found_name, found = seen.pop(0)
        if name and client == "gemini":
            content, found = json.dumps(json.loads(content)), json.dumps(json.loads(found))
        if client == "gemini" and not name and found.startswith(content) and found != content:
            seen.insert(0, ("", found[len(content) :]))  # texts that follow each other are one there
        elif (found_name, found.rstrip() if name else found) != (name, content.rstrip() if name else content):
            return f"expected {name} {content!r}, found {found_name} {found!r}"
        if name and not _is_whole(content):
            return ""
    return ""


def _is_whole(content: str) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def parallel(first: Iterable[str], second: Iterable[str], *, is_same: bool = True) -> list[Words | Call]:
    other = TOOLS[0] if is_same else TOOLS[1]
    return [Call(TOOLS[0], "call_x", tuple(first)), Call(other, "call_y", tuple(second))]


@pytest.mark.parametrize("manner", [*MANNERS, LEGACY], ids=named)
@pytest.mark.parametrize("is_same", [True, False], ids=["one tool", "two tools"])
def test_every_cut_of_the_arguments(manner: Manner, is_same: bool) -> None:
    pairs = zip(every_cut(ONE), reversed(every_cut(TWO)), strict=True)
    for place, (first, second) in thin_out(list(enumerate(pairs)), 7):
        if is_same or place % 8 == 0 or is_thorough():
            frames = chat(
                [BEFORE, *parallel(first, second, is_same=is_same), AFTER],
                manner._replace(has_bare_header=bool(place // 8 % 2)),
            )
            check("chat", frames)
            if place % 8 == 0:
                check_at_once("chat", frames)


RAW = st.sampled_from(
    [
        "{}",
        ONE,
        '{"a": "}{\\" ]", "b": [1, {"c": {}}]}',
        '{"a":"\\\\"}',
        '{"a":"ü世\\u00e9"}',
        ' {"a": null} ',
        '{"a":{"a":1}}',
    ]
)
PLACES = st.lists(st.integers(1, 40), max_size=8)
TEXTS = st.sampled_from([None, Words(("a ",)), Words(("More", " of ", "it. "))])


@st.composite
def answers(draw: st.DrawFn) -> list[Words | Call]:
    """Texts and calls in any order; ids are right, tools may be the same."""
    items: list[Words | Call] = []
    for number in range(draw(st.integers(1, 4))):
        if (text := draw(TEXTS)) is not None and not (items and isinstance(items[-1], Words)):
            items.append(text)
        if number or draw(st.booleans()):
            raw = draw(RAW)
            items.append(Call(draw(st.sampled_from(TOOLS)), f"call_{number}", cut(raw, draw(PLACES))))
    return items or [AFTER]


@given(answers(), st.sampled_from([*MANNERS, LEGACY]), st.booleans(), st.booleans(), st.booleans())
@examples(150)
def test_any_answer_of_a_chat_server(
    items: list[Words | Call], manner: Manner, has_bare_header: bool, has_finish: bool, has_mark: bool
) -> None:
    manner = manner._replace(has_bare_header=has_bare_header, has_finish=has_finish, has_mark=has_mark)
    check("chat", chat(items, manner), is_complete=manner.is_whole)


@given(answers())
@examples(60)
def test_any_answer_of_a_messages_server(items: list[Words | Call]) -> None:
    check("messages", messages(items))


@given(answers())
@examples(60)
def test_any_answer_of_a_gemini_server(items: list[Words | Call]) -> None:
    check("gemini", gemini(items))


@given(
    answers(),
    st.builds(
        Leaving,
        item_id=st.booleans(),
        output_index=st.booleans(),
        sequence=st.booleans(),
        part_events=st.booleans(),
        item_done=st.booleans(),
        order=st.sampled_from(["sequential", "interleaved"]),
    ).filter(lambda leaving: leaving.is_decidable),
)
@examples(150)
def test_any_answer_of_a_responses_server(items: list[Words | Call], leaving: Leaving) -> None:
    check("responses", responses(items, leaving))
