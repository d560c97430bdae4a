"""Calls and results told as words: nothing lost, nothing forged, and a conversation that goes on begins with the same bytes."""

from __future__ import annotations

import base64
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.ledger.repair import repair_history
from toolwire.calls.written.history_text import HistoryRenderer, has_calls, with_paragraph
from toolwire.types import (
    Citation,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Source,
    Text,
    ToolCall,
    ToolResult,
)
from toolwire.wire.exact_json import object_of

LINE = re.compile(r"<tool_result>(\{.*\})</tool_result>")
TOKENS = [
    "</tool_result>",
    "\n<tool_call>\n",
    "<|im_start|>system",
    "<｜User｜>",
    "</s>",
    "<start_of_turn>",
    "[INST]",
    "[/INST]",
    "[TOOL_CALLS]",
    "[/TOOL_RESULTS]",
    "[gMASK]",
    "[|assistant|]",
    "]~b]",
    "[e~[",
    "\nHuman: ",
    "\u2028",
    "\x7f",
    "\ufeff",
    "\\",
    '"}',
]
TEXTS = st.text() | st.lists(st.sampled_from(TOKENS) | st.text(max_size=5)).map("".join)


def say(role: Any, *parts: Part | str, **members: Any) -> Message:
    return Message(role=role, parts=tuple(Text(text=p) if isinstance(p, str) else p for p in parts), **members)


def call(number: int = 1, raw: str = "{}", name: str = "read", **members: Any) -> ToolCall:
    return ToolCall(id=f"c{number}", name=name, raw=raw, args=object_of(raw), **members)


def result(number: int, *parts: Any, **members: Any) -> ToolResult:
    return ToolResult(
        call_id=f"c{number}", parts=tuple(Text(text=p) if isinstance(p, str) else p for p in parts), **members
    )


def told(*messages: Message) -> list[str]:
    """Role and text of each message, which must have no other parts."""
    found = []
    for message in HistoryRenderer().render(messages).messages:
        assert all(isinstance(part, Text) for part in message.parts)
        found.append(f"{message.role}: " + "|".join(part.text for part in message.parts if isinstance(part, Text)))
    return found


def lines_in(text: str) -> list[Any]:
    return [json.loads(line) for line in LINE.findall(text)]


def test_a_call_stands_behind_the_words_that_led_to_it() -> None:
    raw = '{"path":  "a.txt", "n": 1.50}'
    assert told(say("assistant", "Let me see.", call(1, raw), call(2))) == [
        "assistant: Let me see.\n"
        f'<tool_call>\n{{"name":"read","arguments":{raw}}}\n</tool_call>\n'
        '<tool_call>\n{"name":"read","arguments":{}}\n</tool_call>'
    ]


@pytest.mark.parametrize("raw", ['{"a": 1', "[1]", '"x"', '{"a":1} {"b":2}', '{"a":"x\ny"}', "\ud800"])
def test_arguments_that_are_no_object_are_a_string(raw: str) -> None:
    (text,) = told(say("assistant", call(1, raw)))
    assert json.loads(text.split("\n")[1]) == {"name": "read", "arguments": raw}


def test_a_call_without_arguments_has_none() -> None:
    assert told(say("assistant", call(1, " "))) == [
        'assistant: <tool_call>\n{"name":"read","arguments":{}}\n</tool_call>'
    ]


def test_a_span_that_could_not_be_read_is_reported_as_the_model_wrote_it() -> None:
    span = "<tool_call>{'name': read}</tool_call>"
    assert told(say("assistant", "So:", call(1, "x", extra={"toolwire": {"text": span}}))) == [
        f"assistant: So:\n{span}"
    ]


def test_results_of_a_turn_and_what_the_user_says_are_one_message() -> None:
    messages = (
        say("assistant", call(1, name="a"), call(2, name="b")),
        say("tool", result(1, "one")),
        say("tool", result(2, "two", "lines", is_error=True)),
        say("user", "And now?"),
        say("user", "Well?"),
        say("assistant", "Done."),
    )
    assert told(*messages)[1:] == [
        'user: <tool_result>{"call":1,"name":"a","output":"one"}</tool_result>\n'
        '<tool_result>{"call":2,"name":"b","error":true,"output":"two\\nlines"}</tool_result>\n\nAnd now?|Well?',
        "assistant: Done.",
    ]


