"""Asking a search: what comes back is bounded, clean, and from where the client wants it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.http.transport import Transport
from toolwire.backends.search import build_search
from toolwire.backends.search.searcher import Searcher, chosen, hit_in, tidy
from toolwire.config.file import SearchConfig
from toolwire.dialects.shared.web_search import SearchHit, SearchOutcome, WebSearch
from toolwire.errors import UpstreamError


class Engine:
    """Gives what it was given."""

    def __init__(self, *hits: SearchHit, error: Exception | None = None, pause: float = 0.0) -> None:
        self.asked: list[tuple[str, int]] = []
        self._hits = list(hits)
        self._error = error
        self._pause = pause

    async def find(self, query: str, count: int) -> list[SearchHit]:
        self.asked.append((query, count))
        await asyncio.sleep(self._pause)
        if self._error is not None:
            raise self._error
        return self._hits


def outcome(engine: Engine, query: str = "q", wanted: WebSearch | None = None) -> SearchOutcome:
    searcher = Searcher(engine, timeout=0.05, results=2)
    return asyncio.run(searcher.ask(query, wanted or WebSearch()))


def urls(*found: str, wanted: WebSearch | None = None) -> list[str]:
    return [hit.url for hit in chosen([SearchHit("t", url) for url in found], wanted or WebSearch())]


def test_hits_are_cleaned_and_counted() -> None:
    engine = Engine(*(SearchHit(f"T\x00{n}", f"https://a.b/{n}", "x\n\ty\u202e") for n in range(5)))
    found = outcome(engine, "  two\n words ")
    assert found.hits == (SearchHit("T 0", "https://a.b/0", "x y"), SearchHit("T 1", "https://a.b/1", "x y"))
    assert engine.asked == [("two words", 2)]


def test_more_are_asked_for_where_some_are_left_out() -> None:
    engine = Engine()
    assert outcome(engine, wanted=WebSearch(blocked=("a.b",))) == SearchOutcome()
    assert engine.asked == [("q", 8)]


@pytest.mark.parametrize("query", ["", " \n", "\u200b"])
def test_nothing_to_look_for(query: str) -> None:
    engine = Engine()
    assert outcome(engine, query).fault == "invalid"
    assert not engine.asked


def test_too_long_a_query() -> None:
    engine = Engine()
    assert outcome(engine, "q" * 1000).fault == ""
    assert outcome(engine, "q" * 1001).fault == "too_long"
    assert len(engine.asked) == 1


def test_failures_are_outcomes() -> None:
    assert outcome(Engine(error=UpstreamError("down."))) == SearchOutcome(fault="unavailable", why="down.")
    assert outcome(Engine(error=UpstreamError("busy.", status=429))).fault == "too_many"
    assert outcome(Engine(pause=9)) == SearchOutcome(fault="unavailable", why="no answer within 0.05 seconds.")


def test_only_plain_web_addresses() -> None:
    bad = ["javascript:alert(1)", "file:///etc/passwd", "https://", "https://u:p@a.b", "https://a.b/ x", "http://[", ""]
    bad += ["https://a.b/\x00", "https://a.b/\u202e", "https://a.b/<x>", "https://a.b/" + "x" * 2000]
    assert urls(*bad, "https://a.b/é?q=1#f", "http://a.b") == ["https://a.b/é?q=1#f", "http://a.b"]
    assert urls("https://a.b", "https://a.b") == ["https://a.b"]


def test_domains() -> None:
    found = ("https://a.b/x", "https://sub.a.b/blog/1", "https://xa.b", "https://c.d", "https://A.B./y")
    assert urls(*found, wanted=WebSearch(allowed=("a.b",))) == [found[0], found[1], found[4]]
    assert urls(*found, wanted=WebSearch(blocked=("A.B",))) == [found[2], found[3]]
    assert urls(*found, wanted=WebSearch(allowed=("https://a.b/blog/*",))) == [found[1]]
    assert urls(*found, wanted=WebSearch(allowed=("",))) == []


def test_hits_as_engines_write_them() -> None:
    assert hit_in({"url": "https://a.b", "title": "T", "content": "c"}, "content") == SearchHit("T", "https://a.b", "c")
    assert hit_in({"url": "https://a.b", "title": None, "content": 7}, "content") == SearchHit("", "https://a.b", "")
    for value in (None, 7, [], {}, {"url": 7}):
        assert hit_in(value, "content") is None


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_tidy_text_is_one_bounded_line_that_can_be_written(text: str, limit: int) -> None:
    clean = tidy(text, limit)
    assert len(clean) <= limit
    assert len(clean.splitlines()) <= 1
    clean.encode()


@given(st.lists(st.tuples(st.text(), st.text(), st.text())))
def test_anything_may_come_back(found: list[tuple[str, str, str]]) -> None:
    for hit in chosen([SearchHit(*one) for one in found], WebSearch(blocked=("a.b",))):
        assert hit.url.startswith(("http:", "https:", "HTTP", "Http"))


def test_a_program_by_configuration(tmp_path: Path) -> None:
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


def test_an_engine_by_configuration_that_is_not_there() -> None:
    async def main() -> None:
        transport = Transport(environ={})
        searcher = build_search(SearchConfig(kind="searxng", url="http://127.0.0.1:9"), transport)
        outcome = await searcher.ask("q", WebSearch())
        assert outcome.fault == "unavailable"
        await transport.close()

    asyncio.run(main())
