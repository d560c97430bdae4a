// One column of the playground: the turns of one model, its calls and their results.

import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { partView } from "./conversation.js";
import { readAnswer } from "./dialects.js";
import { duration, number, parseJson } from "./format.js";
import { FUNCTIONS, fillTemplate } from "./page_functions.js";
import { bodyView } from "./text_view.js";
import { dialectOf, toChatMessages, withModel, withResults } from "./turns.js";

const MOST_ROUNDS = 10; // turns that the functions of the page may cause
const REDRAW = 120; // milliseconds
const MOST_TEXT = 20_000_000;

export class AnswerColumn {
  constructor(playground, model, path, body) {
    this.playground = playground;
    this.model = model;
    const changed = withModel(path, body, model);
    this.path = changed.path;
    this.body = changed.body;
    this.dialect = dialectOf(path);
    this.rounds = 0;
    this.status = h("span", { class: "muted", role: "status" });
    this.turns = h("div", { class: "turns" });
    this.element = h("section", { class: "column", "aria-label": `Answer of ${model || "the model"}`, dataset: { model } }, h("header", null, h("h2", null, model || path), h("span", { class: "grow" }), this.status), this.turns);
  }

  stop() {
    this.abort?.abort();
  }

  async send() {
    this.stop();
    const abort = new AbortController();
    this.abort = abort;
    const turn = h("article", { class: "message answer", "data-role": "assistant" });
    this.turns.append(turn);
    const began = performance.now();
    const passed = () => duration((performance.now() - began) / 1000);
    this.status.textContent = "waiting…";
    try {
      const response = await api.send(this.path, JSON.stringify(this.body), abort.signal);
      const text = await this._read(response, turn, () => { this.status.textContent = `streaming ${passed()}`; });
      const answer = response.ok ? answerIn(response, text, this.dialect) : null;
      this.element.dataset.state = response.ok ? "done" : "failed";
      this.status.textContent = `${response.ok ? "done" : `HTTP ${response.status}`} in ${passed()}${usageText(text)}`;
      if (!answer) replace(turn, h("p", { class: "bad" }, errorText(text) || "The answer is not readable."), bodyView(text, { depth: 3 }));
      else this._drawTurn(turn, answer);
    } catch (fault) {
      this.element.dataset.state = "failed";
      this.status.textContent = abort.signal.aborted ? `stopped after ${passed()}` : "failed";
      if (!abort.signal.aborted) turn.append(h("p", { class: "bad" }, `The request failed: ${fault.message}`));
    }
  }

  /** Draws the stream while it comes, a few times a second. */
  async _read(response, turn, onProgress) {
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    let drawn = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      text += decoder.decode(value, { stream: true });
      if (text.length > MOST_TEXT) throw new Error("the answer is too large for the page");
      if (performance.now() - drawn < REDRAW || !response.ok) continue;
      drawn = performance.now();
      onProgress();
      const answer = answerIn(response, text, this.dialect);
      if (answer) replace(turn, answer.parts.map((part) => partView(part, { isAnswer: true })));
    }
  }

  _drawTurn(turn, answer) {
    const calls = answer.parts.filter((part) => part.type === "call");
    replace(turn, answer.parts.length ? answer.parts.map((part) => partView(part, { isAnswer: true })) : h("p", { class: "muted" }, "Empty answer."), answer.finish && h("p", { class: "muted" }, `finish: ${answer.finish}`), answer.error && h("p", { class: "bad" }, answer.error));
    if (calls.length) this._answerCalls(turn, answer, calls);
    else turn.append(this._adoptButton(answer));
  }

  _adoptButton(answer) {
    return h("button", { type: "button", class: "quiet small", onclick: () => {
      const chat = toChatMessages(this.dialect, this.body);
      const text = answer.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
      if (chat) this.playground.adopt([...chat.messages, { role: "assistant", content: text }]);
    } }, "Continue in the editor");
  }

  /** Calls with a function are answered at once; the others wait for the form. */
  _answerCalls(turn, answer, calls) {
    const { answers, templates } = this.playground;
    const fields = calls.map((call) => {
      const field = h("textarea", { class: "mono", rows: 3, "aria-label": `Result of ${call.name}`, placeholder: "Result, as text or JSON" });
      const result = automatic(call, answers[call.name], templates[call.name]);
      if (result !== null) field.value = result;
      return { call, field, isReady: result !== null };
    });
    const form = h("form", { class: "results", onsubmit: (event) => { event.preventDefault(); this._sendResults(answer, fields, form); } },
      fields.map(({ call, field }) => h("label", null, `Result of ${call.name}`, field)),
      h("div", { class: "adders" }, h("button", { type: "submit", class: "primary" }, fields.length > 1 ? "Send the results" : "Send the result")));
    turn.append(form);
    if (fields.every((one) => one.isReady) && this.rounds < MOST_ROUNDS) {
      this.rounds += 1;
      this._sendResults(answer, fields, form);
    } else {
      this.status.textContent = "waits for a result";
      this.element.dataset.state = "waiting";
    }
  }

  _sendResults(answer, fields, form) {
    const results = fields.map(({ call, field }) => ({ id: call.id, name: call.name, text: field.value }));
    form.replaceWith(...results.map((one) => partView({ type: "result", ...one }, { links: { calls: new Set([one.id]), results: new Set() }, prefix: `p${Math.random().toString(36).slice(2)}` })));
    this.body = withResults(this.dialect, this.body, answer, results);
    this.send();
  }
}

function automatic(call, name, template) {
  const given = parseJson(call.raw) ?? {};
  if (name === "template") return template ? fillTemplate(template, given) : null;
  return FUNCTIONS[name] ? JSON.stringify(FUNCTIONS[name].run(given)) : null;
}

function answerIn(response, text, dialect) {
  const isStream = /event-stream|ndjson/.test(response.headers.get("content-type") || "");
  const answer = readAnswer(dialect, isStream ? { frames: [{ t: 0, data: text }] } : { body: text });
  if (answer && isStream) answer.error = errorText(text);
  return answer;
}

function usageText(text) {
  const input = /"(?:prompt_tokens|input_tokens|promptTokenCount)": ?(\d+)/g;
  const output = /"(?:completion_tokens|output_tokens|candidatesTokenCount)": ?(\d+)/g;
  const last = (pattern) => [...text.slice(-20_000).matchAll(pattern)].at(-1)?.[1];
  return last(output) ? ` · ${number(Number(last(input) ?? 0))} in, ${number(Number(last(output)))} out` : "";
}

function errorText(text) {
  const value = parseJson(text) ?? parseJson(/^data: (\{.*"error".*\})$/m.exec(text)?.[1]);
  return value?.error?.message || "";
}
