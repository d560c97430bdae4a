"""Damages around a call: tags, fences, words in wrong places, and answers that end too early."""

from __future__ import annotations

import html

from .cases import Call
from .damage import Speech, block, body, right, tagged, whole

PROSE = ("Calling the tool now.", "Here is the call:", "Function call in JSON:", "I need more data, so:")


@whole("tags", may_follow=False)
def missing_close_tag(speech: Speech) -> str:
    """The answer ends behind the last object, which is whole."""
    return "\n".join(map(right, speech.calls)).removesuffix("\n</tool_call>")


@whole("tags")
def missing_close_tag_between(speech: Speech) -> str | None:
    """The next block begins behind an object that is whole."""
    if len(speech.calls) < 2:
        return None
    return "\n".join(f"<tool_call>\n{body(call)}" for call in speech.calls) + "\n</tool_call>"


@whole("tags", may_follow=False)
def missing_close_tag_then_prose(speech: Speech) -> str:
    """A sentence behind an object that is whole."""
    return f"{missing_close_tag(speech)}\n\nI will wait for the result."


@whole("tags", "doubtful")
def missing_open_tag(speech: Speech) -> str:
    """An object with a name and arguments, and the end of a block: nearly sure, but no block ever began."""
    return "\n".join(map(right, speech.calls)).removeprefix("<tool_call>\n")


@block("tags")
def doubled_open_tag(call: Call, speech: Speech) -> str:
    """The same tag twice says nothing more."""
    return f"<tool_call>{speech.random.choice(['', chr(10)])}{right(call)}"


@block("tags")
def doubled_close_tag(call: Call, speech: Speech) -> str:
    """The same."""
    return f"{right(call)}{speech.random.choice(['', chr(10)])}</tool_call>"


@block("tags")
def open_tag_for_close(call: Call, speech: Speech) -> str:
    """A slash forgotten, behind an object that is whole."""
    return tagged(body(call), closing="<tool_call>")


@block("tags")
def wrong_case(call: Call, speech: Speech) -> str:
    """Nobody tells tags apart by case."""
    tag = speech.random.choice(["Tool_Call", "TOOL_CALL", "tool_Call", "Tool_call"])
    return tagged(body(call), f"<{tag}>", f"</{tag}>")


@block("tags")
def blanks_in_tags(call: Call, speech: Speech) -> str:
    """XML allows some of them, people all."""
    opening = speech.random.choice(["< tool_call>", "<tool_call >", "< tool_call >"])
    closing = speech.random.choice(["</ tool_call>", "</tool_call >", "< /tool_call>"])
    return tagged(body(call), opening, closing)


@block("tags")
def attributes_in_tag(call: Call, speech: Speech) -> str:
    """More words in the tag, and all that is needed between the tags."""
    more = speech.random.choice(['id="call_1"', f'name="{call.name}"', 'type="function"', "index=0"])
    return tagged(body(call), f"<tool_call {more}>")


@block("tags")
def drifted_tags(call: Call, speech: Speech) -> str:
    """Another word for the same; name and arguments say what it is."""
    tag = speech.random.choice(
        ["tool-call", "toolcall", "toolCall", "function_call", "functioncall", "tool_use", "tool", "function", "call"]
    )
    return tagged(body(call), f"<{tag}>", f"</{tag}>")


@block("tags")
def other_close_tag(call: Call, speech: Speech) -> str:
    """The end has another name than the beginning."""
    tag = speech.random.choice(["tool", "function_call", "tool_calls", "function", "toolcall", "tool_response"])
    return tagged(body(call), closing=f"</{tag}>")


@whole("tags")
def plural_tags_around_blocks(speech: Speech) -> str:
    """A list of blocks, marked as one."""
    return f"<tool_calls>\n{chr(10).join(map(right, speech.calls))}\n</tool_calls>"


@whole("tags")
def plural_tags(speech: Speech) -> str:
    """An array in one block whose name says that there are several."""
    return tagged(f"[{', '.join(map(body, speech.calls))}]", "<tool_calls>", "</tool_calls>")


@block("tags", "doubtful")
def escaped_tags(call: Call, speech: Speech) -> str:
    """What is escaped is meant to be read, by the rules of HTML; a model may have meant it or not."""
    return html.escape(right(call), quote=speech.random.random() < 0.5)


@block("tags", "doubtful")
def square_tags(call: Call, speech: Speech) -> str:
    """Another language's brackets."""
    return tagged(body(call), "[tool_call]", "[/tool_call]")


@block("tags", "doubtful")
def token_tags(call: Call, speech: Speech) -> str:
    """Tokens of some other model, or of none."""
    opening, closing = speech.random.choice(
        [("<|tool_call|>", "<|/tool_call|>"), ("<|tool_call>", "<tool_call|>"), ("<｜tool_call｜>", "<｜/tool_call｜>")]
    )
    return tagged(body(call), opening, closing)


@block("tags", "doubtful")
def open_tag_without_its_first_letter(call: Call, speech: Speech) -> str:
    """No tag begins here."""
    return tagged(body(call), "tool_call>")


