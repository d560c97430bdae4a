"""Check the shape of the tree: tests mirror modules, nothing grows too long, no file has a name that says nothing.

Run from anywhere: `python scripts/check_tree.py [ROOT]`. It prints one line for each finding and exits 1 if there is any.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MODULE_LINES = 500
FUNCTION_LINES = 60

MIRRORS = {"src/toolwire": "tests", "scripts": "tests/scripts"}
MEASURED = ("src", "scripts", "bench")
NAMED = ("src", "scripts", "bench", "tests")

# Tests that follow a behaviour through many modules, so they mirror none.
UNMIRRORED_TESTS = ("tests/clients", "tests/contract", "tests/programs", "tests/extension")

# Modules without tests of their own: only these, each with its reason.
UNTESTED_MODULES: dict[str, str] = {}

# Tables of data may pass the line limit: only these, each with its reason.
LONG_MODULES: dict[str, str] = {}

NAMELESS = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}
SKIPPED = {"__pycache__", "node_modules", ".venv"}


def findings(root: Path) -> Iterator[str]:
    """Every fault of the tree under root, as sentences."""
    for source, tests in MIRRORS.items():
        yield from _missing_tests(root, source, tests)
        yield from _missing_modules(root, source, tests)
    for path in _python_files(root, MEASURED):
        yield from _too_long(root, path)
    for path in _python_files(root, NAMED):
        if path.name in NAMELESS:
            yield f"{path}: this name says nothing about what is inside; name the module for what it does."


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / "src").is_dir():
        print(f"{root}: found no src/ here, expected the root of the repository; pass it as the first argument.")
        return 2
    faults = sorted(set(findings(root)))
    print("\n".join(faults) if faults else "check_tree: the tree is in order.")
    return 1 if faults else 0


def _missing_tests(root: Path, source: str, tests: str) -> Iterator[str]:
    for path in _python_files(root, (source,)):
        if path.name.startswith("__") or str(path) in UNTESTED_MODULES:
            continue
        inside = path.relative_to(source)
        mirror = PurePosixPath(tests) / inside.with_name(f"test_{inside.name}")
        if not (root / mirror).is_file():
            yield f"{path}: found no tests, expected them in {mirror}."


def _missing_modules(root: Path, source: str, tests: str) -> Iterator[str]:
    foreign = [*UNMIRRORED_TESTS, *(mirror for mirror in MIRRORS.values() if mirror != tests and tests in mirror)]
    for path in _python_files(root, (tests,)):
        if not path.name.startswith("test_") or any(path.is_relative_to(other) for other in foreign):
            continue
        inside = path.relative_to(tests)
        module = PurePosixPath(source) / inside.with_name(inside.name.removeprefix("test_"))
        # tests/a/test_b.py may also be about the package a/b as a whole.
        if not (root / module).is_file() and not (root / module.with_suffix("")).is_dir():
            yield f"{path}: tests no module, expected {module}; rename it or move it to {UNMIRRORED_TESTS[1]}."


def _too_long(root: Path, path: PurePosixPath) -> Iterator[str]:
    text = (root / path).read_text(encoding="utf-8")
    lines = len(text.splitlines())
    if lines > MODULE_LINES and str(path) not in LONG_MODULES:
        yield f"{path}: has {lines} lines, expected at most {MODULE_LINES}; look for the second idea in it."
    for node in ast.walk(ast.parse(text, filename=str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield (
                    f"{path}:{node.lineno}: {node.name}() has {length} lines, expected at most {FUNCTION_LINES}; "
                    "give a part of it a name of its own."
                )


def _python_files(root: Path, folders: tuple[str, ...]) -> Iterator[PurePosixPath]:
    """The Python files below these folders, as paths relative to root; a script without a suffix counts by its first line."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root)
            if path.is_file() and SKIPPED.isdisjoint(inside.parts) and _is_python(path):
                yield PurePosixPath(inside)


def _is_python(path: Path) -> bool:
    if path.suffix:
        return path.suffix == ".py"
    with path.open("rb") as file:
        return file.read(64).partition(b"\n")[0].startswith(b"#!/usr/bin/env python3")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
