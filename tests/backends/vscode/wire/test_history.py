"""Histories: turns alternate, every result stands first behind the turn that called, and no call is without one."""

from __future__ import annotations

from itertools import pairwise, zip_longest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.vscode.wire.agreed import faults
from tests.backends.vscode.wire.conversations import (
    MESSAGES,
    assistant,
    call,
    prepare,
    result,
    user,
    words,
)
from tests.backends.vscode.wire.pictures import PNG, image
from tests.thorough import examples
from toolwire.backends.vscode.wire import shapes as bridge
from toolwire.backends.vscode.wire.frames import encode as encode_frame
from toolwire.backends.vscode.wire.history import ChatHistory
from toolwire.types import (
    Loss,
    Media,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Request,
    Text,
    ToolResult,
)
from toolwire.wire.exact_json import decode


def turns_of(
    *messages: Message, losses: list[Loss] | None = None, can_see: bool = True, origin: str = "chat"
) -> tuple[bridge.ChatMessage, ...]:
    request = prepare(Request(model="m", messages=messages, origin=origin))
    history = ChatHistory(request, [] if losses is None else losses, can_see=can_see)
    for index, message in enumerate(request.messages):
        history.add(message, f"messages[{index}]")
    return history.messages()


def test_one_text_a_turn_and_results_first() -> None:
    messages = turns_of(
        user("Hi"),
        assistant("Let me", call("1", raw='{"a":1}'), "look.", call("2")),
        user(result("2", "two"), "and then?"),
        user(result("1", "one", "more")),
        assistant("Done."),
    )
    assert [words(message) for message in messages] == [
        ["user", "Hi"],
        ["assistant", "Let me\nlook.", 'call 1 f {"a":1}', "call 2 f {}"],
        ["user", "result 1 one\nmore", "result 2 two", "and then?"],
        ["assistant", "Done."],
    ]


def test_turns_of_one_speaker_become_one() -> None:
    messages = turns_of(user("a"), user("b", ""), assistant("c"), assistant("d"), user("e"))
    assert [words(message) for message in messages] == [["user", "a", "b"], ["assistant", "c\nd"], ["user", "e"]]


def test_H093_a_failure_begins_with_its_line() -> None:
    *_, message = turns_of(assistant(call("1"), call("2")), user(result("1", "no such file", is_error=True)))
    first, second = words(message)[1:]
    assert first == "result 1 Error: the tool call failed.\nno such file"
    assert second.startswith("result 2 Error: the tool call failed.\nInterrupted: no result of this call was recorded.")


def test_a_failure_that_is_an_image_begins_with_its_line_too() -> None:
    failed = ToolResult(call_id="1", parts=(image("image/png", PNG),), is_error=True)
    *_, message = turns_of(assistant(call("1")), user(failed))
    assert words(message)[1].startswith("result 1 Error: the tool call failed.")
    assert words(message)[-1] == "data image/png"


def test_results_without_a_call_are_words_of_the_user() -> None:
    messages = turns_of(assistant(call("1")), user(result("1"), result("1", "again"), result("9", "x")))
    first, *rest = words(messages[-1])[1:]
    assert first == "result 1 ok"
    assert {"again", "x"} <= set(rest)
    assert not any(isinstance(part, bridge.ResultPart) for part in messages[-1].parts[1:])


def test_H045_ids_are_short_and_no_other_calls() -> None:
    given_calls = (call("x" * 80), call("a.b"), call(""), call("1"), call("1", name="g"))
    messages = turns_of(user("Hi"), assistant(*given_calls), user("Go on"), assistant(call("1")))
    ids = [part.id for message in messages for part in message.parts if isinstance(part, bridge.CallPart)]
    assert len(set(ids)) == 6
    assert all(0 < len(id) <= 40 for id in ids)
    assert ids[3] == "1"


def test_H048_the_same_id_again_is_another_call() -> None:
    _, *messages = turns_of(assistant(call("1")), user(result("1", "a")), assistant(call("1")), user(result("1", "b")))
    assert [words(message)[1] for message in messages] == ["call 1 f {}", "result 1 a", "call 1_2 f {}", "result 1_2 b"]


def test_arguments_that_are_no_object_stay_readable() -> None:
    _, message, _ = turns_of(
        assistant(call("1", raw='{"a":'), call("2", raw=""), call("3", raw='{"n":12345678901234567890}'))
    )
    assert words(message)[1:] == [
        'call 1 f {"_raw":"{\\"a\\":"}',
        "call 2 f {}",
        'call 3 f {"n":12345678901234567890}',
    ]


