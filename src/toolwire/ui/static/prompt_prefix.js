// The first difference between two requests of a conversation, in the order in which providers cache a prompt: tools, system, messages.

import { byteLength, parseJson } from "./format.js";

const AROUND = 200; // characters shown before and after the first difference

/** {previous, same_prefix_bytes, first_change} as a provider sees the two requests, or null where a body is missing. */
export function compareRequests(previous, flow) {
  const [before, after] = [partsOf(previous), partsOf(flow)];
  if (!before || !after) return null;
  let same = 0;
  for (let place = 0; place < before.length; place += 1) {
    const [name, old] = before[place];
    const text = after.find(([other]) => other === name)?.[1] ?? "";
    if (old === text) {
      same += byteLength(old);
      continue;
    }
    const offset = firstDifference(old, text);
    const start = Math.max(0, offset - AROUND);
    const cut = (value) => (start ? "…" : "") + value.slice(start, offset + AROUND);
    return { previous: previous.id, same_prefix_bytes: same + byteLength(text.slice(0, offset)), first_change: { part: name, offset: byteLength(text.slice(0, offset)), before: cut(old), after: cut(text) } };
  }
  return { previous: previous.id, same_prefix_bytes: same, first_change: null };
}

/** [name, text] of each part of the request that reached the back end, else of the client's. */
function partsOf(flow) {
  const wire = flow.upstream?.[0]?.request?.body ? flow.upstream[0] : flow.client;
  const value = wire?.request?.truncated ? undefined : parseJson(wire?.request?.body);
  if (typeof value !== "object" || value === null) return null;
  const system = value.system ?? value.instructions ?? value.systemInstruction ?? value.system_instruction;
  const list = value.messages ?? value.input ?? value.contents ?? [];
  const messages = Array.isArray(list) ? list : [list];
  const parts = messages.map((message, place) => [place === 0 && /^(system|developer)$/.test(message?.role) ? "system" : `messages[${place}]`, textOf(message)]);
  return [["tools", textOf(value.tools ?? [])], ...(system ? [["system", textOf(system)]] : []), ...parts];
}

/** Marks of what to cache move with each request, and are not part of the prompt. */
function textOf(value) {
  return JSON.stringify(value, (key, member) => (key === "cache_control" || key === "cachePoint" ? undefined : member)) ?? "";
}

function firstDifference(a, b) {
  let place = 0;
  while (place < a.length && place < b.length && a[place] === b[place]) place += 1;
  return place;
}
