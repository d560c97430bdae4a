"""Chat Completions: rules for the order of chunks and for their sum."""

from __future__ import annotations

import openai.types.chat as oc

from .framing import args_ok, check_error_body, check_name, loads, parse_sse
from .official import short, walk
from .openapi import oracle


def forced_name(request):
    tc = (request or {}).get("tool_choice")
    return isinstance(tc, dict)


def chat_usage(u, path, report):
    if (
        isinstance(u, dict)
        and all(isinstance(u.get(k), int) for k in ("prompt_tokens", "completion_tokens", "total_tokens"))
        and u["total_tokens"] != u["prompt_tokens"] + u["completion_tokens"]
    ):
        report.err(path, "total_tokens is not prompt_tokens + completion_tokens")


def chat_body(value, report, request=None):
    walk(oc.ChatCompletion, value, "body", report)
    oracle("chat", "body", value, "body", report)
    if not isinstance(value, dict) or not isinstance(value.get("choices"), list):
        return
    if not value["choices"]:
        report.err("body.choices", "empty")
    if value.get("usage") is None:
        report.warn("body.usage", "absent")
    chat_usage(value.get("usage"), "body.usage", report)
    for i, c in enumerate(value["choices"]):
        if not isinstance(c, dict) or not isinstance(c.get("message"), dict):
            continue
        m, calls = c["message"], c["message"].get("tool_calls")
        if "content" not in m:
            report.err(
                f"body.choices[{i}].message", "key 'content' must be present (null when there are only tool calls)"
            )
        if calls == []:
            report.warn(f"body.choices[{i}].message.tool_calls", "empty array; the API leaves the key out")
        if c.get("index") != i:
            report.err(f"body.choices[{i}].index", f"is {c.get('index')}")
        ids = [x.get("id") for x in calls or [] if isinstance(x, dict)]
        if len(ids) != len(set(ids)):
            report.err("body.tool_calls", "duplicate call ids")
        for j, x in enumerate(calls or []):
            f = x.get("function") if isinstance(x, dict) else None
            if not x.get("id"):
                report.err(f"body.tool_calls[{j}].id", "empty")
            if isinstance(f, dict):
                check_name(f.get("name"), request, "chat", f"body.tool_calls[{j}].function.name", report)
                if isinstance(f.get("arguments"), str) and c.get("finish_reason") != "length":
                    args_ok(f["arguments"], f"body.tool_calls[{j}].arguments", report)
        fin = c.get("finish_reason")
        if (
            calls
            and fin not in ("tool_calls", "length", "content_filter")
            and not (forced_name(request) and fin == "stop")
        ):
            report.err(f"body.choices[{i}].finish_reason", f"{fin!r} although there are tool calls")
        if not calls and fin == "tool_calls":
            report.err(f"body.choices[{i}].finish_reason", "'tool_calls' without tool calls")


