"""No argument of any tool ever touches a byte outside of the root: trees with links, and paths made of their names."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from tests.tools.workspace.box import CANARY, Box, text_of
from toolwire.tools.workspace import Limits

_NAMES = st.sampled_from(
    ["a", "b", "c", "d", "link", "canary.txt", "..", ".", "~", "outside", "root", ".git", "é", "\udcff"]
)
_PATHS = st.one_of(
    st.lists(_NAMES, min_size=1, max_size=6).map("/".join),
    st.lists(_NAMES, min_size=1, max_size=6).map(lambda names: "{root}/" + "/".join(names)),
    st.sampled_from(["{outside}", "{outside}/canary.txt", "/", "/etc", "{root}", "{root}/../outside/canary.txt", ""]),
    st.text(max_size=12),
)
_TREES = st.lists(st.tuples(st.sampled_from(["file", "folder", "link"]), _PATHS, _PATHS), max_size=10)
_USES = st.lists(
    st.one_of(
        st.fixed_dictionaries({"tool": st.just("read"), "path": _PATHS}),
        st.fixed_dictionaries({"tool": st.just("list"), "path": _PATHS, "depth": st.integers(1, 4)}),
        st.fixed_dictionaries({"tool": st.just("glob"), "path": _PATHS, "pattern": _PATHS}),
        st.fixed_dictionaries({"tool": st.just("write"), "path": _PATHS, "content": st.just("written")}),
        st.fixed_dictionaries(
            {"tool": st.just("edit"), "path": _PATHS, "old_text": st.just("a"), "new_text": st.just("b")}
        ),
        st.fixed_dictionaries(
            {"tool": st.just("grep"), "path": _PATHS, "pattern": st.just("canary"), "include_ignored": st.booleans()}
        ),
    ),
    min_size=1,
    max_size=5,
)


def grow(box: Box, tree: list[tuple[str, str, str]]) -> None:
    """Whatever of the tree can be made, inside of the root only; links may point anywhere."""
    for kind, path, target in tree:
        place = os.path.normpath(f"{box.root}/{filled(box, path)}".replace("{", ""))
        if not place.startswith(f"{box.root}/") or not os.path.realpath(os.path.dirname(place)).startswith(
            str(box.root)
        ):
            continue
        with suppress(OSError, ValueError, UnicodeError):
            if kind == "link":
                os.symlink(filled(box, target), place)
            elif kind == "folder":
                os.mkdir(place)
            elif not os.path.lexists(place):
                Path(place).write_text("a canary of its own\n")


def filled(box: Box, path: str) -> str:
    return path.replace("{root}", str(box.root)).replace("{outside}", str(box.outside))


@pytest.mark.slow
@examples(400)
@given(tree=_TREES, uses=_USES)
def test_nothing_outside_is_ever_touched(tree: list[tuple[str, str, str]], uses: list[dict[str, object]]) -> None:
    check(tree, uses)


@examples(20)
@given(tree=_TREES, uses=_USES)
def test_nothing_outside_is_touched_in_short(tree: list[tuple[str, str, str]], uses: list[dict[str, object]]) -> None:
    check(tree, uses)


def check(tree: list[tuple[str, str, str]], uses: list[dict[str, object]]) -> None:
    with TemporaryDirectory() as folder:
        box = Box(Path(folder).resolve())
        grow(box, tree)
        before = sorted(os.listdir(folder))
        os.utime(box.canary, (1, 2))  # read before it was written: most file systems note the next reading
        asyncio.run(_use_all(box, uses))
        assert box.canary.stat().st_atime == 1
        assert box.is_untouched()
        assert sorted(os.listdir(folder)) == before


async def _use_all(box: Box, uses: list[dict[str, object]]) -> None:
    for use in uses:
        arguments = {name: filled(box, value) if isinstance(value, str) else value for name, value in use.items()}
        output = await box.tools[str(arguments.pop("tool"))].run(arguments)
        text = text_of(output)
        text.encode("utf-8")
        assert CANARY not in text
        assert "canary.txt  19 B" not in text


def test_the_tools_work_together(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=True)
    box.text("write", path="src/app.py", content="def greet():\n    return 'hello'\n")
    box.text("write", path="tests/test_app.py", content="from src.app import greet\nassert greet() == 'good day'\n")
    assert "src/" in box.text("list")
    assert "src/app.py:2:" in box.text("grep", pattern="hello")
    box.text("edit", path="src/app.py", old_text="'hello'", new_text="'good day'")
    assert "good day" in box.text("read", path="src/app.py", offset=2)
    assert box.text("glob", pattern="test_*.py") == "tests/test_app.py"
    assert "exit code 0" in box.text("shell", command="grep -q 'good day' src/app.py")


def test_the_page_shows_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "workspace.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    assert [runnable.tool.name for runnable in names["tools"]] == ["read", "list", "glob", "grep"]
    assert all(f"`{field}`" in page for field in Limits.__struct_fields__)