@whole("tags", may_follow=False)
def cut_in_close_tag(speech: Speech) -> str:
    """The limit came behind an object that is whole, inside the tag."""
    return "\n".join(map(right, speech.calls))[: -speech.random.randrange(1, 12)]


@block("tags", "doubtful")
def tags_as_code(call: Call, speech: Speech) -> str:
    """Between backticks it is shown, and not done; models do it, and the rules say that it is text."""
    return f"`<tool_call>`{body(call)}`</tool_call>`"


@block("tags", "doubtful")
def block_as_code(call: Call, speech: Speech) -> str:
    """The same for the whole block."""
    return f"`<tool_call>{body(call)}</tool_call>`"


@block("tags")
def bold_block(call: Call, speech: Speech) -> str:
    """Emphasis around the tags is no part of the call."""
    return f"**<tool_call>**\n{body(call)}\n**</tool_call>**"


@block("fences")
def fence_inside(call: Call, speech: Speech) -> str:
    """The tags say that it is a call, the fence that it is JSON."""
    return tagged(f"```{speech.random.choice(['json', '', 'JSON'])}\n{body(call)}\n```")


@block("fences")
def fence_inside_left_open(call: Call, speech: Speech) -> str:
    """The object is whole."""
    return tagged(f"```json\n{body(call)}")


@whole("fences", "doubtful")
def fence_around(speech: Speech) -> str:
    """In a fence it is shown, and not done: by the rules it is text."""
    inner = "\n".join(map(right, speech.calls))
    return f"```{speech.random.choice(['json', '', 'xml', 'tool_call'])}\n{inner}\n```"


@whole("fences", "doubtful")
def fence_for_tags(speech: Speech) -> str:
    """A fence that may be an example."""
    kind = speech.random.choice(["json", "", "tool_call", "tool_code"])
    return "\n\n".join(f"```{kind}\n{body(call)}\n```" for call in speech.calls)


@whole("fences", "doubtful")
def nothing_for_tags(speech: Speech) -> str:
    """Bare objects."""
    return "\n".join(map(body, speech.calls))


@block("words")
def prose_inside_before(call: Call, speech: Speech) -> str:
    """A word before the object, which is whole and the only one."""
    return tagged(f"{speech.random.choice(PROSE)}\n{body(call)}")


@block("words")
def prose_inside_after(call: Call, speech: Speech) -> str:
    """The same behind it."""
    return tagged(f"{body(call)}\nThis calls {call.name}.")


@block("words")
def thought_inside(call: Call, speech: Speech) -> str:
    """The thought is marked as one."""
    return tagged(f"<think>{call.name} is the right tool.</think>\n{body(call)}")


@block("words", "doubtful")
def block_in_a_thought(call: Call, speech: Speech) -> str:
    """What a model says to itself is no call."""
    return f"<think>\nI could write {right(call)} here.\n</think>\nWhich city do you mean?"


@block("words")
def block_in_a_sentence(call: Call, speech: Speech) -> str:
    """Behind words on the same line, whole and right: the model has nothing else to make calls with."""
    return f"I will now call it: <tool_call>{body(call)}</tool_call>"


@whole("words")
def blocks_in_a_list(speech: Speech) -> str:
    """One line for each."""
    mark = speech.random.choice(["- ", "* ", "1. "])
    return "\n".join(f"{mark}<tool_call>{body(call)}</tool_call>" for call in speech.calls)


@block("words", "doubtful")
def quoted_block(call: Call, speech: Speech) -> str:
    """A quotation may be of somebody else."""
    return "\n".join(f"> {line}" for line in right(call).splitlines())


@block("words")
def indented_block(call: Call, speech: Speech) -> str:
    """Two blanks at each line's beginning."""
    return "\n".join(f"  {line}" for line in right(call).splitlines())


@whole("words", may_follow=False)
def imagined_result(speech: Speech) -> str:
    """The calls are right, what follows is invented."""
    calls = "\n".join(map(right, speech.calls))
    return f'{calls}\n<tool_response>\n{{"status": "ok"}}\n</tool_response>\nThe result is ok.'


@whole("ends", "doubtful", may_follow=False)
def cut_in_the_middle(speech: Speech) -> str:
    """The limit came inside the last object: nobody knows what was to follow."""
    calls = speech.calls
    last = body(calls[-1])
    return "\n".join([*map(right, calls[:-1]), f"<tool_call>\n{last[: speech.random.randrange(1, len(last))]}"])


@whole("ends", "doubtful", may_follow=False)
def cut_and_closed(speech: Speech) -> str:
    """The object ends inside, and the tag closes it all the same."""
    return f"{cut_in_the_middle(speech)}\n</tool_call>"


@whole("ends", may_follow=False)
def last_brace_missing(speech: Speech) -> str:
    """Only a bracket is missing, and the tag is there."""
    return "\n".join([*map(right, speech.calls[:-1]), tagged(body(speech.calls[-1])[:-1])])


@block("ends")
def brace_too_many(call: Call, speech: Speech) -> str:
    """The object is whole before it."""
    return tagged(f"{body(call)}}}")
