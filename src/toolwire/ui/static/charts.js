// Charts over time from the counters of `toolwire stats`.

import * as api from "./api.js";
import { h, replace, svg } from "./dom.js";
import { compact, cost, duration, number, percent } from "./format.js";

const RANGES = [[24, "24 hours"], [24 * 7, "7 days"], [24 * 30, "30 days"]];
const WIDTH = 560;
const HEIGHT = 180;
const COLORS = 8;

export class Charts {
  constructor() {
    this.hours = 24;
    this.body = h("div", { class: "chart-grid" });
    this.choice = h("select", { "aria-label": "Time range", onchange: () => { this.hours = Number(this.choice.value); this.load(); } }, RANGES.map(([hours, text]) => h("option", { value: hours }, text)));
    this.element = h("section", { class: "page charts", "aria-label": "Charts" }, h("header", { class: "page-head" }, h("h1", null, "Charts"), h("span", { class: "grow" }), h("label", null, "Last ", this.choice), h("button", { type: "button", onclick: () => this.load() }, "Refresh")), this.body);
  }

  async load() {
    try {
      const { hours } = await api.stats(this.hours);
      replace(this.body, hours.length ? chartsOf(hours, this.hours) : h("p", { class: "muted" }, "No request in this time. The counters are written to the store, so they survive a restart."));
    } catch (fault) {
      replace(this.body, h("p", { class: "bad" }, `The statistics could not be read: ${fault.message}`));
    }
  }
}

function chartsOf(rows, range) {
  const step = range > 48 ? 86_400 : 3600;
  const end = Math.floor(Date.now() / 1000 / step) * step;
  const times = [];
  for (let time = end - range * 3600 + step; time <= end; time += step) times.push(time);
  const slots = new Map(times.map((time) => [time, []]));
  for (const row of rows) slots.get(Math.floor(row.hour / step) * step)?.push(row);
  const models = topModels(rows);
  const name = (row) => (models.includes(modelOf(row)) ? modelOf(row) : "other");
  const series = (names, value) => names.map((one, place) => ({ name: one, color: place, values: times.map((time) => value(slots.get(time), one)) }));
  const total = (list, value) => sum(list, value) || 0;
  const isCacheCounted = rows.some((row) => row.cached_tokens !== null && row.cached_tokens !== undefined);
  const tokens = [["Cached input", (row) => row.cached_tokens], [isCacheCounted ? "Fresh input" : "Input", (row) => (row.input_tokens || 0) - (row.cached_tokens || 0)], ["Output", (row) => row.output_tokens]];
  const shown = rows.some((row) => !models.includes(modelOf(row))) ? [...models, "other"] : models;
  return [
    totals(rows),
    chart("Requests per model", "bars", times, step, series(shown, (list, one) => total(list.filter((row) => name(row) === one), (row) => row.requests)), number),
    chart("Tool calls per model", "bars", times, step, series(shown, (list, one) => total(list.filter((row) => name(row) === one), (row) => row.calls)), number),
    chart("Valid calls, before and after the gateway", "lines", times, step, [["As the model wrote them", "valid_before"], ["After repair and correction", "valid_after"]].map(([title, key], place) => ({ name: title, color: place ? 2 : 5, values: times.map((time) => ratio(slots.get(time), key)) })), percent, 1),
    chart("Time to the end of an answer", "lines", times, step, latencySeries(rows, times, slots), duration),
    chart("Tokens", "bars", times, step, tokens.map(([title, value], place) => ({ name: title, color: [2, 0, 1][place], values: times.map((time) => total(slots.get(time), value)) })).slice(isCacheCounted ? 0 : 1), compact),
    chart("Cost", "bars", times, step, series(shown, (list, one) => total(list.filter((row) => name(row) === one), (row) => row.cost)), cost, null, rows.every((row) => row.cost === null) ? "No price is known for these models." : ""),
    table(rows),
  ];
}

