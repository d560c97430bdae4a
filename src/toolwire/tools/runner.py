"""Runs tool calls concurrently, with a time-out and a bound on the output of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..errors import quote
from ..types import JsonObject, Media, Opaque, Text, ToolCall
from ..wire.exact_json import encode
from .base import Output, Runnable
from .context import Context, Progress, is_task_cancelled, serving
from .results import NOTHING, describe_error

INTERRUPTED = "Interrupted: the tool was stopped while it ran. It may have done all, a part, or nothing of its work."
NOT_MADE = "Interrupted: the user stopped the task before this call was made."
_MAX_QUEUED = 100  # unread progress reports; more are dropped
_GRACE = 1.0  # seconds for a cancelled tool to end

Wanted: TypeAlias = tuple[ToolCall, Runnable, JsonObject]


class Bounds(Struct, frozen=True, kw_only=True):
    """timeout: seconds for tools without their own. max_output, max_media: characters of text, and of encoded media, in the result of one call."""

    timeout: float = 120.0
    at_once: int = 8
    max_output: int = 100_000
    max_media: int = 8 << 20


class FinishedCall(Struct, frozen=True, kw_only=True):
    """One finished call; fault is "" if it succeeded."""

    call: ToolCall
    output: Output
    fault: str = ""
    seconds: float = 0.0


class CallProgress(Struct, frozen=True, kw_only=True):
    """Progress of a running call."""

    call: ToolCall
    progress: Progress


async def run_all(
    wanted: Sequence[Wanted], bounds: Bounds, deps: Any = None
) -> AsyncGenerator[FinishedCall | CallProgress, None]:
    """Yields results as calls finish; deps is for the context of each. Closing the generator cancels running calls; it does not wait for a tool that ignores that."""
    gate = asyncio.Semaphore(bounds.at_once)
    queue: asyncio.Queue[FinishedCall | CallProgress] = asyncio.Queue()
    tasks = [asyncio.create_task(_run(one, bounds, gate, queue, deps)) for one in wanted]
    left = len(tasks)
    try:
        while left:
            item = await queue.get()
            left -= isinstance(item, FinishedCall)
            yield item
    finally:
        running = [task for task in tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_GRACE)


async def _run(
    wanted: Wanted,
    bounds: Bounds,
    gate: asyncio.Semaphore,
    queue: asyncio.Queue[FinishedCall | CallProgress],
    deps: Any,
) -> None:
    """One call with one result: from the tool, or a time-out if the tool does not even end on cancellation."""
    call, runnable, arguments = wanted
    limit = bounds.timeout if runnable.timeout is None else runnable.timeout
    is_over = False
    await gate.acquire()
    started = time.monotonic()

    def report(progress: Progress) -> None:
        if not is_over and queue.qsize() < _MAX_QUEUED:
            queue.put_nowait(CallProgress(call=call, progress=progress))

    def end(output: Output, fault: str) -> None:
        nonlocal is_over
        if not is_over:
            is_over = True
            queue.put_nowait(FinishedCall(call=call, output=output, fault=fault, seconds=time.monotonic() - started))
            gate.release()

    def fail(error: BaseException) -> None:
        end(Output.of_text(describe_error(error), is_error=True), "failed")

    def time_out() -> None:
        text = f"Timed out: {quote(call.name)} did not end within {limit:g} seconds, and was stopped."
        end(Output.of_text(text, is_error=True), "timeout")

    watchdog = asyncio.get_running_loop().call_later(limit + _GRACE, time_out)
    clock = asyncio.timeout(limit)
    try:
        with serving(Context(call.id, emit=report, deps=deps)):
            async with clock:
                output = await runnable.run(arguments)
        output = bound_output(output, bounds)
        end(output, "failed" if output.is_error else "")
    except asyncio.CancelledError as error:
        if is_task_cancelled():
            raise
        fail(error)
    except (Exception, SystemExit) as error:  # every exception of a tool is reported to the model
        time_out() if clock.expired() else fail(error)
    finally:
        watchdog.cancel()


def bound_output(output: Output, bounds: Bounds) -> Output:
    """The output with the middle of long texts replaced by a note; the beginning and the end matter most."""
    text_room, media_room, dropped = bounds.max_output, bounds.max_media, 0
    parts: list[Text | Media | Opaque] = []
    for part in output.parts:
        size = _size(part)
        if isinstance(part, Media) and size <= media_room:
            media_room -= size
            parts.append(part)
        elif text_room <= 0:
            dropped += 1
        else:
            most, text_room = text_room, text_room - (1 if isinstance(part, Media) else size)
            if isinstance(part, Text):
                part = part if size <= most else replace(part, text=_shorten(part.text, most))
            elif isinstance(part, Media) or size > most:
                kind = part.kind if isinstance(part, Media) else "part"
                part = Text(text=f"[{kind} of {size} characters left out: too large]")
            parts.append(part)
    if dropped:
        parts.append(Text(text=f"[{dropped} more parts left out: too much]"))
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        parts = [Text(text=NOTHING)]
    return output if tuple(parts) == output.parts else replace(output, parts=tuple(parts))


def _size(part: Text | Media | Opaque) -> int:
    match part:
        case Text(text=text):
            return max(1, len(text))
        case Media():
            return max(1, len(part.data or part.url or ""))
        case Opaque(value=value):
            return len(encode(value))


def _shorten(text: str, most: int) -> str:
    head = text[: most * 2 // 3]
    tail = text[len(text) - most // 3 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[... {left_out} characters left out ...]\n{tail}"
