// The difference from the previous request of the conversation, and why the provider's prompt cache missed.

import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { NO_BODIES } from "./conversation.js";
import { cacheFinding, partName } from "./explain.js";
import { bytes, number, pretty, shorten } from "./format.js";
import { beforeAfter, markDifference } from "./text_view.js";

const MOST_LINES = 4000;
const CONTEXT = 3;

export function changesView(flow) {
  const box = h("div", { class: "changes" });
  const id = flow.changes?.previous || flow.previous;
  if (!id) {
    box.append(h("p", { class: "muted" }, "This is the first recorded request of its conversation, so there is nothing to compare it with."));
    return box;
  }
  const finding = cacheFinding(flow);
  if (finding) box.append(h("div", { class: `finding ${finding.level}` }, h("h3", null, finding.title), h("p", null, finding.text)));
  if (flow.changes) box.append(prefixBar(flow));
  const change = flow.changes?.first_change;
  if (change) {
    box.append(h("h3", null, "First change: ", partName(change.part), h("span", { class: "muted" }, ` · byte ${number(change.offset)}`)), beforeAfter(change.before, change.after, ["Previous request", "This request"]));
  }
  const lines = h("div", { class: "lines" }, h("p", { class: "muted" }, "Loading the previous request…"));
  box.append(h("h3", null, "All differences ", h("a", { href: `#/flows/${id}` }, "from the previous request")), lines);
  showLines(flow, id, lines);
  return box;
}

async function showLines(flow, id, lines) {
  try {
    const previous = await api.flow(id);
    const [before, after] = [previous.client?.request?.body, flow.client?.request?.body];
    if (!before || !after) replace(lines, h("p", { class: "muted" }, NO_BODIES));
    else replace(lines, lineDiff(pretty(before), pretty(after)));
  } catch (fault) {
    replace(lines, h("p", { class: "muted" }, fault.status === 404 ? "The previous request is no longer recorded." : `The previous request could not be read: ${fault.message}`));
  }
}

function prefixBar(flow) {
  const size = flow.client?.request?.size || 0;
  const same = Math.min(flow.changes.same_prefix_bytes, size || Infinity);
  const share = size ? same / size : 0;
  return h("figure", { class: "prefix" },
    h("div", { class: "track", role: "img", "aria-label": `${bytes(same)} of ${bytes(size)} equal the previous request` },
      h("span", { class: "same", style: { flexGrow: String(share) } }), h("span", { class: "new", style: { flexGrow: String(Math.max(0, 1 - share)) } })),
    h("figcaption", null, h("span", { class: "legend same" }, "Equal prefix ", h("b", null, bytes(same))), h("span", { class: "legend new" }, "After the first difference ", h("b", null, bytes(Math.max(0, size - same))))));
}

/** A unified difference of two texts, line by line. */
export function lineDiff(before, after) {
  const rows = diffRows(before.split("\n"), after.split("\n"));
  if (!rows.some(([kind]) => kind !== " ")) return h("p", { class: "muted" }, "The bodies are equal.");
  const shown = new Set();
  rows.forEach(([kind], place) => {
    if (kind === " ") return;
    for (let near = place - CONTEXT; near <= place + CONTEXT; near += 1) shown.add(near);
  });
  const table = h("div", { class: "diff", role: "table", "aria-label": "Differences by line" });
  let skipped = 0;
  const gap = () => {
    if (skipped) table.append(h("div", { class: "gap", role: "row" }, h("span", { role: "cell" }, `${number(skipped)} equal lines`)));
    skipped = 0;
  };
  const marked = markPairs(rows);
  rows.forEach(([kind, line], place) => {
    if (!shown.has(place)) {
      skipped += 1;
      return;
    }
    gap();
    table.append(h("div", { class: kind === "+" ? "plus" : kind === "-" ? "minus" : "same", role: "row" }, h("span", { class: "sign", role: "cell" }, kind), h("code", { role: "cell" }, marked.get(place) || shorten(line, 4000))));
  });
  gap();
  return table;
}

/** Lines that replace each other one by one: what differs inside them. */
function markPairs(rows) {
  const marked = new Map();
  for (let place = 0; place < rows.length; place += 1) {
    const count = (kind, from) => { let end = from; while (rows[end]?.[0] === kind) end += 1; return end - from; };
    const removed = count("-", place);
    if (!removed) continue;
    if (count("+", place + removed) === removed) {
      for (let line = place; line < place + removed; line += 1) {
        const [before, after] = markDifference(rows[line][1], rows[line + removed][1]);
        marked.set(line, before).set(line + removed, after);
      }
    }
    place += removed - 1;
  }
  return marked;
}

function diffRows(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const [middleA, middleB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const equal = (lines) => lines.map((line) => [" ", line]);
  return [...equal(a.slice(0, start)), ...middle(middleA, middleB), ...equal(a.slice(a.length - end))];
}

/** Longest common subsequence for what is not too long; else all old lines, then all new ones. */
function middle(a, b) {
  if (!a.length || !b.length || a.length * b.length > MOST_LINES * 1000) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
  const rows = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) rows.push([" ", a[i++]]), (j += 1);
    else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) rows.push(["-", a[i++]]);
    else rows.push(["+", b[j++]]);
  }
  return [...rows, ...a.slice(i).map((line) => ["-", line]), ...b.slice(j).map((line) => ["+", line])];
}