def chat_stream(raw, report, request=None):
    events = parse_sse(raw, report)
    if not events:
        report.err("stream", "no events")
        return
    want_usage = (
        bool(((request or {}).get("stream_options") or {}).get("include_usage")) if request is not None else None
    )
    const, ch, done, usage_at, n, errored = {}, {}, None, None, 0, False
    for i, (ev, data) in enumerate(events):
        p = f"chunk[{i}]"
        if done is not None:
            report.err(p, "data after [DONE]")
        if data == "[DONE]":
            done = i
            continue
        if ev is not None:
            report.warn(p, f"has an SSE event name {ev!r}; the API sends none")
        value = loads(data, p, report)
        if value is None:
            continue
        if isinstance(value, dict) and "error" in value and "choices" not in value:
            check_error_body("chat", value, report, path=p)
            errored = True
            continue
        n += 1
        walk(oc.ChatCompletionChunk, value, p, report)
        oracle("chat", "chunk", value, p, report)
        if not isinstance(value, dict):
            continue
        for k in ("id", "created", "model", "object", "system_fingerprint"):
            if k in value and const.setdefault(k, value[k]) != value[k]:
                report.err(p + "." + k, f"changed from {short(const[k])} to {short(value[k])}")
        if usage_at is not None:
            report.err(p, "a chunk after the usage chunk")
        u = value.get("usage")
        cs = value.get("choices")
        if not isinstance(cs, list):
            continue
        if u is not None:
            chat_usage(u, p + ".usage", report)
            if cs:
                report.warn(
                    p + ".usage", "usage on a chunk that has choices; the API sends it on its own chunk with choices []"
                )
            else:
                usage_at = i
            if want_usage is False:
                report.err(p + ".usage", "usage although stream_options.include_usage was not asked for")
            if any(c["finish"] is None for c in ch.values()):
                report.err(p + ".usage", "usage before finish_reason")
        elif not cs:
            report.err(p, "empty choices without usage")
        for c in cs:
            if not isinstance(c, dict) or not isinstance(c.get("delta"), dict):
                continue
            st = ch.setdefault(c.get("index"), {"role": None, "finish": None, "text": "", "calls": {}, "last": -1})
            d = c["delta"]
            payload = any(d.get(k) for k in ("content", "tool_calls", "refusal", "function_call"))
            if st["finish"] is not None and (payload or c.get("finish_reason") is not None):
                report.err(p, "content or a second finish_reason after finish_reason")
            if st["role"] is None:
                if d.get("role") != "assistant":
                    report.err(p + ".delta.role", "the first delta of a choice must carry role 'assistant'")
                st["role"] = d.get("role") or "?"
            elif "role" in d and d["role"] is not None:
                report.warn(p + ".delta.role", "role repeated")
            if isinstance(d.get("content"), str):
                st["text"] += d["content"]
                if d["content"] and st["calls"]:
                    report.warn(p, "text after tool calls began")
            for t in d.get("tool_calls") or []:
                if not isinstance(t, dict) or not isinstance(t.get("index"), int):
                    continue
                ix, f = t["index"], t.get("function") if isinstance(t.get("function"), dict) else {}
                if ix not in st["calls"]:
                    if ix != len(st["calls"]):
                        report.err(
                            p + ".tool_calls.index", f"{ix} opened, expected {len(st['calls'])} (contiguous from 0)"
                        )
                    if not t.get("id"):
                        report.err(p + ".tool_calls.id", "the first fragment of a call must carry its id")
                    if not f.get("name"):
                        report.err(p + ".tool_calls.function.name", "the first fragment of a call must carry the name")
                    else:
                        check_name(f["name"], request, "chat", p + ".tool_calls.function.name", report)
                    if t.get("type") != "function":
                        report.err(p + ".tool_calls.type", "the first fragment must carry type 'function'")
                    if any(x["id"] == t.get("id") for x in st["calls"].values()):
                        report.err(p + ".tool_calls.id", "duplicate id")
                    st["calls"][ix] = {"id": t.get("id"), "args": ""}
                else:
                    if t.get("id"):
                        report.err(
                            p + ".tool_calls.id", "id repeated in a later fragment (some clients concatenate it)"
                        )
                    if f.get("name"):
                        report.err(
                            p + ".tool_calls.function.name",
                            "name repeated in a later fragment (some clients concatenate it)",
                        )
                    if ix != st["last"]:
                        report.warn(p + ".tool_calls.index", "fragments of several calls interleaved")
                st["last"] = ix
                st["calls"][ix]["args"] += f.get("arguments") or ""
            if c.get("finish_reason") is not None and st["finish"] is None:
                st["finish"] = c["finish_reason"]
    if done is None and not errored:
        report.err("stream", "no data: [DONE] at the end")
    for ix, st in ch.items():
        if st["finish"] is None and not errored:
            report.err(f"choice[{ix}]", "no finish_reason")
        for k, c in st["calls"].items():
            if st["finish"] not in ("length", None):
                args_ok(c["args"], f"choice[{ix}].tool_calls[{k}].arguments", report)
        if (
            st["calls"]
            and st["finish"] not in ("tool_calls", "length", "content_filter", None)
            and not (forced_name(request) and st["finish"] == "stop")
        ):
            report.err(f"choice[{ix}].finish_reason", f"{st['finish']!r} although there are tool calls")
        if not st["calls"] and st["finish"] == "tool_calls":
            report.err(f"choice[{ix}].finish_reason", "'tool_calls' without tool calls")
    if not ch and not errored:
        report.err("stream", "no choices at all")
    if want_usage and usage_at is None and not errored:
        report.err("stream", "include_usage was asked for, but no usage chunk with choices [] came")
