// Requests of the playground: built from the editor, and extended by an answer and the results of its calls.

import { readRequest } from "./dialects.js";
import { parseJson } from "./format.js";

/** The dialect that a path belongs to. */
export function dialectOf(path) {
  if (path.includes("/chat/completions")) return "chat";
  if (path.includes("/responses")) return "responses";
  if (path.includes("/messages")) return "messages";
  if (path.includes("/api/chat")) return "ollama";
  if (path.includes("/interactions")) return "interactions";
  return /generateContent/i.test(path) ? "gemini" : "";
}

/** The body with another model; Gemini has it in the path. */
export function withModel(path, body, model) {
  if (!model) return { path, body };
  if (dialectOf(path) === "gemini") return { path: path.replace(/models\/[^:]+:/, `models/${model}:`), body };
  return { path, body: { ...body, model } };
}

/** The next request: the answer as the model's turn, then the results, each {id, name, text}. */
export function withResults(dialect, body, answer, results) {
  const calls = answer.parts.filter((part) => part.type === "call");
  const said = answer.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
  if (dialect === "chat") {
    const turn = { role: "assistant", content: said || null, tool_calls: calls.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.raw } })) };
    return { ...body, messages: [...body.messages, turn, ...results.map((one) => ({ role: "tool", tool_call_id: one.id, content: one.text }))] };
  }
  if (dialect === "ollama") {
    const turn = { role: "assistant", content: said, tool_calls: calls.map((call) => ({ function: { name: call.name, arguments: parseJson(call.raw) ?? {} } })) };
    return { ...body, messages: [...body.messages, turn, ...results.map((one) => ({ role: "tool", tool_name: one.name, content: one.text }))] };
  }
  if (dialect === "interactions") {
    const input = typeof body.input === "string" ? [{ type: "user_input", content: [{ type: "text", text: body.input }] }] : body.input || [];
    const turn = [...(said ? [{ type: "model_output", content: [{ type: "text", text: said }] }] : []), ...calls.map((call) => ({ type: "function_call", id: call.id, name: call.name, arguments: parseJson(call.raw) ?? {} }))];
    return { ...body, input: [...input, ...turn, ...results.map((one) => ({ type: "function_result", call_id: one.id, name: one.name, result: one.text }))] };
  }
  if (dialect === "messages") {
    const content = [...(said ? [{ type: "text", text: said }] : []), ...calls.map((call) => ({ type: "tool_use", id: call.id, name: call.name, input: parseJson(call.raw) ?? {} }))];
    return { ...body, messages: [...body.messages, { role: "assistant", content }, { role: "user", content: results.map((one) => ({ type: "tool_result", tool_use_id: one.id, content: one.text })) }] };
  }
  if (dialect === "responses") {
    const input = typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input || [];
    const turn = [...(said ? [{ role: "assistant", content: said }] : []), ...calls.map((call) => ({ type: "function_call", call_id: call.id, name: call.name, arguments: call.raw }))];
    return { ...body, input: [...input, ...turn, ...results.map((one) => ({ type: "function_call_output", call_id: one.id, output: one.text }))] };
  }
  const parts = [...(said ? [{ text: said }] : []), ...calls.map((call) => ({ functionCall: { ...(call.id ? { id: call.id } : {}), name: call.name, args: parseJson(call.raw) ?? {} } }))];
  const responses = results.map((one) => ({ functionResponse: { ...(one.id ? { id: one.id } : {}), name: one.name, response: asObject(one.text) } }));
  return { ...body, contents: [...(body.contents || []), { role: "model", parts }, { role: "user", parts: responses }] };
}

/** Messages of Chat Completions from a request of any dialect, for the editor. */
export function toChatMessages(dialect, body) {
  const request = readRequest(dialect, body);
  if (!request) return null;
  const messages = [];
  for (const message of request.messages) {
    const content = message.parts.filter((part) => part.type === "text").map((part) => part.text).join("\n");
    const calls = message.parts.filter((part) => part.type === "call");
    const results = message.parts.filter((part) => part.type === "result");
    for (const part of results) messages.push({ role: "tool", tool_call_id: part.id, content: part.text });
    if (calls.length) messages.push({ role: "assistant", content, tool_calls: calls.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.raw } })) });
    else if (content || !results.length) messages.push({ role: message.role === "developer" ? "system" : message.role, content });
  }
  return { messages: joinCalls(messages), tools: request.tools.map(toChatTool) };
}

/** Tools in any form that people paste: a list or one tool, of Chat Completions, Responses, Messages, Gemini or MCP. */
export function readToolList(text) {
  if (!text.trim()) return [];
  const value = JSON.parse(text);
  const list = Array.isArray(value) ? value : Array.isArray(value.tools) ? value.tools : [value];
  const tools = readRequest("", { tools: list.map((one) => (one.inputSchema ? { ...one, input_schema: one.inputSchema } : one)) }).tools;
  if (tools.some((one) => !one.name || one.name === "tool")) throw new Error("Each tool needs a name.");
  return tools.map(toChatTool);
}

function toChatTool(tool) {
  return { type: "function", function: { name: tool.name, description: tool.description, parameters: tool.schema || { type: "object", properties: {} } } };
}

/** Responses has each call as an item; Chat Completions has the calls of a turn in one message. */
function joinCalls(messages) {
  const joined = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (message.tool_calls && last?.role === "assistant") {
      last.tool_calls = [...(last.tool_calls || []), ...message.tool_calls];
      last.content = [last.content, message.content].filter(Boolean).join("\n");
    } else joined.push({ ...message });
  }
  return joined;
}

function asObject(text) {
  const value = parseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : { result: value ?? text };
}
