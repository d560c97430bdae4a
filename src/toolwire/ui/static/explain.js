// What happened to a flow, in plain words: findings in the order in which a reader needs them.

import { answerOf, receivedCalls } from "./conversation.js";
import { readEvents, readRequest } from "./dialects.js";
import { reasonOf } from "./reasons.js";
import { bytes, duration, number, percent, plural } from "./format.js";

const ORDER = ["bad", "warn", "good", "info"];
const LARGE = 0.8; // share of a request that is unchanged, from which a change cannot be the reason for a missing cache
const PARTS = { system: "the system prompt", tools: "the list of tools", model: "the model name", settings: "the settings" };

// What to do about an error that the message does not explain.
const ADVICE = {
  upstream_cut: "The fault is at the back end, or at a proxy before it: look at its log, its time-outs and its limits. The client received an error after these frames, and has to send the request again.",
  upstream_timeout: "The back end was too slow: look at its log, or raise the time-outs of this back end in the configuration.",
  upstream_unreachable: "No connection to the back end was possible: look whether it runs, and at base_url in the configuration.",
};

/** [{level: "bad" | "warn" | "good" | "info", title, text, tab, change}]; change: texts before and after, if they show the reason. */
export function explain(flow) {
  const rest = [...finishFindings(flow), ...callFindings(flow), ...reportFindings(flow), ...resultFindings(flow), cacheFinding(flow), pathFinding(flow)].filter(Boolean);
  return [ending(flow), ...rest.sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level))];
}

/** Why the provider's prompt cache did or did not help, or null where nothing is known. */
export function cacheFinding(flow) {
  const change = flow.changes?.first_change;
  const usage = flow.usage;
  const share = usage?.input ? usage.cached / usage.input : 0;
  if (!flow.changes) return null;
  const same = flow.changes.same_prefix_bytes;
  if (!change) {
    if (!usage || !usage.input) return null;
    return share > 0
      ? { level: "good", title: `Prompt cache hit: ${percent(share)} of the input`, text: "The request only appends to the previous one of the conversation.", tab: "changes" }
      : { level: "info", title: "The prefix is unchanged", text: `The request only appends to the previous one (${bytes(same)} are equal), so nothing in it prevents a cache hit. The provider reported no cached tokens: the prefix may be too short, too old, or not marked for caching.`, tab: "changes" };
  }
  const size = flow.upstream?.[0]?.request?.size || flow.client?.request?.size || 0;
  const where = `The first changed byte is ${number(change.offset)} in ${partName(change.part)}; ${bytes(same)} before it are equal to the previous request.`;
  if (usage && share < 0.5 && size && same / size > LARGE) {
    return { level: "info", title: `Few cached tokens, although ${percent(same / size)} of the request is unchanged`, text: `${where} A provider could use its cache for all of that, but reported ${number(usage.cached)} cached tokens: the prefix may be too short, too old, or not marked for caching, or the back end has no cache.`, tab: "changes" };
  }
  const missed = usage ? (share > 0 ? `Only ${number(usage.cached)} of ${number(usage.input)} input tokens came from the cache.` : "No input token came from the cache.") : "";
  return {
    level: share > 0.5 ? "info" : "warn",
    title: share > 0.5 ? `Prompt cache hit for ${percent(share)} of the input; ${partName(change.part)} changed` : `Prompt cache miss: ${partName(change.part)} changed`,
    text: `${where} A provider caches a prefix, so everything after this byte is processed again. ${missed}`.trim(),
    tab: "changes",
    change,
  };
}

export function partName(part) {
  if (PARTS[part]) return PARTS[part];
  const place = /^(messages|input|contents)\[(\d+)\]/.exec(part || "");
  return place ? `message ${Number(place[2]) + 1} of the history` : part || "the request";
}

function ending(flow) {
  const open = openCall(flow);
  const frames = flow.upstream?.at(-1)?.response?.frames?.length;
  const where = open ? ` It ended in the middle of the call ${open.name || "without a name"}, after ${plural(open.raw.length, "character")} of its arguments.` : "";
  if (flow.outcome === "error") {
    const attempts = flow.upstream?.length > 1 ? ` The gateway sent ${plural(flow.upstream.length, "request")} to the back end.` : "";
    const never = flow.upstream && !flow.upstream.length ? " No request was sent to a back end." : "";
    const place = flow.status >= 400 ? ` (status ${flow.status})` : open ? " in the middle of a call" : frames ? " in the middle of the answer" : "";
    const advice = flow.upstream?.length && ADVICE[flow.error] ? ` ${ADVICE[flow.error]}` : "";
    return { level: "bad", title: `Failed${place}: ${flow.error || "error"}`, text: `${sentence(flow.message || "The answer ended with an error")}${where}${frames ? ` The back end had sent ${plural(frames, "frame")}.` : ""}${attempts}${never}${advice}`, tab: frames ? "stream" : "wires" };
  }
  if (flow.outcome === "client_gone") return { level: "bad", title: "The client disconnected", text: `The client closed its connection ${flow.timings?.total != null ? `after ${duration(flow.timings.total)}, ` : ""}before the answer was complete. The gateway cancelled the request to the back end.${where}`, tab: "stream" };
  if (flow.outcome === "open") return { level: "info", title: "Running", text: flow.timings?.first_token != null ? "The answer is being streamed." : "Waiting for the first token.", tab: "stream" };
  return { level: "good", title: "Answered", text: `${flow.backend || "The back end"} answered ${flow.timings?.total != null ? `in ${duration(flow.timings.total)}` : ""} with ${describeAnswer(flow)}.` };
}

