// Requests and answers of each dialect in one simple form, for display only.
//
// A message is {role, parts}; a part is one of {type: "text" | "reasoning" | "refusal", text}, {type: "call", id, name, raw},
// {type: "result", id, name, text, isError}, {type: "media", text} and {type: "other", value}.

import { parseJson } from "./format.js";

const KNOWN = new Set(["model", "messages", "input", "contents", "system", "instructions", "systemInstruction", "system_instruction", "tools"]);

/** {model, messages, tools, settings} of a request body, or null where the body is not readable. */
export function readRequest(dialect, body) {
  const value = typeof body === "string" ? parseJson(body) : body;
  if (!isObject(value)) return null;
  const messages = [];
  const system = value.system ?? value.instructions ?? value.systemInstruction ?? value.system_instruction;
  if (system) messages.push({ role: "system", parts: contentParts(isObject(system) && system.parts ? system.parts : system), where: "system" });
  const list = value.messages ?? value.input ?? value.contents ?? [];
  if (typeof list === "string") messages.push({ role: "user", parts: [text(list)], where: "input" });
  else if (Array.isArray(list)) list.forEach((item, place) => addMessage(messages, item, place));
  nameResults(messages);
  const settings = Object.fromEntries(Object.entries(value).filter(([name]) => !KNOWN.has(name)));
  return { model: value.model ?? "", messages, tools: readTools(value.tools), settings };
}

/** The answer in a response: {parts, finish} from a body or from the frames of a stream; null where there is none. */
export function readAnswer(dialect, response) {
  if (!response) return null;
  if (response.frames?.length) return readStream(frameValues(response.frames));
  const value = parseJson(response.body);
  return isObject(value) ? readWhole(value) : null;
}

/** The answer that canonical events describe: of the last request to the back end, where there were several. */
export function readEvents(events) {
  const last = events?.at(-1)?.upstream;
  const parts = new Map();
  let finish = "";
  let error = "";
  for (const event of events || []) {
    if (event.upstream !== last) continue;
    if (event.type === "part_started" || event.type === "part_ended") {
      const before = parts.get(event.index);
      const part = canonicalPart(event.part);
      if (event.type === "part_started" || !before) parts.set(event.index, { ...part, isOpen: event.type === "part_started" });
      else parts.set(event.index, { ...mergeEnded(before, part), isOpen: false });
    } else if (event.type === "part_delta") {
      const part = parts.get(event.index) || { type: "text", text: "", isOpen: true };
      if (part.type === "call") part.raw += event.text ?? "";
      else part.text = (part.text ?? "") + (event.text ?? "");
      parts.set(event.index, part);
    } else if (event.type === "finished") {
      finish = event.choices?.[0]?.reason || event.reason || "";
    } else if (event.type === "failed") {
      error = event.text || event.error?.message || String(event.error ?? "");
    }
  }
  return { parts: [...parts.keys()].sort((a, b) => a - b).map((index) => parts.get(index)), finish, error };
}

/** Marks the call in which a stream without an end stopped. */
export function markOpen(answer) {
  const last = answer?.parts.at(-1);
  if (last?.type === "call" && !answer.finish) last.isOpen = true;
  return answer;
}

/** Values of the frames of a stream: each may hold whole SSE text, or only its data. */
export function frameValues(frames) {
  const isSse = frames.some((frame) => /^(data|event|id|:)/.test(frame.data.trimStart()));
  const pieces = isSse ? sseData(frames.map((frame) => frame.data).join("")) : frames.flatMap((frame) => frame.data.split("\n"));
  return pieces.map((piece) => parseJson(piece)).filter(isObject);
}

/** A short description of one frame. */
export function frameTitle(data) {
  const event = /^event: ?(.*)$/m.exec(data)?.[1];
  const payload = sseData(`${data}\n\n`)[0] ?? data;
  const value = parseJson(payload);
  if (!isObject(value)) return event || payload.trim().slice(0, 60);
  const delta = value.choices?.[0]?.delta;
  const called = delta?.tool_calls?.[0]?.function?.name || value.content_block?.name || value.item?.name || value.candidates?.[0]?.content?.parts?.[0]?.functionCall?.name;
  const written = [delta?.content, delta?.reasoning_content, delta?.tool_calls?.[0]?.function?.arguments, value.delta?.text, value.delta?.partial_json, value.delta?.thinking, typeof value.delta === "string" ? value.delta : null, value.message?.content, value.candidates?.[0]?.content?.parts?.[0]?.text]
    .find((piece) => typeof piece === "string" && piece);
  const finish = value.choices?.[0]?.finish_reason || value.delta?.stop_reason || value.candidates?.[0]?.finishReason;
  const name = event || value.event_type || value.type || value.object || value.event_type || "";
  if (value.error) return `error: ${value.error.message || ""}`;
  return [name, called ? `call ${called}` : null, written !== undefined ? JSON.stringify(written) : null, finish ? `finish: ${finish}` : null].filter(Boolean).join(" ") || payload.slice(0, 60);
}

