"""Edits JSON, with or without comments, in place: everything else stays byte for byte.

A parser records the position of each value; edits insert text at these positions. Comments and trailing commas are accepted, because
settings of editors have them. The result is parsed again and compared with the expected value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ...errors import ConfigError, quote
from .client import Path, Setting, Step, merge, misplaced, wrap

_MAX_DEPTH = 100
_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_CLOSING = {"{": "}", "[": "]"}


class Node:
    """One value and its position: text[start:end]. children: (key, start of the child, child)."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.value: Any = None
        self.children: list[tuple[str, int, Node]] = []
        self.has_comma = False  # after the last child

    def child(self, step: Step) -> Node | None:
        """The last of that name, as in other parsers."""
        is_match = (lambda key, _: key == step) if isinstance(step, str) else (lambda _, node: step.matches(node.value))
        return next((node for key, _, node in reversed(self.children) if is_match(key, node)), None)


def apply_settings(text: str, settings: Sequence[Setting]) -> str:
    """Raises ConfigError if the text is not JSON, or a setting does not fit into it."""
    if not text.strip("\ufeff \t\r\n"):
        text += ("[]" if settings and not isinstance(settings[0].path[0], str) else "{}") + "\n"
    before = parse(text).value
    for setting in settings:
        text = _put(text, setting.path, setting.value, setting.is_default)
    if parse(text).value != merge(before, settings):
        raise ConfigError("this file cannot be changed safely.", hint="Add the settings by hand.")
    return text


def parse(text: str) -> Node:
    """Raises ConfigError with the line of the first syntax error."""
    return _Parser(text).document()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> Node:
        self._skip()
        node = self._node(0)
        self._skip()
        if self._at < len(self._text):
            raise self._error("the end of the file")
        return node

    def _node(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise ConfigError(f"found values nested more than {_MAX_DEPTH} deep; expected settings.")
        node = Node(self._at)
        opening = self._peek()
        if opening in _CLOSING:
            self._container(node, opening, depth)
        else:
            node.value = self._literal(_STRING, "a string") if opening == '"' else self._literal(_SCALAR, "a value")
        node.end = self._at
        return node

    def _container(self, node: Node, opening: str, depth: int) -> None:
        self._at += 1
        self._skip()
        while self._peek() != _CLOSING[opening]:
            if node.children and not node.has_comma:
                raise self._error(f'"," or "{_CLOSING[opening]}"')
            start = self._at
            key = self._key() if opening == "{" else ""
            node.children.append((key, start, self._node(depth + 1)))
            self._skip()
            node.has_comma = self._peek() == ","
            self._at += node.has_comma
            self._skip()
        self._at += 1
        children = node.children
        node.value = (
            {key: child.value for key, _, child in children} if opening == "{" else [c.value for _, _, c in children]
        )

    def _key(self) -> str:
        key = str(self._literal(_STRING, "a string"))
        self._skip()
        if self._peek() != ":":
            raise self._error('":"')
        self._at += 1
        self._skip()
        return key

    def _literal(self, pattern: re.Pattern[str], expected: str) -> Any:
        match = pattern.match(self._text, self._at)
        try:
            value = json.loads(match.group() if match is not None else "")
        except ValueError:
            raise self._error(expected) from None
        self._at += len(match.group()) if match is not None else 0
        return value

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _error(self, expected: str) -> ConfigError:
        line = self._text.count("\n", 0, self._at) + 1
        found = quote(self._text[self._at : self._at + 20]) if self._at < len(self._text) else "the end of the file"
        return ConfigError(f"this is not JSON: found {found} in line {line}; expected {expected}.")


def _put(text: str, path: Path, value: Any, is_default: bool) -> str:
    node = parse(text)
    for depth, step in enumerate(path):
        if not isinstance(node.value, dict if isinstance(step, str) else list):
            raise misplaced(path[:depth], node.value, "an object" if isinstance(step, str) else "a list")
        child = node.child(step)
        if child is None:
            return text if value is None else _insert(text, node, step, wrap(path[depth + 1 :], value))
        if value is None and depth == len(path) - 1:
            return _remove(text, node, child)
        node = child
    if isinstance(value, dict) and isinstance(node.value, dict):
        for key, inner in value.items():
            text = _put(text, (*path, key), inner, is_default)
        return text
    if is_default or json.dumps(node.value) == json.dumps(value):
        return text
    return text[: node.start] + _format(text, value, _indent_at(text, node.start)) + text[node.end :]


def _insert(text: str, container: Node, step: Step, value: Any) -> str:
    """Inserts on a new line after the last child and the comments that follow it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_at(text, container.start)
    indent = _child_indent(text, container, outer)
    close = container.end - 1
    inside = text[:close].rstrip(" \t\r\n")
    if container.children and not container.has_comma:
        end = container.children[-1][2].end
        inside = f"{text[:end]},{inside[end:]}"
    made = _format(text, value, indent) if isinstance(step, str) else _format(text, step.create(value), indent)
    name = f"{json.dumps(step, ensure_ascii=False)}: " if isinstance(step, str) else ""
    comma = "," if container.children and container.has_comma else ""
    return f"{inside}{newline}{indent}{name}{made}{comma}{newline}{outer}{text[close:]}"


def _remove(text: str, container: Node, child: Node) -> str:
    """Removes a member with its comma; of the last one, the comma before it."""
    nodes = [node for _, _, node in container.children]
    index = nodes.index(child)
    start, end = container.children[index][1], child.end
    if index < len(nodes) - 1 or container.has_comma:
        end = _after_space(text, end) + 1
    elif index:
        comma = _after_space(text, nodes[index - 1].end)
        text, start, end = text[:comma] + text[comma + 1 :], start - 1, end - 1
    return text[:start].rstrip(" \t\r\n") + text[end:]


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _format(text: str, value: Any, indent: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", newline + indent)


def _child_indent(text: str, container: Node, outer: str) -> str:
    if container.children:
        start = container.children[-1][1]
        indent = _indent_at(text, start)
        if text[:start].endswith(indent) and text[: start - len(indent)].endswith(("\n", "\ufeff")):
            return indent
    return outer + _unit(text)


def _indent_at(text: str, position: int) -> str:
    """The indentation of the line at this position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    match = re.search(r"^[\[{][^\n]*\n([ \t]+)\S", text, re.MULTILINE)
    return match.group(1) if match else "  "
