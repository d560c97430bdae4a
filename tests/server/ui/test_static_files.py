"""Only files of the page's own folder are served, and changes are seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolwire.server.ui.static_files import StaticFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "static"
    (inside / "views").mkdir(parents=True)
    (inside / "index.html").write_text("<p>page")
    (inside / "views" / "list.js").write_text("export {}")
    (inside / "notes.md").write_text("no file of the page")
    (tmp_path / "secret.txt").write_text("secret")
    return inside


def test_files_have_their_types(folder: Path) -> None:
    page, script = StaticFiles(folder).find(""), StaticFiles(folder).find("views/list.js")
    assert page is not None
    assert script is not None
    assert (page.data, page.kind) == (b"<p>page", "text/html; charset=utf-8")
    assert script.kind == "text/javascript; charset=utf-8"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "views", "views/../index.html", "notes.md", "%2e%2e/secret.txt", "a\0b"]
)
def test_nothing_else_is_served(folder: Path, path: str) -> None:
    assert StaticFiles(folder).find(path) is None


def test_links_out_of_the_folder_are_not_followed(folder: Path) -> None:
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    assert StaticFiles(folder).find("link.txt") is None


def test_a_changed_file_is_read_again(folder: Path) -> None:
    files = StaticFiles(folder)
    before = files.find("index.html")
    (folder / "index.html").write_text("<p>new")
    os.utime(folder / "index.html", (1, 1))
    after = files.find("index.html")
    assert before is not None
    assert after is not None
    assert after.data == b"<p>new"
    assert before.tag != after.tag