function totals(rows) {
  const calls = sum(rows, (row) => row.calls);
  const items = [["Requests", number(sum(rows, (row) => row.requests))], ["Errors", number(sum(rows, (row) => row.errors))], ["Tool calls", number(calls)],
    ["Valid as written", calls ? percent(sum(rows, (row) => row.valid_before) / calls) : "–"], ["Valid after repair", calls ? percent(sum(rows, (row) => row.valid_after) / calls) : "–"],
    ["Tokens", compact((sum(rows, (row) => row.input_tokens) || 0) + (sum(rows, (row) => row.output_tokens) || 0))], ["Cost", cost(sum(rows, (row) => row.cost))]];
  return h("dl", { class: "totals" }, items.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

function chart(title, kind, times, step, series, format, fixedTop = null, note = "") {
  const stacks = times.map((_, place) => series.reduce((height, one) => height + (one.values[place] || 0), 0));
  const top = fixedTop ?? Math.max(...(kind === "bars" ? stacks : series.flatMap((one) => one.values.map((value) => value || 0))), 0);
  const box = h("figure", { class: "chart" }, h("figcaption", null, h("h2", null, title), h("div", { class: "legends" }, series.map((one) => h("span", { class: `legend c${one.color % COLORS}` }, one.name)))));
  if (!top || note) {
    box.append(h("p", { class: "muted none" }, note || "Nothing counted in this time."));
    return box;
  }
  const area = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${series.map((one) => `${one.name}: last ${format(one.values.findLast((value) => value !== null))}`).join(". ")}` });
  for (const share of [0, 0.5, 1]) {
    const y = HEIGHT - 20 - share * (HEIGHT - 34);
    area.append(svg("line", { class: "grid", x1: 48, x2: WIDTH, y1: y, y2: y }), svg("text", { x: 44, y: y + 4, class: "tick end" }, format(top * share)));
  }
  const x = (place) => 48 + ((place + 0.5) * (WIDTH - 52)) / times.length;
  const y = (value) => HEIGHT - 20 - (value / top) * (HEIGHT - 34);
  if (kind === "bars") drawBars(area, series, times, x, y, step, format);
  else drawLines(area, series, times, x, y, step, format);
  for (const place of [0, Math.floor(times.length / 2), times.length - 1]) area.append(svg("text", { x: x(place), y: HEIGHT - 4, class: `tick ${place === 0 ? "start" : place === times.length - 1 ? "end" : "middle"}` }, timeText(times[place], step)));
  box.append(area);
  return box;
}

function drawBars(area, series, times, x, y, step, format) {
  const width = Math.max(2, Math.min(26, ((WIDTH - 52) / times.length) * 0.72));
  times.forEach((time, place) => {
    let base = 0;
    for (const one of series) {
      const value = one.values[place] || 0;
      if (!value) continue;
      area.append(svg("rect", { class: `c${one.color % COLORS}`, x: x(place) - width / 2, width, y: y(base + value), height: Math.max(0.5, y(base) - y(base + value)) }, svg("title", null, `${timeText(time, step)} · ${one.name}: ${format(value)}`)));
      base += value;
    }
  });
}

function drawLines(area, series, times, x, y, step, format) {
  for (const one of series) {
    const points = one.values.map((value, place) => [value, place]).filter(([value]) => value !== null);
    area.append(svg("path", { class: `line c${one.color % COLORS}`, d: points.map(([value, place], order) => `${order ? "L" : "M"}${x(place).toFixed(1)} ${y(value).toFixed(1)}`).join("") }));
    for (const [value, place] of points) area.append(svg("circle", { class: `c${one.color % COLORS}`, cx: x(place), cy: y(value), r: 3 }, svg("title", null, `${timeText(times[place], step)} · ${one.name}: ${format(value)}`)));
  }
}

function table(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(modelOf(row), [...(groups.get(modelOf(row)) || []), row]);
  const columns = ["Model", "Requests", "Errors", "Calls", "Valid as written", "Valid after repair", "Median time", "95 %", "Input", "Cached", "Output", "Cost"];
  return h("div", { class: "chart wide scroll" }, h("table", { class: "plain" }, h("caption", null, "By model"), h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, [...groups].sort((a, b) => sum(b[1], (row) => row.requests) - sum(a[1], (row) => row.requests)).map(([name, list]) => h("tr", null, h("th", { scope: "row" }, name), [number(sum(list, (row) => row.requests)), number(sum(list, (row) => row.errors)), number(sum(list, (row) => row.calls)), percent(ratio(list, "valid_before")), percent(ratio(list, "valid_after")), duration(percentile(list, 0.5)), duration(percentile(list, 0.95)), number(sum(list, (row) => row.input_tokens)), number(sum(list, (row) => row.cached_tokens)), number(sum(list, (row) => row.output_tokens)), cost(sum(list, (row) => row.cost))].map((cell) => h("td", null, cell)))))));
}

function topModels(rows) {
  const counts = new Map();
  for (const row of rows) counts.set(modelOf(row), (counts.get(modelOf(row)) || 0) + row.requests);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, COLORS - 1).map(([name]) => name);
}

function modelOf(row) {
  return row.model ? `${row.backend}/${row.model}` : row.backend;
}

/** null where no row knows the value. */
function sum(rows, value) {
  const known = rows.map(value).filter((one) => one !== null && one !== undefined);
  return known.length ? known.reduce((all, one) => all + one, 0) : null;
}

function ratio(rows, key) {
  const calls = sum(rows, (row) => row.calls);
  return calls ? (sum(rows, (row) => row[key]) ?? 0) / calls : null;
}

/** Percentiles where they are counted, else the mean. */
function latencySeries(rows, times, slots) {
  if (!rows.some((row) => row.latency)) return [{ name: "Mean", color: 0, values: times.map((time) => mean(slots.get(time))) }];
  return [["Median", 0.5, 0], ["95th percentile", 0.95, 3]].map(([name, share, color]) => ({ name, color, values: times.map((time) => percentile(slots.get(time), share)) }));
}

function mean(rows) {
  const seconds = sum(rows, (row) => row.seconds);
  return seconds === null ? null : seconds / sum(rows, (row) => row.requests);
}

/** The time within which this share of the requests of all rows ended; each row counts its requests by ranges of time. */
export function percentile(rows, share) {
  const counts = new Map();
  for (const row of rows) for (const [seconds, count] of row.latency?.ranges || []) counts.set(seconds, (counts.get(seconds) || 0) + count);
  let rank = Math.ceil([...counts.values()].reduce((all, one) => all + one, 0) * share);
  for (const [seconds, count] of [...counts].sort((a, b) => a[0] - b[0])) if ((rank -= count) <= 0) return seconds;
  return null;
}

function timeText(time, step) {
  const date = new Date(time * 1000);
  return step >= 86_400 ? date.toLocaleDateString("en-GB", { day: "numeric", month: "short" }) : date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}
