// The playground: write a conversation, define tools, send it to one or more models, answer their calls.

import * as api from "./api.js";
import { h, replace, tabs, toast } from "./dom.js";
import { parseJson, pretty } from "./format.js";
import { EXAMPLES, FUNCTIONS } from "./page_functions.js";
import { AnswerColumn } from "./playground_answer.js";
import { dialectOf, readToolList, toChatMessages } from "./turns.js";

const MOST_MODELS = 4;
const CHAT = "/v1/chat/completions";
const ROLES = ["system", "user", "assistant", "tool"];

export class Playground {
  constructor() {
    this.models = [];
    this.messages = [{ role: "user", content: "" }];
    this.answers = {}; // tool name -> name of a function of the page, "template", or "" for by hand
    this.templates = {};
    this.mode = "conversation";
    this.columns = [];
    this._build();
  }

  async open(id) {
    this._listModels();
    if (!id || id === this.source) return;
    this.source = id;
    try {
      this._load(await api.flow(id));
    } catch (fault) {
      toast(`The flow could not be read: ${fault.message}`);
    }
  }

  /** The exact request goes to the raw editor; a readable conversation also to the other one. */
  _load(flow) {
    const body = flow.client?.request?.body ?? "";
    this.path.value = flow.client?.request?.path || flow.path;
    this.raw.value = pretty(body);
    this.models = [flow.model].filter(Boolean);
    const chat = toChatMessages(flow.dialect, body);
    if (chat) {
      this.messages = chat.messages.length ? chat.messages : this.messages;
      this.tools.value = chat.tools.length ? JSON.stringify(chat.tools, null, 2) : "";
    }
    this.origin.replaceChildren("From flow ", h("a", { href: `#/flows/${encodeURIComponent(flow.id)}` }, flow.id), flow.client?.request?.truncated ? ". Only its beginning is recorded: complete it before you send it." : ". Edit it and send it again.");
    this.origin.hidden = false;
    this._drawModels();
    this._drawMessages();
    this._toolsChanged();
    this.modeTabs.choose("raw");
  }

  async _listModels() {
    try {
      const names = await api.models();
      replace(this.known, names.map((name) => h("option", { value: name })));
      if (!this.models.length && names.length) this._addModel(names.find((name) => !name.startsWith("demo/")) || names[0]);
    } catch (fault) {
      toast(`The models could not be listed: ${fault.message}`);
    }
  }

