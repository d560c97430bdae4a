// The first tab of a flow: what happened in plain words, the numbers, the calls.

import { h } from "./dom.js";
import { textsOf } from "./conversation.js";
import { explain } from "./explain.js";
import { cost, dateTime, duration, number, percent, plural } from "./format.js";
import { reasonOf } from "./reasons.js";
import { timingBar } from "./stream.js";
import { beforeAfter } from "./text_view.js";

const KINDS = { fallback: "Fallback", repair: "Repaired", loss: "Lost", correction: "Corrected" };

export function summaryView(flow, open) {
  const findings = explain(flow);
  return h("div", { class: "summary" },
    h("section", { class: "findings", "aria-label": "What happened" }, findings.map((finding) => h("div", { class: `finding ${finding.level}` },
      h("h3", null, finding.title), h("p", null, finding.text), finding.tab && open && h("button", { type: "button", class: "quiet small", onclick: () => open(finding.tab) }, "Show"),
      finding.change && beforeAfter(finding.change.before, finding.change.after, ["Previous request", "This request"])))),
    changesOf(flow).length > 0 && h("section", null, h("h3", null, "Changes by the gateway"), reportsList(flow)),
    h("section", null, h("h3", null, "Tokens"), contextBar(flow)),
    h("section", null, h("h3", null, "Time"), timingBar(flow)),
    flow.calls.length > 0 && h("section", null, h("h3", null, "Calls"), callTable(flow)),
    h("section", null, h("h3", null, "Facts"), factsView(flow)));
}

/** Cached, fresh and output tokens as one bar. */
export function contextBar(flow) {
  const usage = flow.usage;
  if (!usage) return h("p", { class: "muted" }, flow.outcome === "open" ? "Not known before the end." : "The back end reported no usage.");
  const fresh = Math.max(0, usage.input - usage.cached);
  const pieces = [["cached", "Cached input", usage.cached], ["fresh", "Fresh input", fresh], ["output", "Output", usage.output]];
  const total = Math.max(1, usage.input + usage.output);
  return h("figure", { class: "context" },
    h("div", { class: "track", role: "img", "aria-label": pieces.map(([, label, count]) => `${label} ${number(count)}`).join(", ") },
      pieces.filter(([, , count]) => count > 0).map(([name, label, count]) => h("span", { class: name, style: { flexGrow: String(Math.max(count / total, 0.006)) }, title: `${label}: ${number(count)}` }))),
    h("figcaption", null, pieces.map(([name, label, count]) => h("span", { class: `legend ${name}` }, label, " ", h("b", null, number(count)))),
      usage.reasoning > 0 && h("span", { class: "legend" }, "of it reasoning ", h("b", null, number(usage.reasoning))),
      usage.input > 0 && h("span", { class: "legend" }, "Cache hit ", h("b", null, percent(usage.cached / usage.input))),
      h("span", { class: "legend" }, "Cost ", h("b", null, cost(flow.cost)))));
}

export function reportsView(flow) {
  if (!changesOf(flow).length) return h("p", { class: "muted" }, "The gateway changed nothing that it has to report: no repair, no loss, no correction.");
  return h("div", { class: "reports-page" }, reportsList(flow));
}

/** Faults are the end of a flow, not a change. */
export function changesOf(flow) {
  return (flow.reports || []).filter((report) => report.kind !== "fault");
}

export function reportsList(flow) {
  return h("div", { class: "reports" }, grouped(changesOf(flow)).map((report) => h("article", { class: `report ${report.kind}` },
    h("header", null, h("span", { class: `badge ${report.kind}` }, KINDS[report.kind] || report.kind), report.tool && h("code", null, report.tool), report.code && h("span", { class: "muted" }, report.code), h("span", { class: "grow" }), report.where && h("code", { class: "muted" }, report.where)),
    h("p", null, reasonOf(report)),
    beforeAndAfter(flow, report))));
}

/** The same loss at several places becomes one, with all places. */
function grouped(reports) {
  const found = new Map();
  for (const report of reports) {
    const key = report.kind === "loss" ? `${report.code} ${report.text}` : report;
    if (found.has(key)) found.get(key).where += `, ${report.where}`;
    else found.set(key, { ...report });
  }
  return [...found.values()];
}

function beforeAndAfter(flow, report) {
  const texts = textsOf(flow, report);
  return texts && beforeAfter(texts.before, texts.after, report.kind === "repair" && report.tool ? ["The model wrote", "The client received"] : report.kind === "correction" ? ["The model wrote first", "The client received"] : undefined);
}

function callTable(flow) {
  return h("table", { class: "plain" }, h("thead", null, h("tr", null, ["Tool", "As the model wrote it", flow.corrections ? "After repair" : "As the client received it", "Id"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, flow.calls.map((call) => h("tr", null, h("td", null, h("code", null, call.name)), h("td", null, mark(call.valid_before)), h("td", null, mark(call.valid_after)), h("td", { class: "muted id" }, call.id)))));
}

function mark(isValid) {
  if (isValid === null) return h("span", { class: "badge" }, "not checked");
  return isValid ? h("span", { class: "badge ok" }, "valid") : h("span", { class: "badge fault" }, "invalid");
}

function factsView(flow) {
  const facts = [
    ["Started", dateTime(flow.started)],
    ["Path", flow.path],
    ["Model", flow.sent_model && flow.sent_model !== flow.model ? `${flow.model}, sent as ${flow.sent_model}` : flow.model],
    ["Back end", flow.backend],
    ["Route", flow.route],
    ["Dialects", flow.backend_dialect ? `${flow.dialect} → ${flow.backend_dialect}` : flow.dialect],
    ["Path of the bytes", flow.verbatim ? (flow.took_over ? `verbatim until: ${flow.took_over}` : "verbatim") : flow.translated ? `translated: ${flow.translated}` : "translated"],
    ["Streamed", flow.stream ? "yes" : "no"],
    ["Requests to the back end", plural(flow.upstream?.length ?? 0, "request")],
    ["Total time", duration(flow.timings?.total)],
    ["Key", flow.key],
    ["Id", flow.id],
  ];
  return h("dl", { class: "facts" }, facts.filter(([, value]) => value !== "" && value !== null && value !== undefined).map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}
