"""Ollama's own API, for its clients: /api/chat, /api/generate and the paths around them.

As a back end Ollama is a server of Chat Completions, so this dialect has no other direction.
"""

from __future__ import annotations

from functools import partial

from ...wire.exact_json import encode
from ..base import Endpoint, FrontDialect
from ..shared.answer_out import BodyEncoder
from .answer_out import OllamaStreamEncoder, body_of, load_answer
from .embeddings import decode_embed, decode_embedding, embed_body, embedding_body
from .models import encode_error, encode_model, encode_models, name_in, pull_answer
from .request_in import decode_generate, decode_pull, decode_request
from .shapes import NAME, NDJSON

# The release whose API this is. Clients compare it: GitHub Copilot needs 0.6.4.
VERSION = "0.33.0"


def add_member(wire: bytes, report: bytes) -> bytes:
    """In the last line. Libraries read each line as a part of the answer, so the report has no line of its own."""
    return wire[:-2] + b',"toolwire":' + report + b"}\n" if wire.endswith(b"}\n") else wire


DIALECT = FrontDialect(
    name=NAME,
    routes={
        "/api/chat": Endpoint(task="answer", decode=decode_request, load=load_answer),
        "/api/generate": Endpoint(task="answer", decode=decode_generate, load=load_answer),
        "/api/tags": Endpoint(task="models"),
        "/api/show": Endpoint(task="model", name_in=name_in),
        "/api/ps": Endpoint(task="fixed", body=b'{"models":[]}'),  # back ends load models, and do not list which
        "/api/version": Endpoint(task="fixed", body=encode({"version": VERSION})),
        "/api/pull": Endpoint(task="answer", decode=decode_pull, load=pull_answer),
        "/api/embed": Endpoint(task="embed", decode=decode_embed, embedded=embed_body),
        "/api/embeddings": Endpoint(task="embed", decode=decode_embedding, embedded=embedding_body),
    },
    error_paths="/api/",
    stream_type=NDJSON,
    heartbeat=b" ",  # white space before the next line; the official libraries parse an empty line as JSON and fail
    add_report=add_member,
    decode_request=decode_request,
    stream_encoder=OllamaStreamEncoder,
    body_encoder=partial(BodyEncoder, body_of=body_of),
    encode_error=encode_error,
    encode_models=encode_models,
    encode_model=encode_model,
)
