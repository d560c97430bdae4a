"""The judge: finds every error in one HTTP answer.

It checks three things: the types of the installed `openai`, `anthropic` and `google-genai` packages (missing member, wrong type, unknown
literal or event: an error; unknown member: a warning), the rules of each dialect for order and accumulation, and the vendors'
OpenAPI documents if they are available (see openapi.py).
"""

from __future__ import annotations

from .chat import chat_body, chat_stream
from .framing import check_error_body, loads
from .gemini import gemini_body, gemini_stream
from .messages import messages_body, messages_stream
from .official import Report
from .responses import responses_body, responses_stream

BODY = {"chat": chat_body, "responses": responses_body, "messages": messages_body, "gemini": gemini_body}
STREAM = {"chat": chat_stream, "responses": responses_stream, "messages": messages_stream, "gemini": gemini_stream}


def check(dialect, raw, status=200, content_type="", request=None):
    """Check the answer to this request. Its calls may only name tools of the request."""
    report = Report()
    kind = content_type.split(";")[0].strip().lower()
    is_stream = status < 400 and bool((request or {}).get("stream"))
    expected = "text/event-stream" if is_stream else "application/json"
    if kind != expected:
        report.err("headers", f"content-type {content_type!r} with status {status}, expected {expected}")
        return report
    if is_stream:
        STREAM[dialect](raw, report, request)
        return report
    value = loads(raw.decode("utf-8", "replace"), "body", report)
    if value is None:
        return report
    if status >= 400:
        check_error_body(dialect, value, report, status)
    else:
        BODY[dialect](value, report, request)
    return report
