// The list of flows. Only the visible rows exist as elements, so that 10,000 flows scroll like ten.

import * as api from "./api.js";
import { openButton, saveCassette } from "./cassettes.js";
import { drawUnlessPressed, h, replace } from "./dom.js";
import { STATES, TERMS, isCacheMiss, parseFilter } from "./filter.js";
import { clock, compact, duration, number, plural } from "./format.js";

const ROW = 60;
const SPARE = 8;
const CHIPS = [["", "All"], ["error", "Errors"], ["repaired", "Repaired"], ["lost", "Losses"], ["corrected", "Corrected"], ["uncached", "Uncached"], ["open", "Open"]];

export class FlowList {
  constructor(store, onSelect) {
    this.store = store;
    this.onSelect = onSelect;
    this.selected = null;
    this.shown = [];
    this.chip = "";
    this.filter = parseFilter("");
    this.found = null;
    this._rows = new Map();
    this._frame = 0;
    this._places = null;
    this._update = () => { this._filterFlows(); this._draw(); };
    this._build();
    store.addEventListener("change", () => this.refresh());
    new ResizeObserver(() => this._draw()).observe(this.scroller);
    setInterval(() => this.shown.some(STATES.open) && this.refresh(), 1000);
    this.refresh();
  }

  /** Reads the store again before the next frame. */
  refresh() {
    this._frame ||= requestAnimationFrame(() => {
      this._frame = 0;
      drawUnlessPressed(this._update);
    });
  }

  /** Marks a flow and scrolls it into view. */
  mark(id) {
    this.selected = id;
    const place = this._placeOf(id);
    if (place >= 0) this._reveal(place);
    this._draw();
  }

  move(step) {
    const place = this._placeOf(this.selected);
    this.moveTo(place < 0 ? 0 : place + step);
  }

  moveTo(place) {
    const flow = this.shown[Math.max(0, Math.min(this.shown.length - 1, place))];
    if (flow) this.onSelect(flow.id);
  }

  setFilter(text) {
    this.input.value = text;
    this._changed();
  }

  focusSearch() {
    this.input.focus();
    this.input.select();
  }