function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

function describeAnswer(flow) {
  if (/count_?tokens|input_tokens/i.test(flow.path)) return "a token count";
  if (/embed/i.test(flow.path)) return "embeddings";
  const made = receivedCalls(flow).length;
  const calls = made ? plural(made, "tool call") : "";
  const hasText = (answerOf(flow)?.parts || []).some((part) => part.type === "text" && part.text.trim());
  return [hasText || !calls ? "text" : "", calls].filter(Boolean).join(" and ");
}

function openCall(flow) {
  if (flow.outcome === "ok") return null;
  const isOpen = (part) => part.type === "call" && part.isOpen;
  return readEvents(flow.events).parts.find(isOpen) || answerOf(flow)?.parts.find(isOpen);
}

function finishFindings(flow) {
  const { finish } = readEvents(flow.events);
  if (finish === "length") return [{ level: "bad", title: "The answer was cut at the token limit", text: "The model reached max_tokens. A call that ends here has incomplete arguments; raise the limit of the client.", tab: "conversation" }];
  if (finish === "refused") return [{ level: "bad", title: "The model refused to answer", text: "The back end ended the answer with a refusal.", tab: "conversation" }];
  return [];
}

function callFindings(flow) {
  const cut = openCall(flow);
  const bad = receivedCalls(flow).filter((call) => call.valid_after === false && call.id !== cut?.id);
  if (!bad.length) return [];
  const offered = new Set((readRequest(flow.dialect, flow.client?.request?.body)?.tools || []).map((tool) => tool.name));
  const unknown = bad.filter((call) => !offered.has(call.name));
  if (unknown.length === bad.length) return [{ level: "bad", title: `The model called a tool that does not exist: ${unknown.map((call) => call.name).join(", ")}`, text: offered.size ? `The request offers only: ${[...offered].slice(0, 20).join(", ")}.` : "The request offers no tools.", tab: "conversation" }];
  return [{ level: "bad", title: `${plural(bad.length, "call")} stayed invalid: ${bad.map((call) => call.name).join(", ")}`, text: "The arguments do not match the schema of the tool, and no repair had only one possible reading. The client received them as the policy of the back end says.", tab: "conversation" }];
}

function reportFindings(flow) {
  const count = (kind) => (flow.reports || []).filter((report) => report.kind === kind);
  const found = [];
  const [fallbacks, repairs, corrections, losses] = [count("fallback"), count("repair"), count("correction"), count("loss")];
  if (fallbacks.length) found.push({ level: "warn", title: `${plural(fallbacks.length, "model")} of the group failed first`, text: fallbacks.map((one) => `${one.where} (${one.code})`).join(", "), tab: "reports" });
  if (repairs.length) found.push({ level: "warn", title: repairs.every((one) => one.tool) ? `${plural(repairs.length, "repair")}: the client received other arguments than the model wrote` : `${plural(repairs.length, "repair")}: the gateway changed what was not valid`, text: sentence(reasonOf(repairs[0])) + more(repairs), tab: "reports" });
  if (corrections.length) found.push({ level: "warn", title: `${plural(corrections.length, "correction")}: the model was asked again`, text: sentence(reasonOf(corrections[0])) + more(corrections), tab: "reports" });
  if (losses.length) found.push({ level: "info", title: `${plural(losses.length, "loss", "losses")}: the other side cannot express it`, text: sentence(reasonOf(losses[0])) + more(losses), tab: "reports" });
  return found;
}

function more(reports) {
  return reports.length > 1 ? ` (and ${reports.length - 1} more)` : "";
}

/** An agent often fails because a tool did: the last results of the history. */
function resultFindings(flow) {
  const request = readRequest(flow.dialect, flow.client?.request?.body);
  if (!request) return [];
  const last = request.messages.slice(-4).flatMap((message) => message.parts).filter((part) => part.type === "result");
  const failed = last.filter((part) => part.isError || /^\s*(error|traceback|exception)\b/i.test(part.text));
  return failed.length ? [{ level: "warn", title: `A tool of the client failed: ${failed.map((part) => part.name || part.id).join(", ")}`, text: `Its result in this request begins with: ${failed[0].text.slice(0, 200)}`, tab: "conversation" }] : [];
}

function pathFinding(flow) {
  const how = flow.verbatim && flow.took_over
    ? `The bytes of the back end passed unchanged until something irregular (${flow.took_over}); from there the gateway wrote the answer again.`
    : flow.verbatim
    ? "Client and back end use the same dialect and nothing had to change, so the bytes passed unchanged."
    : flow.translated ? `The bytes were translated: ${flow.translated}.` : flow.backend ? "The request was translated." : "";
  const route = flow.route ? `Route: ${flow.route}.` : "";
  return how || route ? { level: "info", title: flow.backend ? `${flow.dialect} → ${flow.backend}${flow.backend_dialect ? ` (${flow.backend_dialect})` : ""}` : "Route", text: `${route} ${how}`.trim().replaceAll("..", "."), tab: "wires" } : null;
}
