"""A program as a search: real ones, started for each case."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.server.harness import wait_until
from toolwire.backends.search import CommandSearch
from toolwire.dialects.shared.web_search import SearchHit
from toolwire.errors import UpstreamError


def program(folder: Path, text: str) -> str:
    path = folder / "look"
    path.write_text(f"#!{sys.executable} -S\nimport sys\n{text}\n")
    path.chmod(0o700)
    return str(path)


def found(command: str, query: str = "q", count: int = 9) -> list[SearchHit]:
    return asyncio.run(CommandSearch(command).find(query, count))


def test_lines_of_json(tmp_path: Path) -> None:
    text = """
print('{"title": "T", "url": "https://a.b", "snippet": "é"}')
print('no JSON'), print('[]'), print(''), print('{"title": "no address"}')
print('{"url": "https://c.d"}'), print('{"url": "https://e.f"}')
"""
    expected = [SearchHit("T", "https://a.b", "é"), SearchHit("", "https://c.d")]
    assert found(program(tmp_path, text), count=2) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "argument"),
    [
        ("a b; rm -rf $HOME `id` 'x'", "a b; rm -rf $HOME `id` 'x'"),
        ("--output=x", "output=x"),
        (" - -v", "v"),
        ("--", " "),
        ("é中😀", "é中😀"),
    ],
)
def test_the_query_is_one_argument_and_no_option(tmp_path: Path, query: str, argument: str) -> None:
    text = "import json\nassert len(sys.argv) == 2\nprint(json.dumps({'url': 'x', 'title': sys.argv[1]}))"
    assert found(program(tmp_path, text), query) == [SearchHit(argument, "x", "")]


def test_a_program_that_fails(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match="status 3"):
        found(program(tmp_path, 'print(\'{"url": "x"}\'); sys.exit(3)'))
    with pytest.raises(UpstreamError, match="cannot be run"):
        found(str(tmp_path / "nowhere"))
    (tmp_path / "text").write_text("no program")
    with pytest.raises(UpstreamError, match="cannot be run"):
        found(str(tmp_path / "text"))


@pytest.mark.slow
def test_a_program_that_never_stops_printing(tmp_path: Path) -> None:
    text = 'while True:\n    print(\'{"url": "https://a.b"}\')'
    assert len(found(program(tmp_path, text), count=10**6)) == (1 << 20) // len('{"url": "https://a.b"}\n')


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    text = f"""
import os, time
if not os.fork():
    time.sleep(60)
open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
time.sleep(60)
"""
    command = program(tmp_path, text)

    async def main() -> None:
        task = asyncio.create_task(CommandSearch(command).find("q", 1))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    group = (tmp_path / "pid").read_text()
    wait_until(lambda: not _alive(group))


def _alive(group: str) -> bool:
    """Whether a process of this group is left that still does something."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[2] == group and fields[0] != "Z":
            return True
    return False