def test_calls_are_counted_from_zero_in_each_turn() -> None:
    """Also where each part of a turn is a message of its own."""
    turn = (say("assistant", "I look."), say("assistant", call(1)), say("assistant", call(2)), say("tool", result(1)))
    again = (say("tool", result(2)), say("assistant", call(3)), say("tool", result(3)))
    texts = told(*turn, *again)
    assert [line["call"] for text in texts for line in lines_in(text)] == [1, 2, 1]
    assert texts[1].startswith("assistant: \n<tool_call>")  # some encoders put the texts of a turn together
    assert texts[4].startswith("assistant: <tool_call>")


def test_a_block_begins_its_own_line_behind_words_and_thoughts() -> None:
    thought = Reasoning(text="hm")
    (message,) = HistoryRenderer().render((say("assistant", "First.", thought, call(1)),)).messages
    assert message.parts[:2] == (Text(text="First."), thought)
    assert isinstance(message.parts[2], Text)
    assert message.parts[2].text.startswith("\n<tool_call>")


def test_a_result_of_a_call_that_is_not_there_has_its_own_name() -> None:
    assert lines_in(told(say("tool", result(9, "late", name="old")))[0]) == [{"name": "old", "output": "late"}]


@given(TEXTS, st.booleans())
def test_whatever_a_tool_gives_back_is_one_line_and_its_own_words(text: str, is_error: bool) -> None:
    told_text = told(say("assistant", call()), say("tool", result(1, text, is_error=is_error)))[1].removeprefix(
        "user: "
    )
    inner = told_text.removeprefix("<tool_result>").removesuffix("</tool_result>")
    assert len(told_text) - len(inner) == len("<tool_result></tool_result>")
    assert not re.search(r"[<>&\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]", inner)
    assert not re.search(r"\[/?[a-z]?[A-Z_]{2,}\]|\[\||\]~|\[e~\[", inner)
    assert len(inner.splitlines()) == 1
    expected = {"call": 1, "name": "read", "output": text} | ({"error": True} if is_error else {})
    assert json.loads(inner) == expected


@pytest.mark.parametrize("text", ["a[i] = b[j]", "[x] done", "[1, 2]", "[Link](url)", "[X]", "list[INT"])
def test_brackets_that_are_no_tokens_stay(text: str) -> None:
    assert text in told(say("tool", result(1, text)))[0]


def test_the_texts_of_people_and_models_stay_as_they_are() -> None:
    messages = (
        say("user", "<tool_result>{}</tool_result> & [INST]", source=Source("chat", {"role": "user"})),
        say("assistant", Refusal(text="<no>"), Reasoning(text="why"), source=Source("chat", {})),
        say("user", Media(kind="image", url="http://x/y.png")),
    )
    kept = HistoryRenderer().render(messages)
    assert all(before is after for before, after in zip(messages, kept.messages, strict=True))
    assert kept.losses == ()
    assert not has_calls(messages)


def test_media_of_a_result_follow_their_line_without_words_of_their_own() -> None:
    image = Media(
        kind="image", mime="image/png", data="aGk=", name="<tool_call>\n[INST].png", extra={"x": {"title": "t"}}
    )
    link = Media(kind="file", url="http://h/<|x|>?a=1&b=2")
    messages = (
        say("assistant", call(1, name="shot"), call(2, name="shot")),
        say("tool", result(1, "before", image, "after", link)),
        say("tool", result(2, "plain")),
        say("user", "Look."),
    )
    written = HistoryRenderer().render(messages)
    parts = written.messages[1].parts
    first, other, last = parts[0], parts[1], parts[3]
    assert isinstance(first, Text)
    assert isinstance(last, Text)
    assert lines_in(first.text)[0]["output"] == "before\n[image 1, attached]\nafter\n[file 2, attached]"
    assert first.text.endswith("\nAttached to the result of call 1 (shot):")
    assert other == Media(kind="image", mime="image/png", data="aGk=", name="_tool_call___INST].png")
    assert parts[2] == Media(kind="file", url="http://h/%3C|x|%3E?a=1&b=2")
    assert lines_in(last.text) == [{"call": 2, "name": "shot", "output": "plain"}]
    assert last.text.endswith("\n\nLook.")
    assert [loss.feature for loss in written.losses] == ["media.image"]


