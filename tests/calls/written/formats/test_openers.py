from __future__ import annotations

import pytest

from tests.calls.speaking import CALL, told
from toolwire.calls.written.formats import GRAMMARS, ONLY_INSTRUCTED
from toolwire.calls.written.formats.base import CallClosed, CallGrew, CallOpened
from toolwire.calls.written.formats.openers import Openers, Trial, Until

ALL = Openers(GRAMMARS)


def test_every_opener_is_suspicious_and_found() -> None:
    for grammar in GRAMMARS:
        if grammar.place == "start":
            continue
        for opener in grammar.openers:
            assert ALL.suspicious.match(opener), opener
            found = ALL.at(f"{opener} x", 0)
            assert found is not None
            assert (opener, grammar) in [(text, chosen) for text, chosen in found.choices if chosen is grammar]


def test_every_start_of_an_opener_is_suspicious_and_held() -> None:
    for grammar in GRAMMARS:
        for opener in grammar.openers if grammar.place != "start" else ():
            for end in range(1, len(opener)):
                assert ALL.suspicious.search(f"x{opener[:end]}"), opener[:end]
                assert ALL.may_become(f"x{opener[:end]}", 1)


@pytest.mark.parametrize(
    "text", ["Plain words, with (brackets) and a<b>c<b>.", "It's 5 <6", "The TOOL", "x[0] = {1: 2}", "a -> b"]
)
def test_prose_is_not_suspicious(text: str) -> None:
    assert ALL.suspicious.search(f"{text} so") is None


def test_small_letters_mean_any_case_and_capitals_only_themselves() -> None:
    assert ALL.at("<Tool_Call>", 0) is not None
    assert ALL.at("[TOOL_CALLS]", 0) is not None
    assert ALL.at("tool_call_block>>>", 0) is None


def test_the_longest_comes_first() -> None:
    found = ALL.at("<tool_calls>", 0)
    assert found is not None
    assert found.text == "<tool_calls>"
    sizes = [len(text) for text, _ in found.choices]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == len("<tool_call")


@pytest.mark.parametrize(
    ("text", "kind"),
    [("<think>", "think"), ("</Thinking>", "unthink"), ("<tool_result>", "result"), ("</tool_call>", "stray")],
)
def test_marks(text: str, kind: str) -> None:
    found = ALL.at(text, 0)
    assert found is not None
    assert found.kind == kind


def test_starts() -> None:
    assert [text for text, _ in ALL.starts('{"a": 1}')] == ["{"]
    assert ALL.starts("words") == ()
    assert ALL.may_start("``")
    assert not ALL.may_start("```")


def test_instructed_forms_are_grammars() -> None:
    assert all(grammar in GRAMMARS for grammar in ONLY_INSTRUCTED)
    assert len({id(grammar) for grammar in GRAMMARS}) == len(GRAMMARS)


def trial(opener: str = "<tool_call", until: Until = "nothing") -> Trial:
    opening = Openers(GRAMMARS).at(opener, 0)
    assert opening is not None
    return Trial(opening, told(), lambda grammar: until)


def test_one_grammar_after_the_other_reads_it() -> None:
    found = trial()
    assert found.feed(">get_weather<arg_key>city</arg_key>").pieces == [CallOpened("get_weather")]
    assert found.feed("<arg_value>Paris</arg_value></tool_call> x").pieces[-1] == CallClosed(
        name="get_weather", raw='{"city":"Paris"}'
    )


def test_it_is_none_if_all_say_so() -> None:
    found = trial()
    assert found.feed("> is a tag, </tool_call>").status == "none"
    assert found.span == "<tool_call> is a tag, </tool_call>"


def test_the_last_grammar_may_find_sense_at_the_end() -> None:
    found = trial("<tool_calls>")
    assert found.feed(f"\n{CALL}").status == "more"
    read = found.close()
    assert read.status == "done"
    assert [type(piece) for piece in read.pieces] == [CallClosed]


def test_what_was_given_is_no_longer_kept() -> None:
    found = trial()
    read = found.feed('>{"name": "get_weather", "arguments": {"city')
    assert read.pieces == [CallOpened("get_weather"), CallGrew('{"city')]
    assert found.span == "<tool_call"


def test_where_more_is_asked_nothing_is_given_early() -> None:
    found = trial(until="line")
    assert found.feed(f">{CALL}").pieces == []
    assert found.until == "line"
    assert len(found.feed("</tool_call>").pieces) == 1