def test_integers_that_lose_digits_are_a_loss() -> None:
    losses: list[Loss] = []
    turns_of(user("Hi"), assistant(call("1", raw='{"n":9007199254740992}')), losses=losses)
    assert losses == []
    turns_of(user("Hi"), assistant(call("1", raw='{"n":9007199254740993}')), losses=losses)
    assert [(loss.feature, loss.where) for loss in losses] == [("call.integer", "messages[1]")]


def test_data_parts_go_back_whence_they_came() -> None:
    marker = {"type": "data", "mime": "stateful_marker", "data": "QQ=="}
    kept = Message(role="assistant", parts=(Text(text="b"),), extra={"vscode": {"data": [marker, {"mime": 3}]}})
    own = Opaque(dialect="vscode", value=marker)
    broken = Opaque(dialect="vscode", value={"mime": "x", "data": "%"})
    messages = turns_of(user("Hi"), assistant("a", own, broken), user("x"), kept)
    assert words(messages[1]) == ["assistant", "a", "data stateful_marker"]
    assert words(messages[3]) == ["assistant", "b", "data stateful_marker"]


def test_what_has_no_place_is_a_loss() -> None:
    losses: list[Loss] = []
    messages = turns_of(
        user("Hi"),
        assistant(Reasoning(text="hm"), Refusal(text="No.")),
        user(call("1"), Refusal(text="Yes.")),
        losses=losses,
    )
    assert [words(message) for message in messages[1:]] == [["assistant", "No."], ["user", "Yes."]]
    assert [loss.feature for loss in losses] == ["reasoning", "part"]


@pytest.mark.parametrize("origin", ["chat", "vscode"])
def test_images_that_can_be_shown_are_shown(origin: str) -> None:
    losses: list[Loss] = []
    png = image("image/png", PNG)
    bmp = Media(kind="image", mime="image/bmp", data="Qk0AAAAAAAAAAAAAAAAA")
    address = Media(kind="image", url="https://example.com/a.png")
    listed = Media(kind="file", mime="text/plain", name="a.txt", data="aGk=")
    seen = ToolResult(call_id="1", parts=(Text(text="a"), png, Text(text="b"), Text(text="c")))
    messages = turns_of(
        user("look", png, bmp, address, listed), assistant(call("1")), user(seen), losses=losses, origin=origin
    )
    shown = words(messages[0])
    assert shown[:3] == ["user", "look", "data image/png"]
    assert shown[3].startswith("[image not shown: image/bmp")
    assert shown[4].startswith("[image not shown: https://example.com/a.png")
    assert "\nhi\n" in shown[5]
    assert words(messages[2]) == ["user", "result 1 a|image/png|b\nc"]
    assert [loss.feature for loss in losses] == ["media.image", "media.image", "media.file"]


def test_a_model_without_vision_gets_a_description_of_images() -> None:
    losses: list[Loss] = []
    (message,) = turns_of(user("look", image("image/png", PNG)), losses=losses, can_see=False)
    assert words(message)[2].startswith("[image not shown: image/png")
    assert losses == [Loss("media.image", "messages[0]", "this model sees no images")]


@examples(120)
@given(st.lists(MESSAGES, max_size=7))
def test_H032_H033_H042_hostile_histories_are_paired(given_messages: list[Message]) -> None:
    messages = turns_of(*given_messages)
    for message, after in zip_longest(messages, messages[1:]):
        assert faults("ChatMessage", _plain(message)) == []
        kinds = [type(part) for part in message.parts]
        if message.role == "user":
            assert bridge.CallPart not in kinds
            count = kinds.count(bridge.ResultPart)
            assert set(kinds[:count]) <= {bridge.ResultPart}
            continue
        assert kinds.count(bridge.TextPart) <= 1
        assert bridge.ResultPart not in kinds
        calls = [part.id for part in message.parts if isinstance(part, bridge.CallPart)]
        results = [part.id for part in after.parts if isinstance(part, bridge.ResultPart)] if after else []
        assert results == calls
    roles = [message.role for message in messages]
    assert all(one != other for one, other in pairwise(roles))
    calls = [part.id for message in messages for part in message.parts if isinstance(part, bridge.CallPart)]
    assert len(set(calls)) == len(calls)


def _plain(message: bridge.ChatMessage) -> Any:
    """As it is sent."""
    return decode(encode_frame(bridge.Chat(id="r1", model="m", messages=(message,))))["messages"][0]