  _build() {
    this.input = h("input", {
      type: "search", id: "search", placeholder: "Filter: text, model:gpt, tool:name, >2s", "aria-label": "Filter flows", autocomplete: "off", spellcheck: "false", list: "filter-terms",
      oninput: () => this._changed(),
      onkeydown: (event) => {
        if (event.key === "Escape" && this.input.value) { event.stopPropagation(); this.setFilter(""); }
        if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); this.scroller.focus(); if (this._placeOf(this.selected) < 0) this.moveTo(0); }
      },
    });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Quick filters" }, CHIPS.map(([name, text]) =>
      h("button", { type: "button", class: "chip", dataset: { state: name }, "aria-pressed": String(name === ""), onclick: () => this._setChip(name) }, text, h("span", { class: "count" }))));
    this.spacer = h("div", { class: "spacer", role: "presentation" });
    this.scroller = h("div", {
      class: "rows", role: "listbox", tabindex: "0", "aria-label": "Flows, newest first", id: "rows",
      onscroll: () => this._draw(), onkeydown: (event) => this._key(event),
    }, this.spacer);
    this.empty = h("div", { class: "empty", hidden: true });
    this.status = h("span", { class: "muted", role: "status", "aria-live": "polite", id: "count" });
    this.save = h("button", { type: "button", class: "quiet small", title: "Save the flows of this list for `toolwire replay`", onclick: () => saveCassette(this.shown, "toolwire-flows") }, "Save as cassette");
    this.clear = h("button", { type: "button", class: "quiet small", onclick: () => this._clear() }, "Delete all");
    this.element = h("section", { class: "list", "aria-label": "List of flows" },
      h("div", { class: "search" }, this.input, h("datalist", { id: "filter-terms" }, TERMS.map((term) => h("option", { value: term })))),
      this.chips, this.scroller, this.empty, h("footer", null, this.status, h("span", { class: "grow" }), openButton(), this.save, this.clear));
  }

  async _clear() {
    if (!confirm(`Delete all ${number(this.store.ordered.length)} recorded flows from the gateway?`)) return;
    await api.remove();
    this.store.reload();
  }

  _setChip(name) {
    this.chip = name;
    for (const button of this.chips.children) button.setAttribute("aria-pressed", String(button.dataset.state === name));
    this.refresh();
  }

  _changed() {
    this.filter = parseFilter(this.input.value);
    this.found = null;
    this.refresh();
    clearTimeout(this._searching);
    if (this.filter.words.length > 1) this._searching = setTimeout(() => this._searchBodies(this.filter), 250);
  }

  /** Bodies are only on the gateway: what it finds is added to what the summaries matched. */
  async _searchBodies(filter) {
    try {
      const page = await api.flows({ q: filter.words, limit: 500 });
      if (filter !== this.filter) return;
      this.found = new Set(page.flows.map((flow) => flow.id));
      this.refresh();
    } catch {
      // The list still has what the summaries matched.
    }
  }

  _filterFlows() {
    const top = this.shown[Math.floor(this.scroller.scrollTop / ROW)];
    const before = this.scroller.scrollTop;
    const counts = Object.fromEntries(CHIPS.map(([name]) => [name, 0]));
    const isChosen = STATES[this.chip] || (() => true);
    this.shown = [];
    for (const flow of this.store.ordered) {
      if (!this.filter.test(flow, this.found)) continue;
      counts[""] += 1;
      for (const [name] of CHIPS) if (name && STATES[name](flow)) counts[name] += 1;
      if (isChosen(flow)) this.shown.push(flow);
    }
    this._places = null;
    for (const button of this.chips.children) {
      const count = counts[button.dataset.state];
      button.querySelector(".count").textContent = count ? compact(count) : "";
      button.classList.toggle("none", !count && button.dataset.state !== "");
    }
    this.spacer.style.height = `${this.shown.length * ROW}px`;
    if (before > 0 && top) {
      const place = this._placeOf(top.id);
      if (place >= 0) this.scroller.scrollTop = place * ROW + (before % ROW);
    }
    this._describe();
  }

  _describe() {
    const all = this.store.ordered.length;
    this.status.textContent = this.shown.length === all ? plural(all, "flow") : `${number(this.shown.length)} of ${number(all)} flows`;
    this.clear.hidden = this.save.hidden = all === 0;
    this.empty.hidden = this.shown.length > 0;
    this.scroller.hidden = this.shown.length === 0;
    if (this.shown.length) return;
    if (all) replace(this.empty, h("p", null, "No flow matches."), h("button", { type: "button", onclick: () => { this._setChip(""); this.setFilter(""); } }, "Show all flows"));
    else if (!this.store.isEnabled) replace(this.empty, h("p", null, "Recording is off."), h("p", { class: "muted" }, "Set enabled = true in the [flows] section of the configuration and restart the gateway."));
    else replace(this.empty, h("p", null, this.store.isLoaded ? "No request yet." : "Loading…"), this.store.isLoaded && h("p", { class: "muted" }, "Send one to the gateway and it appears here."));
  }

  _draw() {
    const height = this.scroller.clientHeight;
    if (!height) return;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE);
    const last = Math.min(this.shown.length, Math.ceil((this.scroller.scrollTop + height) / ROW) + SPARE);
    const wanted = new Set();
    for (let place = first; place < last; place += 1) wanted.add(this.shown[place].id);
    for (const [id, row] of this._rows) {
      if (!wanted.has(id)) {
        row.element.remove();
        this._rows.delete(id);
      }
    }
    for (let place = first; place < last; place += 1) this._drawRow(this.shown[place], place);
    const active = this._rows.get(this.selected);
    if (active) this.scroller.setAttribute("aria-activedescendant", active.element.id);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  _drawRow(flow, place) {
    let row = this._rows.get(flow.id);
    if (!row) {
      row = { element: h("div", { class: "row", role: "option", id: `flow-${flow.id}`, dataset: { id: flow.id }, onclick: () => this.onSelect(flow.id) }), flow: null };
      this._rows.set(flow.id, row);
      this.spacer.append(row.element);
    }
    row.element.style.transform = `translateY(${place * ROW}px)`;
    row.element.setAttribute("aria-posinset", place + 1);
    row.element.setAttribute("aria-setsize", this.shown.length);
    row.element.setAttribute("aria-selected", String(flow.id === this.selected));
    if (row.flow === flow && flow.outcome !== "open") return;
    row.flow = flow;
    row.element.dataset.outcome = flow.outcome;
    replace(row.element, ...rowContent(flow));
  }

  _placeOf(id) {
    if (!id) return -1;
    this._places ||= new Map(this.shown.map((flow, place) => [flow.id, place]));
    return this._places.get(id) ?? -1;
  }

  _reveal(place) {
    const { scrollTop, clientHeight } = this.scroller;
    if (place * ROW < scrollTop) this.scroller.scrollTop = place * ROW;
    else if ((place + 1) * ROW > scrollTop + clientHeight) this.scroller.scrollTop = (place + 1) * ROW - clientHeight;
  }

  _key(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) this.move(steps[event.key]);
    else if (event.key === "Home") this.moveTo(0);
    else if (event.key === "End") this.moveTo(this.shown.length - 1);
    else if (event.key === "Enter") document.querySelector(".detail .panel")?.focus();
    else return;
    event.preventDefault();
  }
}

