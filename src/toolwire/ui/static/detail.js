// One flow: its header with actions, and its tabs. Reads the flow again while it streams.

import * as api from "./api.js";
import { drawUnlessPressed, h, replace, tabs, toast } from "./dom.js";
import { changesView } from "./changes.js";
import { conversationView } from "./conversation.js";
import { exportFlow } from "./export.js";
import { clock, duration, plural } from "./format.js";
import { badges, stateText } from "./list.js";
import { showSnippets } from "./snippets.js";
import { streamView } from "./stream.js";
import { changesOf, reportsView, summaryView } from "./summary.js";
import { wiresView } from "./wires.js";

export const TABS = [["summary", "Summary"], ["conversation", "Conversation"], ["wires", "Wires"], ["stream", "Stream"], ["reports", "Repairs, losses"], ["changes", "Changes"]];
const REFRESH = 400; // milliseconds between two reads of an open flow

export class FlowDetail {
  constructor(store, navigate) {
    this.store = store;
    this.navigate = navigate;
    this.element = h("section", { class: "detail", "aria-label": "Selected flow" });
    this.flow = null;
    this.id = null;
    this.tab = "summary";
    this._reading = false;
    this._again = false;
    this._drawRun = this._drawRun.bind(this);
    store.addEventListener("change", (event) => this._changed(event.detail));
    this.clear();
  }

  clear() {
    this.id = null;
    this.flow = null;
    replace(this.element, welcome());
  }

  async show(id, tab) {
    const isNew = id !== this.id;
    this.tab = TABS.some(([name]) => name === tab) ? tab : this.tab;
    if (!isNew) {
      if (this.flow && this._drawn !== `${this.id}/${this.tab}`) this._draw(false);
      return;
    }
    this.id = id;
    this.flow = null;
    if (!this.element.querySelector(".flow-head")) replace(this.element, h("p", { class: "muted pad" }, "Loading…"));
    await this._read(true);
  }

  choose(tab) {
    if (this.id) this.navigate(`#/flows/${encodeURIComponent(this.id)}/${tab}`);
  }

  chooseNumber(place) {
    if (TABS[place]) this.choose(TABS[place][0]);
  }

  copy() {
    if (this.flow) showSnippets(this.flow);
  }

  async export() {
    if (!this.flow) return;
    const previous = this.flow.changes?.previous ? await api.flow(this.flow.changes.previous).catch(() => null) : null;
    exportFlow(this.flow, previous);
  }

  resend() {
    if (this.id) this.navigate(`#/playground/${encodeURIComponent(this.id)}`);
  }

  async remove() {
    if (!this.id || !confirm("Delete this flow from the gateway?")) return;
    const id = this.id;
    await api.remove(id);
    this.navigate("#/flows");
    this.store.forget(id);
    toast("Deleted");
  }

  _changed(summaries) {
    if (this.flow) drawUnlessPressed(this._drawRun);
    if (!this.id || !summaries?.some((one) => one.id === this.id)) return;
    if (this.flow && this.flow.outcome !== "open" && this.store.byId.get(this.id)?.outcome === this.flow.outcome) return;
    this._read(false);
  }

  /** One read at a time; updates in between cause one more. */
  async _read(isNew) {
    if (this._reading && !isNew) {
      this._again = true;
      return;
    }
    const id = this.id;
    this._reading = true;
    const began = performance.now();
    try {
      const flow = await api.flow(id);
      if (id !== this.id) return;
      this.flow = flow;
      drawUnlessPressed(() => id === this.id && this._draw(isNew));
    } catch (fault) {
      if (id === this.id) replace(this.element, h("div", { class: "pad" }, h("p", { class: "bad" }, fault.status === 404 ? "This flow is no longer recorded." : `The flow could not be read: ${fault.message}`), h("a", { href: "#/flows" }, "Back to the list")));
    } finally {
      this._reading = false;
      if (this._again && id === this.id) {
        this._again = false;
        setTimeout(() => this.id === id && this._read(false), Math.max(0, REFRESH - (performance.now() - began)));
      }
    }
  }

  /** The header, the tabs and the panel stay as elements while a flow changes, so that the focus and the scroll position stay. */
  _draw(isNew) {
    if (isNew || !this.bar || !this.element.contains(this.bar.element)) this._build();
    const isSameTab = this._drawn === `${this.id}/${this.tab}`;
    const scroll = this.panel.scrollTop;
    const opened = isSameTab ? openDetails(this.panel) : null;
    replace(this._title, titleOf(this.flow));
    this._head.dataset.outcome = this.flow.outcome;
    this.bar.mark("reports", changesOf(this.flow).length);
    this.bar.mark("changes", this.flow.changes?.first_change ? "!" : "");
    this.bar.mark("stream", this.flow.client?.response?.frames?.length);
    this.bar.select(this.tab);
    this._drawRun();
    if (opened) restoreDetails(this.panel, opened);
    this.panel.scrollTop = isSameTab ? scroll : 0;
    this._drawn = `${this.id}/${this.tab}`;
  }

