"""One request in one window, frame by frame."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.backends.vscode.stage import used
from tests.backends.vscode.window_frames import chat, heard, hello, listed, parts
from toolwire.backends.sessions import SessionLost
from toolwire.backends.vscode.token_limit import LEAST
from toolwire.backends.vscode.turn import (
    COUNTED,
    ESTIMATED,
    TurnTimeouts,
    WindowTurn,
    count_tokens,
    estimate,
    prompt_of,
)
from toolwire.backends.vscode.window import Window
from toolwire.backends.vscode.wire.shapes import (
    CallPart,
    Cancel,
    Chat,
    ChatMessage,
    Count,
    Counted,
    DataPart,
    End,
    Failure,
    OfferedTool,
    Parts,
    Refresh,
    ResultPart,
    TextPart,
)
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Noted, fold
from toolwire.types import Loss, Request, Sampling, Text, Usage

DONE = End(id="r", cancelled=False)
USAGE = DataPart(mime="usage", data=used(5, 6)["data"])


def turn_in(window: Window, first: float = 5.0, idle: float = 5.0) -> WindowTurn:
    return WindowTurn(window, listed(), chat(), TurnTimeouts(first=first, idle=idle, count=0.02))


def request(max_tokens: int | None = None, stop: tuple[str, ...] = ()) -> Request:
    return Request(model="m", messages=(), max_tokens=max_tokens, sampling=Sampling(stop=stop))


def played(play: Callable[[Window], Awaitable[None]]) -> None:
    async def main() -> None:
        await play(Window(hello()))

    asyncio.run(main())


async def asked(window: Window, turn: WindowTurn, given: Request | None = None) -> asyncio.Task[list[Event]]:
    beginning = asyncio.create_task(turn.begin(given or request()))
    assert isinstance(await heard(window), Chat)
    return beginning


async def rest(turn: WindowTurn) -> list[Event]:
    events: list[Event] = []
    while not turn.is_over:
        events += await turn.more()
    return events


def test_it_begins_with_the_first_part_and_goes_on_until_its_end() -> None:
    async def play(window: Window) -> None:
        turn = turn_in(window)
        beginning = await asked(window, turn)
        window.take(parts("r", 0, "one "), 10)
        first = await beginning
        window.take(parts("r", 1, "two"), 10)
        window.take(Parts(id="r", seq=2, parts=(USAGE,)), 10)
        window.take(DONE, 10)
        answer = fold(first + await rest(turn))
        assert answer.parts[0].part == Text(text="one two")
        assert answer.finished.usage == Usage(input=5, output=6)
        assert window.is_idle
        turn.leave()
        window.close("done")
        assert await window.outbox.next() is None  # nothing was cancelled
        assert window.counting == {"copilot/gpt-4.1"}

    played(play)


def test_a_stop_sequence_ends_it_and_cancels_the_rest() -> None:
    async def play(window: Window) -> None:
        turn = turn_in(window)
        beginning = await asked(window, turn, request(stop=("END",)))
        window.take(parts("r", 0, "one EN"), 10)
        first = await beginning
        window.take(parts("r", 1, "D two"), 10)
        answer = fold(first + await rest(turn))
        assert answer.parts[0].part == Text(text="one ")
        assert answer.finished.choices[0].stop_sequence == "END"
        assert await heard(window) == Cancel(id="r")
        assert window.is_idle

    played(play)


def test_too_long_an_answer_is_cut_and_cancelled() -> None:
    async def play(window: Window) -> None:
        turn = turn_in(window)
        beginning = await asked(window, turn, request(max_tokens=1))
        window.take(parts("r", 0, "0123456789" * 30), 10)
        events = await beginning
        answer = fold(events)
        assert answer.parts[0].part == Text(text=("0123456789" * 30)[:LEAST])
        assert answer.finished.choices[0].reason == "length"
        assert answer.finished.usage == Usage(input=1, output=64)
        assert Noted(note=Loss("usage", "usage", ESTIMATED)) in events
        assert await heard(window) == Cancel(id="r")

    played(play)


@pytest.mark.parametrize(("max_tokens", "reason"), [(6, "stop"), (5, "length")])
def test_an_answer_that_has_ended_within_its_limit_is_not_cut(max_tokens: int, reason: str) -> None:
    async def play(window: Window) -> None:
        turn = turn_in(window)
        beginning = await asked(window, turn, request(max_tokens=max_tokens))
        window.take(parts("r", 0, "-" * 300), 10)
        window.take(Parts(id="r", seq=1, parts=(USAGE,)), 10)
        window.take(DONE, 10)
        answer = fold(await beginning)
        assert answer.finished.choices[0].reason == reason
        assert answer.parts[0].part == Text(text="-" * (300 if reason == "stop" else LEAST))
        assert turn.is_over

    played(play)


def test_a_failure_before_the_first_part_is_raised_and_consent_is_remembered() -> None:
    async def play(window: Window) -> None:
        turn = turn_in(window)
        beginning = await asked(window, turn)
        window.take(Failure(id="r", code="NoPermissions", name="", message="no", refused_by_user=True), 10)
        with pytest.raises(UpstreamError) as caught:
            await beginning
        assert caught.value.status == 403
        assert window.refused == {"copilot/gpt-4.1"}

    played(play)


def test_a_providers_own_refusal_is_not_remembered_as_missing_consent() -> None:
    async def play(window: Window) -> None:
        beginning = await asked(window, turn_in(window))
        window.take(Failure(id="r", code="NoPermissions", name="", message="this plan has no such model"), 10)
        with pytest.raises(UpstreamError) as caught:
            await beginning
        assert (caught.value.status, caught.value.code) == (403, "permission_denied")
        assert window.refused == set()

    played(play)


@pytest.mark.parametrize(("code", "message"), [("NotFound", "no such model"), ("", "Endpoint not found for model m")])
def test_a_model_that_has_gone_makes_the_window_list_again(code: str, message: str) -> None:
    async def play(window: Window) -> None:
        beginning = await asked(window, turn_in(window))
        window.take(Failure(id="r", code=code, name="", message=message), 10)
        with pytest.raises(UpstreamError) as caught:
            await beginning
        assert caught.value.status == 404
        assert await heard(window) == Refresh()

    played(play)


def test_a_failure_in_mid_answer_is_its_last_event() -> None:
    async def play(window: Window) -> None:
        turn = turn_in(window)
        beginning = await asked(window, turn)
        window.take(parts("r"), 10)
        await beginning
        window.take(Failure(id="r", code="", name="ChatRateLimited", message="slow down"), 10)
        last = (await rest(turn))[-1]
        assert isinstance(last, Failed)
        assert last.error.status == 429

    played(play)


def test_a_window_that_goes_before_the_first_part_can_be_replaced_and_later_not() -> None:
    async def play(window: Window) -> None:
        early, late = (
            turn_in(window),
            WindowTurn(window, listed(), chat("s"), TurnTimeouts(first=5, idle=5)),
        )
        beginning, other = await asked(window, early), await asked(window, late)
        window.take(parts("s"), 10)
        await other
        window.close("it crashed")
        with pytest.raises(SessionLost):
            await beginning
        last = (await rest(late))[-1]
        assert isinstance(last, Failed)
        assert (last.error.status, last.error.code) == (502, "upstream_cut")

    played(play)


def test_silence_is_bounded_and_a_mute_window_known() -> None:
    async def play(window: Window) -> None:
        turn = turn_in(window, first=0.02)
        with pytest.raises(UpstreamError, match="sent nothing") as caught:
            await turn.begin(request())
        assert caught.value.status == 504
        assert window.is_mute
        turn.leave()
        assert [await heard(window), await heard(window)] == [chat(), Cancel(id="r")]
        turn = turn_in(window, idle=0.02)
        beginning = await asked(window, turn)
        window.take(parts("r"), 10)
        await beginning
        last = (await rest(turn))[-1]
        assert isinstance(last, Failed)
        assert last.error.status == 504
        assert not window.is_mute

    played(play)


def test_waiting_for_a_place_is_part_of_the_patience() -> None:
    async def play(window: Window) -> None:
        for number in range(8):
            await window.ask(chat(str(number)))
        with pytest.raises(UpstreamError, match="sent nothing"):
            await turn_in(window, first=0.02).begin(request())

    played(play)


def test_a_client_that_reads_too_slowly_gets_an_error() -> None:
    async def main() -> None:
        window = Window(hello(), max_inbox=1000)
        turn = turn_in(window)
        beginning = await asked(window, turn)
        window.take(parts("r", 0), 10)
        await beginning
        for seq in range(1, 4):
            window.take(parts("r", seq), 600)
        last = (await rest(turn))[-1]
        assert isinstance(last, Failed)
        assert "more slowly" in last.error.message

    asyncio.run(main())


async def answer_counts(window: Window, count: int) -> None:
    for _ in range(count):
        frame = await heard(window)
        assert isinstance(frame, Count)
        window.take(Counted(id=frame.id, tokens=len(frame.text)), 10)


def test_both_sides_are_counted_at_once() -> None:
    async def main() -> None:
        window = Window(hello())
        answering = asyncio.create_task(answer_counts(window, 2))
        found = await count_tokens(window, "copilot/gpt-4.1", chat(text="12345"), "123")
        await answering
        assert found == (Usage(input=5, output=3), COUNTED)

    asyncio.run(main())


def test_a_window_that_does_not_count_costs_a_moment() -> None:
    async def main() -> None:
        window = Window(hello())
        found = await asyncio.wait_for(count_tokens(window, "m", chat(text="12345678"), "é" * 4, 0.02), 1)
        assert found == (Usage(input=2, output=2), ESTIMATED)
        assert window.is_idle
        window.close("gone")
        assert (await count_tokens(window, "m", chat(text="1"), ""))[0] == Usage(input=1, output=0)

    asyncio.run(main())


def test_a_window_that_goes_meanwhile_is_no_fault() -> None:
    async def main() -> None:
        window = Window(hello())
        counting = asyncio.create_task(count_tokens(window, "m", chat(text="12345678"), "text", 5))
        await asyncio.sleep(0)
        window.close("gone")
        assert (await counting)[1] == ESTIMATED

    asyncio.run(main())


def test_long_conversations_are_not_counted() -> None:
    async def main() -> None:
        window = Window(hello())
        found = await count_tokens(window, "m", chat(text="a" * 500_000), "b")
        assert found == (Usage(input=125_000, output=1), ESTIMATED)
        window.close("done")
        assert await window.outbox.next() is None

    asyncio.run(main())


def test_an_estimate_is_by_bytes() -> None:
    assert [estimate(text) for text in ("", "a", "abcd", "abcde", "日本")] == [0, 1, 1, 2, 2]


def test_what_a_model_reads_is_counted_and_pictures_are_not() -> None:
    parts = (
        TextPart(text="one"),
        DataPart(mime="image/png", data="AAAA"),
        CallPart(id="c", name="f", input={"a": 1}),
        ResultPart(id="c", parts=(TextPart(text="two"), DataPart(mime="image/png", data="AAAA"))),
    )
    asked = Chat(
        id="r",
        model="m",
        messages=(ChatMessage(role="user", parts=parts),),
        tools=(OfferedTool(name="f", description="does", schema={"type": "object"}),),
    )
    assert prompt_of(asked).split("\n") == ['f does {"type":"object"}', "one", 'f {"a":1}', "two"]