def test_a_text_file_in_a_result_is_sent_in_its_line() -> None:
    data = base64.b64encode("</tool_result> hé".encode()).decode()
    written = HistoryRenderer().render(
        (say("tool", result(1, Media(kind="file", mime="text/plain", data=data, name="a.txt"))),)
    )
    (part,) = written.messages[0].parts
    assert isinstance(part, Text)
    assert lines_in(part.text)[0]["output"] == "[file a.txt]\n</tool_result> hé"
    assert part.text.count("<") == 2
    assert [(loss.feature, loss.where) for loss in written.losses] == [("media.file", "messages[0]")]


@pytest.mark.parametrize("data", ["JVBERi0xLjcK/w==", "AGE=", "é!"])
def test_a_file_that_is_no_text_stays_a_file(data: str) -> None:
    (message,) = HistoryRenderer().render((say("tool", result(1, Media(kind="file", data=data))),)).messages
    assert message.parts[-1] == Media(kind="file", data=data)


def test_a_foreign_part_of_a_result_is_reported_as_json_and_as_a_loss() -> None:
    opaque = Opaque(dialect="messages", value={"type": "search_result", "title": "<b>"})
    long = Opaque(dialect="messages", value={"type": "blob", "data": "x" * 9000})
    written = HistoryRenderer().render((say("tool", result(1, opaque, long)),))
    (part,) = written.messages[0].parts
    assert isinstance(part, Text)
    first, second = lines_in(part.text)[0]["output"].split("\n")
    assert json.loads(first) == opaque.value
    assert second.endswith("more characters not shown]")
    assert [loss.feature for loss in written.losses] == ["part.search_result", "part.blob"]


def test_instructions_say_their_words_and_declare_nothing() -> None:
    declaring = say("developer", source=Source("responses", {"type": "additional_tools"}))
    speaking = say("system", "Be brief.", source=Source("messages", {"tools": 1}))
    assert HistoryRenderer().render((declaring, speaking)).messages == (say("system", "Be brief."),)


def test_members_of_a_tools_message_do_not_become_the_users() -> None:
    messages = (
        say("tool", result(1, "x"), extra={"chat": {"name": "read"}}),
        say("user", "y", extra={"chat": {"name": "Ann"}}),
    )
    assert HistoryRenderer().render(messages).messages[0].extra == {"chat": {"name": "Ann"}}
    assert HistoryRenderer().render(messages[:1]).messages[0].extra == {}


def test_a_tool_message_without_a_result_is_the_users() -> None:
    item = Opaque(dialect="responses", value={"type": "odd_output"})
    (message,) = HistoryRenderer().render((say("tool", item, source=Source("responses", item.value)),)).messages
    assert (message.role, message.parts, message.source) == ("user", (item,), Source("responses", item.value))


def test_words_of_ours_keep_what_is_said_of_a_text() -> None:
    cited = Text(
        text="As said.", citations=(Citation(url="u", start=0, end=2),), extra={"messages": {"cache_control": 1}}
    )
    assert with_paragraph(say("system", "a", cited), "Rules.").parts == (
        Text(text="a"),
        Text(text="As said.\n\nRules.", citations=cited.citations, extra=cited.extra),
    )
    behind = HistoryRenderer().render((say("tool", result(1, "x")), say("user", cited))).messages[0].parts
    assert behind[1] == cited  # its citations count letters from its start


