"""The script format: where a script is found, which turn is played, and what a broken one is told."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.backends.event_contract import assistant, result, user
from toolwire.backends.scripted.script import ScriptedCall, answers_in, answers_of, cue_in_prompt, parse_file
from toolwire.errors import BadRequest
from toolwire.types import Message, Text


def mark(script: Any) -> str:
    return f"[[script:{base64.b64encode(json.dumps(script).encode()).decode()}]]"


def text_played(*messages: Message) -> str | None:
    cue = cue_in_prompt(messages)
    return None if cue is None else cue.turn.text


def test_no_script_is_no_turn() -> None:
    assert cue_in_prompt([user("hello [[script]]")]) is None


def test_the_last_script_of_the_user_is_played() -> None:
    messages = (user(f"a {mark({'text': 'one'})} b"), assistant("one"), user(mark({"text": "two"}), "and"))
    assert text_played(*messages) == "two"


def test_only_texts_of_user_messages_hold_scripts() -> None:
    foreign = mark({"text": "foreign"})
    assert (
        text_played(Message(role="system", parts=(Text(text=foreign),)), assistant(foreign), result("c", foreign))
        is None
    )


@pytest.mark.parametrize("pad", [True, False])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_both_alphabets_with_and_without_padding(pad: bool, encode: Any) -> None:
    encoded = encode(json.dumps({"text": "ÿþ?>~~ü"}, ensure_ascii=False).encode()).decode()
    assert text_played(user(f"[[script:{encoded if pad else encoded.rstrip('=')}]]")) == "ÿþ?>~~ü"


def test_turns_advance_with_the_answers_after_the_script() -> None:
    script = user(mark({"turns": [{"text": "one"}, {"text": "two"}]}))
    before = (user("hi"), assistant("hello"))
    assert text_played(*before, script) == "one"
    assert text_played(*before, script, assistant("one"), result("c", "r")) == "two"
    assert text_played(*before, script, assistant("one"), user("b"), assistant("two"), user("c")) == "two"


def test_the_first_script_of_turns_counts_when_it_is_said_again() -> None:
    script = user(mark({"turns": [{"text": "one"}, {"text": "two"}, {"text": "three"}]}))
    assert text_played(script, assistant("one"), script) == "two"


def test_neighbouring_assistant_messages_are_one_answer() -> None:
    assert answers_in([assistant("a"), assistant("b"), result("c", "r"), assistant("d")]) == 2
    assert answers_in([]) == 0
    parted = [assistant("a"), assistant("b"), user("c"), assistant("d")]
    assert answers_of(parted) == [parted[:2], parted[3:]]


def test_a_cue_is_the_script_and_what_was_said_since() -> None:
    cue = cue_in_prompt((user("hi"), user(mark({"turns": [{"text": "one"}], "strict": True})), assistant("one")))
    assert cue is not None
    assert (cue.script.strict, cue.past) == (True, (assistant("one"),))


def test_arguments_keep_their_digits() -> None:
    encoded = base64.b64encode(b'{"calls": [{"name": "add", "arguments": {"a": 12345678901234567890123}}]}').decode()
    cue = cue_in_prompt([user(f"[[script:{encoded}]]")])
    assert cue is not None
    assert cue.turn.calls == (ScriptedCall(name="add", arguments={"a": 12345678901234567890123}),)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[[script:!]]", "expected base64"),
        (f"[[script:{base64.b64encode(b'{').decode()}]]", "not JSON"),
        (mark([1]), "Expected `object`"),
        (mark({"texts": "a"}), "unknown field `texts`"),
        (mark({"chunk": "a"}), "`$.chunk`"),
        (mark({"turns": []}), "at least one turn"),
        (mark({"turns": [{"calls": [{}]}]}), "$.turns[0].calls[0]"),
    ],
)
def test_a_malformed_script_gets_an_error_that_says_what_is_wrong(written: str, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        cue_in_prompt([user(written)])
    assert said in caught.value.message
    assert (caught.value.code, caught.value.where) == ("bad_script", "script")


def test_a_deep_script_is_refused() -> None:
    deep = b'{"calls": [{"name": "a", "arguments": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}]}"
    with pytest.raises(BadRequest):
        cue_in_prompt([user(f"[[script:{base64.b64encode(deep).decode()}]]")])


def test_a_file_has_turns_for_all_or_by_model() -> None:
    everyone = parse_file(b'{"turns": [{"text": "all"}], "models": {"a": {"turns": [{"text": "only a"}]}}}')
    for model, text in (("a", "only a"), ("b", "all")):
        script = everyone.script_for(model)
        assert script is not None
        assert script.turn(0).text == text
    assert parse_file(b'{"models": {"a": {"turns": [{}]}}}').script_for("b") is None


def test_a_file_can_be_strict() -> None:
    script = parse_file(b'{"turns": [{}], "strict": true}').script_for("m")
    assert script is not None
    assert script.strict


@pytest.mark.parametrize("data", [b"", b"{}", b'{"turns": []}', b'{"models": {"a": {"turns": []}}}', b'{"model": {}}'])
def test_a_file_without_turns_is_refused(data: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_file(data)
