// Saves flows as a cassette, which `toolwire replay` answers from, and opens cassettes.

import * as api from "./api.js";
import { h, toast } from "./dom.js";
import { plural } from "./format.js";

export async function saveCassette(flows, name) {
  try {
    const file = await api.saveCassette(flows.map((flow) => flow.id));
    const link = h("a", { href: URL.createObjectURL(file), download: `${name}.jsonl` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (fault) {
    toast(`The cassette could not be saved: ${fault.message}`);
  }
}

/** A button that asks for a file and lists its flows. */
export function openButton() {
  const input = h("input", { type: "file", accept: ".jsonl,.ndjson,.json", hidden: true, id: "cassette-file", onchange: async () => {
    const [file] = input.files;
    input.value = "";
    if (file) await open(file);
  } });
  return [h("button", { type: "button", class: "quiet small", title: "List the flows of a file of `toolwire record`", onclick: () => input.click() }, "Open cassette"), input];
}

async function open(file) {
  try {
    const { opened, flows, skipped } = await api.openCassette(file);
    const known = flows > opened ? `, ${flows - opened} already listed` : "";
    const rest = skipped ? `, ${plural(skipped, "line")} could not be read` : "";
    toast(`${plural(opened, "flow")} of ${file.name}${known}${rest}`);
  } catch (fault) {
    toast(`The cassette could not be opened: ${fault.message}`);
  }
}
