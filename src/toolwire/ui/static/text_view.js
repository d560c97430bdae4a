// Text and JSON of any size: long text is shown in steps, JSON as a tree whose branches are built when they are opened.

import { copy, h, replace } from "./dom.js";
import { bytes, byteLength, parseJson, shorten } from "./format.js";

const FIRST = 4000;
const STEP = 200_000;
const BLOCK = 20_000;
const MOST_MEMBERS = 200;

/** Text in a <pre>; what is longer than a screen waits for a click. */
export function longText(text, options = {}) {
  const value = String(text ?? "");
  const first = options.first || FIRST;
  const box = h("div", { class: `text ${options.class || ""}` });
  if (value.length <= first * 1.2) {
    box.append(h("pre", null, value));
    return box;
  }
  let shown = first;
  box.append(h("pre", null, value.slice(0, first)));
  const more = h("button", { type: "button", class: "more", onclick: () => show(Math.min(value.length, shown + STEP)) });
  const label = () => {
    more.textContent = `Show more (${bytes(byteLength(value.slice(shown, shown + STEP)))} of ${bytes(byteLength(value) - byteLength(value.slice(0, shown)))} left)`;
  };
  function show(end) {
    // Blocks, so that the browser lays out only those that are on the screen.
    for (let place = shown; place < end; place += BLOCK) more.before(h("pre", { class: "block" }, value.slice(place, Math.min(end, place + BLOCK))));
    shown = end;
    if (shown >= value.length) more.remove();
    else label();
  }
  label();
  box.append(more);
  return box;
}

/** JSON as a tree with a switch to the exact text; other text as it is. */
export function bodyView(text, options = {}) {
  if (text === null || text === undefined || text === "") return h("p", { class: "muted" }, options.none ?? "No body.");
  const value = text.length < 3_000_000 ? parseJson(text) : undefined;
  const holder = h("div", { class: "holder" });
  const isTree = typeof value === "object" && value !== null;
  let mode = isTree && !options.raw ? "tree" : "text";
  const draw = () => replace(holder, mode === "tree" ? jsonTree(value, options.depth ?? 1) : longText(text, { class: "mono" }));
  draw();
  const toggle = isTree && h("button", { type: "button", class: "quiet small", onclick: () => {
    mode = mode === "tree" ? "text" : "tree";
    toggle.textContent = mode === "tree" ? "Exact text" : "Tree";
    draw();
  } }, "Exact text");
  return h("div", { class: "body" }, h("div", { class: "tools" }, toggle, h("button", { type: "button", class: "quiet small", onclick: () => copy(text) }, "Copy")), holder);
}

export function jsonTree(value, depth = 1, name = null) {
  if (typeof value !== "object" || value === null) return h("div", { class: "leaf" }, keyOf(name), leaf(value));
  const isList = Array.isArray(value);
  const count = isList ? value.length : Object.keys(value).length;
  if (!count) return h("div", { class: "leaf" }, keyOf(name), h("span", { class: "punct" }, isList ? "[]" : "{}"));
  const node = h("details", { class: "node", open: depth > 0 }, h("summary", null, keyOf(name), h("span", { class: "punct" }, isList ? `[${count}]` : `{${count}}`), h("span", { class: "hint" }, hint(value))));
  const fill = (from = 0) => {
    const entries = (isList ? value.map((one, place) => [String(place), one]) : Object.entries(value)).slice(from, from + MOST_MEMBERS);
    node.append(...entries.map(([key, one]) => jsonTree(one, depth - 1, key)));
    const next = from + MOST_MEMBERS;
    if (next < count) node.append(h("button", { type: "button", class: "more", onclick: (event) => { event.target.remove(); fill(next); } }, `${count - next} more`));
  };
  if (depth > 0) fill();
  else node.addEventListener("toggle", () => node.open && node.children.length === 1 && fill(), { once: false });
  return node;
}

/** Before and after with the difference marked: what is equal at both ends stays plain. */
export function beforeAfter(before, after, labels = ["Before", "After"]) {
  const [a, b] = [String(before ?? ""), String(after ?? "")];
  const marked = markDifference(a, b);
  const side = (text, tag, label, content) => h("div", { class: `side ${tag}` }, h("h4", null, label), text === "" ? h("p", { class: "muted" }, "nothing") : h("pre", null, content));
  return h("div", { class: "before-after" }, side(a, "del", labels[0], marked[0]), side(b, "ins", labels[1], marked[1]));
}

/** The contents of two texts, with marks around what differs; most of what is equal is left out where it is long. */
export function markDifference(a, b) {
  const [start, end] = commonEnds(a, b);
  return [[a, "del"], [b, "ins"]].map(([text, tag]) => [cropStart(text.slice(0, start)), h(tag, null, shorten(text.slice(start, text.length - end), 20_000)), cropEnd(text.slice(text.length - end))]);
}

function commonEnds(a, b) {
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  return [start, end];
}

function cropStart(text) {
  return text.length > 300 ? `… ${text.length - 200} equal characters … ${text.slice(-200)}` : text;
}

function cropEnd(text) {
  return text.length > 300 ? `${text.slice(0, 200)} … ${text.length - 200} equal characters …` : text;
}

function keyOf(name) {
  return name === null ? null : [h("span", { class: "key" }, shorten(name, 200)), h("span", { class: "punct" }, ": ")];
}

function leaf(value) {
  if (typeof value !== "string") return h("span", { class: value === null ? "null" : typeof value }, String(value));
  if (value.length < 160 && !value.includes("\n")) return h("span", { class: "string" }, JSON.stringify(value));
  return longText(value, { class: "string", first: 2000 });
}

function hint(value) {
  if (Array.isArray(value)) return "";
  const named = ["role", "type", "name", "id"].map((key) => value[key]).filter((one) => typeof one === "string");
  return shorten(named.join(" · "), 60);
}
