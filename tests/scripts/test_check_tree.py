"""The shape of the tree: each rule, seen to hold and seen to be broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_tree import (
    FUNCTION_LINES,
    GERUND_MODULES,
    MODULE_LINES,
    PACKAGE_MODULES,
    findings,
    main,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree in order: one module, one script, and their tests."""
    write(tmp_path, "src/toolwire/__init__.py")
    write(tmp_path, "src/toolwire/calls/ledger/repair.py", "def pair():\n    return 1\n")
    write(tmp_path, "tests/calls/ledger/test_repair.py")
    write(tmp_path, "scripts/check_tree.py")
    write(tmp_path, "tests/scripts/test_check_tree.py")
    return tmp_path


def write(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_a_tree_in_order_has_no_findings(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(findings(tree)) == []
    assert main([str(tree)]) == 0
    assert "in order" in capsys.readouterr().out


def test_a_module_without_tests_is_found(tree: Path) -> None:
    write(tree, "src/toolwire/wire/sse.py")
    assert list(findings(tree)) == [
        "src/toolwire/wire/sse.py: found no tests, expected them in tests/wire/test_sse.py."
    ]


def test_tests_without_a_module_are_found(tree: Path) -> None:
    write(tree, "tests/wire/test_sse.py")
    [fault] = findings(tree)
    assert fault.startswith("tests/wire/test_sse.py: tests no module, expected src/toolwire/wire/sse.py;")


def test_a_script_has_its_tests_under_scripts(tree: Path) -> None:
    write(tree, "scripts/make_tables.py")
    write(tree, "tests/scripts/test_gone.py")
    assert [fault.partition(":")[0] for fault in findings(tree)] == [
        "scripts/make_tables.py",
        "tests/scripts/test_gone.py",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "src/toolwire/__main__.py",
        "src/toolwire/calls/__init__.py",
        "tests/conftest.py",
        "tests/calls/support.py",
        "tests/clients/test_openai_python.py",
        "tests/contract/test_every_dialect.py",
        "tests/test_calls.py",
        "tests/calls/__pycache__/test_gone.py",
    ],
)
def test_what_needs_no_mirror(tree: Path, path: str) -> None:
    write(tree, path)
    assert list(findings(tree)) == []


def test_a_module_over_the_limit_is_found(tree: Path) -> None:
    write(tree, "src/toolwire/calls/ledger/repair.py", "x = 1\n" * MODULE_LINES)
    assert list(findings(tree)) == []
    write(tree, "src/toolwire/calls/ledger/repair.py", "x = 1\n" * (MODULE_LINES + 1))
    [fault] = findings(tree)
    assert f"has {MODULE_LINES + 1} lines" in fault


def test_a_function_over_the_limit_is_found_also_inside_a_class(tree: Path) -> None:
    body = "        x = 1\n" * FUNCTION_LINES
    write(tree, "src/toolwire/calls/ledger/repair.py", f"class Ledger:\n    async def pair(self):\n{body}")
    [fault] = findings(tree)
    assert fault.startswith(f"src/toolwire/calls/ledger/repair.py:2: pair() has {FUNCTION_LINES + 1} lines")


def test_a_script_without_a_suffix_is_measured(tree: Path) -> None:
    write(tree, "bench/run", "#!/usr/bin/env python3\n" + "x = 1\n" * MODULE_LINES)
    write(tree, "bench/mock", "\x7fELF not Python\n")
    [fault] = findings(tree)
    assert fault.startswith("bench/run: has")


@pytest.mark.parametrize("name", ["utils.py", "helpers.py", "common.py", "misc.py"])
def test_a_name_that_says_nothing_is_found(tree: Path, name: str) -> None:
    write(tree, f"tests/calls/{name}")
    [fault] = findings(tree)
    assert "says nothing" in fault


def test_a_package_with_too_many_modules_is_found(tree: Path) -> None:
    for number in range(PACKAGE_MODULES + 1):
        write(tree, f"src/toolwire/wire/m{number}.py")
        write(tree, f"tests/wire/test_m{number}.py")
    write(tree, "src/toolwire/wire/__init__.py")
    assert list(findings(tree)) == ["src/toolwire/wire: has 16 modules, expected at most 15; merge or group them."]


def test_public_classes_of_the_same_name_in_two_packages_are_found(tree: Path) -> None:
    write(tree, "src/toolwire/calls/ledger/repair.py", "class Turn: ...\nclass _Own: ...\n")
    write(tree, "src/toolwire/__init__.py", "class Turn: ...\nclass _Own: ...\n")
    [fault] = findings(tree)
    assert fault.startswith("Turn: is a public class in src/toolwire, src/toolwire/calls/ledger;")


@pytest.mark.parametrize("text", ["class Told: ...", "class A:\n  def _was_told(self): ...", "async def told(): ..."])
def test_vague_words_in_names_are_found(tree: Path, text: str) -> None:
    write(tree, "src/toolwire/calls/ledger/repair.py", text)
    [fault] = findings(tree)
    assert 'contains "told"' in fault
    write(tree, "src/toolwire/calls/ledger/repair.py", "def unfolded(): ...")
    assert list(findings(tree)) == []


def test_too_many_modules_ending_in_ing_are_found(tree: Path) -> None:
    for number in range(GERUND_MODULES + 1):
        write(tree, f"src/toolwire/p{number}/parsing.py")
        write(tree, f"tests/p{number}/test_parsing.py")
    [fault] = findings(tree)
    assert fault.endswith("10 modules end in -ing, expected at most 9.")


@pytest.mark.parametrize(
    "text",
    [
        "from tests.calls.ledger.test_repair import pair",
        "from tests.calls.ledger import test_repair as repair",
        "from .ledger.test_repair import pair",
        "import tests.calls.ledger.test_repair",
    ],
)
def test_imports_of_test_files_are_found(tree: Path, text: str) -> None:
    write(tree, "tests/calls/support.py", f"import os\n{text}\n")
    [fault] = findings(tree)
    assert fault.startswith("tests/calls/support.py:2: imports a test file;")


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "expected the root of the repository" in capsys.readouterr().out


def test_findings_end_with_status_one(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tree, "src/toolwire/calls/misc.py")
    assert main([str(tree)]) == 1
    assert capsys.readouterr().out.count("\n") == 2
