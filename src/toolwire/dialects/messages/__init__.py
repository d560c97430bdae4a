"""Anthropic Messages, both directions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...profiles import Profile
from ..base import FORWARDED, Dialect, Endpoint, bearer, forwarded_headers
from ..shared.answer_in import BodyDecoder
from ..shared.answer_out import BodyEncoder
from .answer_in import MessagesStreamDecoder, body_events
from .answer_out import MessagesStreamEncoder, body_of
from .errors import decode_error, decode_models, encode_error, encode_model, encode_models
from .request_in import decode_count_request, decode_request
from .request_out import PATH, encode_request
from .shapes import NAME

_FORWARDED = FORWARDED | {"anthropic-version", "anthropic-beta"}
_TOKEN = "sk-ant-oat"  # prefix of account tokens; API keys begin with sk-ant-api


def claims(given: Mapping[str, str]) -> bool:
    return "anthropic-version" in given or ("x-api-key" in given and "authorization" not in given)


def headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    """The client's own version takes precedence. Tokens, and in newer versions keys too, are sent as a bearer."""
    found = forwarded_headers(given, _FORWARDED)
    version = found.setdefault("anthropic-version", profile.api_version or "2023-06-01")
    is_token = profile.key_header == "authorization" or key.startswith(_TOKEN)
    if is_token and key and profile.oauth_beta:
        features = [name for name in map(str.strip, found.get("anthropic-beta", "").split(",")) if name]
        found["anthropic-beta"] = ",".join(dict.fromkeys([*features, profile.oauth_beta]))
    is_bearer = is_token or version >= (profile.bearer_from_version or "9")
    return found | (bearer(key) if is_bearer else {"x-api-key": key} if key else {})


DIALECT = Dialect(
    name=NAME,
    path=PATH,
    models_path="/v1/models?limit=1000",
    count_path="/v1/messages/count_tokens",
    routes={
        "/messages": Endpoint(task="answer", decode=decode_request),
        "/messages/count_tokens": Endpoint(task="count", decode=decode_count_request),
    },
    claims=claims,
    heartbeat=b'event: ping\ndata: {"type": "ping"}\n\n',
    decode_request=decode_request,
    encode_request=encode_request,
    headers=headers,
    forwarded=_FORWARDED,
    stream_decoder=MessagesStreamDecoder,
    body_decoder=partial(BodyDecoder, events_of=body_events, stream=MessagesStreamDecoder),
    stream_encoder=MessagesStreamEncoder,
    body_encoder=partial(BodyEncoder, body_of=body_of),
    decode_error=decode_error,
    encode_error=encode_error,
    encode_models=encode_models,
    encode_model=encode_model,
    decode_models=decode_models,
)
