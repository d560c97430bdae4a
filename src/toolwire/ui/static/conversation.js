// A flow as a conversation: the history that the client sent and the answer it received, with links between calls and results.

import { h } from "./dom.js";
import { markOpen, readAnswer, readEvents, readRequest } from "./dialects.js";
import { number, parseJson, plural } from "./format.js";
import { reasonOf } from "./reasons.js";
import { beforeAfter, jsonTree, longText } from "./text_view.js";

const ROLES = { system: "System", developer: "Developer", user: "User", assistant: "Assistant", tool: "Tool result" };
export const NO_BODIES = "Bodies are not recorded: bodies = true in the [flows] section of the configuration records them.";
const FIRST = 2; // messages that are always shown: usually the system prompt and the task
const LAST = 40;
const RESULT = 700; // characters of a result

export function conversationView(flow, prefix = "m") {
  const request = readRequest(flow.dialect, flow.client?.request?.body);
  const answer = answerOf(flow);
  const box = h("div", { class: "conversation" });
  if (!request) {
    box.append(h("p", { class: "muted" }, !flow.client?.request?.body ? NO_BODIES : flow.client.request.truncated ? "The recorded body is cut, so it cannot be shown as a conversation. Its beginning is under Wires." : "The request is not a conversation. It is under Wires."));
  } else {
    if (request.tools.length) box.append(toolsView(request.tools));
    if (Object.keys(request.settings).length) box.append(h("details", { class: "fold" }, h("summary", null, `Settings: ${Object.keys(request.settings).join(", ")}`), jsonTree(request.settings, 1)));
    const links = linksOf([...request.messages.flatMap((message) => message.parts), ...(answer?.parts || [])]);
    const views = (from, to) => request.messages.slice(from, to).map((message, place) => messageView(message, from + place, links, prefix));
    const hidden = request.messages.length - FIRST - LAST;
    if (request.messages.length > 8 && answer) box.append(h("p", { class: "jumps" }, plural(request.messages.length, "message"), " ", jump(`${prefix}-answer`, "to the answer ↓", "Jump to the answer")));
    if (hidden > 5) {
      const show = h("button", { type: "button", class: "more", onclick: () => show.replaceWith(...views(FIRST, FIRST + hidden)) }, `Show ${plural(hidden, "more message")}`);
      box.append(...views(0, FIRST), show, ...views(FIRST + hidden));
    } else {
      box.append(...views(0));
    }
    if (answer) box.append(answerView(flow, answer, links, prefix));
    return box;
  }
  if (answer) box.append(answerView(flow, answer, linksOf(answer.parts), prefix));
  return box;
}

/** The answer as the client received it: what its wire adds up to, else the canonical events. */
export function answerOf(flow) {
  const response = flow.client?.response;
  const received = response?.status >= 400 ? null : readAnswer(flow.dialect, response);
  if (received?.parts.length) return response.frames?.length ? markOpen(received) : received;
  const canonical = readEvents(flow.events);
  return canonical.parts.length || (canonical.error && flow.outcome !== "ok") ? canonical : received;
}

/** The calls that reached the client, each with its state; calls of earlier rounds of a correction are not among them. */
export function receivedCalls(flow) {
  const parts = (answerOf(flow)?.parts || []).filter((part) => part.type === "call");
  return parts.length ? parts.map((part) => stateOf(flow, part)).filter(Boolean) : flow.corrections ? flow.calls.slice(-1) : flow.calls;
}

function stateOf(flow, part) {
  return flow.calls.findLast((call) => call.id === part.id && call.name === part.name) || flow.calls.findLast((call) => call.name === part.name);
}

/** {before, after} of a report. Of a correction: the calls of the first reply, and those that the client received. */
export function textsOf(flow, report) {
  if (report.before || report.after) return { before: report.before, after: report.after };
  if (report.kind !== "correction" || !(flow.upstream?.length > 1)) return null;
  const first = readAnswer(flow.upstream[0].dialect, flow.upstream[0].response);
  return { before: callLines(first?.parts), after: callLines(answerOf(flow)?.parts) };
}

function callLines(parts) {
  return (parts || []).filter((part) => part.type === "call").map((part) => `${part.name} ${part.raw}`).join("\n");
}

export function toolsView(tools) {
  const names = tools.map((tool) => tool.name);
  return h("details", { class: "fold" }, h("summary", null, `${plural(tools.length, "tool")}: `, h("span", { class: "muted" }, names.slice(0, 12).join(", "), names.length > 12 && " …")),
    tools.map((tool) => h("details", { class: "tool" }, h("summary", null, h("code", null, tool.name), " ", h("span", { class: "muted" }, tool.description.slice(0, 140))),
      tool.description.length > 140 && longText(tool.description), tool.schema ? jsonTree(tool.schema, 3) : h("p", { class: "muted" }, "No schema."))));
}

export function partView(part, context = {}) {
  if (part.type === "call") return callView(part, context);
  if (part.type === "result") return resultView(part, context);
  if (part.type === "reasoning") return h("details", { class: "reasoning", open: context.isAnswer }, h("summary", null, "Reasoning"), part.text ? longText(part.text) : h("p", { class: "muted" }, "Not shown by the provider."));
  if (part.type === "refusal") return h("div", { class: "refusal" }, h("b", null, "Refusal "), longText(part.text));
  if (part.type === "media") return h("p", { class: "media" }, `▣ ${part.text}`);
  if (part.type === "other") return h("details", { class: "fold" }, h("summary", null, `Other content: ${part.value?.type || "unknown"}`), jsonTree(part.value, 2));
  return longText(part.text, { class: "prose" });
}

