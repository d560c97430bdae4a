from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.tools.workspace.box import CANARY, Box, text_of
from toolwire.errors import ConfigError
from toolwire.tools.workspace.confinement import Root, read_all
from toolwire.tools.workspace.messages import ToolRefused


def test_a_path_may_be_relative_or_absolute_inside_the_root(tmp_path: Path) -> None:
    box = Box(tmp_path)
    place = box.file("a/b.txt", "hello")
    for path in ("a/b.txt", "./a//b.txt", "a/../a/b.txt", str(place), f"{box.root}/./a/b.txt"):
        assert "hello" in box.text("read", path=path)


def test_a_root_that_is_reached_by_a_link_has_both_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("hello")
    (tmp_path / "alias").symlink_to("real")
    root = Root(tmp_path / "alias")
    for path in (tmp_path / "real" / "a", tmp_path / "alias" / "a"):
        with root.file(str(path)) as (place, file):
            assert place.inside == "a"
            assert read_all(file, 100, "a") == b"hello"


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside/canary.txt",
        "a/../../outside/canary.txt",
        "/etc/passwd",
        "/",
        "/proc/self/environ",
        "{root}/../outside/canary.txt",
        "{root}-other/x",
        "link/canary.txt",
        "absolute/canary.txt",
        "file",
        "a/deep",
        "chain",
        "loop",
        "loop/x",
        "~/canary.txt",
        "~root",
        "a\0b",
        "x" * 300,
        "x/" * 3000,
        "a/" * 200,
        "\ud800",
        "\udc2f..",
        "..\\x2foutside",
        "%2e%2e/outside/canary.txt",
        "dev",
        "fifo",
        "socket",
    ],
)
def test_no_hostile_path_leads_out_for_any_tool(tmp_path: Path, path: str) -> None:
    box = Box(tmp_path)
    (box.root / "a").mkdir()
    (box.root / "link").symlink_to("../outside")
    (box.root / "absolute").symlink_to(box.outside)
    (box.root / "file").symlink_to(box.canary)
    (box.root / "a" / "deep").symlink_to("../../outside/canary.txt")
    (box.root / "chain").symlink_to("a/deep")
    (box.root / "loop").symlink_to("loop")
    (box.root / "dev").symlink_to("/dev/zero")
    os.mkfifo(box.root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        _bind(listener, box.root)
        path = path.replace("{root}", str(box.root))
        more = {"write": {"content": "x"}, "edit": {"old_text": CANARY, "new_text": "x"}}
        for name in ("read", "list", "grep", "edit"):
            wanted = {"pattern": "canary"} if name == "grep" else more.get(name, {})
            output = box.use(name, path=path, **wanted)
            assert output.is_error
            assert CANARY not in text_of(output)
        written = box.use("write", path=path, content="x")
        assert written.is_error or path in ("~/canary.txt", "~root", "%2e%2e/outside/canary.txt", "..\\x2foutside")
    assert box.is_untouched()


def _bind(listener: socket.socket, root: Path) -> None:
    """A socket's path is short, a test's folder may not be."""
    folder = os.open(root, os.O_RDONLY)
    try:
        listener.bind(f"/proc/self/fd/{folder}/socket")
    except OSError:
        (root / "socket").symlink_to("/dev/null")
    finally:
        os.close(folder)


def test_links_inside_the_root_are_followed(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a/b.txt", "hello")
    (box.root / "relative").symlink_to("a/b.txt")
    (box.root / "absolute").symlink_to(box.root / "a")
    (box.root / "a" / "up").symlink_to("..")
    for path in ("relative", "absolute/b.txt", "a/up/a/up/relative"):
        assert "hello" in box.text("read", path=path)
    box.text("write", path="relative", content="changed")
    assert (box.root / "relative").is_symlink()
    assert (box.root / "a" / "b.txt").read_text() == "changed"


def test_a_name_that_is_no_utf8_can_be_read_as_it_is_shown(tmp_path: Path) -> None:
    box = Box(tmp_path)
    os.makedirs(os.fsencode(box.root) + b"/caf\xe9")
    Path(os.fsdecode(os.fsencode(box.root) + b"/caf\xe9/a\nb")).write_text("found")
    shown = box.text("glob", pattern="**/*")
    assert shown == "caf\\xe9/a\\x0ab"
    assert "found" in box.text("read", path=shown)
    assert "found" in box.text("read", path="caf\udce9/a\nb")
    box.file("caf\\xe9", "spelled so")
    assert "spelled so" in box.text("read", path="caf\\xe9")


@pytest.mark.parametrize("path", [".git/hooks/x", ".GIT/x", "a/.git", ".g\u200cit/x", "alias/x", "new/.git/x"])
def test_git_folders_are_read_but_not_written(tmp_path: Path, path: str) -> None:
    box = Box(tmp_path)
    box.file(".git/config", "[core]")
    (box.root / "alias").symlink_to(".git")
    assert ".git" in box.refusal("write", path=path, content="x")
    assert "[core]" in box.text("read", path="alias/config")
    assert sorted(os.listdir(box.root / ".git")) == ["config"]


def test_an_invalid_root_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", Path("/")):
        with pytest.raises(ConfigError):
            Root(path)


def test_a_file_that_is_too_large_is_refused_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 11)
    with pytest.raises(ToolRefused, match="has 11 bytes, expected at most 10"), Root(tmp_path).file("a") as (_, file):
        read_all(file, 10, "a")


def test_a_name_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("settings.toml")
    assert '"settings.toml"' in box.refusal("read", path="setings.toml")
    assert "not expanded" in box.refusal("read", path="~/settings.toml")


@contextmanager
def swapping(swap: Callable[[], None]) -> Iterator[None]:
    done = threading.Event()

    def turn() -> None:
        while not done.is_set():
            with suppress(OSError):
                swap()

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.slow
def test_a_folder_swapped_for_a_link_all_the_time_leads_nowhere(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("real/canary.txt", "inside")
    (box.root / "trap").symlink_to(box.outside)
    (box.root / "spare").mkdir()

    def swap() -> None:
        os.rename(box.root / "real", box.root / "spare" / "real")
        os.rename(box.root / "trap", box.root / "real")
        os.rename(box.root / "real", box.root / "trap")
        os.rename(box.root / "spare" / "real", box.root / "real")

    async def main() -> int:
        successes = 0
        for turn in range(150):
            output = await box.start("read", path="real/canary.txt")
            assert CANARY not in text_of(output)
            successes += not output.is_error
            await box.start("edit", path="real/canary.txt", old_text="inside", new_text="inside.")
            if turn % 30 == 0:
                assert CANARY not in text_of(await box.start("grep", pattern="canary-4711", include_ignored=True))
        return successes

    with swapping(swap):
        assert asyncio.run(main())
    assert box.is_untouched()


@pytest.mark.slow
def test_a_link_turned_outwards_all_the_time_leads_nowhere(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("inner/canary.txt", "inside")

    def swap() -> None:
        for target in (box.outside, box.root / "inner"):
            (box.root / "next").symlink_to(target)
            os.replace(box.root / "next", box.root / "link")

    async def main() -> None:
        for turn in range(150):
            assert CANARY not in text_of(await box.start("read", path="link/canary.txt"))
            await box.start("write", path="link/new.txt", content=str(turn))

    swap()  # the link leads inside: then it can be written through
    assert not asyncio.run(box.start("write", path="link/new.txt", content="inside")).is_error
    with swapping(swap):
        asyncio.run(main())
    assert box.is_untouched()


@pytest.mark.slow
def test_a_file_swapped_for_a_link_all_the_time_leads_nowhere(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.txt", "inside")
    (box.root / "trap").symlink_to(box.canary)

    def swap() -> None:
        os.rename(box.root / "a.txt", box.root / "b.txt")
        os.rename(box.root / "trap", box.root / "a.txt")
        os.rename(box.root / "a.txt", box.root / "trap")
        os.rename(box.root / "b.txt", box.root / "a.txt")

    async def main() -> int:
        successes = 0
        for _ in range(150):
            output = await box.start("read", path="a.txt")
            assert CANARY not in text_of(output)
            successes += not output.is_error
            await box.start("edit", path="a.txt", old_text="i", new_text="j", replace_all=True)
            await box.start("write", path="a.txt", content="inside")
        return successes

    with swapping(swap):
        assert asyncio.run(main())
    assert box.is_untouched()


@pytest.mark.parametrize("moment", ["lstat", "readlink"])
def test_a_link_that_appears_right_after_the_look_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    box = Box(tmp_path)
    look = getattr(os, moment)

    def swapped_after(name: str, *, dir_fd: int | None = None) -> object:
        try:
            return look(name, dir_fd=dir_fd)
        finally:
            if name == "a" and dir_fd is not None:
                with suppress(OSError):
                    os.rename("a", "was", src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
                    os.symlink(box.outside if moment == "readlink" else box.canary, "a", dir_fd=dir_fd)

    path = "a/canary.txt" if moment == "readlink" else "a"
    box.file(path, "inside")
    monkeypatch.setattr(os, moment, swapped_after)
    output = box.use("read", path=path)
    assert output.is_error
    assert CANARY not in text_of(output)
    box.use("write", path=path, content="written")
    box.use("edit", path=path, old_text="outside", new_text="changed")
    assert box.is_untouched()


def test_a_workspace_in_a_deleted_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="which is gone"):
        Root(Path())
