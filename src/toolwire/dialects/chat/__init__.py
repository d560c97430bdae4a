"""OpenAI Chat Completions, both directions."""

from __future__ import annotations

from functools import partial

from ..base import Dialect, Endpoint
from ..shared.answer_in import BodyDecoder
from ..shared.answer_out import BodyEncoder
from ..shared.errors import decode_error, decode_models, encode_error, encode_model, encode_models
from .answer_in import ChatStreamDecoder
from .answer_out import ChatStreamEncoder, body_of
from .body_in import body_events, regular_body_events
from .embeddings import decode_embeddings, embeddings_body
from .request_in import decode_request
from .request_out import encode_request
from .shapes import NAME

PATH = "/chat/completions"


DIALECT = Dialect(
    name=NAME,
    path=PATH,
    routes={
        PATH: Endpoint(task="answer", decode=decode_request),
        "/embeddings": Endpoint(task="embed", decode=decode_embeddings, embedded=embeddings_body),
    },
    claims=lambda given: True,  # the default, if no other dialect claims the request
    decode_request=decode_request,
    encode_request=encode_request,
    stream_decoder=ChatStreamDecoder,
    body_decoder=partial(
        BodyDecoder, events_of=body_events, stream=ChatStreamDecoder, regular_events_of=regular_body_events
    ),
    stream_encoder=ChatStreamEncoder,
    body_encoder=partial(BodyEncoder, body_of=body_of),
    decode_error=decode_error,
    encode_error=encode_error,
    encode_models=encode_models,
    encode_model=encode_model,
    decode_models=decode_models,
)
