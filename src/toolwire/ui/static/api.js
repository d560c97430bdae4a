// Requests to the gateway that served this page. Nothing here ever goes to another origin.

const API = new URL("api/", import.meta.url);
const ROOT = new URL("../", import.meta.url);
const OWN = { "x-toolwire-ui": "1" };
const RETRY = 3000; // milliseconds

export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** The address of the gateway for clients, without the last slash. */
export function gateway() {
  return ROOT.href.replace(/\/$/, "");
}

export const session = () => getJson("session");
export const flow = (id) => getJson(`flows/${encodeURIComponent(id)}`);
export const stats = (hours) => getJson(`stats?hours=${hours}`);

export function flows(query = {}) {
  return getJson(`flows?${new URLSearchParams(query)}`);
}

export async function remove(id) {
  const path = id === undefined ? "flows" : `flows/${encodeURIComponent(id)}`;
  await checked(await fetch(new URL(path, API), { method: "DELETE", headers: OWN }));
}

/** The lines of a cassette with these flows, as a Blob. */
export async function saveCassette(ids) {
  return (await checked(await postCassette("save", JSON.stringify({ ids })))).blob();
}

/** Lists the flows of a cassette; file is a Blob. */
export async function openCassette(file) {
  return (await checked(await postCassette("open", file))).json();
}

function postCassette(what, body) {
  return fetch(new URL(`cassette/${what}`, API), { method: "POST", headers: OWN, body });
}

export async function logIn(key) {
  const options = { method: "POST", headers: { ...OWN, "content-type": "application/json" }, body: JSON.stringify({ key }) };
  await checked(await fetch(new URL("login", import.meta.url), options));
}

export async function logOut() {
  await checked(await fetch(new URL("logout", import.meta.url), { method: "POST", headers: OWN }));
}

/** Events of the live list: onFlow(summary), onReset(), onState("live" | "connecting"). Returns a function that ends it. */
export function live({ onFlow, onReset, onState }) {
  let source = null;
  let timer = 0;
  const open = () => {
    source = new EventSource(new URL("flows/live", API));
    source.addEventListener("flow", (event) => onFlow(JSON.parse(event.data)));
    source.addEventListener("reset", () => onReset());
    source.addEventListener("open", () => onState("live"));
    source.addEventListener("error", () => {
      onState("connecting");
      // After an error status the browser does not try again by itself.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, RETRY);
    });
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

export async function models() {
  const list = await (await checked(await fetch(new URL("v1/models", ROOT), { headers: OWN }))).json();
  return (list.data || list.models || []).map((model) => model.id || model.name).filter(Boolean);
}

/** A request to one of the gateway's own front doors. The caller reads the response. */
export function send(path, body, signal) {
  const headers = { ...OWN, "content-type": "application/json" };
  if (path.startsWith("/v1/messages")) headers["anthropic-version"] = "2023-06-01";
  return fetch(new URL(path.replace(/^\//, ""), ROOT), { method: "POST", headers, body, signal });
}

async function getJson(path) {
  return (await checked(await fetch(new URL(path, API), { headers: { ...OWN, accept: "application/json" } }))).json();
}

async function checked(response) {
  if (response.ok) return response;
  const text = await response.text();
  let message = text.slice(0, 300);
  try {
    const value = JSON.parse(text);
    message = value.error?.message || value.message || message;
  } catch {
    // An error of a proxy is not JSON.
  }
  throw new ApiError(response.status, message || `HTTP ${response.status}`);
}
