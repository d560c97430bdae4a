from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.cursor.local_running import answer, workspace_in
from toolwire.backends.cursor.wire import agent
from toolwire.tools.workspace.limits import Limits

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return workspace_in(tmp_path)


def test_a_folder_is_a_tree_with_counts(place: Path) -> None:
    (place / "src/inner").mkdir(parents=True)
    for name in ("a.py", "src/b.py", "src/inner/c.txt", "src/inner/Makefile", "src/x.log"):
        (place / name).touch()
    (place / ".gitignore").write_text("*.log\n")
    root = answer(place, "ls", agent.LsArgs(path=str(place))).success.directory_tree_root
    assert root.abs_path == str(place)
    assert root.children_were_processed
    assert {file.name for file in root.children_files} == {".gitignore", "a.py"}
    (source,) = root.children_dirs
    assert (source.abs_path, source.num_files) == (f"{place}/src", 3)
    assert dict(root.full_subtree_extension_counts) == {".py": 2, ".txt": 1, "": 2}
    assert root.num_files == 5
    ignoring = answer(place, "ls", agent.LsArgs(path=".", ignore=["src"])).success.directory_tree_root
    assert not ignoring.children_dirs
    assert answer(place, "pi_ls", agent.PiLsExecArgs()).success.output.startswith("src/")


def test_a_tree_has_a_bound(place: Path) -> None:
    for number in range(30):
        (place / f"{number}.txt").touch()
    root = answer(place, "ls", agent.LsArgs(path="."), limits=Limits(entries=10)).success.directory_tree_root
    assert len(root.children_files) == 10
    assert not root.children_were_processed
    assert root.num_files == 30
