// The filter of the list: words, and terms such as model:gpt, tool:weather, is:repaired, -is:ok, >2s.

export const STATES = {
  error: (flow) => flow.outcome === "error",
  ok: (flow) => flow.outcome === "ok",
  open: (flow) => flow.outcome === "open",
  gone: (flow) => flow.outcome === "client_gone",
  repaired: (flow) => flow.repairs > 0,
  lost: (flow) => flow.losses > 0,
  corrected: (flow) => flow.corrections > 0,
  invalid: (flow) => (flow.corrections > 0 ? flow.calls.slice(-1) : flow.calls).some((call) => call.valid_after === false),
  uncached: (flow) => isCacheMiss(flow),
  stream: (flow) => flow.stream,
  verbatim: (flow) => flow.verbatim,
  translated: (flow) => !flow.verbatim,
};

/** A later request of a conversation that is large enough for a cache, and hardly used it. */
export function isCacheMiss(flow) {
  const usage = flow.usage;
  return Boolean(flow.previous) && usage?.input >= 1024 && usage.cached < usage.input * 0.1;
}

const FIELDS = {
  model: (flow) => `${flow.model} ${flow.sent_model || ""}`,
  backend: (flow) => flow.backend,
  dialect: (flow) => `${flow.dialect} ${flow.backend_dialect || ""}`,
  path: (flow) => flow.path,
  status: (flow) => String(flow.status ?? ""),
  error: (flow) => flow.error,
  key: (flow) => flow.key,
  tool: (flow) => flow.calls.map((call) => call.name).join(" "),
  conversation: (flow) => flow.conversation,
  id: (flow) => flow.id,
};

export const TERMS = [...Object.keys(FIELDS).map((name) => `${name}:`), ...Object.keys(STATES).map((name) => `is:${name}`)];

/** {test(flow), words}: words are the plain ones, which the gateway can also search in the bodies. */
export function parseFilter(text) {
  const tests = [];
  const words = [];
  for (const raw of text.match(/"[^"]*"|\S+/g) || []) {
    const isNot = raw.length > 1 && raw.startsWith("-");
    const term = isNot ? raw.slice(1) : raw;
    const test = termTest(term);
    if (test) tests.push(isNot ? (flow) => !test(flow) : test);
    else if (isNot) tests.push((flow) => !summaryText(flow).includes(plain(term)));
    else words.push(plain(term));
  }
  const matches = (flow, found) => tests.every((test) => test(flow)) && (found?.has(flow.id) || words.every((word) => summaryText(flow).includes(word)));
  return { test: matches, words: words.join(" ") };
}

function termTest(term) {
  const slow = /^([<>])(\d+(?:\.\d+)?)(ms|s)?$/.exec(term);
  if (slow) {
    const limit = Number(slow[2]) / (slow[3] === "ms" ? 1000 : 1);
    return (flow) => flow.timings?.total != null && (slow[1] === ">" ? flow.timings.total > limit : flow.timings.total < limit);
  }
  const place = term.indexOf(":");
  if (place < 1) return null;
  const [name, value] = [term.slice(0, place).toLowerCase(), plain(term.slice(place + 1))];
  if (name === "is") return STATES[value] || null;
  return FIELDS[name] ? (flow) => String(FIELDS[name](flow) ?? "").toLowerCase().includes(value) : null;
}

function summaryText(flow) {
  return `${flow.model} ${flow.backend} ${flow.dialect} ${flow.error} ${flow.message} ${flow.preview} ${flow.id} ${flow.path} ${FIELDS.tool(flow)}`.toLowerCase();
}

function plain(text) {
  return text.replaceAll('"', "").toLowerCase();
}
