"""Gemini: the official type of an answer, and rules for the order of chunks."""

from __future__ import annotations

import copy
import warnings

import pydantic

from tests.contract.sdk.google import GenerateContentResponse

from .framing import check_error_body, loads, parse_sse


def gemini_body(value, report, request=None):
    _typed(value, "body", report)
    _content(value, "body", report, request, set())
    if not isinstance(value, dict):
        return
    _usage(value, "body", report)
    for index, candidate in enumerate(value.get("candidates") or []):
        if not candidate.get("finishReason"):
            report.err(f"body.candidates[{index}]", "no finishReason")
    if not value.get("candidates") and not (value.get("promptFeedback") or {}).get("blockReason"):
        report.err("body.candidates", "no candidates and no blockReason")


def gemini_stream(raw, report, request=None):
    events = parse_sse(raw, report)
    if not events:
        report.err("stream", "no events")
        return
    ids, finished, failed = set(), None, False
    for number, (name, data) in enumerate(events):
        path = f"chunk[{number}]"
        if name is not None:
            report.err(path, f"has an event name {name!r}; the API sends none")
        if failed:
            report.err(path, "data after an error")
        value = loads(data, path, report)
        if not isinstance(value, dict):
            report.err(path, "no JSON object")
            continue
        if value.get("error"):
            check_error_body("gemini", value, report, path=path)
            failed = True
            continue
        if finished is not None:
            report.err(path, "a chunk after the one with the finish reason")
        _typed(value, path, report)
        _content(value, path, report, request, ids)
        is_blocked = bool((value.get("promptFeedback") or {}).get("blockReason"))
        if is_blocked or any(candidate.get("finishReason") for candidate in value.get("candidates") or []):
            finished = value
            _usage(value, path, report)
    if finished is None and not failed:
        report.err("stream", "ends without a finish reason")


def _typed(value, path, report):
    try:
        with warnings.catch_warnings():  # about reasons that are newer than the types
            warnings.simplefilter("ignore")
            GenerateContentResponse._from_response(response=copy.deepcopy(value), kwargs={})  # as the client reads it
    except pydantic.ValidationError as fault:
        for error in fault.errors():
            report.err(path + "." + ".".join(map(str, error["loc"])), error["msg"])


def _content(value, path, report, request, ids):
    names = _declared(request)
    for index, candidate in enumerate(value.get("candidates") or [] if isinstance(value, dict) else []):
        where = f"{path}.candidates[{index}]"
        content = candidate.get("content") or {}
        if content.get("parts") and content.get("role") != "model":
            report.err(where + ".content.role", f"is {content.get('role')!r}")
        for place, part in enumerate(content.get("parts") or []):
            _part(part, f"{where}.parts[{place}]", report, names if request is not None else None, ids)


def _part(part, path, report, names, ids):
    if not part or not isinstance(part, dict):
        report.err(path, "a part without content")
        return
    call = part.get("functionCall")
    if call is None:
        return
    if not isinstance(call.get("args", {}), dict):
        report.err(path + ".args", "tool arguments are not a JSON object")
    if not call.get("id") or call["id"] in ids:
        report.err(path + ".id", f"empty or duplicate: {call.get('id')!r}")
    ids.add(call.get("id"))
    if names is not None and call.get("name") not in names:
        report.err(path + ".name", f"tool {call.get('name')!r} was not declared in the request")


def _declared(request):
    tools = (request or {}).get("tools")
    found = (
        [tool.get("functionDeclarations") for tool in tools if isinstance(tool, dict)]
        if isinstance(tools, list)
        else []
    )
    return {one.get("name") for listed in found if isinstance(listed, list) for one in listed if isinstance(one, dict)}


def _usage(value, path, report):
    usage = value.get("usageMetadata")
    if not isinstance(usage, dict):
        report.err(path + ".usageMetadata", "absent")
        return
    counted = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")
    if usage.get("totalTokenCount") != sum(usage.get(key) or 0 for key in counted):
        report.err(path + ".usageMetadata", f"totalTokenCount is not the sum: {usage}")
