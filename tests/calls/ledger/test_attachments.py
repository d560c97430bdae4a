"""Media of failed results."""

from __future__ import annotations

from msgspec.structs import replace

from tests.calls.telling import assistant, call, result, settled, shown, tool, user
from toolwire.calls.ledger.attachments import ATTACHED, is_loaded
from toolwire.calls.ledger.repair import Reader, settle
from toolwire.types import Media, Request, Text, ToolResult

PICTURE = Media(kind="image", url="https://example.com/a.png")


def failed(call_id: str, *parts: Text | Media) -> ToolResult:
    return ToolResult(call_id=call_id, parts=parts, is_error=True)


def test_only_failed_results_with_media_are_loaded() -> None:
    assert is_loaded(failed("a", PICTURE))
    assert not is_loaded(failed("a", Text(text="no")))
    assert not is_loaded(ToolResult(call_id="a", parts=(PICTURE,)))


def test_media_of_a_failed_result_follow_all_results_of_the_turn() -> None:
    calls = assistant(call("a"), call("b"))
    messages, kinds = settled(
        user("hi"), calls, tool(failed("a", Text(text="no"), PICTURE)), tool(result("b")), user("so")
    )
    assert kinds == ["media"]
    assert shown(messages)[3:] == [
        "failed:a",
        "result:b",
        'user:Attachment(s) of failed tool result "a":',
        "user:Media",
        "user:so",
    ]
    assert messages[2].parts[0].parts == (Text(text="no"),)  # type: ignore[union-attr] # it is a result
    assert PICTURE in messages[4].parts


def test_they_stand_before_what_the_user_says_in_the_same_message() -> None:
    mixed = user(failed("a", PICTURE), result("b"), "see?")
    messages, _ = settled(user("hi"), assistant(call("a"), call("b")), mixed)
    assert len(messages) == 3
    assert shown(messages[2:]) == [
        "failed:a",
        "result:b",
        'user:Attachment(s) of failed tool result "a":',
        "user:Media",
        "user:see?",
    ]
    assert messages[2].parts[0].parts == (Text(text=ATTACHED),)  # type: ignore[union-attr] # it is a result


def test_the_last_results_are_followed_by_them_too() -> None:
    messages, _ = settled(user("hi"), assistant(call("a")), tool(failed("a", PICTURE)))
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user"]


def test_where_results_are_items_they_hold_what_they_like() -> None:
    history = (user("hi"), assistant(call("a")), tool(failed("a", PICTURE)))
    assert settled(*history, origin="responses") == (list(history), [])


def test_where_failures_may_hold_them_they_stay() -> None:
    history = (user("hi"), assistant(call("a")), tool(failed("a", Text(text="no"), PICTURE)))
    request = Request(model="m", messages=history, origin="messages")
    done = settle(request, Reader(fails_in_words=False))
    assert (done.request is request, done.repairs) == (True, ())
    broken = replace(request, messages=(*history, tool(result("nobody"))))  # something else is mended there
    settled_too = settle(broken, Reader(fails_in_words=False)).request.messages
    assert history[-1].parts[0] in [part for message in settled_too for part in message.parts]
