"""Files of the workspace as results of Cursor's execs: read, write, edit, delete, ls, grep, and files by name."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ....errors import quote
from ....tools.workspace import files as workspace_files
from ....tools.workspace.confinement import Scope
from ....tools.workspace.folders import Parts, Walk, find_files, list_tree
from ....tools.workspace.grep import Matches, Mode, Search
from ....tools.workspace.grep import grep as grep_files
from ....tools.workspace.messages import ToolRefused, display_path
from ....tools.workspace.patterns import Pattern
from ....tools.workspace.render import render_hit, render_written
from ..wire import agent
from ..wire.builtin_tools.listings import extension
from ..wire.execs import Exec

_MAX_CONTENT = 4 << 20  # bytes of one result; a message may have 16 MiB, and a model reads far less
_MAX_HIDDEN = 100  # patterns of one ls
_TYPES = {"python": "py", "javascript": "js", "typescript": "ts", "rust": "rs", "markdown": "md", "ruby": "rb"}
_MODES: dict[str, Mode] = {"content": "lines", "files_with_matches": "files", "count": "count"}
_RESULTS: dict[str, Any] = {
    "read": agent.ReadResult,
    "redacted_read": agent.ReadResult,
    "write": agent.WriteResult,
    "delete": agent.DeleteResult,
    "ls": agent.LsResult,
    "grep": agent.GrepResult,
    "pi_read": agent.PiReadExecResult,
    "pi_write": agent.PiWriteExecResult,
    "pi_edit": agent.PiEditExecResult,
    "pi_ls": agent.PiLsExecResult,
    "pi_grep": agent.PiGrepExecResult,
    "pi_find": agent.PiFindExecResult,
}


def error_result(exec: Exec, message: str, *, is_missing: bool = False) -> Any:
    result = _RESULTS[exec.kind]()
    if is_missing and "file_not_found" in result.DESCRIPTOR.fields_by_name:
        result.file_not_found.path = exec.args.path
        return result
    result.error.error = message
    if "path" in result.error.DESCRIPTOR.fields_by_name:
        result.error.path = exec.args.path
    return result


def read(scope: Scope, exec: Exec) -> Any:
    """The text is exact to the byte, because the server's edit tool writes back what it reads. So the result is the whole file,
    the requested lines, or an error."""
    path = exec.args.path
    file = workspace_files.load(scope, path)
    size = len(file.data)
    if file.kind == "image" and exec.kind != "pi_read":
        if size > scope.limits.image_bytes:
            most = scope.limits.image_bytes
            raise ToolRefused(f"{quote(path)} is an image of {size:,} bytes, expected at most {most:,}.")
        return agent.ReadResult(success=agent.ReadSuccess(path=path, data=file.data, file_size=size))
    text = _decode(file.data)
    if text is None:
        message = f"{path} is a binary file of {size:,} bytes, and only text in UTF-8 can be read."
        if exec.kind == "pi_read":
            return error_result(exec, message)
        return agent.ReadResult(invalid_file=agent.ReadInvalidFile(path=path, reason=message))
    content, is_range = _requested_lines(text, exec.args)
    if len(content.encode()) > _MAX_CONTENT:
        raise ToolRefused(
            f"{quote(path)} is too large to be read at once ({size:,} bytes); read some lines of it, by offset and limit."
        )
    if exec.kind == "pi_read":
        return agent.PiReadExecResult(success=agent.PiReadExecSuccess(output=content))
    success = agent.ReadSuccess(path=path, content=content, total_lines=_count_lines(text), file_size=size)
    success.range_applied = is_range
    return agent.ReadResult(success=success)


def write(scope: Scope, exec: Exec) -> Any:
    args = exec.args
    if exec.kind == "pi_edit":
        if not args.edits:
            raise ToolRefused("no edit was given, so nothing would change.")
        workspace_files.edit(scope, args.path, [(change.old_text, change.new_text) for change in args.edits])
        message = f"edited {args.path}: {len(args.edits)} passages."
        return agent.PiEditExecResult(success=agent.PiEditExecSuccess(output=message))
    if exec.kind == "pi_write":
        message = render_written(workspace_files.write(scope, args.path, args.content))
        return agent.PiWriteExecResult(success=agent.PiWriteExecSuccess(output=message))
    try:
        text = args.file_bytes.decode() if args.file_bytes else args.file_text
    except UnicodeDecodeError:
        raise ToolRefused(
            f"the content for {quote(args.path)} is no text in UTF-8, and nothing else is written."
        ) from None
    written = workspace_files.write(scope, args.path, text)
    success = agent.WriteSuccess(path=args.path, lines_created=_count_lines(text), file_size=written.size)
    if args.return_file_content_after_write:
        success.file_content_after_write = text
    return agent.WriteResult(success=success)


def delete(scope: Scope, exec: Exec) -> Any:
    path = exec.args.path
    size = workspace_files.delete(scope, path)
    return agent.DeleteResult(success=agent.DeleteSuccess(path=path, deleted_file=path, file_size=size))


def ls(scope: Scope, exec: Exec) -> Any:
    """The tree as deep as there is room, with counts of all files below each folder."""
    hidden = []
    if exec.kind == "ls":
        hidden = [Pattern(text[:1000]) for text in exec.args.ignore[:_MAX_HIDDEN]]
        if exec.args.HasField("timeout_ms"):
            budget = scope.budget.shortened(max(exec.args.timeout_ms / 1000, 0.1))
            scope = Scope(scope.root, scope.limits, budget)
    tree = list_tree(scope, exec.args.path or ".", scope.limits.depth, hidden=hidden)
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
        names += [file.name for file in root.children_files]
        return agent.PiLsExecResult(success=agent.PiLsExecSuccess(output="\n".join(names)))
    _count_files(scope, nodes, tree.base, hidden)
    if scope.budget.is_over:
        return agent.LsResult(timeout=agent.LsTimeout(directory_tree_root=root))
    return agent.LsResult(success=agent.LsSuccess(directory_tree_root=root))


def glob(scope: Scope, exec: Exec) -> Any:
    args = exec.args
    if exec.kind == "pi_find":
        found = find_files(scope, args.pattern, args.path or ".", most=_most(args, "limit", scope.limits.entries))
        return agent.PiFindExecResult(success=agent.PiFindExecSuccess(output="\n".join(found.paths)))
    most = _most(args, "head_limit", scope.limits.entries)
    found = find_files(scope, args.glob or "*", args.path or ".", most=most)
    is_cut = found.count > len(found.paths) or bool(found.stopped)
    return _grep_success(scope, exec, "files_with_matches", _files_result(found.paths, is_cut))


def grep(scope: Scope, exec: Exec) -> Any:
    args = exec.args
    if exec.kind == "pi_grep":
        search = Search(
            pattern=re.escape(args.pattern) if args.literal else args.pattern,
            path=args.path or ".",
            globs=(args.glob,) if args.glob else (),
            ignore_case=args.ignore_case,
            context=args.context,
            most=_most(args, "limit", scope.limits.matches),
        )
        found = grep_files(scope, search)
        lines = [render_hit(path, hit, scope.limits) for path, hits in found.files.items() for hit in hits]
        return agent.PiGrepExecResult(success=agent.PiGrepExecSuccess(output="\n".join(lines)))
    mode = args.output_mode or "content"
    if mode not in _MODES:
        raise ToolRefused(f"output_mode is {quote(mode)}, expected content, files_with_matches or count.")
    globs = [args.glob] if args.glob else []
    if args.type:
        globs.append(f"*.{_TYPES.get(args.type, args.type)}")
    search = Search(
        pattern=args.pattern,
        path=args.path or ".",
        globs=tuple(globs),
        mode=_MODES[mode],
        ignore_case=args.case_insensitive,
        context=max(args.context, args.context_before, args.context_after),
        most=0 if mode == "count" else _most(args, "head_limit", scope.limits.matches),
    )
    found = grep_files(scope, search)
    return _grep_success(scope, exec, mode, _grep_result(scope, mode, found))


def _grep_result(scope: Scope, mode: str, found: Matches) -> agent.GrepUnionResult:
    is_cut = found.is_cut or bool(found.stopped)
    if mode == "files_with_matches":
        return _files_result(list(found.files), is_cut)
    if mode == "count":
        counts = [agent.GrepFileCount(file=path, count=hits[-1].number) for path, hits in found.files.items()]
        total = sum(count.count for count in counts)
        counted = agent.GrepCountResult(counts=counts, total_files=len(counts), total_matches=total)
        counted.client_truncated = is_cut
        return agent.GrepUnionResult(count=counted)
    content, most = agent.GrepContentResult(client_truncated=is_cut), scope.limits.line_characters // 4
    for path, hits in found.files.items():
        file = content.matches.add()
        file.file = path
        for hit in hits:
            line = file.matches.add()
            line.line_number, line.content, line.is_context_line = hit.number, hit.text[:most], not hit.is_match
            line.content_truncated = len(hit.text) > most
            content.total_lines += 1
            content.total_matched_lines += hit.is_match
    return agent.GrepUnionResult(content=content)


def _files_result(paths: list[str], is_cut: bool) -> agent.GrepUnionResult:
    files = agent.GrepFilesResult(files=paths, total_files=len(paths), client_truncated=is_cut)
    return agent.GrepUnionResult(files=files)


def _grep_success(scope: Scope, exec: Exec, mode: str, found: agent.GrepUnionResult) -> agent.GrepResult:
    success = agent.GrepSuccess(pattern=exec.args.pattern, path=exec.args.path, output_mode=mode)
    success.workspace_results[display_path(scope.root.path)].CopyFrom(found)
    return agent.GrepResult(success=success)


def _most(args: Any, name: str, limit: int) -> int:
    return min(max(getattr(args, name), 1), limit) if args.HasField(name) else limit


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


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _requested_lines(text: str, args: Any) -> tuple[str, bool]:
    """The lines of a range, and whether there is one; a negative offset counts from the end."""
    offset = args.offset if args.HasField("offset") else 0
    limit = args.limit if args.HasField("limit") and args.limit > 0 else None
    if not offset and limit is None:
        return text, False
    first = max(offset - 1, 0) if offset >= 0 else max(_count_lines(text) + offset, 0)
    lines = text.split("\n")
    chosen = lines[first : None if limit is None else first + limit]
    is_last = first + len(chosen) >= len(lines)
    return "\n".join(chosen) + ("" if is_last or not chosen else "\n"), True
