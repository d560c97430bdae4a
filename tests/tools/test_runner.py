"""Concurrent calls: time-outs, cancellation, and a bound on their output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from toolwire.tools import Output
from toolwire.tools import runner as module
from toolwire.tools.context import current
from toolwire.tools.functions import function_tool
from toolwire.tools.runner import Bounds, CallProgress, FinishedCall, bound_output, run_all
from toolwire.types import JsonObject, Media, Opaque, Text, Tool, ToolCall

Part = Text | Media | Opaque
USUAL = Bounds()


class Plain:
    """A tool that is not a function, so its exceptions reach the runner."""

    changes_things = False

    def __init__(self, work: Callable[[], Awaitable[Any]], timeout: float | None = None) -> None:
        self.tool = Tool(name="plain")
        self.timeout = timeout
        self._work = work

    async def run(self, arguments: JsonObject) -> Output:
        found = await self._work()
        return found if isinstance(found, Output) else Output.of_text(str(found))


def ran(
    *works: Callable[[], Awaitable[Any]], bounds: Bounds = USUAL, timeout: float | None = None
) -> list[FinishedCall]:
    async def main() -> list[FinishedCall | CallProgress]:
        wanted = [
            (ToolCall(id=f"c{number}", name="plain", raw="{}"), Plain(work, timeout), JsonObject())
            for number, work in enumerate(works)
        ]
        found = [item async for item in run_all(wanted, bounds)]
        assert len(asyncio.all_tasks()) == 1
        return found

    return [item for item in asyncio.run(main()) if isinstance(item, FinishedCall)]


def text_of(output: Output) -> str:
    return "".join(part.text for part in output.parts if isinstance(part, Text))


async def quick() -> str:
    return "quick"


async def slow() -> str:
    await asyncio.sleep(0.05)
    return "slow"


async def hang() -> str:
    await asyncio.sleep(30)
    return "never"


def test_results_arrive_as_calls_finish() -> None:
    found = ran(slow, quick, slow, quick)
    assert [one.call.id for one in found] == ["c1", "c3", "c0", "c2"]
    assert [text_of(one.output) for one in found] == ["quick", "quick", "slow", "slow"]
    assert all(not one.fault for one in found)
    assert 0.04 < found[-1].seconds < 5


def test_none_is_fine() -> None:
    assert ran() == []


def test_no_more_run_at_once_than_allowed() -> None:
    now, most = 0, 0

    async def counted() -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return "x"

    assert len(ran(*[counted] * 9, bounds=Bounds(at_once=3))) == 9
    assert most == 3


def test_time_begins_when_it_is_its_turn() -> None:
    found = ran(*[slow] * 8, bounds=Bounds(at_once=1, timeout=0.35))  # together they take longer
    assert [one.fault for one in found] == [""] * 8


@pytest.mark.parametrize(("own", "usual"), [(0.02, 30.0), (None, 0.02)])
def test_a_tool_that_takes_too_long_is_stopped(own: float | None, usual: float) -> None:
    (one,) = ran(hang, bounds=Bounds(timeout=usual), timeout=own)
    assert (one.fault, one.output.is_error) == ("timeout", True)
    assert text_of(one.output) == 'Timed out: "plain" did not end within 0.02 seconds, and was stopped.'


def test_a_timeout_of_the_tools_own_is_its_failure() -> None:
    async def own() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(30)

    async def told() -> None:
        raise TimeoutError("the printer is silent")

    first, second = ran(own, told)
    assert {first.fault, second.fault} == {"failed"}
    assert sorted([text_of(first.output), text_of(second.output)]) == [
        "TimeoutError",
        "TimeoutError: the printer is silent",
    ]


def test_a_tool_that_ignores_cancellation_blocks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRACE", 0.05)
    is_free = False

    async def stubborn() -> str:
        while not is_free:
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        return "late"

    async def main() -> list[str]:
        nonlocal is_free
        call = ToolCall(id="c", name="plain", raw="{}")
        wanted = [(call, Plain(stubborn, 0.02), JsonObject()), (call, Plain(quick), JsonObject())]
        found = [item async for item in run_all(wanted, Bounds(at_once=1)) if isinstance(item, FinishedCall)]
        is_free = True
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)
        return [text_of(one.output) for one in found]

    first, second = asyncio.run(main())
    assert first.startswith("Timed out")
    assert second == "quick"


@pytest.mark.parametrize("raised", [ValueError("x"), SystemExit(3), asyncio.CancelledError(), RecursionError("deep")])
def test_every_exception_of_a_tool_is_reported(raised: BaseException) -> None:
    async def fail() -> None:
        raise raised

    first, second = ran(fail, slow)
    assert (first.fault, first.output.is_error) == ("failed", True)
    assert text_of(first.output).startswith(type(raised).__name__)
    assert text_of(second.output) == "slow"


def test_an_output_with_is_error_is_a_failure() -> None:
    async def no() -> Output:
        return Output.of_text("no such file", is_error=True)

    (one,) = ran(no)
    assert (one.fault, text_of(one.output)) == ("failed", "no such file")


def test_the_message_of_an_exception_is_bounded() -> None:
    async def fail() -> None:
        raise ValueError("x" * 1_000_000)

    (one,) = ran(fail)
    assert len(text_of(one.output)) < 5000


def test_closing_the_generator_cancels_running_calls() -> None:
    stopped: list[str] = []

    async def careful() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            stopped.append("careful")

    async def main() -> None:
        call = ToolCall(id="c", name="plain", raw="{}")
        wanted = [(call, Plain(work), JsonObject()) for work in (quick, careful, careful)]
        async with aclosing(run_all(wanted, Bounds())) as found:
            async for _ in found:
                break
        assert stopped == ["careful"] * 2
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_tool_has_its_call_id_and_reports_progress() -> None:
    def work() -> str:
        context = current()
        context.progress("half", done=1, total=2)
        return context.call_id

    async def main() -> Sequence[FinishedCall | CallProgress]:
        wanted = [(ToolCall(id="call_7", name="work", raw="{}"), function_tool(work), JsonObject())]
        return [item async for item in run_all(wanted, Bounds())]

    told, done = asyncio.run(main())
    assert isinstance(told, CallProgress)
    assert (told.call.id, told.progress.message, told.progress.done, told.progress.total) == ("call_7", "half", 1, 2)
    assert isinstance(done, FinishedCall)
    assert text_of(done.output) == "call_7"


def test_unread_progress_is_bounded() -> None:
    async def talkative() -> str:
        for number in range(10_000):
            current().progress(str(number))
        return "done"

    async def main() -> int:
        wanted = [(ToolCall(id="c", name="plain", raw="{}"), Plain(talkative), JsonObject())]
        return len([item async for item in run_all(wanted, Bounds())])

    assert asyncio.run(main()) == 101


def test_a_long_text_loses_its_middle() -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    kept = text_of(bound_output(Output.of_text(text), Bounds(max_output=3000)))
    assert len(kept) < 3100
    assert kept.startswith("line 0\n")
    assert kept.endswith("line 99999\n")
    assert f"[... {len(text) - 3000} characters left out ...]" in kept


def test_what_fits_is_the_same_object() -> None:
    output = Output(parts=(Text(text="a"), Media(kind="image", data="QUJD"), Opaque(dialect="x", value={"a": 1})))
    assert bound_output(output, Bounds()) is output


@pytest.mark.parametrize("parts", [(), (Text(text=""),), (Text(text=" \n"),)])
def test_an_empty_output_is_reported_as_no_output(parts: tuple[Part, ...]) -> None:
    assert text_of(bound_output(Output(parts=parts), Bounds())) == "(no output)"


def test_many_small_parts_are_bounded_in_all() -> None:
    parts: tuple[Part, ...] = (Text(text="x"), Text(text="")) * 100_000
    kept = bound_output(Output(parts=parts), Bounds(max_output=100))
    assert len(kept.parts) == 101
    assert text_of(kept).endswith("[199900 more parts left out: too much]")


def test_media_and_unknown_parts_are_bounded_in_all() -> None:
    image = Media(kind="image", mime="image/png", data="A" * 600)
    strange = Opaque(dialect="x", value={"a": "b" * 600})
    kept = bound_output(Output(parts=(image, image, strange)), Bounds(max_media=1000, max_output=500))
    assert kept.parts[0] is image
    assert [part.text for part in kept.parts[1:] if isinstance(part, Text)] == [
        "[image of 600 characters left out: too large]",
        "[part of 608 characters left out: too large]",
    ]


@pytest.mark.slow
def test_a_program_that_ends_does_not_wait_for_a_tool(tmp_path: Any) -> None:
    """Not even for one in a thread."""
    import subprocess

    program = (
        "import asyncio, time\n"
        "from toolwire.tools.functions import function_tool\n"
        "from toolwire.tools.runner import Bounds, run_all\n"
        "from toolwire.types import ToolCall\n"
        "def hang(): time.sleep(60)\n"
        "async def main():\n"
        "    wanted = [(ToolCall(id='c', name='hang', raw='{}'), function_tool(hang), {})]\n"
        "    async for ran in run_all(wanted, Bounds(timeout=0.05)): print(ran.fault)\n"
        "asyncio.run(main())\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert found.stdout == "timeout\n"
