"""The tokens and the vectors of the sentence encoder."""

from __future__ import annotations

import json
import random
from math import erf, exp, sqrt
from struct import pack
from typing import TypeAlias

import pytest

from toolwire.calls.search.encoder import SentenceEncoder, Tokenizer

Rows: TypeAlias = list[list[float]]

VOCABULARY = "\n".join(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "read", "file", "##s", "##ing", "cafe", ".", "_", "un", "##read", "a"]
)
WIDTH, INNER, HEADS, LAYERS, POSITIONS = 4, 8, 2, 2, 128


def words(text: str) -> list[str]:
    return [VOCABULARY.splitlines()[number] for number in Tokenizer(VOCABULARY).tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Read files.", ["read", "file", "##s", "."]),
        ("reading_file", ["read", "##ing", "_", "file"]),
        ("CAFÉ unread", ["cafe", "un", "##read"]),
        ("read zebra", ["read", "[UNK]"]),
        ("", []),
    ],
)
def test_words_are_split_into_the_longest_pieces(text: str, expected: list[str]) -> None:
    assert words(text) == ["[CLS]", *expected, "[SEP]"]


def test_long_texts_are_cut() -> None:
    assert len(words("a " * 1000)) == 128
    assert words("x" * 100_000) == ["[CLS]", "[UNK]", "[SEP]"]


def shapes() -> dict[str, list[int]]:
    found = {
        "embeddings.word_embeddings": [len(VOCABULARY.splitlines()), WIDTH],
        "embeddings.position_embeddings": [POSITIONS, WIDTH],
        "embeddings.token_type_embeddings": [2, WIDTH],
        "embeddings.LayerNorm": [WIDTH],
    }
    for number in range(LAYERS):
        for name, shape in {
            "attention.self.query": [WIDTH, WIDTH],
            "attention.self.key": [WIDTH, WIDTH],
            "attention.self.value": [WIDTH, WIDTH],
            "attention.output.dense": [WIDTH, WIDTH],
            "attention.output.LayerNorm": [WIDTH],
            "intermediate.dense": [INNER, WIDTH],
            "output.dense": [WIDTH, INNER],
            "output.LayerNorm": [WIDTH],
        }.items():
            found[f"encoder.layer.{number}.{name}"] = shape
    return found


def model() -> tuple[bytes, dict[str, list[float]]]:
    """A small model with random weights: the file, and the numbers."""
    source = random.Random(7)
    numbers: dict[str, list[float]] = {}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, shape in shapes().items():
        for part in ("weight", "bias"):
            if part == "bias" and name.endswith("embeddings"):
                continue
            size = [shape[0]] if part == "bias" else shape
            count = size[0] * (size[1] if len(size) > 1 else 1)
            values = [source.uniform(-1, 1) for _ in range(count)]
            packed = pack(f"<{count}f", *values)
            header[f"{name}.{part}"] = {
                "dtype": "F32",
                "shape": size,
                "data_offsets": [len(data), len(data) + len(packed)],
            }
            data += packed
            numbers[f"{name}.{part}"] = values
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data, numbers


def test_the_vector_is_that_of_a_plain_implementation() -> None:
    pytest.importorskip("numpy", reason="the extra `encoder` is not installed")
    file, numbers = model()
    encoder = SentenceEncoder(file, VOCABULARY, HEADS)
    for text in ("read files.", "a", "unreading a file, a cafe"):
        expected = plain_vector(numbers, Tokenizer(VOCABULARY).tokens(text))
        assert encoder.encode(text) == pytest.approx(expected, abs=2e-3)  # GELU is approximated
        assert sum(value**2 for value in encoder.encode(text)) == pytest.approx(1.0, abs=1e-5)


def plain_vector(numbers: dict[str, list[float]], tokens: list[int]) -> list[float]:
    """The same model, number by number."""

    def row(name: str, place: int) -> list[float]:
        return numbers[f"{name}.weight"][place * WIDTH : (place + 1) * WIDTH]

    def linear(rows: Rows, name: str) -> Rows:
        weight, bias = numbers[f"{name}.weight"], numbers[f"{name}.bias"]
        size = len(rows[0])
        return [
            [sum(one[k] * weight[j * size + k] for k in range(size)) + bias[j] for j in range(len(bias))]
            for one in rows
        ]

    def norm(rows: Rows, name: str) -> Rows:
        weight, bias = numbers[f"{name}.weight"], numbers[f"{name}.bias"]
        found = []
        for one in rows:
            mean = sum(one) / WIDTH
            deviation = sqrt(sum((value - mean) ** 2 for value in one) / WIDTH + 1e-12)
            found.append([(value - mean) / deviation * weight[j] + bias[j] for j, value in enumerate(one)])
        return found

    def plus(a: Rows, b: Rows) -> Rows:
        return [[x + y for x, y in zip(one, other, strict=True)] for one, other in zip(a, b, strict=True)]

    states = [
        [
            a + b + c
            for a, b, c in zip(
                row("embeddings.word_embeddings", token),
                row("embeddings.position_embeddings", place),
                row("embeddings.token_type_embeddings", 0),
                strict=True,
            )
        ]
        for place, token in enumerate(tokens)
    ]
    states = norm(states, "embeddings.LayerNorm")
    size = WIDTH // HEADS
    for number in range(LAYERS):
        name = f"encoder.layer.{number}."
        query, key, value = (linear(states, f"{name}attention.self.{part}") for part in ("query", "key", "value"))
        mixed = [[0.0] * WIDTH for _ in tokens]
        for first in range(0, WIDTH, size):
            places = range(first, first + size)
            for i in range(len(tokens)):
                scores = [exp(sum(query[i][p] * key[j][p] for p in places) / sqrt(size)) for j in range(len(tokens))]
                for p in places:
                    mixed[i][p] = sum(score * value[j][p] for j, score in enumerate(scores)) / sum(scores)
        states = norm(plus(states, linear(mixed, f"{name}attention.output.dense")), f"{name}attention.output.LayerNorm")
        inner = [[x * 0.5 * (1 + erf(x / sqrt(2))) for x in one] for one in linear(states, f"{name}intermediate.dense")]
        states = norm(plus(states, linear(inner, f"{name}output.dense")), f"{name}output.LayerNorm")
    mean = [sum(one[j] for one in states) / len(states) for j in range(WIDTH)]
    length = sqrt(sum(value**2 for value in mean))
    return [value / length for value in mean]
