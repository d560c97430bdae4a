from __future__ import annotations

import asyncio

from toolwire.server.assembly.retirement import Retirement


class Part:
    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


def test_a_part_is_closed_when_the_requests_before_it_have_ended() -> None:
    async def main() -> None:
        retirement, first, second, part, other = Retirement(), object(), object(), Part(), Part()
        retirement.opened(first)
        retirement.retire([part])
        retirement.opened(second)
        retirement.retire([])
        await asyncio.sleep(0)
        assert not part.is_closed
        retirement.retire([other])
        retirement.closed(first)
        await asyncio.sleep(0)
        assert (part.is_closed, other.is_closed) == (True, False)
        await retirement.stop()
        assert other.is_closed

    asyncio.run(main())


def test_a_part_without_users_is_closed_at_once() -> None:
    async def main() -> None:
        retirement, part = Retirement(), Part()
        retirement.retire([part])
        await asyncio.sleep(0)
        assert part.is_closed

    asyncio.run(main())
