from __future__ import annotations

import pytest

from toolwire.calls.written.formats import GRAMMARS, ONLY_TOLD
from toolwire.calls.written.formats.openers import Openers

pytestmark = pytest.mark.slow

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


def test_forms_that_need_telling_are_grammars() -> None:
    assert all(grammar in GRAMMARS for grammar in ONLY_TOLD)
    assert len({id(grammar) for grammar in GRAMMARS}) == len(GRAMMARS)