function sseData(source) {
  return source.replaceAll("\r\n", "\n").split("\n\n").map((block) =>
    block.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n")).filter(Boolean);
}

function readStream(values) {
  const first = values[0];
  if (!first) return null;
  if (values.some((value) => Array.isArray(value.choices))) return streamOfChat(values);
  if (values.some((value) => typeof value.type === "string" && value.type.startsWith("response."))) return streamOfResponses(values);
  if (values.some((value) => value.type === "message_start" || value.type === "content_block_start")) return streamOfMessages(values);
  if (values.some((value) => value.event_type === "step.start")) return streamOfInteractions(values);
  if (values.some((value) => value.candidates)) return streamOfGemini(values);
  if (values.some((value) => value.message && "done" in value)) return streamOfOllama(values);
  return null;
}

function streamOfChat(values) {
  const parts = [];
  const calls = new Map();
  let finish = "";
  for (const value of values) {
    for (const choice of value.choices || []) {
      const delta = choice.delta || choice.message || {};
      grow(parts, "reasoning", delta.reasoning_content ?? delta.reasoning);
      grow(parts, "text", delta.content);
      grow(parts, "refusal", delta.refusal);
      for (const call of delta.tool_calls || []) {
        const key = call.index ?? call.id;
        if (!calls.has(key)) {
          calls.set(key, { type: "call", id: "", name: "", raw: "" });
          parts.push(calls.get(key));
        }
        const part = calls.get(key);
        part.id ||= call.id || "";
        part.name += call.function?.name && part.name !== call.function.name ? call.function.name : "";
        part.raw += asRaw(call.function?.arguments);
      }
      finish = choice.finish_reason || finish;
    }
  }
  return { parts, finish };
}

function streamOfMessages(values) {
  const blocks = new Map();
  let finish = "";
  for (const value of values) {
    if (value.type === "content_block_start") {
      const block = value.content_block || {};
      const part = contentParts([block])[0] || { type: "other", value: block };
      if (part.type === "call" && isObject(block.input) && !Object.keys(block.input).length) part.raw = "";
      blocks.set(value.index, part);
    } else if (value.type === "content_block_delta") {
      const part = blocks.get(value.index);
      if (!part) continue;
      if (part.type === "call") part.raw += value.delta?.partial_json ?? "";
      else if ("text" in part) part.text += value.delta?.text ?? value.delta?.thinking ?? "";
    } else if (value.type === "message_delta") {
      finish = value.delta?.stop_reason || finish;
    }
  }
  return { parts: [...blocks.values()], finish };
}

function streamOfResponses(values) {
  const items = new Map();
  let finish = "";
  for (const value of values) {
    const index = value.output_index;
    if (value.type === "response.output_item.added" || value.type === "response.output_item.done") {
      const found = itemParts(value.item || {});
      const before = items.get(index);
      if (value.type.endsWith("added") || !before?.some((part) => part.raw || part.text)) items.set(index, found.length ? found : [{ type: value.item?.type === "reasoning" ? "reasoning" : "text", text: "" }]);
    } else if (/output_text\.delta$|refusal\.delta$|reasoning(_summary)?_text\.delta$/.test(value.type)) {
      const part = items.get(index)?.[0];
      if (part && "text" in part) part.text += value.delta ?? "";
    } else if (/arguments\.delta$|custom_tool_call_input\.delta$/.test(value.type)) {
      const part = items.get(index)?.[0];
      if (part?.type === "call") part.raw += value.delta ?? "";
    } else if (/^response\.(completed|incomplete|failed)$/.test(value.type)) {
      finish = value.response?.incomplete_details?.reason || value.response?.status || "";
      if (!items.size) (value.response?.output || []).forEach((item, place) => items.set(place, itemParts(item)));
    }
  }
  return { parts: [...items.keys()].sort((a, b) => a - b).flatMap((key) => items.get(key)), finish };
}

function streamOfGemini(values) {
  const parts = [];
  let finish = "";
  for (const value of values) {
    const candidate = value.candidates?.[0];
    for (const part of candidate?.content?.parts || []) {
      if (typeof part.text === "string") grow(parts, part.thought ? "reasoning" : "text", part.text);
      else parts.push(...contentParts([part]));
    }
    finish = candidate?.finishReason || finish;
  }
  return { parts, finish };
}

function streamOfInteractions(values) {
  const steps = new Map();
  let finish = "";
  for (const value of values) {
    if (value.event_type === "step.start") {
      const part = itemParts(value.step || {})[0] || { type: "text", text: "" };
      if (part.type === "call") part.raw = "";
      steps.set(value.index, part);
    } else if (value.event_type === "step.delta") {
      const part = steps.get(value.index);
      if (part?.type === "call") part.raw += asRaw(value.delta?.arguments);
      else if (part && "text" in part) part.text += value.delta?.text ?? value.delta?.content?.text ?? "";
    } else if (value.event_type === "interaction.completed") {
      finish = value.interaction?.status || finish;
    }
  }
  return { parts: [...steps.values()], finish };
}

function streamOfOllama(values) {
  const parts = [];
  let finish = "";
  for (const value of values) {
    grow(parts, "reasoning", value.message?.thinking);
    grow(parts, "text", value.message?.content);
    for (const call of value.message?.tool_calls || []) parts.push(callPart(call));
    finish = value.done_reason || finish;
  }
  return { parts, finish };
}

function readWhole(value) {
  if (Array.isArray(value.choices)) {
    const choice = value.choices[0] || {};
    const message = choice.message || {};
    return { parts: messageParts(message), finish: choice.finish_reason || "" };
  }
  if (Array.isArray(value.output)) return { parts: value.output.flatMap(itemParts), finish: value.incomplete_details?.reason || value.status || "" };
  if (Array.isArray(value.steps)) return { parts: value.steps.flatMap(itemParts), finish: value.status || "" };
  if (Array.isArray(value.candidates)) return streamOfGemini([value]);
  if (Array.isArray(value.content)) return { parts: contentParts(value.content), finish: value.stop_reason || "" };
  if (isObject(value.message)) return { parts: messageParts(value.message), finish: value.done_reason || "" };
  return null;
}

function addMessage(messages, item, place) {
  const where = `messages[${place}]`;
  if (!isObject(item)) return;
  if (item.type && item.type !== "message" && !item.role) {
    messages.push({ role: item.type === "user_input" ? "user" : /_(result|call_output)$/.test(item.type) ? "tool" : "assistant", parts: itemParts(item), where });
    return;
  }
  const role = item.role === "model" ? "assistant" : item.role === "function" ? "tool" : item.role || "user";
  const parts = item.parts ? contentParts(item.parts) : messageParts(item);
  const isResults = parts.length > 0 && parts.every((part) => part.type === "result");
  messages.push({ role: isResults ? "tool" : role, parts, where });
}

function messageParts(message) {
  const parts = [];
  const reasoning = message.reasoning_content ?? message.reasoning ?? message.thinking;
  if (typeof reasoning === "string" && reasoning) parts.push({ type: "reasoning", text: reasoning });
  if (message.role === "tool" || message.role === "function") {
    parts.push({ type: "result", id: message.tool_call_id || "", name: message.name || message.tool_name || "", text: flat(message.content), isError: false });
    return parts;
  }
  parts.push(...contentParts(message.content));
  if (message.refusal) parts.push({ type: "refusal", text: message.refusal });
  for (const call of message.tool_calls || []) parts.push(callPart(call));
  if (message.function_call) parts.push({ type: "call", id: "", name: message.function_call.name, raw: asRaw(message.function_call.arguments) });
  return parts;
}

function contentParts(content) {
  if (content === null || content === undefined || content === "") return [];
  if (typeof content === "string") return [text(content)];
  if (!Array.isArray(content)) return isObject(content) ? [onePart(content)] : [text(String(content))];
  return content.map((item) => (typeof item === "string" ? text(item) : onePart(item)));
}

function onePart(item) {
  if (!isObject(item)) return text(String(item));
  if (item.functionCall) return { type: "call", id: item.functionCall.id || "", name: item.functionCall.name || "", raw: asRaw(item.functionCall.args ?? {}) };
  if (item.functionResponse) return { type: "result", id: item.functionResponse.id || "", name: item.functionResponse.name || "", text: flat(item.functionResponse.response), isError: false };
  if (item.type === "tool_use" || item.type === "server_tool_use") return { type: "call", id: item.id || "", name: item.name || "", raw: asRaw(item.input ?? {}) };
  if (item.type === "tool_result") return { type: "result", id: item.tool_use_id || "", name: "", text: flat(item.content), isError: item.is_error === true };
  if (item.type === "thinking") return { type: "reasoning", text: item.thinking || "" };
  if (item.type === "refusal") return { type: "refusal", text: item.refusal || "" };
  if (typeof item.text === "string") return { type: item.thought ? "reasoning" : "text", text: item.text };
  if (/image|file|audio|document|inline_?data/i.test(item.type || Object.keys(item)[0] || "")) return { type: "media", text: item.type || Object.keys(item)[0] };
  return { type: "other", value: item };
}

function itemParts(item) {
  if (/_call$/.test(item.type || "") && (item.name || item.arguments !== undefined || item.input !== undefined))
    return [{ type: "call", id: item.call_id || item.id || "", name: item.name || item.type, raw: asRaw(item.arguments ?? item.input ?? "") }];
  if (/_call_output$/.test(item.type || "")) return [{ type: "result", id: item.call_id || "", name: "", text: flat(item.output), isError: false }];
  if (item.type === "function_result") return [{ type: "result", id: item.call_id || "", name: item.name || "", text: flat(item.result), isError: item.is_error === true }];
  if (item.type === "user_input" || item.type === "model_output") return contentParts(item.content);
  if (item.type === "thought") return [{ type: "reasoning", text: (item.summary || []).map((one) => one.text || "").join("") }];
  if (item.type === "reasoning") {
    const found = [...(item.summary || []), ...(item.content || [])].map((one) => one.text || "").join("\n\n");
    return [{ type: "reasoning", text: found || (item.encrypted_content ? "(encrypted)" : "") }];
  }
  if (item.type === "message" || item.role) return contentParts(item.content);
  return [{ type: "other", value: item }];
}

function canonicalPart(part) {
  if (!isObject(part)) return { type: "other", value: part };
  if (part.type === "tool_call") return { type: "call", id: part.id || "", name: part.namespace ? `${part.namespace}.${part.name}` : part.name || "", raw: part.raw || "" };
  if (part.type === "text" || part.type === "reasoning" || part.type === "refusal") return { type: part.type, text: part.text || "" };
  if (part.type === "media") return { type: "media", text: part.kind || "media" };
  return { type: "other", value: part.value ?? part };
}

function mergeEnded(before, ended) {
  if (ended.type === "call") return { ...before, ...ended, raw: ended.raw || before.raw };
  if ("text" in ended) return { ...ended, text: ended.text || before.text };
  return ended;
}

function readTools(tools) {
  const found = [];
  for (const tool of Array.isArray(tools) ? tools : []) {
    if (!isObject(tool)) continue;
    const declared = tool.functionDeclarations ?? tool.function_declarations;
    if (Array.isArray(declared)) found.push(...declared.map((one) => ({ name: one.name, description: one.description || "", schema: one.parameters ?? one.parametersJsonSchema ?? null })));
    else if (tool.type === "namespace" && Array.isArray(tool.tools)) found.push(...readTools(tool.tools).map((one) => ({ ...one, name: `${tool.name}.${one.name}` })));
    else {
      const inner = isObject(tool.function) ? tool.function : tool;
      found.push({ name: inner.name || tool.type || "tool", description: inner.description || "", schema: inner.parameters ?? inner.input_schema ?? null });
    }
  }
  return found;
}

/** Results of some dialects name only the call's id. */
function nameResults(messages) {
  const names = new Map();
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type === "call") names.set(part.id, part.name);
      else if (part.type === "result") part.name ||= names.get(part.id) || "";
    }
  }
}

function callPart(call) {
  const inner = call.function || call.custom || call;
  return { type: "call", id: call.id || "", name: inner.name || "", raw: asRaw(inner.arguments ?? inner.input ?? "") };
}

function grow(parts, type, piece) {
  if (typeof piece !== "string" || !piece) return;
  const last = parts.at(-1);
  if (last?.type === type) last.text += piece;
  else parts.push({ type, text: piece });
}

function flat(content) {
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((item) => (typeof item === "string" ? item : item?.text ?? JSON.stringify(item))).join("\n");
  return JSON.stringify(content);
}

function asRaw(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function text(value) {
  return { type: "text", text: value };
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
