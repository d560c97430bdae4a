// A recorded request as a command or a program. Keys are never part of it: they come from the environment.

import { gateway } from "./api.js";
import { copy, dialog, h, tabs } from "./dom.js";
import { parseJson } from "./format.js";
import { NO_BODIES, answerOf } from "./conversation.js";

const CHAT = "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata modalities model n parallel_tool_calls presence_penalty prediction reasoning_effort response_format seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options";
const RESPONSES = "background conversation include input instructions max_output_tokens max_tool_calls metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key reasoning service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user";
const MESSAGES = "max_tokens messages metadata model service_tier stop_sequences stream system temperature thinking tool_choice tools top_k top_p";

const SDKS = {
  chat: { title: "OpenAI SDK", module: "OpenAI", package: "openai", base: "/v1", call: "client.chat.completions.create", known: CHAT },
  responses: { title: "OpenAI SDK", module: "OpenAI", package: "openai", base: "/v1", call: "client.responses.create", known: RESPONSES },
  messages: { title: "Anthropic SDK", module: "Anthropic", package: "anthropic", base: "", call: "client.messages.create", known: MESSAGES },
};

export function showSnippets(flow) {
  const formats = [["curl", "curl"], SDKS[flow.dialect] && ["sdk", SDKS[flow.dialect].title], ["pytest", "pytest"], ["json", "JSON"]].filter(Boolean);
  const field = h("textarea", { class: "snippet mono", readonly: true, rows: 20, "aria-label": "Snippet", spellcheck: "false" });
  const bar = tabs(formats, "curl", (name) => { field.value = snippet(flow, name); }, "Format");
  const note = !flow.client?.request?.body ? h("p", { class: "bad" }, NO_BODIES) : flow.client.request.truncated ? h("p", { class: "bad" }, "Only the beginning of this request is recorded, so the snippet is not complete.") : null;
  dialog("Use this request", h("div", null, bar.element, note, field,
    h("footer", null, h("span", { class: "muted" }, "The key is read from TOOLWIRE_KEY."), h("span", { class: "grow" }), h("button", { type: "button", class: "primary", autofocus: true, onclick: () => copy(field.value, field) }, "Copy"))), { class: "wide" });
  bar.select();
}

export function snippet(flow, format) {
  const path = flow.client?.request?.path || flow.path;
  const body = flow.client?.request?.body || "{}";
  if (format === "curl") return curl(path, body);
  if (format === "sdk") return sdk(SDKS[flow.dialect], body);
  if (format === "pytest") return pytest(flow, path, body);
  return JSON.stringify(parseJson(body) ?? body, null, 2);
}

function curl(path, body) {
  const version = path.startsWith("/v1/messages") ? " \\\n  -H 'anthropic-version: 2023-06-01'" : "";
  return `curl -N '${gateway()}${path}' \\\n  -H "Authorization: Bearer $TOOLWIRE_KEY" \\\n  -H 'Content-Type: application/json'${version} \\\n  --data-binary @- <<'TOOLWIRE_BODY'\n${body.replaceAll("TOOLWIRE_BODY", "TOOLWIRE-BODY")}\nTOOLWIRE_BODY\n`;
}

function sdk(kind, body) {
  const value = parseJson(body) ?? {};
  const known = new Set(kind.known.split(" "));
  const members = Object.entries(value).filter(([name]) => known.has(name) && name !== "stream");
  const extra = Object.fromEntries(Object.entries(value).filter(([name]) => !known.has(name)));
  const lines = members.map(([name, one]) => `    ${name}=${python(one, 1)},`);
  if (Object.keys(extra).length) lines.push(`    extra_body=${python(extra, 1)},`);
  if (value.stream) lines.push("    stream=True,");
  const use = value.stream ? "for event in answer:\n    print(event)" : "print(answer.model_dump_json(indent=2))";
  return `import os\n\nfrom ${kind.package} import ${kind.module}\n\nclient = ${kind.module}(base_url="${gateway()}${kind.base}", api_key=os.environ.get("TOOLWIRE_KEY", "unused"))\nanswer = ${kind.call}(\n${lines.join("\n")}\n)\n${use}\n`;
}

/** A test that sends the request again and expects the calls of the recorded answer. */
function pytest(flow, path, body) {
  const value = parseJson(body) ?? {};
  const calls = (answerOf(flow)?.parts || []).filter((part) => part.type === "call");
  const expected = calls.map((call) => [call.name, Object.keys(parseJson(call.raw) || {}).sort()]);
  const name = calls.length ? `calls_${identifier(calls[0].name)}` : "answers";
  const request = { ...value };
  delete request.stream;
  delete request.stream_options;
  const plainPath = path.replace(":streamGenerateContent", ":generateContent").replace(/\?.*$/, "");
  return `"""The request of flow ${flow.id}, recorded by toolwire: sends it again and checks the tool calls of the answer."""

import json
import os
import urllib.request

GATEWAY = os.environ.get("TOOLWIRE_URL", "${gateway()}")
PATH = ${python(plainPath)}
REQUEST = ${python(request)}
EXPECTED = ${python(expected)}  # name and argument names of each call


def send(path, body):
    key = os.environ.get("TOOLWIRE_KEY", "unused")
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(GATEWAY + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def calls_of(value):
    """(name, arguments) of each tool call in an answer of any dialect."""
    found = []
    if isinstance(value, list):
        for item in value:
            found += calls_of(item)
    elif isinstance(value, dict):
        if "name" in value and "arguments" in value:
            arguments = value["arguments"]
            return [(value["name"], json.loads(arguments) if isinstance(arguments, str) else arguments)]
        if value.get("type") == "tool_use":
            return [(value["name"], value["input"])]
        if "functionCall" in value:
            return [(value["functionCall"]["name"], value["functionCall"].get("args", {}))]
        for member in ("choices", "message", "tool_calls", "function", "output", "content", "candidates", "parts"):
            found += calls_of(value.get(member))
    return found


def test_model_${name}():
    calls = calls_of(send(PATH, REQUEST))
    assert [[name, sorted(arguments)] for name, arguments in calls] == EXPECTED
`;
}

function identifier(name) {
  return name.replace(/\W+/g, "_").toLowerCase() || "tool";
}

/** A JSON value as a Python literal. */
export function python(value, depth = 0) {
  const pad = "    ".repeat(depth + 1);
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return JSON.stringify(value).replaceAll("\u007f", "\\x7f");
  const isList = Array.isArray(value);
  const entries = isList ? value.map((one) => python(one, depth + 1)) : Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one, depth + 1)}`);
  const [open, close] = isList ? "[]" : "{}";
  const short = `${open}${entries.join(", ")}${close}`;
  if (short.length + depth * 4 < 90 && !short.includes("\n")) return short;
  return `${open}\n${entries.map((entry) => `${pad}${entry},`).join("\n")}\n${"    ".repeat(depth)}${close}`;
}
