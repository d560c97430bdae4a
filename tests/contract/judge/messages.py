"""Anthropic Messages: rules for the order of events and blocks and for their sum."""

from __future__ import annotations

import re

import anthropic.types as at

from .framing import args_ok, check_error_body, check_name, loads, parse_sse
from .official import short, walk

ID_RE = re.compile(r"^[a-zA-Z0-9_-]+$")


def msg_block(b, path, report, request):
    if isinstance(b, dict) and b.get("type") == "tool_use":
        if not (isinstance(b.get("id"), str) and ID_RE.match(b["id"])):
            report.err(
                path + ".id",
                f"{short(b.get('id'))} does not match ^[a-zA-Z0-9_-]+$, the API refuses it when it comes back",
            )
        check_name(b.get("name"), request, "messages", path + ".name", report)


def stop_rule(stop, has_tool, path, report):
    if has_tool and stop not in ("tool_use", "max_tokens", "pause_turn", "refusal", "model_context_window_exceeded"):
        report.err(path, f"stop_reason {stop!r} although there is a tool_use block")
    if not has_tool and stop == "tool_use":
        report.err(path, "stop_reason 'tool_use' without a tool_use block")


def messages_body(value, report, request=None):
    walk(at.Message, value, "body", report)
    if not isinstance(value, dict):
        return
    for k in ("stop_reason", "stop_sequence"):
        if k not in value:
            report.err("body", f"key {k!r} must be present (may be null)")
    if value.get("stop_reason") is None:
        report.err("body.stop_reason", "must not be null when not streaming")
    blocks = value.get("content") if isinstance(value.get("content"), list) else []
    if not blocks:
        report.warn("body.content", "empty")
    ids = []
    for i, b in enumerate(blocks):
        msg_block(b, f"body.content[{i}]", report, request)
        if isinstance(b, dict) and b.get("type") == "tool_use":
            ids.append(b.get("id"))
        if isinstance(b, dict) and b.get("type") == "text" and b.get("text") == "":
            report.warn(f"body.content[{i}]", "empty text block (the API refuses it when it comes back)")
    if len(ids) != len(set(ids)):
        report.err("body.content", "duplicate tool_use ids")
    stop_rule(value.get("stop_reason"), bool(ids), "body.stop_reason", report)


DELTA_FOR = {
    "text_delta": {"text"},
    "input_json_delta": {"tool_use", "server_tool_use", "mcp_tool_use"},
    "thinking_delta": {"thinking"},
    "signature_delta": {"thinking"},
    "citations_delta": {"text"},
}


def messages_stream(raw, report, request=None):
    events = parse_sse(raw, report)
    if not events:
        report.err("stream", "no events")
        return
    state, opened, nxt, blocks, stop, out_tok, ended = "begin", None, 0, [], None, -1, None
    for i, (ev, data) in enumerate(events):
        p = f"event[{i}]"
        if data == "[DONE]":
            report.warn(p, "[DONE] is not part of this dialect")
            continue
        value = loads(data, p, report)
        if not isinstance(value, dict):
            continue
        t = value.get("type")
        p += f" {t}"
        if ev != t:
            report.err(p, f"SSE event name {ev!r} differs from data.type (the SDKs dispatch on the event name)")
        if ended:
            report.err(p, f"event after {ended}")
        if t == "ping":
            continue
        if t == "error":
            check_error_body("messages", value, report, path=p)
            ended = "error"
            continue
        walk(at.RawMessageStreamEvent, value, p, report)
        if t == "message_start":
            if state != "begin":
                report.err(p, "second message_start")
            state = "open"
            m = value.get("message") if isinstance(value.get("message"), dict) else {}
            if m.get("content") != []:
                report.err(p + ".message.content", "must be []")
            for k in ("stop_reason", "stop_sequence"):
                if k not in m:
                    report.err(p + ".message", f"key {k!r} must be present and null")
                elif m[k] is not None:
                    report.err(p + f".message.{k}", "must be null")
            continue
        if state == "begin":
            report.err(p, "before message_start")
        if t == "content_block_start":
            if state == "delta":
                report.err(p, "content block after message_delta")
            if opened is not None:
                report.err(p, f"block {opened} is still open (only one block may be open)")
            if value.get("index") != nxt:
                report.err(p + ".index", f"{value.get('index')}, expected {nxt}")
            nxt = (value.get("index") if isinstance(value.get("index"), int) else nxt) + 1
            opened, b = (
                value.get("index"),
                value.get("content_block") if isinstance(value.get("content_block"), dict) else {},
            )
            blocks.append({"type": b.get("type"), "json": "", "n": 0, "sig": False, "id": b.get("id"), "text": ""})
            msg_block(b, p + ".content_block", report, request)
            if b.get("type") == "tool_use" and b.get("input") != {}:
                report.err(p + ".content_block.input", "must start as {}")
            if b.get("type") == "text" and b.get("text") != "":
                report.warn(p + ".content_block.text", "should start as ''")
        elif t == "content_block_delta":
            d = value.get("delta") if isinstance(value.get("delta"), dict) else {}
            if opened is None or value.get("index") != opened:
                report.err(p + ".index", f"delta for block {value.get('index')}, open block is {opened}")
            elif d.get("type") in DELTA_FOR and blocks[-1]["type"] not in DELTA_FOR[d["type"]]:
                report.err(p, f"{d['type']} inside a {blocks[-1]['type']} block")
            if blocks:
                blocks[-1]["json"] += d.get("partial_json") or ""
                blocks[-1]["text"] += d.get("text") or ""
                blocks[-1]["sig"] |= d.get("type") == "signature_delta"
        elif t == "content_block_stop":
            if opened is None or value.get("index") != opened:
                report.err(p + ".index", f"stop for block {value.get('index')}, open block is {opened}")
            elif blocks[-1]["type"] == "thinking" and not blocks[-1]["sig"]:
                report.warn(p, "thinking block without signature_delta")
            opened = None
        elif t == "message_delta":
            if opened is not None:
                report.err(p, f"block {opened} was never stopped")
            state = "delta"
            d = value.get("delta") if isinstance(value.get("delta"), dict) else {}
            for k in ("stop_reason", "stop_sequence"):
                if k not in d:
                    report.err(p + ".delta", f"key {k!r} must be present (may be null)")
            stop = d.get("stop_reason") or stop
            n = (value.get("usage") or {}).get("output_tokens") if isinstance(value.get("usage"), dict) else None
            if isinstance(n, int):
                if n < out_tok:
                    report.err(p + ".usage.output_tokens", "went down; it is cumulative")
                out_tok = n
        elif t == "message_stop":
            if state != "delta":
                report.err(p, "without a message_delta before it")
            ended = "message_stop"
    if ended is None:
        report.err("stream", "no message_stop")
    if ended == "message_stop":
        if stop is None:
            report.err("stream", "no stop_reason in any message_delta")
        for i, b in enumerate(blocks):
            if b["type"] == "tool_use" and stop != "max_tokens":
                args_ok(b["json"], f"block[{i}].input_json", report, allow_empty=True)
            if b["type"] == "text" and not b["text"]:
                report.warn(f"block[{i}]", "empty text block")
        ids = [b["id"] for b in blocks if b["type"] == "tool_use"]
        if len(ids) != len(set(ids)):
            report.err("stream", "duplicate tool_use ids")
        stop_rule(stop, bool(ids), "message_delta.stop_reason", report)
