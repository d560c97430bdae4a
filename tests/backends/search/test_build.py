"""From configuration to a search."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from toolwire.backends.http.transport import Transport
from toolwire.backends.search import build_search
from toolwire.config.file import SearchConfig
from toolwire.dialects.shared.web_search import SearchHit, WebSearch


def test_a_program(tmp_path: Path) -> None:
    path = tmp_path / "look"
    path.write_text(f'#!{sys.executable} -S\nfor n in range(9): print(\'{{"url": "https://a.b/%d"}}\' % n)\n')
    path.chmod(0o700)

    async def main() -> None:
        searcher = build_search(SearchConfig(kind="command", command=str(path), results=2), Transport(environ={}))
        outcome = await searcher.ask("q", WebSearch())
        assert outcome.hits == (
            SearchHit("https://a.b/0", "https://a.b/0"),
            SearchHit("https://a.b/1", "https://a.b/1"),
        )

    asyncio.run(main())


def test_an_engine_that_is_not_there() -> None:
    async def main() -> None:
        transport = Transport(environ={})
        searcher = build_search(SearchConfig(kind="searxng", url="http://127.0.0.1:9"), transport)
        outcome = await searcher.ask("q", WebSearch())
        assert outcome.fault == "unavailable"
        await transport.close()

    asyncio.run(main())