export function badges(flow) {
  // A corrected call is still in the list of calls, before the one that replaced it.
  const isCorrected = flow.corrections > 0 && flow.calls.at(-1)?.valid_after !== false;
  const failed = isCorrected ? 0 : flow.calls.filter((call) => call.valid_after === false).length;
  return [
    flow.repairs > 0 && h("span", { class: "badge repair", title: `${flow.repairs} repaired` }, `${flow.repairs} repaired`),
    flow.corrections > 0 && h("span", { class: "badge correction", title: `${flow.corrections} corrections` }, `${flow.corrections} corrected`),
    flow.losses > 0 && h("span", { class: "badge loss", title: `${flow.losses} losses` }, `${flow.losses} lost`),
    isCacheMiss(flow) && h("span", { class: "badge", title: `${number(flow.usage.cached)} of ${number(flow.usage.input)} input tokens from the cache` }, "uncached"),
    failed > 0 && h("span", { class: "badge fault", title: `${failed} invalid calls` }, `${failed} invalid`),
  ];
}

export function stateText(flow) {
  if (flow.outcome === "open") return "running";
  if (flow.outcome === "client_gone") return "client disconnected";
  if (flow.outcome === "error") return [flow.status >= 400 ? flow.status : null, flow.error || "error"].filter(Boolean).join(" ");
  return String(flow.status ?? "ok");
}

function rowContent(flow) {
  const total = flow.outcome === "open" ? Date.now() / 1000 - flow.started : flow.timings?.total;
  const calls = flow.calls.map((call) => call.name);
  return [
    h("span", { class: "dot", "aria-hidden": "true" }),
    h("span", { class: "what" },
      h("span", { class: "line1" },
        h("b", { title: flow.model }, flow.model || "no model"),
        h("span", { class: "pair" }, flow.dialect, flow.backend_dialect && flow.backend_dialect !== flow.dialect ? [h("i", null, "→"), flow.backend_dialect] : null),
        h("span", { class: "grow" }),
        h("time", null, clock(flow.started))),
      h("span", { class: "line2" },
        h("span", { class: "preview" },
          flow.outcome === "error" || flow.outcome === "client_gone" ? h("span", { class: "bad" }, `${stateText(flow)} `) : null,
          calls.length ? h("span", { class: "calls" }, `${calls.slice(0, 3).join(", ")}${calls.length > 3 ? ` +${calls.length - 3}` : ""} `) : null,
          flow.preview),
        badges(flow),
        h("span", { class: "took" }, duration(total)))),
  ];
}
