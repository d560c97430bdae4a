"""Files of the workspace as results of Cursor's execs: read, write, edit, delete, ls, grep, and files by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from ....errors import quote
from ....tools.workspace import files as workspace_files
from ....tools.workspace.confinement import Scope
from ....tools.workspace.folders import Parts, Walk, find_files, list_tree
from ....tools.workspace.grep import Mode, Search
from ....tools.workspace.grep import grep as grep_files
from ....tools.workspace.messages import ToolRefused, display_path
from ....tools.workspace.patterns import Pattern
from ....tools.workspace.render import render_hit, render_written
from ..wire import agent
from ..wire.builtin_tools.listings import extension
from ..wire.execs import (
    Exec,
    GrepHit,
    count_lines,
    counts_found,
    failure,
    file_read,
    file_written,
    files_found,
    grep_success,
    lines_found,
    output,
)

_MAX_CONTENT = 4 << 20  # bytes of one result; a message may have 16 MiB, and a model reads far less
_MAX_HIDDEN = 100  # patterns of one ls
_TYPES = {"python": "py", "javascript": "js", "typescript": "ts", "rust": "rs", "markdown": "md", "ruby": "rb"}
_MODES: dict[str, Mode] = {"content": "lines", "files_with_matches": "files", "count": "count"}

_Values: TypeAlias = dict[str, Any]  # of the ToolRequest


def read(scope: Scope, exec: Exec, values: _Values) -> Any:
    """The text is exact to the byte, because the server's edit tool writes back what it reads. So the result is the whole file,
    the requested lines, or an error."""
    path = values["path"]
    file = workspace_files.load(scope, path)
    size = len(file.data)
    if file.kind == "image" and exec.kind != "pi_read":
        if size > scope.limits.image_bytes:
            most = scope.limits.image_bytes
            raise ToolRefused(f"{quote(path)} is an image of {size:,} bytes, expected at most {most:,}.")
        return file_read(exec, agent.ReadSuccess(data=file.data, file_size=size))
    text = _decode(file.data)
    if text is None:
        message = f"{path} is a binary file of {size:,} bytes, and only text in UTF-8 can be read."
        if exec.kind == "pi_read":
            return failure(exec, message)
        return agent.ReadResult(invalid_file=agent.ReadInvalidFile(path=path, reason=message))
    content, is_range = _requested_lines(text, values)
    if len(content.encode()) > _MAX_CONTENT:
        raise ToolRefused(
            f"{quote(path)} is too large to be read at once ({size:,} bytes); read some lines of it, by offset and limit."
        )
    success = agent.ReadSuccess(content=content, total_lines=count_lines(text), file_size=size)
    success.range_applied = is_range
    return file_read(exec, success)


def write(scope: Scope, exec: Exec, values: _Values) -> Any:
    path, content = values["path"], values["content"]
    if isinstance(content, bytes):
        raise ToolRefused(f"the content for {quote(path)} is no text in UTF-8, and nothing else is written.")
    written = workspace_files.write(scope, path, content)
    return file_written(exec, content, written.size, render_written(written))


def edit(scope: Scope, exec: Exec, values: _Values) -> Any:
    path, edits = values["path"], values["edits"]
    if not edits:
        raise ToolRefused("no edit was given, so nothing would change.")
    workspace_files.edit(scope, path, edits)
    return output(exec, f"edited {path}: {len(edits)} passages.")


def delete(scope: Scope, exec: Exec, values: _Values) -> Any:
    path = values["path"]
    size = workspace_files.delete(scope, path)
    return agent.DeleteResult(success=agent.DeleteSuccess(path=path, deleted_file=path, file_size=size))


def ls(scope: Scope, exec: Exec, values: _Values) -> Any:
    """The tree as deep as there is room, with counts of all files below each folder."""
    hidden = []
    if exec.kind == "ls":
        hidden = [Pattern(text[:1000]) for text in exec.args.ignore[:_MAX_HIDDEN]]
        if exec.args.HasField("timeout_ms"):
            budget = scope.budget.shortened(max(exec.args.timeout_ms / 1000, 0.1))
            scope = Scope(scope.root, scope.limits, budget)
    tree = list_tree(scope, values["path"], scope.limits.depth, hidden=hidden)
    root = agent.LsDirectoryTreeNode(abs_path=_absolute(scope, tree.base))
    nodes = {tree.base: root}
    for parts, folder in tree.folders.items():
        node = nodes[parts]
        node.children_were_processed = not folder.left_out
        for item in folder.items:
            if item.kind != "folder":
                node.children_files.add().name = display_path(item.name)
            elif item.name != ".git":
                nodes[item.parts] = node.children_dirs.add()
                nodes[item.parts].abs_path = _absolute(scope, item.parts)
    if exec.kind == "pi_ls":
        names = [f"{inner.abs_path.rpartition('/')[2]}/" for inner in root.children_dirs]
        return output(exec, "\n".join([*names, *(file.name for file in root.children_files)]))
    _count_files(scope, nodes, tree.base, hidden)
    if scope.budget.is_over:
        return agent.LsResult(timeout=agent.LsTimeout(directory_tree_root=root))
    return agent.LsResult(success=agent.LsSuccess(directory_tree_root=root))


def glob(scope: Scope, exec: Exec, values: _Values) -> Any:
    most = _most(values, scope.limits.entries)
    found = find_files(scope, values["pattern"], values.get("path", "."), most=most)
    if exec.kind == "pi_find":
        return output(exec, "\n".join(found.paths))
    is_cut = found.count > len(found.paths) or bool(found.stopped)
    return _success(scope, exec, "files_with_matches", files_found(found.paths, is_cut=is_cut))


def grep(scope: Scope, exec: Exec, values: _Values) -> Any:
    mode = values["mode"]
    if mode not in _MODES:
        raise ToolRefused(f"output_mode is {quote(mode)}, expected content, files_with_matches or count.")
    globs = [values["include"]] if "include" in values else []
    if "type" in values:
        globs.append(f"*.{_TYPES.get(values['type'], values['type'])}")
    search = Search(
        pattern=values["pattern"],
        path=values.get("path", "."),
        globs=tuple(globs),
        mode=_MODES[mode],
        ignore_case="ignore_case" in values,
        context=max(values.get(name, 0) for name in ("context", "before", "after")),
        most=0 if mode == "count" else _most(values, scope.limits.matches),
    )
    found = grep_files(scope, search)
    if exec.kind == "pi_grep":
        lines = [render_hit(path, hit, scope.limits) for path, hits in found.files.items() for hit in hits]
        return output(exec, "\n".join(lines))
    is_cut = found.is_cut or bool(found.stopped)
    if mode == "files_with_matches":
        return _success(scope, exec, mode, files_found(found.files, is_cut=is_cut))
    if mode == "count":
        counts = {path: hits[-1].number for path, hits in found.files.items()}
        return _success(scope, exec, mode, counts_found(counts, is_cut=is_cut))
    hits = [
        GrepHit(path, hit.number, hit.text, is_context=not hit.is_match)
        for path, hits in found.files.items()
        for hit in hits
    ]
    return _success(scope, exec, mode, lines_found(hits, is_cut=is_cut, longest=scope.limits.line_characters // 4))


WORK: dict[str, Callable[[Scope, Exec, _Values], Any]] = {
    "read": read,
    "write": write,
    "edit": edit,
    "delete": delete,
    "list": ls,
    "glob": glob,
    "grep": grep,
}


def _success(scope: Scope, exec: Exec, mode: str, found: agent.GrepUnionResult) -> agent.GrepResult:
    return grep_success(exec.args.pattern, exec.args.path, mode, found, display_path(scope.root.path))


def _most(values: _Values, limit: int) -> int:
    return min(max(int(values.get("limit", limit)), 1), limit)


def _count_files(
    scope: Scope, nodes: dict[Parts, agent.LsDirectoryTreeNode], base: Parts, hidden: list[Pattern]
) -> None:
    """All files below each folder of the tree, also those that the tree leaves out."""
    counts = {parts: Counter[str]() for parts in nodes}
    with scope.root.folder("/".join(base)) as place:
        for entry in Walk(scope).files_below(place):
            if any(pattern.matches(entry.parts[len(base) :]) for pattern in hidden):
                continue
            for depth in range(len(base), len(entry.parts)):
                if (count := counts.get(entry.parts[:depth])) is not None:
                    count[extension(display_path(entry.name))] += 1
    for parts, count in counts.items():
        nodes[parts].num_files = count.total()
        for ending, number in count.items():
            nodes[parts].full_subtree_extension_counts[ending] = number


def _absolute(scope: Scope, parts: Parts) -> str:
    return display_path("/".join((scope.root.path, *parts)))


def _decode(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _requested_lines(text: str, values: _Values) -> tuple[str, bool]:
    """The lines of a range, and whether there is one; a negative offset counts from the end."""
    offset = values.get("first", 0)
    limit = values["limit"] if values.get("limit", 0) > 0 else None
    if not offset and limit is None:
        return text, False
    first = max(offset - 1, 0) if offset >= 0 else max(count_lines(text) + offset, 0)
    lines = text.split("\n")
    chosen = lines[first : None if limit is None else first + limit]
    is_last = first + len(chosen) >= len(lines)
    return "\n".join(chosen) + ("" if is_last or not chosen else "\n"), True
