"""The files of the inspector: small, in the wheel, and nothing in them that the content security policy would have to allow."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "src" / "toolwire" / "ui" / "static"
FILES = sorted(file for file in STATIC.iterdir() if file.is_file())
LIMIT = 300_000  # bytes of all files


def test_all_files_together_are_small() -> None:
    assert sum(file.stat().st_size for file in FILES) < LIMIT


def test_the_page_has_no_inline_script_and_no_inline_style() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="app.js">']
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)


@pytest.mark.parametrize("file", [file for file in FILES if file.suffix == ".js"], ids=lambda file: file.name)
def test_scripts_parse_no_text_as_markup_or_code(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    found = re.findall(r"\binnerHTML\b|\binsertAdjacentHTML\b|document\.write|\beval\(|new Function|import\(", text)
    assert found == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_file_names_another_host(file: Path) -> None:
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", file.read_text(encoding="utf-8")))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_every_import_is_a_file_beside_it() -> None:
    for file in FILES:
        if file.suffix == ".js":
            for name in re.findall(r'from "\./([^"]+)"', file.read_text(encoding="utf-8")):
                assert (STATIC / name).is_file(), f"{file.name} imports {name}"


@pytest.mark.slow
def test_the_wheel_contains_the_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert {f"toolwire/ui/static/{file.name}" for file in FILES} <= names
