"""OpenAI Responses, both directions."""

from __future__ import annotations

from functools import partial

from ...types import Request
from ..base import Dialect, Endpoint
from ..shared.answer_in import BodyDecoder
from ..shared.errors import decode_error, decode_models, encode_error, encode_model, encode_models
from .answer_in import StreamDecoder, body_events
from .answer_out import encoder
from .request_in import decode_request
from .request_out import encode_request
from .shapes import NAME

PATH = "/responses"


def body_decoder(request: Request) -> BodyDecoder:
    return BodyDecoder(body_events, partial(StreamDecoder, request))


DIALECT = Dialect(
    name=NAME,
    path=PATH,
    routes={PATH: Endpoint(task="answer", decode=decode_request)},
    decode_request=decode_request,
    encode_request=encode_request,
    path_of=lambda request: PATH,
    stream_decoder=StreamDecoder,
    body_decoder=body_decoder,
    encoder=encoder,
    decode_error=decode_error,
    encode_error=encode_error,
    encode_models=encode_models,
    encode_model=encode_model,
    decode_models=decode_models,
)

__all__ = ["DIALECT", "decode_request", "encode_request", "encoder"]
