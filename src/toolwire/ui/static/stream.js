// A stream as a timeline: when each frame came from the back end and went to the client, and what it contained.

import { h, svg } from "./dom.js";
import { frameTitle, readAnswer } from "./dialects.js";
import { byteLength, bytes, duration, plural } from "./format.js";
import { NO_BODIES, partView } from "./conversation.js";
import { bodyView } from "./text_view.js";

const FIRST = 300;
const SILENCE = 1.0; // seconds between frames that are worth a mark
const WIDTH = 1000;

export function streamView(flow) {
  const lanes = lanesOf(flow);
  const upstream = flow.upstream?.at(-1);
  const box = h("div", { class: "stream" }, timingBar(flow));
  if (!lanes.some((lane) => lane.frames.length)) {
    box.append(h("p", { class: "muted" }, flow.stream ? (flow.outcome === "open" ? "No frame yet." : flow.client?.response?.size ? NO_BODIES : "The client received no frame.") : "This answer was not streamed. Its body is under Wires."));
    return box;
  }
  box.append(laneChart(lanes), rebuilt(flow, upstream), frameList(lanes, flow));
  return box;
}

/** The phases of a request as one bar. */
export function timingBar(flow) {
  const timing = flow.timings || {};
  const total = timing.total ?? (flow.outcome === "open" ? Date.now() / 1000 - flow.started : null);
  if (!total) return h("p", { class: "muted" }, "No timings yet.");
  const points = [["queue", "Queue", timing.queue], ["connect", "Connect", timing.connect], ["first_byte", "First byte", timing.first_byte], ["first_token", "First token", timing.first_token]];
  const phases = [];
  let reached = 0;
  for (const [name, label, value] of points) {
    if (value === null || value === undefined) continue;
    // Queue and connect are lengths; the others are moments since the start.
    const end = Math.min(total, name === "queue" || name === "connect" ? reached + value : Math.max(value, reached));
    phases.push({ name, label, value, size: end - reached });
    reached = end;
  }
  phases.push({ name: "answer", label: "Answer", value: total, size: Math.max(0, total - reached) });
  return h("figure", { class: "timing" },
    h("div", { class: "track", role: "img", "aria-label": phases.map((phase) => `${phase.label} ${duration(phase.value)}`).join(", ") },
      phases.filter((phase) => phase.size > 0).map((phase) => h("span", { class: `phase ${phase.name}`, style: { flexGrow: String(Math.max(phase.size / total, 0.004)) }, title: `${phase.label}: ${duration(phase.size)}` }))),
    h("figcaption", null, phases.map((phase) => h("span", { class: `legend ${phase.name}` }, phase.name === "answer" ? "Total" : phase.label, " ", h("b", null, duration(phase.value))))));
}

function lanesOf(flow) {
  const lanes = (flow.upstream || []).map((wire, place) => ({ name: flow.upstream.length > 1 ? `back end, request ${place + 1}` : "back end", kind: "upstream", frames: wire.response?.frames || [] }));
  return [...lanes, { name: "client", kind: "client", frames: flow.client?.response?.frames || [] }];
}

function laneChart(lanes) {
  const last = Math.max(0.001, ...lanes.flatMap((lane) => lane.frames.map((frame) => frame.t)));
  const height = lanes.length * 34 + 22;
  const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "lanes", style: { height: `${height}px` }, preserveAspectRatio: "none", "aria-hidden": "true" });
  lanes.forEach((lane, place) => {
    const y = place * 34 + 6;
    chart.append(svg("rect", { x: 0, y, width: WIDTH, height: 22, class: "lane" }));
    chart.append(svg("path", { class: `ticks ${lane.kind}`, d: lane.frames.map((frame) => `M${((frame.t / last) * (WIDTH - 4) + 2).toFixed(1)} ${y + 3}v16`).join("") }));
  });
  const marks = [0, 0.25, 0.5, 0.75, 1];
  return h("figure", { class: "lane-chart" },
    h("div", { class: "lane-names" }, lanes.map((lane) => h("span", { class: lane.kind }, `${lane.name} · ${plural(lane.frames.length, "frame")}`))),
    h("div", { class: "lane-area" }, chart, h("div", { class: "axis" }, marks.map((mark) => h("span", null, duration(mark * last))))));
}

function rebuilt(flow, upstream) {
  const written = readAnswer(upstream?.dialect, upstream?.response);
  const received = readAnswer(flow.client?.dialect, flow.client?.response);
  const side = (title, kind, answer) => h("section", { class: `rebuilt ${kind}` }, h("h3", null, title),
    answer?.parts.length ? answer.parts.map((part) => partView(part, {})) : h("p", { class: "muted" }, "Nothing to rebuild."), answer?.finish && h("p", { class: "muted" }, `finish: ${answer.finish}`));
  return h("details", { class: "fold", open: true }, h("summary", null, "Rebuilt from the frames"), h("div", { class: "columns" }, side("Sent by the back end", "upstream", written), side("Received by the client", "client", received)));
}

function frameList(lanes, flow) {
  const all = lanes.flatMap((lane) => lane.frames.map((frame, place) => ({ ...frame, lane, place }))).sort((a, b) => a.t - b.t);
  const box = h("div", { class: "frames" });
  let before = 0;
  const add = (from) => {
    for (const frame of all.slice(from, from + FIRST)) {
      if (frame.t - before >= SILENCE) box.append(h("p", { class: "silence" }, `${duration(frame.t - before)} without a frame`));
      before = frame.t;
      box.append(frameRow(frame));
    }
    if (from + FIRST < all.length) {
      const button = h("button", { type: "button", class: "more", onclick: () => { button.remove(); add(from + FIRST); } }, `Show ${Math.min(FIRST, all.length - from - FIRST)} more of ${plural(all.length, "frame")}`);
      box.append(button);
    }
  };
  add(0);
  if (flow.outcome === "error") box.append(h("p", { class: "silence bad" }, `End: ${flow.error} ${flow.message}`));
  return h("section", null, h("h3", null, "Frames"), box);
}

function frameRow(frame) {
  const row = h("details", { class: `frame ${frame.lane.kind}` },
    h("summary", null, h("span", { class: "t" }, duration(frame.t)), h("span", { class: "who" }, frame.lane.kind === "client" ? "→ client" : "← back end"), h("span", { class: "title" }, frameTitle(frame.data).slice(0, 200)), h("span", { class: "muted" }, bytes(byteLength(frame.data)))));
  row.addEventListener("toggle", () => {
    if (!row.open || row.children.length > 1) return;
    const data = frame.data.replace(/^(event|id):.*\n/gm, "").replace(/^data: ?/, "").trim();
    row.append(bodyView(data, { depth: 3 }));
  });
  return row;
}