function answerView(flow, answer, links, prefix) {
  const note = flow.outcome === "open" ? "streaming…" : answer.finish ? `finish: ${answer.finish}` : "";
  return h("article", { class: "message answer", "data-role": "assistant", id: `${prefix}-answer`, tabindex: "-1" },
    h("header", null, h("h3", null, "Answer"), h("span", { class: "muted" }, [flow.backend, flow.sent_model || flow.model].filter(Boolean).join(" · ")), h("span", { class: "grow" }), h("span", { class: "muted" }, note)),
    answer.parts.length ? answer.parts.map((part) => partView(part, { links, prefix, isAnswer: true, flow })) : h("p", { class: "muted" }, flow.outcome === "open" ? "Nothing yet." : "Empty."),
    (answer.error || flow.outcome === "error") && h("p", { class: "bad" }, `The answer ended with an error: ${answer.error || flow.message || flow.error}`),
    flow.outcome === "client_gone" && h("p", { class: "bad" }, "The client disconnected here."));
}

function messageView(message, place, links, prefix) {
  const isLong = message.role === "system" && JSON.stringify(message.parts).length > 1500;
  const body = message.parts.length ? message.parts.map((part) => partView(part, { links, prefix })) : h("p", { class: "muted" }, "Empty.");
  const head = [h("h3", null, ROLES[message.role] || message.role), h("span", { class: "grow" }), h("span", { class: "muted" }, `#${number(place + 1)}`)];
  if (isLong) return h("article", { class: "message", "data-role": message.role, id: `${prefix}-${place}` }, h("details", null, h("summary", null, h("header", null, head), h("p", { class: "muted clip" }, message.parts[0].text?.slice(0, 200))), body));
  return h("article", { class: "message", "data-role": message.role, id: `${prefix}-${place}` }, h("header", null, head), body);
}

function callView(part, { links, prefix, isAnswer, flow }) {
  const value = parseJson(part.raw);
  const key = anchor(prefix, "call", part.id);
  const state = isAnswer && flow ? stateOf(flow, part) : null;
  const ofCall = isAnswer && flow ? (flow.reports || []).filter((one) => ["repair", "correction"].includes(one.kind) && one.tool === part.name) : [];
  const report = ofCall.find((one) => one.where === `call ${part.id}`) || ofCall[0];
  const texts = report && textsOf(flow, report);
  const isBad = part.raw && value === undefined && !part.isOpen;
  return h("section", { class: `card call ${isBad ? "invalid" : ""}`, id: key, tabindex: "-1" },
    h("header", null, h("span", { class: "kind" }, "call"), h("code", null, part.name || "(no name)"), callState(state, part), h("span", { class: "grow" }),
      h("span", { class: "muted id" }, part.id),
      links?.results.has(part.id) && jump(anchor(prefix, "result", part.id), "result →", `Jump to the result of ${part.name}`)),
    value !== undefined && part.raw.length < 100_000 ? jsonTree(value, 2) : longText(part.raw, { class: "mono", first: 1500 }),
    isBad && h("p", { class: "bad" }, "These arguments are not valid JSON."),
    part.isOpen && flow?.outcome !== "open" && h("p", { class: "bad" }, "The stream ended inside this call: its arguments are incomplete."),
    report && h("div", { class: "repaired" }, h("p", null, h("span", { class: `badge ${report.kind}` }, report.kind === "repair" ? "repaired" : "corrected"), " ", reasonOf(report)), texts && beforeAfter(texts.before, texts.after, ["The model wrote", "The client received"])));
}

function callState(state, part) {
  if (part.isOpen) return h("span", { class: "badge open" }, "incomplete");
  if (!state) return null;
  if (state.valid_after === null) return h("span", { class: "badge" }, "not checked");
  if (!state.valid_after) return h("span", { class: "badge fault" }, "invalid");
  return state.valid_before ? h("span", { class: "badge ok" }, "valid") : h("span", { class: "badge repair" }, "valid after repair");
}

function resultView(part, { links, prefix }) {
  const value = parseJson(part.text);
  return h("section", { class: `card result ${part.isError ? "invalid" : ""}`, id: anchor(prefix, "result", part.id), tabindex: "-1" },
    h("header", null, h("span", { class: "kind" }, part.isError ? "failed result" : "result"), part.name && h("code", null, part.name), h("span", { class: "grow" }), h("span", { class: "muted id" }, part.id),
      links?.calls.has(part.id) ? jump(anchor(prefix, "call", part.id), "← call", `Jump to the call of ${part.name}`) : h("span", { class: "badge fault" }, "no call")),
    typeof value === "object" && value !== null && part.text.length < 100_000 ? jsonTree(value, 1) : longText(part.text, { class: "mono", first: RESULT }));
}

function linksOf(parts) {
  const ids = (type) => new Set(parts.filter((part) => part.type === type && part.id).map((part) => part.id));
  return { calls: ids("call"), results: ids("result") };
}

/** A link inside the page; in an exported file the plain anchor does the same. */
function jump(target, text, label) {
  return h("a", { class: "jump", href: `#${target}`, "aria-label": label, onclick: (event) => {
    event.preventDefault();
    const element = document.getElementById(target);
    for (let outer = element?.parentElement; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
    element?.scrollIntoView({ block: element.offsetHeight > innerHeight / 2 ? "start" : "center", behavior: "smooth" });
    element?.focus({ preventScroll: true });
  } }, text);
}

function anchor(prefix, kind, id) {
  return `${prefix}-${kind}-${String(id).replace(/[^\w-]/g, "_")}`;
}
