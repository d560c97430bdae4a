"""Listings and search results of many clients as the structures of the server."""

from __future__ import annotations

import re
from collections import Counter

from .. import agent
from ..execs import GrepHit, counts_found, files_found, grep_success, lines_found
from .requests import ToolRequest

_MAX_LINES = 20_000
_MAX_DEPTH = 40
_NOTICE = re.compile(
    r"(?:found \d+|no (?:files|matches|results)\b|\(results? (?:are|is)|\(showing|\[.*(?:truncated|more).*\]|\.\.\."
    r"|directory listing for|total \d+$|---$|search results|limit reached|\(end of)",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"\s{0,9}(?:no (?:files|matches|results|lines?)\b|found 0 |0 (?:files|matches))", re.IGNORECASE)
_FOLDER = re.compile(r"(?:\[DIR\] |\[D\] |📁 )(.*)")
_FILE = re.compile(r"(?:\[FILE\] |\[F\] |📄 )(.*)")
_HIT = re.compile(r"(.+?):(\d{1,9}):(.*)")
_AROUND = re.compile(r"(.+?)-(\d{1,9})-(.*)")
_HEADED = re.compile(r"(?:File: (?P<gemini>.+)|(?P<path>[^\s].*):)")
_BELOW = re.compile(r"\s{0,9}(?:Line |L)(\d{1,9}): ?(.*)")
_COUNTED = re.compile(r"(.+):(\d{1,9})")


def folder_in(text: str, path: str) -> agent.LsDirectoryTreeNode:
    """From one name per line, folders with a trailing slash."""
    root = agent.LsDirectoryTreeNode(abs_path=path, children_were_processed=True)
    for name in filter(None, text.split("\n")[:_MAX_LINES]):
        _add(root, name)
    _count(root)
    return root


def tree_in(text: str, path: str) -> agent.LsDirectoryTreeNode:
    """Folders end with a slash or are marked; indented names are in the folder before them. The first line may be the folder itself."""
    root = agent.LsDirectoryTreeNode(abs_path=path, children_were_processed=True)
    levels = [(-1, root)]
    for place, line in enumerate(text.strip("\n").split("\n")[:_MAX_LINES]):
        name, indent = line.strip(), len(line) - len(line.lstrip())
        name = name.removeprefix("- ").strip()
        if not name or _NOTICE.match(name) or (place == 0 and "/" in name and name.rstrip("/:") == path.rstrip("/")):
            continue
        while len(levels) > 1 and levels[-1][0] >= indent:
            levels.pop()
        inner = _add(levels[-1][1], name)
        if inner is not None and len(levels) < _MAX_DEPTH:
            levels.append((indent, inner))
    _count(root)
    return root


def _add(node: agent.LsDirectoryTreeNode, name: str) -> agent.LsDirectoryTreeNode | None:
    folder, file = _FOLDER.fullmatch(name), _FILE.fullmatch(name)
    if folder or name.endswith("/"):
        name = (folder[1] if folder else name).rstrip("/")
        inner = node.children_dirs.add()
        inner.abs_path = name if name.startswith("/") else f"{node.abs_path.rstrip('/')}/{name}"
        return inner
    node.children_files.add().name = file[1] if file else name
    return None


def _count(node: agent.LsDirectoryTreeNode) -> Counter[str]:
    """Counts files. A folder without children has not been listed."""
    counts = Counter(extension(file.name) for file in node.children_files)
    for inner in node.children_dirs:
        counts += _count(inner)
    node.num_files = counts.total()
    node.children_were_processed = node.children_were_processed or bool(node.children_files or node.children_dirs)
    for name, count in counts.items():
        node.full_subtree_extension_counts[name] = count
    return counts


def extension(name: str) -> str:
    """ ".py" of "a.py"; "" where there is none, as in ".bashrc"."""
    stem, dot, ending = name.rpartition(".")
    return f".{ending}" if stem and dot and ending else ""


def files_in(text: str, request: ToolRequest) -> agent.GrepResult:
    files = [line.strip().removeprefix("- ") for line in text.split("\n")[:_MAX_LINES]]
    files = [file for file in dict.fromkeys(files) if file and not _NOTICE.match(file)]
    return _success(request, "files_with_matches", files_found(files, is_cut=_is_cut(text)))


def grep_result(text: str, request: ToolRequest) -> agent.GrepResult:
    """In the requested mode if possible: lines can be counted, but a list of files has no lines."""
    mode = request.values.get("mode") or "content"
    if not text.strip() or _NOTHING.match(text):
        return _success(request, mode, _EMPTY.get(mode, _EMPTY["content"]))
    lines = text.split("\n")[:_MAX_LINES]
    if mode == "count" and (counts := [found for line in lines if (found := _COUNTED.fullmatch(line.strip()))]):
        return _success(request, mode, counts_found({found[1]: int(found[2]) for found in counts}))
    hits = _hits(lines, with_context=any(request.values.get(name) for name in ("before", "after", "context")))
    if not hits and mode == "files_with_matches":
        return files_in(text, request)
    if not hits:
        whole = agent.GrepContentMatch(content=text)
        files = [agent.GrepFileMatch(file=request.values.get("path") or ".", matches=[whole])]
        return _success(request, "content", agent.GrepUnionResult(content=agent.GrepContentResult(matches=files)))
    matching = Counter(hit.path for hit in hits if not hit.is_context)
    if mode == "count":
        return _success(request, mode, counts_found(dict(matching)))
    if mode == "files_with_matches":
        return files_in("\n".join(matching), request)
    return _success(request, mode, lines_found(hits, is_cut=_is_cut(text)))


def _hits(lines: list[str], *, with_context: bool) -> list[GrepHit]:
    hits, path = list[GrepHit](), ""
    for line in lines:
        if (found := _BELOW.fullmatch(line)) and path:
            hits.append(GrepHit(path, int(found[1]), found[2]))
        elif found := _HIT.fullmatch(line):
            hits.append(GrepHit(found[1], int(found[2]), found[3]))
        elif with_context and (found := _AROUND.fullmatch(line)):
            hits.append(GrepHit(found[1], int(found[2]), found[3], is_context=True))
        elif (found := _HEADED.fullmatch(line)) and not _NOTICE.match(line):
            path = found["gemini"] or found["path"]
    return hits


_EMPTY = {
    "files_with_matches": files_found((), is_cut=False),
    "count": counts_found({}),
    "content": lines_found((), is_cut=False),
}


def _success(request: ToolRequest, mode: str, found: agent.GrepUnionResult) -> agent.GrepResult:
    pattern = "" if request.ability == "glob" else request.values["pattern"]
    return grep_success(pattern, request.values.get("path") or ".", mode, found)


def _is_cut(text: str) -> bool:
    return re.search(r"truncated|limit reached|\(showing", text[-500:], re.IGNORECASE) is not None