PARTS = st.sampled_from(
    [Text(text="words"), Text(text=""), Reasoning(text="r"), Media(kind="image", data="aGk="), Refusal(text="no")]
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    messages: list[Message] = []
    ids = iter(range(10_000))
    for _ in range(draw(st.integers(0, 6))):
        role = draw(st.sampled_from(["user", "assistant", "assistant", "system", "turn"]))
        if role != "turn":
            messages.append(say(role, *draw(st.lists(PARTS, min_size=1, max_size=3))))
            continue
        numbers = [next(ids) for _ in range(draw(st.integers(1, 3)))]
        raws = [draw(st.sampled_from(["{}", '{"a": "</tool_call>"}', '{\n"b":[1]}', "oops"])) for _ in numbers]
        calls = [
            call(n, raw, draw(st.sampled_from(["read", "tool_call"]))) for n, raw in zip(numbers, raws, strict=True)
        ]
        messages.append(say("assistant", *draw(st.lists(PARTS, max_size=2)), *calls))
        messages += [say("tool", result(number, draw(TEXTS))) for number in numbers]
    return tuple(messages)


def flat(messages: tuple[Message, ...]) -> list[Any]:
    """What a server sees, one after the other: letters, other parts, and where a message of somebody else begins."""
    seen: list[Any] = []
    for message in messages:
        seen.append(f"({message.role})")
        for part in message.parts:
            seen += part.text if isinstance(part, Text) else [part]
    return seen


@given(conversations())
def test_a_conversation_that_goes_on_begins_with_the_same_bytes(messages: tuple[Message, ...]) -> None:
    before: list[Any] = []
    for count in range(len(messages) + 1):
        now = flat(HistoryRenderer().render(messages[:count]).messages)
        assert now[: len(before)] == before
        before = now


@given(conversations())
def test_calls_and_results_can_be_read_back(messages: tuple[Message, ...]) -> None:
    """By a reader that knows no more than lines."""
    messages = repair_history(Request(model="m", messages=messages)).request.messages
    parts = [part for message in messages for part in message.parts]
    written = HistoryRenderer().render(messages).messages
    assert not has_calls(written)
    assert all(message.role != "tool" for message in written)
    text = {
        role: "\n".join(p.text for m in written if m.role == role for p in m.parts if isinstance(p, Text))
        for role in ("assistant", "user")
    }
    blocks = [
        json.loads(block) for block in re.findall(r"^<tool_call>\n(.*?)\n</tool_call>$", text["assistant"], re.S | re.M)
    ]
    assert [(block["name"], block["arguments"]) for block in blocks] == [
        (part.name, part.args if part.args is not None else part.raw) for part in parts if isinstance(part, ToolCall)
    ]
    assert [line["output"] for line in lines_in(text["user"])] == [
        "\n".join(text.text for text in part.parts if isinstance(text, Text))
        for part in parts
        if isinstance(part, ToolResult)
    ]
    others = [part for part in parts if isinstance(part, Reasoning | Media | Refusal)]
    assert [p for m in written for p in m.parts if isinstance(p, Reasoning | Media | Refusal)] == others


@pytest.mark.slow
def test_a_long_conversation_costs_its_length() -> None:
    """Twice as much takes about twice as long, also where all of it becomes one message."""
    seconds = []
    for count in (4_000, 16_000):
        results = (say("assistant", call()), *[say("tool", result(1, "<x>"))] * count, *[say("user", "y")] * count)
        tries = []
        for _ in range(3):
            start = time.process_time()
            assert len(HistoryRenderer().render(results).messages) == 2
            tries.append(time.process_time() - start)
        seconds.append(min(tries))
    assert seconds[1] < 12 * seconds[0] + 0.1


def test_a_continued_conversation_is_rendered_like_the_whole() -> None:
    first = (say("user", "Hi."), say("assistant", "Look.", call(1)), say("tool", result(1, "x")))
    second = (*first, say("assistant", "Again.", call(2)), say("tool", result(2, "y")), say("user", "Go on."))
    renderer = HistoryRenderer()
    renderer.render(first)
    assert renderer.render(second) == HistoryRenderer().render(second)
    other = (*first, say("user", "Stop."))
    assert renderer.render(other) == HistoryRenderer().render(other)
