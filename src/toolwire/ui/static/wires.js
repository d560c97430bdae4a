// Both wires of a flow side by side, with the canonical events between them.

import { h } from "./dom.js";
import { partView } from "./conversation.js";
import { readAnswer } from "./dialects.js";
import { reasonOf } from "./reasons.js";
import { bytes, duration, plural } from "./format.js";
import { bodyView, jsonTree, longText } from "./text_view.js";

const FIRST_EVENTS = 200;

export function wiresView(flow) {
  const upstream = flow.upstream || [];
  return h("div", { class: "wires" },
    column("client", "Client", flow.client ? [wireView(flow.client)] : [h("p", { class: "muted" }, "Not recorded.")], flow.client?.dialect),
    column("canonical", "toolwire", [canonicalView(flow)], "canonical events"),
    column("upstream", flow.backend || "Back end", upstream.length ? upstream.map((wire, place) => wireView(wire, upstream.length > 1 ? `Request ${place + 1} of ${upstream.length}` : "")) : [h("p", { class: "muted" }, flow.outcome === "open" ? "No request yet." : "No request was sent over the wire.")], upstream[0]?.dialect));
}

function column(kind, title, content, note) {
  return h("section", { class: `wire ${kind}`, "aria-label": title }, h("header", null, h("h3", null, title), note && h("span", { class: "muted" }, note)), content);
}

function wireView(wire, title = "") {
  const { request, response } = wire;
  return h("div", { class: "exchange" },
    title && h("h4", null, title),
    request && h("div", { class: "half" }, h("h4", { class: "first-line" }, h("span", { class: "arrow" }, "▲"), h("code", null, `${request.method} ${wire.url || request.path}`)),
      headersView(request.headers), note(request), bodyView(request.body, { none: request.size ? "" : "No body.", depth: 1 })),
    response && h("div", { class: "half" }, h("h4", { class: "first-line" }, h("span", { class: "arrow" }, "▼"), h("code", { class: response.status >= 400 ? "bad" : "" }, `HTTP ${response.status ?? "–"}`)),
      headersView(response.headers), note(response), response.frames?.length ? framesText(response, wire.dialect) : bodyView(response.body, { none: response.size ? "" : "No body.", depth: 2 })),
    wire.messages?.length > 0 && messagesView(wire.messages),
    wire.error && h("p", { class: "bad" }, wire.error));
}

/** What a back end exchanges that is not reached over HTTP. */
function messagesView(messages) {
  return h("details", { class: "fold", open: messages.length < 30 }, h("summary", null, plural(messages.length, "message")),
    messages.slice(0, 500).map((one) => h("details", { class: `frame ${one.direction === "received" ? "upstream" : "client"}` }, h("summary", null, h("span", { class: "t" }, duration(one.t)), h("span", { class: "who" }, one.direction), h("span", { class: "title" }, one.kind), h("span", { class: "muted" }, bytes(one.size))), bodyView(one.data, { depth: 2 }))));
}

function note(message) {
  return h("p", { class: "muted size" }, bytes(message.size), message.truncated && h("span", { class: "bad" }, message.body || message.frames?.length ? " · only the beginning is recorded" : " · not recorded"));
}

function headersView(headers) {
  if (!headers?.length) return null;
  return h("details", { class: "fold" }, h("summary", null, plural(headers.length, "header")), h("table", { class: "headers" }, headers.map(([name, value]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, value)))));
}

function framesText(response, dialect) {
  const { frames } = response;
  const answer = readAnswer(dialect, response);
  const text = frames.map((frame) => (frame.data.endsWith("\n\n") ? frame.data : `${frame.data.trimEnd()}\n\n`)).join("");
  return h("div", { class: "body rebuilt" }, answer?.parts.map((part) => partView(part, {})), answer?.finish && h("p", { class: "muted size" }, `finish: ${answer.finish}`),
    h("details", { class: "fold", open: !answer?.parts.length }, h("summary", null, `${plural(frames.length, "frame")} in ${duration(frames.at(-1).t - frames[0].t)}, as sent`), longText(text, { class: "mono" })));
}

function canonicalView(flow) {
  const rows = mergeDeltas(flow.events || []);
  const box = h("ol", { class: "events" });
  const add = (from) => {
    box.append(...rows.slice(from, from + FIRST_EVENTS).map(eventView));
    if (from + FIRST_EVENTS < rows.length) {
      const button = h("li", null, h("button", { type: "button", class: "more", onclick: () => { button.remove(); add(from + FIRST_EVENTS); } }, `${rows.length - from - FIRST_EVENTS} more`));
      box.append(button);
    }
  };
  add(0);
  return h("div", { class: "canonical-body" },
    h("dl", { class: "facts" }, fact("Route", flow.route), fact("Path", flow.verbatim ? (flow.took_over ? `bytes unchanged until: ${flow.took_over}` : "bytes unchanged (verbatim)") : flow.translated ? `translated: ${flow.translated}` : "translated"), fact("Model", flow.sent_model && flow.sent_model !== flow.model ? `${flow.model} → ${flow.sent_model}` : flow.model)),
    (flow.reports || []).map((report) => h("p", { class: `note ${report.kind}` }, h("span", { class: `badge ${report.kind}` }, report.kind), " ", reasonOf(report))),
    rows.length ? box : h("p", { class: "muted" }, "No event recorded."));
}

function fact(name, value) {
  return value ? [h("dt", null, name), h("dd", null, value)] : null;
}

/** Consecutive deltas of a part become one row. */
function mergeDeltas(events) {
  const rows = [];
  for (const event of events) {
    const last = rows.at(-1);
    if (event.type === "part_delta" && last?.type === "part_delta" && last.index === event.index) {
      last.text += event.text ?? "";
      last.count += 1;
      last.until = event.t;
    } else {
      rows.push(event.type === "part_delta" ? { ...event, count: 1, text: event.text ?? "" } : event);
    }
  }
  return rows;
}

function eventView(event) {
  const { t, type, ...rest } = event;
  const title = h("span", { class: "type" }, type, event.count > 1 && ` × ${event.count}`);
  const head = [h("span", { class: "t" }, duration(t)), title];
  if (type === "part_delta") return h("li", { class: type }, h("div", { class: "event" }, head, h("span", { class: "muted" }, `part ${event.index}`)), longText(event.text, { class: "mono", first: 600 }));
  const short = event.part ? [`part ${event.index}`, event.part.type, event.part.name].filter(Boolean).join(" · ") : event.choices?.[0]?.reason || event.model || "";
  return h("li", { class: type }, h("details", null, h("summary", { class: "event" }, head, h("span", { class: "muted" }, short)), jsonTree(rest, 3)));
}
