// The summaries of all flows, newest first: one page after the other at the start, then live updates.

import * as api from "./api.js";

const PAGE = 500;
const MOST = 20_000;

export class FlowStore extends EventTarget {
  constructor() {
    super();
    this.byId = new Map();
    this.ordered = [];
    this.state = "connecting";
    this.isEnabled = true;
    this.isLoaded = false;
    this._load = 0;
    this._close = null;
  }

  start() {
    if (this._close) return;
    this._close = api.live({
      onFlow: (summary) => this.put([summary]),
      onReset: () => this.reload(),
      onState: (state) => {
        const isBack = state === "live" && this.state !== "live";
        if (!this.isEnabled) return;
        this.state = state;
        this._tell("state");
        if (isBack || state === "connecting") this.reload(); // also shows whether the session has ended
      },
    });
    this.reload();
  }

  stop() {
    this._close?.();
    this._close = null;
    this._load += 1;
  }

  /** Reads the list again; what the gateway no longer has disappears. */
  async reload() {
    const load = ++this._load;
    const seen = new Set();
    let newest = null;
    let before = null;
    try {
      do {
        const page = await api.flows(before === null ? { limit: PAGE } : { limit: PAGE, before });
        if (load !== this._load) return;
        this.isEnabled = page.enabled !== false;
        if (!this.isEnabled) {
          this.state = "recording off";
          this._close?.();
        }
        newest ??= page.flows[0]?.seq ?? Infinity;
        for (const summary of page.flows) seen.add(summary.id);
        this.put(page.flows);
        before = page.next ?? null;
      } while (before !== null && seen.size < MOST);
      // Newer ones have come in the meantime.
      this._drop((one) => one.seq <= newest && !seen.has(one.id));
      this.isLoaded = true;
      this._tell("state");
      this._tell("change");
    } catch (fault) {
      if (load === this._load) this.dispatchEvent(new CustomEvent("fault", { detail: fault }));
    }
  }

  put(summaries) {
    let isSorted = true;
    for (const summary of summaries) {
      const known = this.byId.get(summary.id);
      this.byId.set(summary.id, summary);
      if (known) {
        const place = this._place(known.seq);
        this.ordered[this.ordered[place] === known ? place : this.ordered.indexOf(known)] = summary;
      } else if (!this.ordered.length || this.ordered[0].seq < summary.seq) {
        this.ordered.unshift(summary);
      } else {
        isSorted = isSorted && this.ordered.at(-1).seq > summary.seq;
        this.ordered.push(summary);
      }
    }
    if (!isSorted) this.ordered.sort((a, b) => b.seq - a.seq);
    while (this.ordered.length > MOST) this.byId.delete(this.ordered.pop().id);
    this.dispatchEvent(new CustomEvent("change", { detail: summaries }));
  }

  forget(id) {
    this._drop((one) => one.id === id);
    this._tell("change");
  }

  /** The flows of a conversation, oldest first. */
  conversation(hash) {
    return hash ? this.ordered.filter((one) => one.conversation === hash).reverse() : [];
  }

  _drop(isGone) {
    const gone = this.ordered.filter(isGone);
    if (!gone.length) return;
    for (const one of gone) this.byId.delete(one.id);
    this.ordered = this.ordered.filter((one) => this.byId.has(one.id));
  }

  _place(seq) {
    let low = 0;
    let high = this.ordered.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ordered[middle].seq > seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  _tell(what) {
    this.dispatchEvent(new CustomEvent(what, { detail: null }));
  }
}
