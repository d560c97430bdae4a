"""A conversation as a list of items, independent of any dialect.

Every word that must survive is a mark: wd and a number. Reasoning and hosted tools have other marks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from random import Random
from typing import Any

CALLED = ("function", "custom", "local_shell", "shell", "apply_patch", "computer", "tool_search")
TOOLS = ("Read", "Bash", "edit_file", "web-fetch", "mcp__files__list")


@dataclass
class Item:
    """kind: system, developer, user, say, think, call, result, use, outcome, summary, approval or permit.

    form is the kind of call, result or hosted tool; place says that the item is in an invalid position.
    """

    kind: str
    text: str = ""
    id: str = ""
    item_id: str = ""
    name: str = ""
    form: str = "function"
    proof: str = "right"
    place: str = ""
    is_error: bool = False
    has_image: bool = False

    def copy(self, **changes: Any) -> Item:
        return replace(self, **changes)

    @property
    def is_answer(self) -> bool:
        """Whether it is an item of the assistant."""
        return self.kind in ("say", "think", "call", "use", "outcome", "approval") or self.place == "assistant"


class Talk:
    """Creates conversations: the random generator, counters for marks and ids, and the kinds of calls of the dialect."""

    def __init__(self, random: Random, dialect: str, thinking: float = 0.4) -> None:
        self.random = random
        self.dialect = dialect
        self.thinking = thinking  # probability that an answer begins with reasoning
        self.number = 0

    def mark(self, kind: str = "wd") -> str:
        self.number += 1
        return f"{kind}{self.number}q"

    def text(self, *words: str) -> str:
        return f"{self.random.choice(words)} {self.mark()}"

    def conversation(self) -> list[Item]:
        items: list[Item] = []
        if self.random.random() < 0.5:
            items.append(Item("system", self.text("You are an agent.", "Be brief.")))
        for _ in range(self.random.randint(1, 4)):
            items.append(Item("user", self.text("Please look at", "Fix the bug in", "And now")))
            for _ in range(self.random.choice((0, 1, 1, 2, 3))):
                items += self.step()
            if self.random.random() < 0.8:
                items.append(Item("say", self.text("Done:", "It says"), item_id=self.item_id_for("msg", "n")))
        if self.random.random() < 0.7 or self.thinking == 1:  # thinking needs a new user message
            items.append(Item("user", self.text("Go on with", "Why")))
        return items

    def step(self) -> list[Item]:
        """One answer with tool calls, and the results."""
        group, number = "n", 0
        items: list[Item] = []
        if self.random.random() < self.thinking:
            group, number = "r", self.number + 1
            items.append(self.thought())
        if self.random.random() < 0.4:
            items.append(Item("say", self.text("Let me see", "First"), item_id=self.item_id_for("msg", group, number)))
        if self.random.random() < 0.1:
            items += self.own_tool()
        calls = [self.call(group, number) for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        return [*items, *calls, *(self.result(call) for call in calls)]

    def thought(self) -> Item:
        self.number += 1
        item_id = f"rs_r{self.number}x"
        form = "redacted" if self.random.random() < 0.15 else "function"
        return Item("think", f"Hm, {self.mark('th')}", item_id=item_id, form=form)

    def call(self, group: str = "n", number: int = 0) -> Item:
        form = self.random.choice(CALLED) if self.dialect == "responses" and self.random.random() < 0.35 else "function"
        if self.dialect == "chat" and self.random.random() < 0.1:
            form = "custom"
        self.number += 1
        style = self.random.choice(("call_", "toolu_", "call-"))
        item_id = self.item_id_for(PREFIX[form], group, number)
        return Item("call", self._arguments(form), f"{style}{self.number}", item_id, self.random.choice(TOOLS), form)

    def result(self, call: Item, text: str | None = None) -> Item:
        words = self.text("ok", "line 1\nline 2", "total 8") if text is None else text
        return Item("result", words, call.id, "", call.name, call.form)

    def own_tool(self) -> list[Item]:
        """A hosted tool call and its outcome."""
        self.number += 1
        name, form = f"srvtoolu_{self.number}", self.random.choice(("search", "mcp"))
        return [
            Item("use", self.mark("ho"), name, form=form),
            Item("outcome", self.mark("ho"), name, form=form),
        ]

    def _arguments(self, form: str) -> str:
        word = self.mark()
        match form:
            case "custom":
                return f"*** Begin Patch\n{word}"
            case "local_shell":
                return json.dumps({"type": "exec", "command": ["ls", word], "env": {}})
            case "shell":
                return json.dumps({"commands": [f"ls {word}"]})
            case "apply_patch":
                return json.dumps({"type": "update_file", "path": "a.py", "diff": word})
            case "computer":
                return json.dumps({"type": "type", "text": word})
            case "tool_search":
                return json.dumps({"query": word})
        return json.dumps({"path": word, "lines": [1, 2]})

    def item_id_for(self, prefix: str, group: str, number: int = 0) -> str:
        """With the number of the reasoning before it, so that an upstream can detect that it is missing."""
        self.number += 1
        return f"{prefix}_{group}{number}x{self.number}"


PREFIX = {
    "function": "fc",
    "custom": "ctc",
    "local_shell": "lsh",
    "shell": "sh",
    "apply_patch": "apc",
    "computer": "cu",
    "tool_search": "tsc",
}
