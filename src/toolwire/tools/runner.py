"""Running calls: side by side, each within its time, none with more to say than a model can read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..errors import quote
from ..types import JsonObject, Media, Opaque, Text, ToolCall
from ..wire.exact_json import encode
from .base import Output, Runnable
from .context import Context, Progress, serving
from .results import NOTHING, described

INTERRUPTED = "Interrupted: the tool was stopped while it ran. It may have done all, a part, or nothing of its work."
NOT_MADE = "Interrupted: the user stopped the task before this call was made."
_MOST_WAITING = 100  # words of progress that nobody has read; more are dropped
_GRACE = 1.0  # seconds for a tool that was stopped to end

Wanted: TypeAlias = tuple[ToolCall, Runnable, JsonObject]


class Bounds(Struct, frozen=True, kw_only=True):
    """timeout: seconds for a tool that does not say how long it may take. max_output and max_media: characters of text, and
    of media as they are sent, in all that one call gives back."""

    timeout: float = 120.0
    at_once: int = 8
    max_output: int = 100_000
    max_media: int = 8 << 20


class Ran(Struct, frozen=True, kw_only=True):
    """One call that came to its end; fault is "" where it went well."""

    call: ToolCall
    output: Output
    fault: str = ""
    seconds: float = 0.0


class Running(Struct, frozen=True, kw_only=True):
    """What a tool says while it runs."""

    call: ToolCall
    progress: Progress


async def run_all(wanted: Sequence[Wanted], bounds: Bounds) -> AsyncGenerator[Ran | Running, None]:
    """Each as it ends. Whoever stops reading stops what still runs; a tool that will not stop is left behind."""
    gate = asyncio.Semaphore(bounds.at_once)
    told: asyncio.Queue[Ran | Running] = asyncio.Queue()
    tasks = [asyncio.create_task(_Execution(one, bounds, gate, told).run()) for one in wanted]
    left = len(tasks)
    try:
        while left:
            item = await told.get()
            left -= isinstance(item, Ran)
            yield item
    finally:
        running = [task for task in tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_GRACE)


class _Execution:
    """One call, told once: by the tool, or by the clock where it does not even end when it is stopped."""

    def __init__(
        self, wanted: Wanted, bounds: Bounds, gate: asyncio.Semaphore, told: asyncio.Queue[Ran | Running]
    ) -> None:
        self._call, self._runnable, self._arguments = wanted
        self._bounds = bounds
        self._limit = bounds.timeout if self._runnable.timeout is None else self._runnable.timeout
        self._gate = gate
        self._told = told
        self._begun = 0.0
        self._is_over = False

    async def run(self) -> None:
        await self._gate.acquire()
        self._begun = time.monotonic()
        watchdog = asyncio.get_running_loop().call_later(self._limit + _GRACE, self._give_up)
        try:
            self._end(await self._ran())
        finally:
            watchdog.cancel()

    async def _ran(self) -> Ran:
        clock = asyncio.timeout(self._limit)
        try:
            with serving(Context(self._call.id, emit=self._tell)):
                async with clock:
                    output = await self._runnable.run(self._arguments)
            kept = bounded(output, self._bounds)
        except asyncio.CancelledError as fault:
            if _is_stopped():
                raise
            return self._failed(described(fault))
        except (Exception, SystemExit) as fault:  # whatever a tool raises is the model's to know, and no reason to stop
            return self._timed_out() if clock.expired() else self._failed(described(fault))
        return Ran(call=self._call, output=kept, fault="failed" if kept.is_error else "", seconds=self._seconds)

    def _tell(self, progress: Progress) -> None:
        if not self._is_over and self._told.qsize() < _MOST_WAITING:
            self._told.put_nowait(Running(call=self._call, progress=progress))

    def _end(self, ran: Ran) -> None:
        if not self._is_over:
            self._is_over = True
            self._told.put_nowait(ran)
            self._gate.release()

    def _give_up(self) -> None:
        self._end(self._timed_out())

    def _timed_out(self) -> Ran:
        told = f"Timed out: {quote(self._call.name)} did not end within {self._limit:g} seconds, and was stopped."
        return self._failed(told, "timeout")

    def _failed(self, told: str, fault: str = "failed") -> Ran:
        output = Output.of_text(told, is_error=True)
        return Ran(call=self._call, output=output, fault=fault, seconds=self._seconds)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._begun


def _is_stopped() -> bool:
    """Whether it is we who are cancelled, and not something inside the tool."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def bounded(output: Output, bounds: Bounds) -> Output:
    """The same, or with its middle left out and told; the beginning and the end of a long text say most."""
    room = _Room(bounds)
    parts = [kept for part in output.parts if (kept := room.fitted(part)) is not None]
    if room.dropped:
        parts.append(Text(text=f"[{room.dropped} more parts left out: too much]"))
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        parts = [Text(text=NOTHING)]
    return output if tuple(parts) == output.parts else replace(output, parts=tuple(parts))


class _Room:
    """What is left for the parts of one output."""

    def __init__(self, bounds: Bounds) -> None:
        self._text = bounds.max_output
        self._media = bounds.max_media
        self.dropped = 0

    def fitted(self, part: Text | Media | Opaque) -> Text | Media | Opaque | None:
        size = _size(part)
        if isinstance(part, Media) and size <= self._media:
            self._media -= size
            return part
        if self._text <= 0:
            self.dropped += 1
            return None
        most = self._text
        self._text -= size if not isinstance(part, Media) else 1
        if isinstance(part, Text):
            return part if size <= most else replace(part, text=_shortened(part.text, most))
        if isinstance(part, Opaque) and size <= most:
            return part
        kind = part.kind if isinstance(part, Media) else "part"
        return Text(text=f"[{kind} of {size} characters left out: too large]")


def _size(part: Text | Media | Opaque) -> int:
    match part:
        case Text(text=text):
            return max(1, len(text))
        case Media():
            return max(1, len(part.data or part.url or ""))
        case Opaque(value=value):
            return len(encode(value))


def _shortened(text: str, most: int) -> str:
    head = text[: most * 2 // 3]
    tail = text[len(text) - most // 3 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[... {left_out} characters left out ...]\n{tail}"
