"""What the gateway ran for an answer is in the next request of the same conversation."""

from __future__ import annotations

from toolwire.pipeline.mounted.rounds import PastRounds
from toolwire.types import Message, Text, ToolCall, ToolResult

USER = Message(role="user", parts=(Text(text="hi"),))
OWN = ToolCall(id="own", name="weather", raw="{}")
RESULT = Message(role="tool", parts=(ToolResult(call_id="own", parts=(Text(text="rain"),)),))


def rounds(text: str = "done") -> tuple[Message, ...]:
    call, result = ToolCall(id="h", name="box__echo", raw="{}"), ToolResult(call_id="h", parts=(Text(text=text),))
    return (Message(role="assistant", parts=(call,)), Message(role="tool", parts=(result,)))


def history(*before: Message, call_id: str = "own") -> tuple[Message, ...]:
    answer = Message(role="assistant", parts=(Text(text="Let me see."), ToolCall(id=call_id, name="weather", raw="{}")))
    return (*before, answer, RESULT)


def test_the_rounds_are_added_before_the_call_of_the_client() -> None:
    past = PastRounds()
    assert past.restored(history(USER), "ann") == history(USER)
    past.add("ann", (USER,), [OWN], "", rounds())
    found = past.restored(history(USER), "ann")
    assert found == (USER, *rounds(), *history())
    later = (*history(USER), Message(role="user", parts=(Text(text="and?"),)))
    assert past.restored(later, "ann")[1:3] == rounds()


def test_other_owners_conversations_and_calls_get_nothing() -> None:
    past = PastRounds()
    past.add("ann", (USER,), [OWN], "", rounds())
    other = Message(role="user", parts=(Text(text="hello"),))
    for messages, owner in ((history(USER), "bob"), (history(other), "ann"), (history(USER, call_id="else"), "ann")):
        assert past.restored(messages, owner) is messages


def test_several_calls_of_one_answer_add_the_rounds_once() -> None:
    past, second = PastRounds(), ToolCall(id="two", name="weather", raw="{}")
    past.add("ann", (USER,), [OWN, second], "", rounds())
    messages = (USER, Message(role="assistant", parts=(OWN, second)), RESULT)
    assert past.restored(messages, "ann") == (USER, *rounds(), *messages[1:])


def test_an_answer_without_calls_is_known_by_its_text() -> None:
    past = PastRounds()
    past.add("ann", (USER,), [], "It is\nmellon.", rounds())
    answer, more = (
        Message(role="assistant", parts=(Text(text="It is mellon."),)),
        Message(role="user", parts=(Text(text="?"),)),
    )
    assert past.restored((USER, answer, more), "ann") == (USER, *rounds(), answer, more)
    other = (USER, Message(role="assistant", parts=(Text(text="It is not."),)), more)
    assert past.restored(other, "ann") is other


def test_the_memory_is_bounded() -> None:
    past = PastRounds(most_bytes=2500)
    for number in range(4):
        past.add("ann", (USER,), [ToolCall(id=f"c{number}", name="f", raw="{}")], "", rounds("x" * 1000))
    found = [len(past.restored(history(USER, call_id=f"c{number}"), "ann")) for number in range(4)]
    assert found == [3, 3, 5, 5]
