"""Check the structure of the tree: tests mirror modules, nothing grows too long or too wide, and names are plain and unique.

Run from anywhere: `python scripts/check_tree.py [ROOT]`. It prints one line for each finding and exits 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MODULE_LINES = 500
FUNCTION_LINES = 60
PACKAGE_MODULES = 15
GERUND_MODULES = 9

# Words that hide the technical term, in names of modules, classes and functions.
VAGUE_WORDS = frozenset(
    [
        *("told", "untold", "tells", "telling", "said", "unsaid", "spoken", "asked", "unasked", "asker", "anew"),
        *("nobody", "whoever", "anybody", "somebody", "kept", "keeping", "borrow", "borrowed", "lent", "settled"),
        *("lowered", "fitted", "mended", "farewell"),
    ]
)

MIRRORS = {"src/toolwire": "tests", "scripts": "tests/scripts"}
MEASURED = ("src", "scripts", "bench")
NAMED = ("src", "scripts", "bench", "tests")

# Tests that follow a behaviour through many modules, so they mirror none.
UNMIRRORED_TESTS = ("tests/clients", "tests/contract", "tests/programs", "tests/extension", "tests/model")

# Modules without tests of their own: only these, each with its reason.
UNTESTED_MODULES: dict[str, str] = {}

# Tables of data may pass the line limit: only these, each with its reason.
LONG_MODULES: dict[str, str] = {}

NAMELESS = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}
SKIPPED = {"__pycache__", "node_modules", ".venv"}


def findings(root: Path) -> Iterator[str]:
    """Every violation in the tree under root, one message each."""
    for source, tests in MIRRORS.items():
        yield from _missing_tests(root, source, tests)
        yield from _missing_modules(root, source, tests)
    for path in _python_files(root, MEASURED):
        yield from _too_long(root, path)
    for path in _python_files(root, NAMED):
        if path.name in NAMELESS:
            yield f"{path}: this name says nothing about what is inside; name the module for what it does."
    yield from _structure(root)


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


def _structure(root: Path) -> Iterator[str]:
    """Names, class names, and the width of packages."""
    modules = list(_python_files(root, ("src",)))
    packages: dict[PurePosixPath, int] = defaultdict(int)
    classes: dict[str, set[PurePosixPath]] = defaultdict(set)
    for path in modules:
        packages[path.parent] += path.name != "__init__.py"
        tree = ast.parse((root / path).read_text(encoding="utf-8"))
        names = {path.stem: 1}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.setdefault(node.name, node.lineno)
            if isinstance(node, ast.ClassDef) and node in tree.body and not node.name.startswith("_"):
                classes[node.name].add(path.parent)
        for name, line in names.items():
            for word in sorted(VAGUE_WORDS.intersection(_words(name))):
                yield f'{path}:{line}: {name} contains "{word}"; use the technical term.'
    for package, count in packages.items():
        if count > PACKAGE_MODULES:
            yield f"{package}: has {count} modules, expected at most {PACKAGE_MODULES}; merge or group them."
    for name, places in classes.items():
        if len(places) > 1:
            listed = ", ".join(map(str, sorted(places)))
            yield f"{name}: is a public class in {listed}; give each a name of its own."
    gerunds = [str(path) for path in modules if path.stem.endswith("ing")]
    if len(gerunds) > GERUND_MODULES:
        yield f"{', '.join(gerunds)}: {len(gerunds)} modules end in -ing, expected at most {GERUND_MODULES}."
    for path in _python_files(root, ("tests",)):
        for line in _imports_of_tests((root / path).read_text(encoding="utf-8")):
            message = f"{path}:{line}: imports a test file; move what it needs to a module without test_ in its name."
            yield message


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)]


def _imports_of_tests(text: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        else:
            continue
        # A name in lower case with test_ in front may also be a function, but those are imported from test files only.
        if any(name.startswith("test_") for name in names):
            yield node.lineno


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
