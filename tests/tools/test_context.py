"""What tools may know and say of the call they serve."""

from __future__ import annotations

import asyncio

from toolwire.tools.context import Context, Progress, current, serving
from toolwire.tools.threads import in_thread


def test_a_context_follows_into_tasks_and_threads_and_no_further() -> None:
    async def main() -> None:
        with serving(Context("call_1")):
            seen = await asyncio.gather(in_thread(lambda: current().call_id), _id())
        assert seen == ["call_1", "call_1"]
        assert current().call_id == ""

    async def _id() -> str:
        return current().call_id

    asyncio.run(main())


def test_calls_side_by_side_do_not_mix() -> None:
    async def call(name: str) -> str:
        with serving(Context(name)):
            await asyncio.sleep(0)
            return current().call_id

    async def main() -> list[str]:
        return await asyncio.gather(*(call(str(number)) for number in range(5)))

    assert asyncio.run(main()) == ["0", "1", "2", "3", "4"]


def test_progress_reaches_the_loop_from_a_thread() -> None:
    async def main() -> None:
        heard: list[tuple[Progress, bool]] = []

        def emit(progress: Progress) -> None:
            heard.append((progress, asyncio.get_running_loop() is loop))

        loop = asyncio.get_running_loop()
        context = Context("x", emit=emit)
        await in_thread(lambda: context.progress("far", done=1))
        context.progress("near")
        await asyncio.sleep(0)
        assert heard == [(Progress(message="far", done=1), True), (Progress(message="near"), True)]

    asyncio.run(main())


def test_progress_after_the_loop_has_ended_is_dropped() -> None:
    async def make() -> Context:
        return Context("x", emit=heard.append)

    heard: list[Progress] = []
    context = asyncio.run(make())
    context.progress("late")
    assert heard == []


def test_progress_without_emit_is_dropped() -> None:
    current().progress("anything")
    assert not current().cancelled.is_set()
