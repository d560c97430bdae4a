"""OpenAI Responses: rules for the order of events, items and parts and for their sum."""

from __future__ import annotations

import json

import openai.types.responses as orr

from .framing import args_ok, check_name, loads, parse_sse
from .official import members, short, tag_of, walk
from .openapi import oracle


def resp_usage(u, path, report):
    if (
        isinstance(u, dict)
        and all(isinstance(u.get(k), int) for k in ("input_tokens", "output_tokens", "total_tokens"))
        and u["total_tokens"] != u["input_tokens"] + u["output_tokens"]
    ):
        report.err(path, "total_tokens is not input_tokens + output_tokens")


def resp_items(value, path, report, request):
    seen, calls = set(), set()
    for i, it in enumerate(value.get("output") or []):
        if not isinstance(it, dict):
            continue
        if not it.get("id"):
            report.err(f"{path}.output[{i}]", "item without id")
        elif it["id"] in seen:
            report.err(f"{path}.output[{i}].id", "duplicate item id")
        seen.add(it.get("id"))
        if it.get("type") == "function_call":
            if not it.get("call_id"):
                report.err(f"{path}.output[{i}].call_id", "empty")
            elif it["call_id"] in calls:
                report.err(f"{path}.output[{i}].call_id", "duplicate")
            calls.add(it.get("call_id"))
            check_name(it.get("name"), request, "responses", f"{path}.output[{i}].name", report)
            if value.get("status") == "completed":
                args_ok(
                    it.get("arguments") if isinstance(it.get("arguments"), str) else "",
                    f"{path}.output[{i}].arguments",
                    report,
                )
                if it.get("status") != "completed":
                    report.err(f"{path}.output[{i}].status", f"{it.get('status')!r} in a completed response")


def responses_body(value, report, request=None, path="body", terminal=True):
    if not isinstance(value, dict):
        report.err(path, "not an object")
        return
    if path == "body":
        walk(orr.Response, value, path, report)
        oracle("responses", "body", value, path, report)
    if value.get("status") not in ("completed", "failed", "in_progress", "cancelled", "queued", "incomplete"):
        report.err(path + ".status", f"{short(value.get('status'))}")
    for k in ("error", "incomplete_details", "instructions", "usage"):
        if k not in value:
            report.warn(path, f"key {k!r} absent (the API always sends it, possibly null)")
    if value.get("status") == "failed" and not value.get("error"):
        report.err(path + ".error", "null in a failed response")
    if value.get("status") == "incomplete" and not value.get("incomplete_details"):
        report.err(path + ".incomplete_details", "null in an incomplete response")
    if "finish_reason" in value:
        report.err(path, "finish_reason does not exist in this dialect")
    if terminal and value.get("status") == "completed":
        if value.get("usage") is None:
            report.err(path + ".usage", "null in a completed response")
        resp_usage(value.get("usage"), path + ".usage", report)
    resp_items(value, path, report, request)


