"""Pages and links of the documentation site, as a hook of mkdocs: references generated from the code, and links to files outside of docs/.

A link from a page to a source file cannot be followed on the site, so its text becomes the path. Links to pages keep working.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Pages of the site that are files outside of docs/.
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
_ANNOTATION = re.compile(r"(: |-> )'([^']*)'")  # as text, because annotations are postponed
_LONG_DEFAULT = re.compile(r"= (Terms|Bounds)\(.*?\)(?=, \w+:|\))")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs with the files of docs/; adds the generated pages."""
    from mkdocs.structure.files import File

    pages = {
        "reference-commands.md": commands_page(),
        "reference-python.md": python_page(),
        "contributing.md": site_links((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), ""),
        "changelog.md": site_links((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), ""),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Called by mkdocs with the text of each page."""
    if page.file.generated_by is not None:
        return markdown
    if page.file.src_uri == "hazards.md":
        return hazards_page()
    return site_links(markdown, f"docs/{page.file.src_uri}")


def site_links(text: str, source: str) -> str:
    """The text of a page with links that work on the site. source: its path in the repository, or a file in the root."""
    folder = PurePosixPath(source).parent

    def adapt(found: re.Match[str]) -> str:
        label, target = found.groups()
        path, mark, anchor = target.partition("#")
        if not path or ":" in path:
            return found[0]
        place = os.path.normpath(folder / path)
        if place in OUTSIDE:
            place = f"docs/{OUTSIDE[place]}"
        elif not place.startswith("docs/") or not place.endswith((".md", ".png", ".webp", ".svg")):
            return label if "`" in label or label.endswith(PurePosixPath(place).name) else f"{label} (`{place}`)"
        inside = os.path.relpath(place, folder if str(folder).startswith("docs") else "docs")
        return f"[{label}]({inside}{mark}{anchor})"

    return _LINK.sub(adapt, text)


def hazards_page() -> str:
    """The hazards as a list: in the file they are a table with long cells, which is hard to read in a narrow column."""
    sys.path.insert(0, str(ROOT))
    from scripts.hazard_table import DATA, hazards_in, numbered_tests, site_text

    return site_text(hazards_in((ROOT / DATA).read_text(encoding="utf-8")), numbered_tests(ROOT))


def commands_page() -> str:
    """Each command with its help, as the program prints it."""
    sys.path.insert(0, str(ROOT / "src"))
    from toolwire.cli.app import COMMANDS

    parts = ["# Commands", "Generated from the program: `toolwire COMMAND --help` prints the same."]
    for place in COMMANDS:
        name = place.rpartition(":")[2]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
        command = [sys.executable, "-m", "toolwire", name, "--help"]
        shown = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=60).stdout
        parts.append(f"## toolwire {name}\n\n```text\n{shown.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def python_page() -> str:
    """Each public name of the package with its signature and docstring."""
    sys.path.insert(0, str(ROOT / "src"))
    import toolwire

    parts = [
        "# Python reference",
        "Everything here is imported from `toolwire`. [Agents in Python](agent.md) shows how to use it.",
    ]
    for name in toolwire.__all__:
        value = getattr(toolwire, name)
        if callable(value) and not name.startswith("_"):
            parts += _entry(name, value)
    return "\n\n".join(parts) + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"## {name}\n\n```python\n{'class ' if inspect.isclass(value) else ''}{name}{_signature(value)}\n```"
    yield _prose(value)
    if inspect.isclass(value):
        for member, function in vars(value).items():
            if not member.startswith("_") and inspect.isfunction(function) and inspect.getdoc(function):
                kind = "async def" if inspect.iscoroutinefunction(function) else "def"
                yield f"### {name}.{member}\n\n```python\n{kind} {member}{_signature(function)}\n```"
                yield _prose(function)


def _signature(value: Any) -> str:
    try:
        text = _ANNOTATION.sub(r"\1\2", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)"
    return _LONG_DEFAULT.sub(r"= \1()", text.replace("<class 'str'>", "str"))


def _prose(value: Any) -> str:
    """The docstring; angle brackets would be HTML."""
    return (inspect.getdoc(value) or "").replace("<", "&lt;").replace("[", "\\[")