  _build() {
    this.known = h("datalist", { id: "known-models" });
    this.modelInput = h("input", { id: "model", list: "known-models", placeholder: "Add a model", "aria-label": "Add a model", autocomplete: "off", onchange: () => this._addModel(this.modelInput.value), onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); this._addModel(this.modelInput.value); } } });
    this.modelChips = h("span", { class: "model-chips" });
    this.origin = h("p", { class: "origin", hidden: true });
    this.messageList = h("div", { class: "editor-messages" });
    this.tools = h("textarea", { id: "tools", class: "mono", rows: 6, spellcheck: "false", placeholder: "Paste tools as JSON: of Chat Completions, Responses, Messages, Gemini or MCP", "aria-label": "Tools as JSON", oninput: () => this._toolsChanged() });
    this.toolNote = h("p", { class: "bad", role: "alert" });
    this.toolAnswers = h("div", { class: "tool-answers" });
    this.path = h("input", { class: "mono", value: CHAT, "aria-label": "Path", list: "paths" });
    this.raw = h("textarea", { id: "raw", class: "mono", rows: 22, spellcheck: "false", "aria-label": "Request body as JSON" });
    this.settings = this._settings();
    this.editor = h("div", { class: "editor-body" });
    this.modeTabs = tabs([["conversation", "Conversation"], ["raw", "Raw request"]], "conversation", (name, byUser) => this._setMode(name, byUser), "Editor");
    this.sendButton = h("button", { type: "button", class: "primary", id: "send", onclick: () => this.send() }, "Send");
    this.stopButton = h("button", { type: "button", onclick: () => this.columns.forEach((column) => column.stop()) }, "Stop");
    this.output = h("div", { class: "answers", "aria-label": "Answers", role: "region" }, h("p", { class: "muted pad" }, "The answers appear here. Add more models to compare them side by side."));
    this.element = h("section", { class: "page playground", "aria-label": "Playground", onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.send(); } },
      h("div", { class: "editor" },
        h("header", { class: "page-head" }, h("h1", null, "Playground"), h("span", { class: "grow" }), this.stopButton, this.sendButton),
        this.origin, h("div", { class: "models" }, h("label", { for: "model" }, "Models"), this.modelChips, this.modelInput, this.known),
        this.modeTabs.element, this.editor),
      this.output);
    this._drawMessages();
    this.modeTabs.select();
  }

  _settings() {
    const field = (name, label, attributes) => h("label", null, label, h("input", { name, ...attributes }));
    return h("form", { class: "settings", onsubmit: (event) => event.preventDefault() },
      field("temperature", "Temperature", { type: "number", step: "0.1", min: "0", max: "2", placeholder: "default" }),
      field("max_tokens", "Max tokens", { type: "number", min: "1", placeholder: "default" }),
      h("label", null, "Tool choice", h("select", { name: "tool_choice" }, ["auto", "required", "none"].map((name) => h("option", { value: name }, name)))),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "stream", checked: true }), "Stream"));
  }

  _setMode(name, byUser) {
    if (name === "raw" && byUser && this.mode === "conversation" && !this.raw.value.trim()) {
      this.path.value = CHAT;
      this.raw.value = JSON.stringify(this._chatBody(), null, 2);
    }
    this.mode = name;
    if (name === "raw") {
      replace(this.editor, h("div", { class: "path-line" }, h("span", { class: "muted" }, "POST"), this.path, h("datalist", { id: "paths" }, [CHAT, "/v1/responses", "/v1/messages"].map((path) => h("option", { value: path })))), this.raw,
        h("button", { type: "button", class: "quiet small", onclick: () => { this.path.value = CHAT; this.raw.value = JSON.stringify(this._chatBody(), null, 2); } }, "Take over from the conversation"));
      return;
    }
    const add = (role, text) => h("button", { type: "button", class: "quiet small", onclick: () => this._addMessage(role) }, text);
    const example = h("select", { "aria-label": "Add an example tool", onchange: () => { this._addExample(example.value); example.value = ""; } }, h("option", { value: "" }, "Add an example tool…"), Object.keys(EXAMPLES).map((name) => h("option", { value: name }, name)));
    replace(this.editor, this.messageList, h("div", { class: "adders" }, add("system", "+ System"), add("user", "+ User"), add("assistant", "+ Assistant"), add("tool", "+ Tool result")),
      h("h2", null, "Tools"), this.tools, this.toolNote, h("div", { class: "adders" }, example), this.toolAnswers, h("h2", null, "Settings"), this.settings);
  }

  _addModel(name) {
    const model = name.trim();
    this.modelInput.value = "";
    if (!model || this.models.includes(model)) return;
    if (this.models.length >= MOST_MODELS) toast(`At most ${MOST_MODELS} models side by side`);
    else this.models.push(model);
    this._drawModels();
  }

  _drawModels() {
    replace(this.modelChips, this.models.map((model) => h("span", { class: "model-chip" }, model, h("button", { type: "button", class: "icon", "aria-label": `Remove ${model}`, onclick: () => { this.models = this.models.filter((one) => one !== model); this._drawModels(); } }, "✕"))));
  }

  _addMessage(role) {
    this.messages.push(role === "tool" ? { role, content: "", tool_call_id: this._lastCall() } : { role, content: "" });
    this._drawMessages();
    this.messageList.lastElementChild?.querySelector("textarea")?.focus();
  }

  _lastCall() {
    return this.messages.flatMap((message) => message.tool_calls || []).at(-1)?.id || "call_1";
  }

  _drawMessages() {
    replace(this.messageList, this.messages.map((message, place) => this._messageEditor(message, place)));
  }

  _messageEditor(message, place) {
    const remove = () => { this.messages.splice(place, 1); this._drawMessages(); };
    const role = h("select", { "aria-label": `Role of message ${place + 1}`, onchange: () => { message.role = role.value; this._drawMessages(); } }, ROLES.map((name) => h("option", { value: name, selected: name === message.role }, name)));
    const content = h("textarea", { rows: Math.min(12, Math.max(2, String(message.content ?? "").split("\n").length)), "aria-label": `Text of message ${place + 1}`, placeholder: message.role === "tool" ? "Result" : "Text", oninput: () => { message.content = content.value; } });
    content.value = typeof message.content === "string" ? message.content : message.content === null ? "" : JSON.stringify(message.content);
    const calls = message.tool_calls && h("textarea", { class: "mono", rows: 4, "aria-label": `Calls of message ${place + 1} as JSON`, spellcheck: "false", onchange: () => {
      const value = parseJson(calls.value);
      calls.setCustomValidity(Array.isArray(value) ? "" : "A list of tool calls is expected.");
      if (Array.isArray(value)) message.tool_calls = value;
      calls.reportValidity();
    } });
    if (calls) calls.value = JSON.stringify(message.tool_calls, null, 2);
    const id = message.role === "tool" && h("input", { class: "mono", "aria-label": "Call id", placeholder: "call id", value: message.tool_call_id || "", oninput: (event) => { message.tool_call_id = event.target.value; } });
    return h("div", { class: "message-editor", "data-role": message.role }, h("header", null, role, id, h("span", { class: "grow" }), h("button", { type: "button", class: "icon", "aria-label": `Remove message ${place + 1}`, onclick: remove }, "✕")), content, calls);
  }

  _addExample(name) {
    if (!EXAMPLES[name]) return;
    let list = [];
    try {
      list = readToolList(this.tools.value);
    } catch {
      toast("The tools are not valid JSON; they were not changed");
      return;
    }
    this.answers[name] ??= EXAMPLES[name].answer;
    this.tools.value = JSON.stringify([...list.filter((one) => one.function.name !== name), EXAMPLES[name].tool], null, 2);
    this._toolsChanged();
  }

  _toolsChanged() {
    let list = [];
    try {
      list = readToolList(this.tools.value);
      this.toolNote.textContent = "";
    } catch (fault) {
      this.toolNote.textContent = `Not usable: ${fault.message}`;
    }
    replace(this.toolAnswers, list.map(({ function: { name } }) => this._answerChoice(name)));
  }

  _answerChoice(name) {
    const template = h("textarea", { rows: 2, class: "mono", "aria-label": `Fixed result of ${name}`, placeholder: '{"city": "{{city}}", "sky": "sunny"}', hidden: this.answers[name] !== "template", oninput: () => { this.templates[name] = template.value; } });
    template.value = this.templates[name] || "";
    const choice = h("select", { "aria-label": `Who answers ${name}`, onchange: () => { this.answers[name] = choice.value; template.hidden = choice.value !== "template"; } },
      [["", "by hand"], ...Object.entries(FUNCTIONS).map(([key, one]) => [key, one.title]), ["template", "Fixed text with {{arguments}}"]].map(([value, text]) => h("option", { value, selected: value === (this.answers[name] || "") }, text)));
    return h("div", { class: "tool-answer" }, h("label", null, h("code", null, name), " is answered ", choice), template);
  }

  _chatBody() {
    const form = new FormData(this.settings);
    const body = { model: this.models[0] || "", messages: this.messages.filter((message) => message.content || message.tool_calls || message.role === "tool").map((message) => ({ ...message })) };
    const tools = readToolList(this.tools.value);
    if (tools.length) Object.assign(body, { tools, tool_choice: form.get("tool_choice") });
    if (form.get("temperature")) body.temperature = Number(form.get("temperature"));
    if (form.get("max_tokens")) body.max_tokens = Number(form.get("max_tokens"));
    if (form.get("stream")) Object.assign(body, { stream: true, stream_options: { include_usage: true } });
    return body;
  }

  /** One column for each model, all with the same request. */
  send() {
    if (this.modelInput.value.trim()) this._addModel(this.modelInput.value);
    let body;
    try {
      body = this.mode === "raw" ? JSON.parse(this.raw.value) : this._chatBody();
    } catch (fault) {
      toast(`The request is not valid JSON: ${fault.message}`);
      return;
    }
    if (this.mode !== "raw" && !body.messages.length) {
      toast("Write a message first");
      return;
    }
    const path = this.mode === "raw" ? this.path.value.trim() : CHAT;
    if (!this.models.length && !body.model && dialectOf(path) !== "gemini") {
      toast("Add a model first");
      return;
    }
    this.columns.forEach((column) => column.stop());
    this.columns = (this.models.length ? this.models : [body.model || ""]).map((model) => new AnswerColumn(this, model, path, body));
    replace(this.output, this.columns.map((column) => column.element));
    this.columns.forEach((column) => column.send());
    if (matchMedia("(max-width: 760px)").matches) this.output.scrollIntoView();
  }

  /** An answer becomes part of the conversation in the editor. */
  adopt(messages) {
    this.messages = [...messages, { role: "user", content: "" }];
    this.modeTabs.choose("conversation");
    this._drawMessages();
    this.messageList.lastElementChild?.querySelector("textarea")?.focus();
  }
}