def responses_stream(raw, report, request=None, profile="any"):
    events = parse_sse(raw, report)
    if not events:
        report.err("stream", "no events")
        return
    known = {x for m in members(orr.ResponseStreamEvent) for x in tag_of(m)}
    seq, rid, items, terminal, done, first = None, None, {}, None, False, True

    def item(value, p):
        ix = value.get("output_index")
        it = items.get(ix)
        if it is None:
            report.err(p + ".output_index", f"{ix} has no response.output_item.added")
            it = items[ix] = {
                "id": value.get("item_id"),
                "type": None,
                "parts": {},
                "args": "",
                "args_done": None,
                "done": None,
                "added": None,
            }
        if it["done"] is not None:
            report.err(p, "event for an item that is already done")
        if "item_id" in value and value["item_id"] != it["id"]:
            report.err(p + ".item_id", f"{value['item_id']!r} is not the item's id {it['id']!r}")
        return it

    for i, (ev, data) in enumerate(events):
        p = f"event[{i}]"
        if data == "[DONE]":
            done = True
            if profile == "openai":
                report.warn(p, "[DONE]: OpenAI does not send it here (Open Responses demands it)")
            continue
        value = loads(data, p, report)
        if not isinstance(value, dict):
            continue
        t = value.get("type")
        p += f" {t}"
        if done:
            report.err(p, "event after [DONE]")
        if terminal:
            report.err(p, f"event after {terminal}")
        if ev is None:
            report.err(p, "no SSE event name (the field must be there and match data.type)")
        elif ev != t:
            report.err(p, f"SSE event name {ev!r} differs from data.type")
        if t not in known:
            report.err(p, "event name is not in the official union")
            continue
        walk(orr.ResponseStreamEvent, value, p, report)
        oracle("responses", "event", value, p, report)
        s = value.get("sequence_number")
        if isinstance(s, int):
            if seq is None and s != 0:
                report.warn(p + ".sequence_number", f"starts at {s}")
            if seq is not None and s != seq + 1:
                report.err(p + ".sequence_number", f"{s} after {seq}")
            seq = s
        if t == "error":
            terminal = t
            continue
        if first and t not in ("response.created",):
            report.err(p, "the first event must be response.created")
        if not first and t == "response.created":
            report.err(p, "second response.created")
        first = False
        if isinstance(value.get("response"), dict):
            r = value["response"]
            rid = rid or r.get("id")
            if r.get("id") != rid:
                report.err(p + ".response.id", f"changed to {r.get('id')!r}")
            is_opening = t in ("response.created", "response.in_progress", "response.queued")
            if is_opening and r.get("status") not in ("in_progress", "queued"):
                report.err(p + ".response.status", f"{r.get('status')!r}")
        if t == "response.output_item.added":
            ix, it = value.get("output_index"), value.get("item") if isinstance(value.get("item"), dict) else {}
            if ix != len(items):
                report.err(p + ".output_index", f"{ix}, expected {len(items)}")
            if not it.get("id"):
                report.err(p + ".item.id", "missing")
            if it.get("type") == "function_call" and it.get("arguments") not in ("", None):
                report.warn(p + ".item.arguments", "should start as ''")
            items[ix] = {
                "id": it.get("id"),
                "type": it.get("type"),
                "parts": {},
                "args": "",
                "args_done": None,
                "done": None,
                "added": it,
            }
        elif t == "response.content_part.added":
            it = item(value, p)
            if value.get("content_index") != len(it["parts"]):
                report.err(p + ".content_index", f"{value.get('content_index')}, expected {len(it['parts'])}")
            it["parts"][value.get("content_index")] = {"text": "", "tdone": None, "pdone": None}
        elif t in ("response.output_text.delta", "response.refusal.delta", "response.reasoning_text.delta"):
            it = item(value, p)
            part = it["parts"].get(value.get("content_index"))
            if part is None:
                report.err(p + ".content_index", "no content_part.added for it")
            else:
                if part["tdone"] is not None:
                    report.err(p, "delta after done")
                part["text"] += value.get("delta") if isinstance(value.get("delta"), str) else ""
        elif t in ("response.output_text.done", "response.refusal.done", "response.reasoning_text.done"):
            it = item(value, p)
            part = it["parts"].get(value.get("content_index"))
            txt = value.get("text", value.get("refusal"))
            if part is None:
                report.err(p + ".content_index", "no content_part.added for it")
            else:
                if txt != part["text"]:
                    report.err(
                        p + ".text",
                        f"differs from the joined deltas ({len(txt or '')} vs {len(part['text'])} characters)",
                    )
                part["tdone"] = txt
        elif t == "response.content_part.done":
            it = item(value, p)
            part = it["parts"].get(value.get("content_index"))
            if part is None:
                report.err(p, "no content_part.added for it")
            else:
                pt = value.get("part") if isinstance(value.get("part"), dict) else {}
                txt = pt.get("text", pt.get("refusal"))
                if part["tdone"] is None:
                    report.err(p, "content_part.done before the text was done")
                elif txt != part["tdone"]:
                    report.err(p + ".part", "text differs from output_text.done")
                part["pdone"] = txt
        elif t == "response.function_call_arguments.delta":
            it = item(value, p)
            if it["type"] not in (None, "function_call"):
                report.err(p, f"arguments delta for a {it['type']} item")
            if it["args_done"] is not None:
                report.err(p, "delta after done")
            it["args"] += value.get("delta") if isinstance(value.get("delta"), str) else ""
        elif t == "response.function_call_arguments.done":
            it = item(value, p)
            if value.get("arguments") != it["args"]:
                report.err(p + ".arguments", "differs from the joined deltas")
            it["args_done"] = value.get("arguments")
        elif t == "response.output_item.done":
            it, o = item(value, p), value.get("item") if isinstance(value.get("item"), dict) else {}
            if o.get("id") != it["id"] or (it["type"] and o.get("type") != it["type"]):
                report.err(p + ".item", "id or type differs from output_item.added")
            if it["added"] is not None and o.get("type") == "function_call":
                for k in ("call_id", "name"):
                    if o.get(k) != it["added"].get(k):
                        report.err(p + f".item.{k}", f"{o.get(k)!r} differs from added {it['added'].get(k)!r}")
            if o.get("type") == "function_call":
                if it["args_done"] is None:
                    report.err(p, "function_call finished without function_call_arguments.done")
                elif o.get("arguments") != it["args_done"]:
                    report.err(p + ".item.arguments", "differs from function_call_arguments.done")
            for k, part in it["parts"].items():
                if part["pdone"] is None:
                    report.err(p, f"content part {k} was never done")
            if o.get("type") == "message":
                joined = [(c.get("text", c.get("refusal"))) for c in o.get("content") or [] if isinstance(c, dict)]
                if joined != [it["parts"][k]["tdone"] for k in sorted(it["parts"])]:
                    report.err(p + ".item.content", "differs from the streamed parts")
            it["done"] = o
        elif t in ("response.completed", "response.failed", "response.incomplete"):
            terminal = t
            r = value.get("response") if isinstance(value.get("response"), dict) else {}
            if r.get("status") != t.split(".")[1]:
                report.err(p + ".response.status", f"{r.get('status')!r}")
            responses_body(r, report, request, path=p + ".response")
            for ix, it in items.items():
                if it["done"] is None and t == "response.completed":
                    report.err(p, f"item {ix} ({it['type']}) never got output_item.done")
            if t == "response.completed":
                fin = [
                    (o.get("id"), o.get("type"), o.get("arguments"), json.dumps(o.get("content"), sort_keys=True))
                    for o in r.get("output") or []
                    if isinstance(o, dict)
                ]
                want = [
                    (o.get("id"), o.get("type"), o.get("arguments"), json.dumps(o.get("content"), sort_keys=True))
                    for o in (items[k]["done"] or {} for k in sorted(items, key=lambda x: (x is None, x)))
                ]
                if fin != want:
                    report.err(p + ".response.output", "differs from the items that were streamed")
    if terminal is None:
        report.err("stream", "no terminal event (response.completed / failed / incomplete / error)")
    if profile == "openresponses" and not done:
        report.err("stream", "no data: [DONE] (Open Responses section HTTP responses)")
