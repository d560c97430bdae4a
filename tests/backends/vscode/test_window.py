"""A window without its socket: places, inboxes, what it lends and what becomes of its requests when it goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.backends.vscode.window_frames import chat, heard, hello, listed, parts
from tests.telemetry.tracing import tracing
from toolwire.backends.sessions import Overflow, SessionLost
from toolwire.backends.vscode.window import AT_ONCE, Outbox, Window
from toolwire.backends.vscode.wire.shapes import (
    Cancel,
    Count,
    Counted,
    End,
    Failure,
    Models,
    Refresh,
)
from toolwire.errors import BadRequest
from toolwire.telemetry import wire_trace


def test_every_frame_is_traced_with_the_request_it_belongs_to(tmp_path: Path) -> None:
    async def main() -> None:
        wire_trace.enter("req_1")
        window = Window(hello())
        inbox = await window.ask(chat("r", "SECRET WORDS"))
        wire_trace.enter("req_2")
        window.take(parts("r", text="SECRET WORDS"), 40)
        window.take(parts("never asked"), 40)
        window.leave(inbox, is_over=False)

    with tracing(tmp_path / "trace") as traced:
        asyncio.run(main())
    assert [(asker, words.split(" ")[2:4]) for asker, words in traced.lines] == [
        ("req_1", ["->", "chat"]),
        ("req_1", ["<-", "parts"]),
        ("", ["<-", "parts"]),
        ("req_2", ["->", "cancel"]),
    ]
    assert not [words for words in traced.words if "SECRET" in words]
    assert "SECRET WORDS" in (tmp_path / "trace").read_text()


def test_each_request_has_its_own_answer() -> None:
    async def main() -> None:
        window = Window(hello())
        first, second = await window.ask(chat("a")), await window.ask(chat("b"))
        assert [await heard(window), await heard(window)] == [chat("a"), chat("b")]
        window.take(parts("b"), 10)
        window.take(parts("a"), 10)
        window.take(parts("nobody"), 10)
        assert await first.next() == parts("a")
        assert await second.next() == parts("b")

    asyncio.run(main())


def test_an_unwanted_answer_is_cancelled_and_one_that_is_over_is_not() -> None:
    async def main() -> None:
        window = Window(hello())
        first, second = await window.ask(chat("a")), await window.ask(chat("b"))
        window.leave(first, is_over=False)
        window.leave(first, is_over=False)
        window.leave(second, is_over=True)
        assert window.is_idle
        assert [await heard(window) for _ in range(3)] == [chat("a"), chat("b"), Cancel(id="a")]
        window.close("done")
        assert await window.outbox.next() is None

    asyncio.run(main())


def test_more_than_it_takes_at_once_wait_their_turn() -> None:
    async def main() -> None:
        window = Window(hello())
        under_way = [await window.ask(chat(str(n))) for n in range(AT_ONCE)]
        waiting = [asyncio.create_task(window.ask(chat(f"later {n}"))) for n in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        window.leave(under_way[0], is_over=True)
        assert (await asyncio.wait_for(waiting[1], 1)).id == "later 1"
        window.close("it left")
        with pytest.raises(SessionLost, match="it left"):
            await waiting[2]
        with pytest.raises(SessionLost):
            await window.ask(chat("too late"))

    asyncio.run(main())


def test_a_place_given_to_one_who_has_just_left_is_not_lost() -> None:
    async def main() -> None:
        window = Window(hello())
        under_way = [await window.ask(chat(str(n))) for n in range(AT_ONCE)]
        waiting = asyncio.create_task(window.ask(chat("gone")))
        await asyncio.sleep(0)
        window.leave(under_way[0], is_over=True)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await asyncio.wait_for(window.ask(chat("next")), 1)).id == "next"

    asyncio.run(main())


def test_what_is_not_read_is_cancelled() -> None:
    async def main() -> None:
        window = Window(hello(), max_inbox=1000)
        inbox = await window.ask(chat("a"))
        await heard(window)
        for seq in range(3):
            window.take(parts("a", seq), 600)
        assert await heard(window) == Cancel(id="a")
        with pytest.raises(Overflow):
            await inbox.next()

    asyncio.run(main())


def test_its_end_is_the_end_of_all_that_it_worked_on() -> None:
    async def main() -> None:
        window = Window(hello())
        inbox = await window.ask(chat("a"))
        window.close("it crashed")
        window.close("again")
        assert not window.is_open
        with pytest.raises(SessionLost, match="it crashed"):
            await inbox.next()

    asyncio.run(main())


def test_tokens_are_counted_by_its_models() -> None:
    async def main() -> None:
        window = Window(hello())
        counting = asyncio.create_task(window.count("n", "copilot/gpt-4.1", "some words"))
        assert await heard(window) == Count(id="n", model="copilot/gpt-4.1", text="some words")
        window.take(Counted(id="n", tokens=2), 10)
        assert await counting == 2
        assert window.is_idle
        counting = asyncio.create_task(window.count("m", "copilot/gpt-4.1", "some words"))
        await asyncio.sleep(0)
        window.take(End(id="m", cancelled=False), 10)
        assert await counting is None

    asyncio.run(main())


def test_what_it_lends_is_what_it_said_last_without_our_own() -> None:
    async def main() -> None:
        window = Window(hello())
        window.list_models(Models(models=(listed("copilot/a"), listed("toolwire/b"))))
        assert list(window.models) == ["copilot/a"]
        window.refused.add("copilot/a")
        window.is_mute = True
        window.list_models(Models(models=(listed("copilot/c"),)))
        assert (list(window.models), window.refused, window.is_mute) == (["copilot/c"], set(), False)
        window.refresh()
        assert await heard(window) == Refresh()

    asyncio.run(main())


def test_what_was_refused_is_forgotten_only_with_the_model_or_by_the_same_list_unasked() -> None:
    async def main() -> None:
        window = Window(hello())
        one, two, three = (Models(models=tuple(map(listed, keys))) for keys in ("a", "ab", "b"))
        window.list_models(one)
        window.refused.add("a")
        window.list_models(two)
        assert window.refused == {"a"}
        window.refresh()
        window.list_models(two)
        assert window.refused == {"a"}
        window.list_models(two)
        assert window.refused == set()
        window.refused |= {"a", "b"}
        window.list_models(three)
        assert window.refused == {"b"}

    asyncio.run(main())


def test_what_cannot_be_read_ends_its_request_and_no_other() -> None:
    async def main() -> None:
        window = Window(hello())
        first, second = await window.ask(chat("a")), await window.ask(chat("b"))
        window.fail("a", "it nests too deep.")
        window.fail("nobody", "it nests too deep.")
        window.take(parts("b"), 10)
        failure = await first.next()
        assert isinstance(failure, Failure)
        assert "it nests too deep." in failure.message
        assert await second.next() == parts("b")
        assert [await heard(window) for _ in range(3)] == [chat("a"), chat("b"), Cancel(id="a")]

    asyncio.run(main())


def test_the_window_in_front_is_the_one_that_said_so_last() -> None:
    async def main() -> None:
        first, second = Window(hello("a")), Window(hello("b", focused=False))
        assert first.focused_at > second.focused_at == 0
        second.focus(True)
        first.focus(False)
        assert second.focused_at > first.focused_at

    asyncio.run(main())


def test_what_fits_in_no_frame_is_refused_before_it_leaves() -> None:
    async def main() -> None:
        window = Window(hello())
        with pytest.raises(BadRequest, match="the most") as caught:
            await window.ask(chat(text="ä" * (17 << 20)))
        assert caught.value.status == 413
        assert window.is_idle
        assert (await asyncio.wait_for(window.ask(chat("b")), 1)).id == "b"

    asyncio.run(main())


def test_what_is_put_in_comes_out_in_order() -> None:
    async def main() -> None:
        outbox = Outbox()
        assert outbox.put("a")
        assert outbox.put("b")
        waiting = asyncio.create_task(_all(outbox))
        await asyncio.sleep(0)
        outbox.put("c")
        outbox.close()
        assert not outbox.put("d")
        assert await waiting == ["a", "b", "c"]

    asyncio.run(main())


def test_a_window_that_does_not_read_is_given_up() -> None:
    async def main() -> None:
        outbox = Outbox(max_size=100)
        assert outbox.put("a" * 200)  # one always has room
        assert not outbox.put("b")
        assert outbox.full.is_set()
        await outbox.next()
        assert not outbox.put("c")  # it is too late

    asyncio.run(main())


def test_those_who_can_wait_for_room() -> None:
    async def main() -> None:
        outbox = Outbox()
        outbox.put("a" * 300_000)
        waiting = asyncio.create_task(outbox.room())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await outbox.next()
        await asyncio.wait_for(waiting, 1)
        outbox.put("a" * 300_000)
        waiting = asyncio.create_task(outbox.room())
        await asyncio.sleep(0)
        outbox.close()
        await asyncio.wait_for(waiting, 1)

    asyncio.run(main())


async def _all(outbox: Outbox) -> list[str]:
    found: list[str] = []
    while (text := await outbox.next()) is not None:
        found.append(text)
    return found
