"""The search for tools by meaning: vectors in the background, and two rankings in turn."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec

import pytest

from tests.mcp_tools import Question, fresh_questions, questions, recorded_tools
from toolwire.calls.search.index import ToolIndex
from toolwire.memory.tool_embeddings import MODEL, ToolEmbeddings, installed_embeddings, merged
from toolwire.types import Tool

TOOLS = (
    Tool(name="mcp__maps__distance", description="Distance between places."),
    Tool(name="mcp__clock__getTime", description="The time."),
    Tool(name="mcp__files__read", description="Reads."),
)
MEANINGS = {"far": 0, "distance": 0, "late": 1, "time": 1, "open": 2, "read": 2}


def encode(text: str) -> Sequence[float]:
    """A vector that has 1 for each meaning of the text."""
    vector = [0.0, 0.0, 0.0]
    for word in text.lower().replace(".", " ").split():
        if word in MEANINGS:
            vector[MEANINGS[word]] = 1.0
    return vector


def test_tools_are_ranked_by_meaning_when_their_vectors_are_known() -> None:
    embeddings = ToolEmbeddings(lambda: encode)
    assert embeddings.rank(TOOLS, "how far is it") == []
    embeddings.prepare(TOOLS)
    embeddings.wait()
    assert embeddings.rank(TOOLS, "how far is it")[0] == "mcp__maps__distance"
    assert embeddings.rank(TOOLS, "how late is it")[0] == "mcp__clock__getTime"
    assert embeddings.rank((*TOOLS, Tool(name="new")), "how late is it") == []


def test_no_request_waits_for_the_vectors() -> None:
    release, texts = threading.Event(), list[str]()

    def slow(text: str) -> Sequence[float]:
        release.wait()
        texts.append(text)
        return encode(text)

    embeddings = ToolEmbeddings(lambda: slow)
    embeddings.prepare(TOOLS)
    embeddings.prepare(TOOLS)
    assert embeddings.rank(TOOLS, "how far is it") == []
    release.set()
    embeddings.wait()
    assert texts == ["maps distance. Distance between places.", "clock get time. The time.", "files read. Reads."]


def test_an_encoder_that_fails_ends_only_the_search_by_meaning(caplog: pytest.LogCaptureFixture) -> None:
    def load() -> object:
        raise OSError("no such file")

    embeddings = ToolEmbeddings(load)  # type: ignore[arg-type]  # it never returns
    embeddings.prepare(TOOLS)
    embeddings.wait()
    embeddings.prepare(TOOLS)
    embeddings.wait()
    assert embeddings.rank(TOOLS, "how far is it") == []
    assert [record.getMessage() for record in caplog.records] == [
        "the sentence encoder for the tool search cannot be used: OSError"
    ]


def test_two_rankings_are_used_in_turn() -> None:
    assert merged(["a", "b", "c"], ["b", "d", "e"], 4) == ("a", "b", "d", "c")
    assert merged(["a"], [], 10) == ("a",)
    assert merged([], ["a", "b"], 1) == ("a",)


def test_without_the_extra_there_is_none() -> None:
    assert (installed_embeddings() is None) == (find_spec(MODEL) is None or find_spec("numpy") is None)


@pytest.mark.slow
def test_the_right_tool_of_500_is_found_by_words_or_meaning() -> None:
    """Measured: 98 % of the 60 questions that the weights of BM25 were not chosen with, 91 % of the 100 further ones."""
    embeddings = installed_embeddings()
    if embeddings is None:
        pytest.skip("the extra `encoder` is not installed: 90 MB of weights")
    tools = recorded_tools()
    embeddings.prepare(tools)
    embeddings.wait()
    index = ToolIndex(tools)

    def recall(asked: list[Question]) -> float:
        hits = 0
        for question in asked:
            words = [tools[place].name for place in index.rank(question.text, 10)]
            found = merged(words, embeddings.rank(tools, question.text), 10)
            hits += any(name in question.answers for name in found)
        return hits / len(asked)

    assert recall(list(questions())) >= 0.98
    assert recall([question for question in questions() if question.is_held_out]) >= 0.97
    assert recall(list(fresh_questions())) >= 0.9
