"""OpenAI Responses, both directions."""

from __future__ import annotations

from functools import partial

from ..base import Dialect, Endpoint
from ..shared.answer_in import BodyDecoder
from ..shared.answer_out import BodyEncoder
from ..shared.errors import decode_error, decode_models, encode_error, encode_model, encode_models
from .answer_in import ResponsesStreamDecoder
from .answer_out import ResponsesStreamEncoder, body_of
from .body_in import body_events
from .compaction_form import decode_compact
from .request_in import decode_request
from .request_out import COMPACT_PATH, PATH, encode_request, path_of
from .shapes import NAME

DIALECT = Dialect(
    name=NAME,
    path=PATH,
    routes={
        PATH: Endpoint(task="answer", decode=decode_request),
        COMPACT_PATH: Endpoint(task="answer", decode=decode_compact),
    },
    path_of_request=path_of,
    error_paths="/conversations",
    decode_request=decode_request,
    encode_request=encode_request,
    stream_decoder=ResponsesStreamDecoder,
    body_decoder=partial(BodyDecoder, events_of=body_events, stream=ResponsesStreamDecoder),
    stream_encoder=ResponsesStreamEncoder,
    body_encoder=partial(BodyEncoder, body_of=body_of),
    decode_error=decode_error,
    encode_error=encode_error,
    encode_models=encode_models,
    encode_model=encode_model,
    decode_models=decode_models,
)
