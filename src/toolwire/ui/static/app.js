// The page: routes, keys, theme, login.

import * as api from "./api.js";
import { Charts } from "./charts.js";
import { FlowDetail } from "./detail.js";
import { dialog, h, replace } from "./dom.js";
import { FlowList } from "./list.js";
import { FlowStore } from "./flow_store.js";
import { Playground } from "./playground.js";

const KEYS = [
  ["j  ↓", "next flow"], ["k  ↑", "previous flow"], ["Home  End", "newest, oldest flow"], ["Enter", "go to the flow"], ["1 … 6", "tabs of the flow"], ["Esc", "back to the list"],
  ["/", "filter"], ["c", "copy as curl, SDK or test"], ["e", "export the flow as HTML"], ["r", "edit and resend"], ["Delete", "delete the flow"],
  ["g f", "flows"], ["g c", "charts"], ["g p", "playground"], ["Ctrl Enter", "send (playground)"], ["t", "light or dark"], ["?", "this help"],
];

const main = document.getElementById("main");
const store = new FlowStore();
let pages = null;
let page = "";

function start() {
  useTheme(localStorage.getItem("toolwire-theme") || "");
  document.getElementById("theme").addEventListener("click", switchTheme);
  document.getElementById("help").addEventListener("click", showHelp);
  document.getElementById("logout").addEventListener("click", logOut);
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", route);
  store.addEventListener("state", showState);
  store.addEventListener("fault", (event) => (event.detail.status === 401 ? showLogin() : showState()));
  enter();
}

/** Shows the page, or the login form where the gateway needs a key. */
async function enter() {
  try {
    const session = await api.session();
    if (session.needs_key && !session.logged_in) {
      showLogin();
      return;
    }
    document.getElementById("logout").hidden = !session.needs_key;
    document.querySelector(".brand").title = `toolwire ${session.version || ""}`;
  } catch (fault) {
    if (fault.status === 401 || fault.status === 403) showLogin(fault.status === 403 ? fault.message : "");
    else replace(main, h("p", { class: "bad pad" }, `The gateway does not answer: ${fault.message}`), h("p", { class: "pad" }, h("button", { type: "button", onclick: enter }, "Try again")));
    return;
  }
  const list = new FlowList(store, (id) => go(`#/flows/${encodeURIComponent(id)}${detailTab()}`));
  const detail = new FlowDetail(store, go);
  pages = { list, detail, flows: h("div", { class: "flows" }, list.element, detail.element), charts: new Charts(), playground: new Playground() };
  store.start();
  route();
}

function detailTab() {
  const tab = pages?.detail.tab;
  return pages?.detail.id && tab && tab !== "summary" ? `/${tab}` : "";
}

function route() {
  if (!pages) return;
  const [name, id, tab] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const next = ["charts", "playground"].includes(name) ? name : "flows";
  if (next !== page) {
    page = next;
    replace(main, next === "flows" ? pages.flows : pages[next].element);
    for (const link of document.querySelectorAll("nav [data-page]")) link.dataset.page === next ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
    if (next === "charts") pages.charts.load();
    if (next === "flows") pages.list.refresh();
  }
  document.title = next === "flows" ? "Flows · toolwire" : `${next[0].toUpperCase()}${next.slice(1)} · toolwire`;
  if (next === "playground") pages.playground.open(id);
  if (next !== "flows") return;
  pages.flows.classList.toggle("has-selection", Boolean(id));
  pages.list.mark(id || null);
  if (id) pages.detail.show(id, tab || "summary");
  else pages.detail.clear();
}

/** At once: a key that follows must find the page as it will be. */
function go(hash) {
  if (location.hash === hash) return;
  location.hash = hash;
  route();
}

let isAfterG = false;

function onKey(event) {
  const target = event.target;
  const isTyping = target.matches?.("input, textarea, select") || document.querySelector("dialog[open]");
  if (event.key === "Escape" && page === "flows" && !document.querySelector("dialog[open]")) {
    if (isTyping) target.blur();
    else if (pages?.detail.id && getComputedStyle(pages.list.element).display === "none") go("#/flows");
    pages?.list.scroller.focus({ preventScroll: true });
    return;
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isAfterG) {
    isAfterG = false;
    const target = { f: "#/flows", c: "#/charts", p: "#/playground" }[event.key];
    if (target) {
      event.preventDefault();
      go(target);
      return;
    }
  }
  const always = { "?": showHelp, t: switchTheme, g: () => { isAfterG = true; } };
  const list = pages?.list;
  const detail = pages?.detail;
  const ofFlows = page === "flows" && pages ? {
    j: () => list.move(1), k: () => list.move(-1), "/": () => list.focusSearch(), c: () => detail.copy(), e: () => detail.export(), r: () => detail.resend(), Delete: () => detail.remove(),
    ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((number) => [String(number), () => detail.chooseNumber(number - 1)])),
  } : {};
  const run = always[event.key] || ofFlows[event.key];
  if (!run) return;
  event.preventDefault();
  run();
}

function showHelp() {
  dialog("Keyboard shortcuts", h("dl", { class: "keys" }, KEYS.map(([keys, text]) => [h("dt", null, keys.split(/\s{2}/).map((key) => key.split(" ").map((one) => h("kbd", null, one)))), h("dd", null, text)])));
}

/** "" follows the system. */
function useTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function switchTheme() {
  const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = isDark ? "light" : "dark";
  localStorage.setItem("toolwire-theme", theme);
  useTheme(theme);
}

function showState() {
  const element = document.getElementById("live");
  element.dataset.state = store.state;
  element.textContent = store.state;
}

function showLogin(message = "") {
  store.stop();
  pages = null;
  page = "";
  const note = h("p", { class: "bad", role: "alert" }, message);
  const field = h("input", { type: "password", name: "key", id: "key", autocomplete: "current-password", required: true });
  const form = h("form", { class: "login", onsubmit: async (event) => {
    event.preventDefault();
    note.textContent = "";
    try {
      await api.logIn(field.value);
      field.value = "";
      enter();
    } catch (fault) {
      note.textContent = fault.status === 401 ? "This key is not accepted." : fault.message;
      field.select();
    }
  } }, h("h1", null, "Log in"), h("p", { class: "muted" }, "This gateway needs a key: one of [server] keys in its configuration."), h("label", { for: "key" }, "Key"), field, note, h("button", { type: "submit", class: "primary" }, "Log in"));
  replace(main, form);
  field.focus();
}

async function logOut() {
  await api.logOut().catch(() => null);
  location.reload();
}

start();
