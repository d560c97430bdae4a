"""The text that models see: results of the workspace tools, rendered from data. No other module writes it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator

from ...types import Media, Text
from ..base import Output
from .files import EditedFile, File, TextPage, Trait, WrittenFile
from .folders import FoundFiles, Parts, SearchLimit, Tree, TreeItem
from .grep import Hit, Matches, Mode
from .limits import Limits
from .messages import display_path
from .shell import CommandResult

_TRAITS: dict[Trait, str] = {
    "utf-16": "the file is UTF-16; edit takes UTF-8 only",
    "bom": "the file begins with a byte order mark, which is not shown; edit keeps it",
    "invalid": "bytes that are no UTF-8 are shown as \ufffd; edit keeps them where they are not in old_text",
    "crlf": "lines end with CRLF; edit keeps that",
}


def render_file(found: TextPage | File, limits: Limits) -> Output:
    if isinstance(found, TextPage):
        return Output.of_text(_render_page(found, limits))
    size = render_size(len(found.data))
    if found.kind == "binary":
        return Output.of_text(
            f"{found.path} is a binary file ({found.mime}, {size}); only text and images (PNG, JPEG, GIF, WebP) can be shown."
        )
    about = f"{found.path}: {found.mime}, {size}"
    if len(found.data) > limits.image_bytes:
        most = render_size(limits.image_bytes)
        return Output.of_text(
            f"{about}; images of more than {most} are not shown. Look at a smaller one.", is_error=True
        )
    name = found.path.rpartition("/")[2]
    return Output(
        parts=(Text(text=about), Media(kind="image", mime=found.mime, data=b64encode(found.data).decode(), name=name))
    )


def render_written(written: WrittenFile) -> str:
    before = written.replaced_bytes
    done = "new" if before is None else f"replaced, before {render_size(before)}"
    return f"wrote {written.path} ({render_size(written.size)}, {done})."


def render_edited(edited: EditedFile) -> str:
    if edited.count == 1:
        return f"edited {edited.path}: 1 passage, in line {edited.line:,}."
    return f"edited {edited.path}: {edited.count:,} passages, the first in line {edited.line:,}."


def render_tree(tree: Tree, limits: Limits) -> str:
    lines = [f"{tree.path.removesuffix('/')}/", *_tree_lines(tree, tree.base, 1)]
    fitting = fit_lines(lines, limits.output_characters)
    notes = []
    if len(fitting) < len(lines):
        notes.append(f"{len(lines) - len(fitting):,} lines left out; list a folder below, or ask for less depth")
    if tree.is_cut:
        notes.append("not every folder is shown; list a folder below, or ask for less depth")
    return _with_notes(fitting, notes)


def render_found_files(found: FoundFiles, limits: Limits) -> str:
    lines = fit_lines(found.paths, limits.output_characters)
    stopped = _render_stopped(found.stopped, limits)
    notes = [f"{stopped}; there may be more, so give a folder as path"] if stopped else []
    if len(lines) < found.count:
        notes.append(
            f"the newest {len(lines):,} of {found.count:,} files; use a narrower pattern, or give a folder as path"
        )
    if not found.count:
        notes.append("no file matches; ignored files are left out unless include_ignored is set")
    return _with_notes(lines, notes)


def render_matches(found: Matches, mode: Mode, limits: Limits) -> str:
    if mode == "lines":
        lines = [render_hit(path, hit, limits) for path, hits in found.files.items() for hit in hits]
    elif mode == "count":
        lines = [f"{path}:{hits[-1].number}" for path, hits in found.files.items()]
    else:
        lines = list(found.files)
    fitting = fit_lines(lines, limits.output_characters)
    notes = [] if lines else ["no line matches"]
    if found.is_cut or len(fitting) < len(lines):
        notes.append("there are more; use a narrower pattern, a glob or a folder as path")
    if stopped := _render_stopped(found.stopped, limits):
        notes.append(f"{stopped}; give a folder as path, or a simpler pattern")
    if found.too_large:
        notes.append(f"{found.too_large:,} files of more than {limits.file_bytes:,} bytes were not searched")
    return _with_notes(fitting, notes)


def render_hit(path: str, hit: Hit, limits: Limits) -> str:
    sign = ":" if hit.is_match else "-"
    return f"{path}{sign}{hit.number}{sign}{cut_line(hit.text, limits.line_characters // 4)}"


def render_command(result: CommandResult, limits: Limits) -> Output:
    text = f"{render_output(result)}[{render_status(result, limits)}]"
    return Output.of_text(text, is_error=bool(result.stopped))


def render_output(result: CommandResult) -> str:
    """The output, ended by a line break."""
    output = result.head
    if result.left_out:
        output += f"\n[... {result.left_out:,} bytes left out ...]\n{result.tail}"
    return output if not output or output.endswith("\n") else output + "\n"


def render_status(result: CommandResult, limits: Limits) -> str:
    if result.stopped == "flood":
        end = f"stopped because it printed more than {limits.command_flood_bytes:,} bytes; print less"
    elif result.code is None:
        end = f"stopped after {result.limit:g} seconds; ask for more with timeout_seconds, or do less at once"
    else:
        end = f"exit code {result.code}" if result.code >= 0 else f"ended by signal {-result.code}"
    parts = [end, f"{result.seconds:.1f} s", result.confinement]
    if result.left_running:
        parts.append("what it had left running in the background was ended")
    return "; ".join(parts)


def render_size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def fit_lines(lines: Iterable[str], characters: int) -> list[str]:
    """As many of the first lines as fit."""
    fitting = list[str]()
    for line in lines:
        characters -= len(line) + 1
        if characters < 0:
            break
        fitting.append(line)
    return fitting


def cut_line(line: str, characters: int) -> str:
    if len(line) <= characters:
        return line
    return f"{line[:characters]} [... {len(line) - characters:,} more characters in this line]"


def _render_stopped(stopped: SearchLimit, limits: Limits) -> str:
    return {
        "": "",
        "seconds": f"stopped after {limits.seconds:g} seconds",
        "scanned": f"stopped after {limits.scanned:,} files and folders",
        "depth": f"folders more than {limits.depth} deep were left out",
    }[stopped]


def _render_page(page: TextPage, limits: Limits) -> str:
    numbered = [
        f"{number:>6}\t{cut_line(line, limits.line_characters)}" for number, line in enumerate(page.lines, page.first)
    ]
    # The first line is there however little fits.
    lines = fit_lines(numbered, limits.output_characters) or numbered[:1]
    notes = [_TRAITS[trait] for trait in page.traits]
    last = page.first - 1 + len(lines)
    if not page.total:
        notes.insert(0, "the file is empty")
    elif last < page.total:
        notes.insert(0, f"lines {page.first:,} to {last:,} of {page.total:,}; go on with offset {last + 1}")
    return _with_notes(lines, notes)


def _tree_lines(tree: Tree, parts: Parts, level: int) -> Iterator[str]:
    if (folder := tree.folders.get(parts)) is None:
        return
    indent = "  " * level
    for item in folder.items:
        yield indent + _render_item(item)
        yield from _tree_lines(tree, item.parts, level + 1)
    if folder.left_out:
        yield f"{indent}[{folder.left_out:,} more here; use glob with a pattern]"


def _render_item(item: TreeItem) -> str:
    name = display_path(item.name)
    if item.kind == "gone":
        return f"{name} (gone)"
    about = {
        "folder": "/",
        "link": f" -> {display_path(item.target)}",
        "file": f"  {render_size(item.size)}",
        "other": "  (no file)",
    }[item.kind]
    return name + about + (" (ignored)" if item.is_ignored else "")


def _with_notes(lines: list[str], notes: list[str]) -> str:
    return "\n".join([*lines, *(f"[{note}]" for note in notes)])
