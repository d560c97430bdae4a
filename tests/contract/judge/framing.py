"""Server-sent events, JSON and errors: rules that all dialects share."""

from __future__ import annotations

import json
import re

from .official import short


def parse_sse(raw, report):
    """-> [(event|None, data)]; follows the WHATWG rules; flags framing faults."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as e:
        report.err("sse", f"not UTF-8: {e}")
        text = raw.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        report.warn("sse", "starts with a BOM")
        text = text[1:]
    out, ev, data = [], None, []
    lines = re.split(r"\r\n|\n|\r", text)
    if lines[-1] == "":
        lines.pop()  # text after the last line end is no line, so it ends no event
    for ln in lines:
        if ln == "":
            if data:
                out.append((ev, "\n".join(data)))
            elif ev is not None:
                report.err("sse", f"event {ev!r} has no data and is never dispatched")
            ev, data = None, []
        elif ln.startswith(":"):
            continue
        else:
            k, _, value = ln.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if k == "data":
                data.append(value)
            elif k == "event":
                ev = value
            elif k not in ("id", "retry"):
                report.err("sse", f"unknown SSE field {k!r} (line {ln[:60]!r})")
    if data or ev is not None:
        report.err("sse", "stream ends inside an event (no blank line after the last data line)")
        if data:
            out.append((ev, "\n".join(data)))
    return out


def dup_check(pairs):
    seen = {}
    for k, value in pairs:
        if k in seen:
            raise ValueError(f"duplicate key {k!r}")
        seen[k] = value
    return seen


def loads(s, path, report):
    def bad(x):
        raise ValueError(f"{x} is not JSON")

    try:
        value = json.loads(s, parse_constant=bad, object_pairs_hook=dup_check)
    except ValueError as e:
        report.err(path, f"not valid JSON: {e}")
        return None
    return value


def args_ok(s, path, report, allow_empty=False):
    if s == "" and allow_empty:
        return {}
    try:
        value = json.loads(s, parse_int=str)
    except ValueError as e:
        report.err(path, f"tool arguments are not JSON ({e}): {s[:80]!r}")
        return None
    if not isinstance(value, dict):
        report.err(path, f"tool arguments are not a JSON object: {s[:80]!r}")
    return value


ANTHROPIC_STATUS = {
    400: {"invalid_request_error"},
    401: {"authentication_error"},
    402: {"billing_error"},
    403: {"permission_error"},
    404: {"not_found_error"},
    413: {"request_too_large", "invalid_request_error"},
    429: {"rate_limit_error"},
    500: {"api_error"},
    504: {"timeout_error", "gateway_timeout_error", "api_error"},
    529: {"overloaded_error"},
}
ANTHROPIC_TYPES = set().union(*ANTHROPIC_STATUS.values())
GOOGLE_STATUS = frozenset({
    "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
})  # fmt: skip


def check_error_body(dialect, value, report, status=None, path="error-body"):
    if not isinstance(value, dict):
        report.err(path, f"error body is not a JSON object: {short(value)}")
        return
    e = value.get("error")
    if not isinstance(e, dict):
        report.err(path, f"no error object in {short(value)}")
        return
    if not isinstance(e.get("message"), str) or not e.get("message"):
        report.err(path + ".error.message", f"missing or not a string: {short(e.get('message'))}")
    if dialect == "gemini":
        if not isinstance(e.get("code"), int) or (status is not None and e["code"] != status):
            report.err(path + ".error.code", f"{short(e.get('code'))} with HTTP {status}")
        if e.get("status") not in GOOGLE_STATUS:
            report.err(path + ".error.status", f"{short(e.get('status'))} is not a status of Google's APIs")
    elif dialect == "messages":
        if value.get("type") != "error":
            report.err(path + ".type", f"must be 'error', got {short(value.get('type'))}")
        if e.get("type") not in ANTHROPIC_TYPES:
            report.err(path + ".error.type", f"{short(e.get('type'))} is not an Anthropic error type")
        elif status in ANTHROPIC_STATUS and e["type"] not in ANTHROPIC_STATUS[status]:
            report.warn(path + ".error.type", f"{e['type']!r} is unusual with HTTP {status}")
    else:
        if not isinstance(e.get("type"), str):
            report.err(path + ".error.type", "missing or not a string")
        for k in ("param", "code"):
            if k not in e:
                report.warn(path + ".error", f"field {k!r} absent (the API always sends it, possibly null)")
            elif e[k] is not None and not isinstance(e[k], str):
                report.err(path + f".error.{k}", f"must be a string or null, got {short(e[k])}")


def declared(request, dialect):
    out = set()
    for t in (request or {}).get("tools") or []:
        if isinstance(t, dict):
            n = (t.get("function") or {}).get("name") if dialect == "chat" else t.get("name")
            if isinstance(n, str):
                out.add(n)
    return out


def check_name(name, request, dialect, path, report):
    d = declared(request, dialect)
    if request is not None and name not in d:
        report.err(path, f"tool {name!r} was not declared in the request")
