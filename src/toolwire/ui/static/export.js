// A flow as one HTML file without scripts and without requests, for an issue or a colleague.

import { h } from "./dom.js";
import { conversationView } from "./conversation.js";
import { lineDiff } from "./changes.js";
import { cacheFinding } from "./explain.js";
import { dateTime, pretty } from "./format.js";
import { stateText } from "./list.js";
import { streamView } from "./stream.js";
import { summaryView } from "./summary.js";
import { beforeAfter } from "./text_view.js";
import { wiresView } from "./wires.js";

export async function exportFlow(flow, previous) {
  const css = await (await fetch(new URL("style.css", import.meta.url))).text();
  const file = new Blob([exportHtml(flow, previous, css)], { type: "text/html" });
  const link = h("a", { href: URL.createObjectURL(file), download: `toolwire-${flow.id}.html` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The whole document. The serializer escapes all text; the recorded JSON is in a block that no browser executes. */
export function exportHtml(flow, previous, css) {
  const section = (title, content, isOpen) => h("details", { class: "section", open: isOpen }, h("summary", null, h("h2", null, title)), content);
  const page = h("main", { class: "exported" },
    h("header", null, h("h1", null, flow.model || "flow", " ", h("span", { class: `pill ${flow.outcome}` }, stateText(flow))), h("p", { class: "muted" }, `${flow.path} · ${dateTime(flow.started)} · ${flow.id} · exported by toolwire`)),
    section("Summary", summaryView(flow, null), true),
    section("Conversation", conversationView(flow, "m"), true),
    flow.changes && section("Changes from the previous request", changesOf(flow, previous), false),
    section("Stream", streamView(flow), false),
    section("Wires", wiresView(flow), false));
  prepare(page);
  const data = JSON.stringify(flow).replaceAll("<", "\\u003c");
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  const title = h("title", null, `toolwire ${flow.model} ${flow.id}`).outerHTML;
  return `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="Content-Security-Policy" content="${policy}"><meta name="color-scheme" content="light dark">${title}<style>${css.replaceAll("</", "<\\/")}</style></head><body class="export">${page.outerHTML}<script type="application/json" id="flow">${data}</script></body></html>\n`;
}

function changesOf(flow, previous) {
  const finding = cacheFinding(flow);
  const change = flow.changes.first_change;
  const [before, after] = [previous?.client?.request?.body, flow.client?.request?.body];
  return h("div", { class: "changes" }, finding && h("div", { class: `finding ${finding.level}` }, h("h3", null, finding.title), h("p", null, finding.text)),
    change && beforeAfter(change.before, change.after, ["Previous request", "This request"]),
    before != null && after != null ? lineDiff(pretty(before), pretty(after)) : h("p", { class: "muted" }, "The previous request is not part of this file."));
}

/** Without scripts nothing can be built later: open every branch once, then close it, and replace the buttons. */
function prepare(page) {
  for (let round = 0; round < 12; round += 1) {
    const closed = [...page.querySelectorAll("details:not([data-built])")];
    if (!closed.length) break;
    for (const element of closed) {
      element.dataset.built = "";
      if (!element.open) {
        element.open = true;
        element.dispatchEvent(new Event("toggle"));
        element.open = false;
      }
    }
  }
  for (let round = 0; round < 200; round += 1) {
    const more = page.querySelectorAll("button.more");
    if (!more.length) break;
    for (const button of more) button.click();
  }
  for (const element of page.querySelectorAll("button")) element.remove();
}