  _build() {
    const hadFocus = this.panel && document.activeElement === this.panel;
    const action = (text, key, run, kind = "") => h("button", { type: "button", class: kind, title: `${text} (${key})`, onclick: run }, text);
    this.bar = tabs(TABS, this.tab, (name, byUser) => (byUser && name !== this.tab ? this.choose(name) : this._fill(this.bar.panel, name)), "Views of this flow");
    this.panel = this.bar.panel;
    this._run = h("div", { class: "run" });
    this._title = h("div", { class: "title" });
    this._head = h("header", { class: "flow-head" }, h("a", { class: "back", href: "#/flows", "aria-label": "Back to the list" }, "‹"), this._title,
      h("div", { class: "actions" },
        action("Copy as…", "c", () => this.copy()), action("Export", "e", () => this.export()), action("Edit and resend", "r", () => this.resend(), "primary"), action("Delete", "Del", () => this.remove(), "quiet")));
    this._drawn = "";
    replace(this.element, this._head, this._run, this.bar.element, this.panel);
    if (hadFocus) this.panel.focus({ preventScroll: true });
  }

  _fill(panel, name) {
    const flow = this.flow;
    const views = {
      summary: () => summaryView(flow, (tab) => this.choose(tab)),
      conversation: () => conversationView(flow),
      wires: () => wiresView(flow),
      stream: () => streamView(flow),
      reports: () => reportsView(flow),
      changes: () => changesView(flow),
    };
    replace(panel, views[name]());
  }

  /** The requests of the same conversation, oldest first. */
  _drawRun() {
    const run = this.store.conversation(this.flow?.conversation);
    if (!this._run || run.length < 2) return;
    const place = run.findIndex((one) => one.id === this.id);
    const near = run.slice(Math.max(0, place - 12), place + 13);
    replace(this._run,
      h("span", { class: "muted" }, place >= 0 ? `Request ${place + 1} of ${run.length} in this conversation` : plural(run.length, "request")),
      h("nav", { "aria-label": "Requests of this conversation" }, near.map((one) => h("a", { href: `#/flows/${encodeURIComponent(one.id)}`, class: "step", "data-outcome": one.outcome, "data-changed": one.repairs + one.corrections > 0, "aria-current": one.id === this.id ? "true" : null, title: `${clock(one.started)} ${stateText(one)} ${one.calls.map((call) => call.name).join(", ")}` }, String(run.indexOf(one) + 1)))));
  }
}

function titleOf(flow) {
  return [h("h2", null, flow.model || "no model", " ", h("span", { class: `pill ${flow.outcome}` }, stateText(flow))), h("p", { class: "muted" }, `${flow.path} · ${clock(flow.started)} · ${duration(flow.timings?.total)}`, " ", badges(flow))];
}

function openDetails(panel) {
  return panel ? [...panel.querySelectorAll("details")].map((element) => element.open) : null;
}

function restoreDetails(panel, opened) {
  const elements = [...panel.querySelectorAll("details")];
  // Only while the structure is the same at the start; new parts are appended at the end.
  opened.forEach((isOpen, place) => {
    if (elements[place]) elements[place].open = isOpen;
  });
}

function welcome() {
  const address = api.gateway();
  const command = `curl ${address}/v1/chat/completions \\\n  -H 'Content-Type: application/json' \\\n  -d '{"model": "demo/echo-tools", "messages": [{"role": "user", "content": "Hello"}]}'`;
  return h("div", { class: "welcome" },
    h("h2", null, "See what happens between client and model"),
    h("p", null, "Each request through this gateway is one flow: what the client sent, what the back end received, what came back, and what was repaired, lost or corrected on the way."),
    h("ol", null, h("li", null, "Point a client at ", h("code", null, address), ", or try it now:"), h("pre", null, command), h("li", null, "Select the flow in the list. ", h("kbd", null, "j"), " and ", h("kbd", null, "k"), " move, ", h("kbd", null, "?"), " shows all keys."), h("li", null, "Or write a conversation in the ", h("a", { href: "#/playground" }, "playground"), ".")));
}
