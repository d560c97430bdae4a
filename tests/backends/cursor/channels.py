"""What tests read from the channel of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from toolwire.backends.cursor.transport.channel import RunChannel
from toolwire.errors import UpstreamError
from toolwire.wire.connect import ConnectEnd, ConnectFrame


async def everything(channel: RunChannel) -> list[ConnectFrame | ConnectEnd]:
    """All items up to the end."""
    items: list[ConnectFrame | ConnectEnd] = []
    while not (items and isinstance(items[-1], ConnectEnd)):
        items += await channel.receive()
    return items


async def failure(channel: RunChannel) -> UpstreamError:
    try:
        while True:
            await channel.receive()
    except UpstreamError as error:
        return error


async def refusal(opening: Awaitable[RunChannel]) -> UpstreamError:
    """Of a run that is refused, be it at once or in the first answer."""
    try:
        return await failure(await opening)
    except UpstreamError as error:
        return error


async def until(condition: object) -> None:
    async with asyncio.timeout(2):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.005)
