"""Gemini Interactions: names and values that requests, answers and stored interactions share."""

from __future__ import annotations

from datetime import UTC, datetime

from ...errors import GatewayError
from ...types import JsonObject, Usage
from ...wire.exact_json import encode

NAME = "interactions"
PREFIX = "int_"  # of the id of every interaction
# Statuses of an interaction that a client must act upon; all but "requires_action" are stored under the same name.
REQUIRES_ACTION = "requires_action"


def date_of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def error_object(error: GatewayError) -> JsonObject:
    return {"code": error.code, "message": error.sentence()}


def usage_out(usage: Usage) -> JsonObject:
    """Thoughts are counted separately from the output."""
    thoughts = min(usage.reasoning, usage.output)
    return {
        "total_input_tokens": usage.input,
        "total_cached_tokens": usage.cached,
        "total_output_tokens": usage.output - thoughts,
        "total_thought_tokens": thoughts,
        "total_tokens": usage.input + usage.output,
    }


def encode_error(error: GatewayError, request_id: str) -> bytes:
    return encode({"error": error_object(error)})
