"""Answers that talk about tools, tags and calls, and call nothing: of none of them may a call be made.

Real tools, real arguments and every form of a call are in them, but shown and not done: named in sentences, as code, in fences,
quoted, thought about. What stands in the group "unclear" is an example and nothing around it that says so; it is counted apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from toolwire.types import Tool

from .cases import Call, Case
from .damage import body
from .forms import FORMS, compact


@dataclass(frozen=True)
class Topic:
    """What an answer talks about."""

    tool: Tool
    tools: Sequence[Tool]
    call: Call
    random: Random

    def shown(self) -> str:
        """The call in one of the forms."""
        chosen = self.random.choice(list(FORMS.values()))
        return chosen.write([self.call], self.random) or body(self.call)

    def shown_on_a_line(self) -> str:
        return " ".join(self.shown().split("\n"))

    def tag(self) -> str:
        """Something that opens a call somewhere, and here is only named."""
        return self.random.choice(TAGS)


Write = Callable[[Topic], str]
TAGS = (
    "<tool_call>",
    "</tool_call>",
    "<tool_calls>",
    "<function_call>",
    "<function=NAME>",
    "<invoke>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<|tool_call_begin|>",
    "<｜tool▁calls▁begin｜>",
    "<｜DSML｜function_calls>",
    "<|channel|>",
    "<|call|>",
    "<arg_key>",
)
TEMPLATES: dict[str, list[Write]] = {}


def group(name: str) -> Callable[[Write], Write]:
    def add(write: Write) -> Write:
        TEMPLATES.setdefault(name, []).append(write)
        return write

    return add


def answers(case: Case, random: Random, count: int) -> list[tuple[str, str]]:
    """Answers about a case from so many groups, each with its name, and one of several in a row."""
    groups = random.sample(list(TEMPLATES), min(count, len(TEMPLATES)))
    call = random.choice(case.calls)
    tool = next(tool for tool in case.tools if tool.name == call.name)
    topic = Topic(tool, case.tools, call, random)
    found = [(name, random.choice(TEMPLATES[name])(topic)) for name in groups]
    return [*found, ("several together", _several(topic))]


def _several(topic: Topic) -> str:
    """Two to four of them in one answer; what leaves a fence open comes last."""
    choices = [write for name, writes in TEMPLATES.items() if name != "unclear" for write in writes]
    chosen = topic.random.sample(choices, topic.random.randrange(2, 5))
    ordered = sorted(chosen, key=lambda write: write is fence_left_open)
    return "\n\n".join(["Well.", *(write(topic) for write in ordered)])


def _sentences(*texts: str) -> None:
    """Sentences with {name}, {arguments}, {body}, {tag} and {key} in them."""
    for text in texts:
        group("sentences")(partial(_filled, text))


def _filled(text: str, topic: Topic) -> str:
    key = next(iter(topic.call.arguments), "key")
    values = {"name": topic.tool.name, "arguments": compact(topic.call.arguments), "body": body(topic.call), "key": key}
    for word, value in {**values, "tag": topic.tag()}.items():
        text = text.replace(f"{{{word}}}", value)
    return text


_sentences(
    "I have a tool named {name}. It takes {key}; tell me the value and I will call it.",
    "To call {name}, a model writes {tag} and then a JSON object.",
    "First comes <tool_call>, then the JSON object with name and arguments, and at the end </tool_call>.",
    "<tool_call> is the tag that opens a call, and </tool_call> the one that closes it.",
    "{tag} is a marker of some model. I do not need it to answer you.",
    "{tag}\n\nThat is the marker you asked about; it stands before every call.",
    "The arguments of {name} would be {arguments}, but I need your consent first.",
    "The call I have in mind is {body}, is that right?",
    "Should I run {name} with {arguments}? Please confirm.",
    "{name} failed with the arguments {arguments}: the server did not answer. I will not try again.",
    "You wrote “{tag}” in your message. Did you mean to call {name}?",
    "I can't call {name} because {key} is missing. Which one should I take?",
    "{name}({key}=...) is how you would write it in Python.",
    "[{name}({key}=1)](https://example.org/{name}) explains how it is called.",
    "[{name}] is one of my tools; [1], [2] and [3] are the sources.",
    '{"name": "{name}"} is all the JSON there is, and it is no call yet.',
    "{arguments} are the arguments that I used last time.",
    "The difference between <tool_call> and <tool_calls>: the second holds several. {name} knows only the first.",
    "Write <tool_call>...</tool_call> around it, or `{tag}`, as your model wants it.",
    "Is 1 < 2? Yes. Is <tool_call> HTML? No. Does {name} exist? Yes.",
    "Tool call: {name}. Arguments: none yet. Status: waiting for you.",
    "Ich könnte {name} mit {arguments} aufrufen. Soll ich? Der Anfang wäre {tag}.",
    "我可以调用 {name}，参数是 {arguments}。标记 {tag} 表示开始。要继续吗？",
)


@group("inline code")
def named_as_code(topic: Topic) -> str:
    return f"The tag `{topic.tag()}` opens a call of `{topic.tool.name}`, and `{topic.tag()}` does so elsewhere."


@group("inline code")
def shown_as_code(topic: Topic) -> str:
    mark = "``" if "`" in topic.shown_on_a_line() else "`"
    return f"A call looks like this: {mark} {topic.shown_on_a_line().replace('`', chr(39))} {mark}. Shall I make it?"


@group("inline code")
def block_as_code(topic: Topic) -> str:
    inner = body(topic.call).replace("`", "'")
    return f"`<tool_call>{inner}</tool_call>` is what I would write for `{topic.tool.name}`."


@group("inline code")
def code_in_a_table(topic: Topic) -> str:
    tag = topic.tag()
    return f"| tool | opener |\n|---|---|\n| `{topic.tool.name}` | `{tag}` |\n| `other` | `{tag}{{}}` |\n\nThat is all."


@group("fences")
def example_in_a_fence(topic: Topic) -> str:
    kind = topic.random.choice(["", "json", "xml", "text", "python", "tool_call"])
    return f"This is how a call looks:\n\n{_fenced(topic.shown(), kind)}\n\nShall I make it?"


@group("fences")
def several_fences(topic: Topic) -> str:
    first, second = _fenced(topic.shown(), "xml"), _fenced(topic.shown(), "")
    return f"Some models write\n{first}\nothers write\n{second}\nand both mean `{topic.tool.name}`."


@group("fences")
def fence_in_a_list(topic: Topic) -> str:
    inner = "\n".join(f"   {line}" for line in _fenced(topic.shown(), "json").split("\n"))
    return f"1. Choose the tool.\n2. Write the call:\n\n{inner}\n\n3. Wait for the result."


@group("fences")
def fence_left_open(topic: Topic) -> str:
    return f"An example of a call of {topic.tool.name}:\n```xml\n<tool_call>\n{body(topic.call)}\n</tool_call>"


@group("fences")
def tilde_fence(topic: Topic) -> str:
    return f"For example:\n\n~~~\n{topic.shown()}\n~~~\n\nThat would call {topic.tool.name}."


@group("fences")
def fence_in_a_fence(topic: Topic) -> str:
    return f"My notes:\n\n````markdown\n# Calls\n{_fenced(topic.shown(), 'json')}\n````\n\nShall I go on?"


@group("fences")
def body_in_a_fence(topic: Topic) -> str:
    indented = json.dumps({"name": topic.call.name, "arguments": topic.call.arguments}, indent=2)
    return f"The request body is\n\n```json\n{indented}\n```\n\nand {topic.tool.name} answers with a list."


def _fenced(inner: str, kind: str) -> str:
    mark = "````" if "```" in inner else "```"
    return f"{mark}{kind}\n{inner}\n{mark}"


@group("headings, lists, quotes")
def headings(topic: Topic) -> str:
    return f"# {topic.tool.name}\n\n## {topic.tag()}\n\nIt opens a call.\n\n## Arguments\n\n{compact(topic.call.arguments)}\n"


@group("headings, lists, quotes")
def list_of_tools(topic: Topic) -> str:
    lines = [f"- **{tool.name}**: {(tool.description or '')[:80]}" for tool in topic.tools]
    return "These are my tools:\n" + "\n".join(lines) + f"\n\nI call them with {topic.tag()}."


@group("headings, lists, quotes")
def list_of_tags(topic: Topic) -> str:
    return f"- {topic.tag()} opens\n- {topic.tag()} closes\n- {topic.tool.name} is called in between\n"


@group("headings, lists, quotes")
def quotation(topic: Topic) -> str:
    block = f"<tool_call>\n{body(topic.call)}\n</tool_call>"
    quoted = "\n".join(f"> {line}" for line in block.split("\n"))
    return f"You wrote:\n\n{quoted}\n\nThat is right, but it is for me to call {topic.tool.name}."


@group("headings, lists, quotes")
def numbered_steps(topic: Topic) -> str:
    return f"1. {topic.tool.name}: {compact(topic.call.arguments)}\n2. {topic.tag()}\n3. Read the result\n"


@group("definitions and results")
def definition(topic: Topic) -> str:
    return _defined(topic, "parameters")


@group("definitions and results")
def definition_in_words(topic: Topic) -> str:
    return f"The definition of the tool is:\n\n{_defined(topic, 'parameters')}\n\nIt has no other members."


@group("definitions and results")
def definition_in_a_fence(topic: Topic) -> str:
    return f"Sure:\n```json\n[{_defined(topic, topic.random.choice(['parameters', 'input_schema']))}]\n```"


@group("definitions and results")
def past_result(topic: Topic) -> str:
    return (
        f'The result was {{"name": "{topic.tool.name}", "status": "ok", "items": [{compact(topic.call.arguments)}]}}.'
    )


@group("definitions and results")
def record(topic: Topic) -> str:
    return json.dumps({"name": "Paris", "arguments": "none", "about": topic.tool.name})


def _defined(topic: Topic, key: str) -> str:
    tool = topic.tool
    return json.dumps({"name": tool.name, "description": tool.description, key: tool.schema}, ensure_ascii=False)


@group("thoughts")
def thought(topic: Topic) -> str:
    block = f"<tool_call>\n{body(topic.call)}\n</tool_call>"
    return f"<think>\nI could write\n{block}\nbut the user has not agreed.\n</think>\n\nShall I call {topic.tool.name}?"


@group("thoughts")
def thought_of_a_form(topic: Topic) -> str:
    return f"<think>Maybe {topic.shown_on_a_line()} would do. No.</think>\nWhich one do you mean?"


@group("unclear")
def only_a_fence(topic: Topic) -> str:
    """Somebody asked for an example and got it; or a model that writes fences called."""
    return _fenced(body(topic.call), "json")


@group("unclear")
def only_a_fenced_block(topic: Topic) -> str:
    return f"```xml\n<tool_call>\n{body(topic.call)}\n</tool_call>\n```"


@group("unclear")
def indented_code(topic: Topic) -> str:
    """Markdown says code, at four blanks; models indent for less."""
    return f"For example:\n\n    <tool_call>{body(topic.call)}</tool_call>\n\nThat calls {topic.tool.name}."


@group("unclear")
def html_code(topic: Topic) -> str:
    return f"For example:\n<pre><code>\n<tool_call>{body(topic.call)}</tool_call>\n</code></pre>\nThat calls it."


@group("unclear")
def block_in_a_sentence(topic: Topic) -> str:
    """A whole block without a mark that it is only shown: by the rules a call."""
    return f"One would write <tool_call>{body(topic.call)}</tool_call> for that. Shall I?"
