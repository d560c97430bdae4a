"""Whether a server constrains its output: by profile, by the owner's setting, or by the first trial."""

from __future__ import annotations

from msgspec.structs import replace

from tests.pipeline.jobs import Closed
from toolwire.pipeline.grammar import GrammarMemory, no_grammar
from toolwire.profiles import DEEPSEEK, LLAMA_CPP, PLAIN_CHAT


def test_the_profile_decides_where_it_knows_and_nothing_is_learned() -> None:
    memory = GrammarMemory()
    for profile, known in ((LLAMA_CPP, True), (DEEPSEEK, False)):
        support = memory.support(Closed(profile=profile), "m", "auto")
        support.record(works=not known)
        assert memory.support(Closed(profile=profile), "m", "auto").may_constrain is known


def test_an_unknown_server_is_tried_and_the_result_is_remembered_for_the_model() -> None:
    memory, backend = GrammarMemory(), Closed(profile=PLAIN_CHAT)
    assert memory.support(backend, "bad", "auto").may_constrain
    memory.support(backend, "bad", "auto").record(works=False)
    memory.support(backend, "good", "auto").record(works=True)
    assert not memory.support(backend, "bad", "auto").may_constrain
    assert memory.support(backend, "good", "auto").may_constrain
    other = Closed(profile=replace(PLAIN_CHAT, name="other"))
    other.name = "other"
    assert memory.support(other, "bad", "auto").may_constrain


def test_the_owner_decides_before_the_profile() -> None:
    memory = GrammarMemory()
    assert memory.support(Closed(profile=DEEPSEEK), "m", "on").may_constrain
    assert not memory.support(Closed(profile=LLAMA_CPP), "m", "off").may_constrain
    assert not no_grammar().may_constrain


def test_the_memory_is_bounded() -> None:
    memory, backend = GrammarMemory(), Closed(profile=PLAIN_CHAT)
    for number in range(1001):
        memory.support(backend, str(number), "auto").record(works=False)
    assert memory.support(backend, "0", "auto").may_constrain
    assert not memory.support(backend, "1000", "auto").may_constrain


def test_a_known_server_refuses_only_the_schema_that_it_refused() -> None:
    memory, backend = GrammarMemory(), Closed(profile=LLAMA_CPP)
    memory.support(backend, "m", "auto").record_refusal({"type": "string"})
    support = memory.support(backend, "m", "auto")
    assert support.may_constrain
    assert support.has_refused({"type": "string"})
    assert not support.has_refused({"type": "object"})
    assert not memory.support(backend, "other", "auto").has_refused({"type": "string"})


def test_an_unknown_server_that_refuses_a_schema_is_not_asked_for_another() -> None:
    memory, backend = GrammarMemory(), Closed(profile=PLAIN_CHAT)
    memory.support(backend, "m", "auto").record_refusal({"type": "string"})
    assert not memory.support(backend, "m", "auto").may_constrain
