"""A folder of the workspace as the tree that the server knows: as deep as there is room, with counts of all that lies below."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from ....tools.workspace.confinement import Place, Root
from ....tools.workspace.limits import Budget, Limits
from ....tools.workspace.messages import Refused, shown
from ....tools.workspace.patterns import Pattern
from ....tools.workspace.walk import Walk, entries_of, ignore_files
from ..wire import agent
from ..wire.builtin_tools.listings import extension
from ..wire.execs import Exec

_MOST_IGNORED = 100


def list_tree(root: Root, limits: Limits, budget: Budget, exec: Exec) -> Any:
    if exec.kind == "ls" and exec.args.HasField("timeout_ms"):
        budget = budget.shortened(max(exec.args.timeout_ms / 1000, 0.1))
    ignored = [Pattern(text[:1000]) for text in exec.args.ignore[:_MOST_IGNORED]] if exec.kind == "ls" else []
    with root.folder(exec.args.path or ".") as place:
        tree = _Tree(root, limits, budget, place, ignored)
        tree.grow()
        tree.count()
    if exec.kind == "pi_ls":
        return agent.PiLsExecResult(success=agent.PiLsExecSuccess(output="\n".join(_names(tree.node))))
    if budget.is_over:
        return agent.LsResult(timeout=agent.LsTimeout(directory_tree_root=tree.node))
    return agent.LsResult(success=agent.LsSuccess(directory_tree_root=tree.node))


class _Tree:
    """Grown a level at a time, so that what is left out when there is no more room is what lies deepest."""

    def __init__(self, root: Root, limits: Limits, budget: Budget, place: Place, ignored: list[Pattern]) -> None:
        self.node = agent.LsDirectoryTreeNode(abs_path=_absolute(root, place.parts))
        self._root = root
        self._limits = limits
        self._budget = budget
        self._place = place
        self._ignored = ignored
        self._room = limits.entries
        self._nodes = {place.parts: self.node}

    def grow(self) -> None:
        waiting = deque([self._place.parts])
        while waiting and self._room > 0 and not self._budget.is_over:
            self._budget.check()
            parts = waiting.popleft()
            if len(parts) - len(self._place.parts) >= self._limits.depth:
                continue
            try:
                waiting += self._look_into(parts)
            except Refused:  # gone, not ours to read, or no folder any more
                continue

    def count(self) -> None:
        """All files below each folder that is shown, also those that are not shown themselves."""
        counts = {parts: Counter[str]() for parts in self._nodes}
        for entry in Walk(self._root, self._limits, self._budget, with_ignored=False).files_below(self._place):
            if self._is_ignored(entry.parts):
                continue
            for depth in range(len(self._place.parts), len(entry.parts)):
                if (count := counts.get(entry.parts[:depth])) is not None:
                    count[extension(shown(entry.name))] += 1
        for parts, count in counts.items():
            self._nodes[parts].num_files = count.total()
            for ending, number in count.items():
                self._nodes[parts].full_subtree_extension_counts[ending] = number

    def _look_into(self, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
        node, folders = self._nodes[parts], list[tuple[str, ...]]()
        with self._root.folder("/".join(parts) or ".") as place:
            entries = entries_of(place.folder, place.parts, ignore_files(self._root, place), self._limits.scanned)
        kept = [entry for entry in entries if not entry.is_ignored and not self._is_ignored(entry.parts)]
        node.children_were_processed = len(kept) <= self._room
        for entry in kept[: self._room]:
            self._room -= 1
            if entry.kind == "folder" and entry.name != ".git":
                inner = node.children_dirs.add()
                inner.abs_path = _absolute(self._root, entry.parts)
                self._nodes[entry.parts] = inner
                folders.append(entry.parts)
            elif entry.kind != "folder":
                node.children_files.add().name = shown(entry.name)
        return folders

    def _is_ignored(self, parts: tuple[str, ...]) -> bool:
        below = parts[len(self._place.parts) :]
        return any(pattern.matches(below) for pattern in self._ignored)


def _absolute(root: Root, parts: tuple[str, ...]) -> str:
    return shown("/".join((root.path, *parts)))


def _names(node: agent.LsDirectoryTreeNode) -> list[str]:
    folders = [f"{inner.abs_path.rpartition('/')[2]}/" for inner in node.children_dirs]
    return [*folders, *(file.name for file in node.children_files)]
