// OpenAI's JavaScript SDK: Chat Completions and Responses, whole and streamed, with its tool runner, with state on the server.
import OpenAI from 'openai';
import { described, main, task, tools } from './cases.mjs';

const client = new OpenAI({ baseURL: `${task.address}/v1`, apiKey: task.key, maxRetries: 0, timeout: 20_000 });
const { model } = task;
const nested = described.map((one) => ({ type: 'function', function: one }));
const flat = described.map((one) => ({ type: 'function', strict: true, ...one }));
const user = (content) => [{ role: 'user', content }];
const run = (call) => tools[call.name](JSON.parse(call.arguments));

async function chat(prompt, ask) {
  const messages = user(prompt);
  for (;;) {
    const message = await ask({ model, messages, tools: nested });
    if (!message.tool_calls?.length) return message.content;
    messages.push(message);
    for (const { id, function: call } of message.tool_calls)
      messages.push({ role: 'tool', tool_call_id: id, content: run(call) });
  }
}

const outputs = (response) =>
  response.output
    .filter((item) => item.type === 'function_call')
    .map((call) => ({ type: 'function_call_output', call_id: call.call_id, output: run(call) }));

async function responses(prompt, ask) {
  const input = user(prompt);
  for (;;) {
    const response = await ask({ model, input, tools: flat, store: false });
    const results = outputs(response);
    if (!results.length) return response.output_text;
    input.push(...response.output, ...results);
  }
}

async function stateful(prompt, ask) {
  let turn = { input: prompt };
  for (;;) {
    const response = await ask({ model, tools: flat, ...turn });
    const results = outputs(response);
    if (!results.length) return response.output_text;
    turn = { input: results, previous_response_id: response.id };
  }
}

async function runTools(prompt, stream) {
  const runnable = described.map((one) => ({
    type: 'function',
    function: { ...one, parse: JSON.parse, function: tools[one.name] },
  }));
  const runner = client.chat.completions.runTools({ model, stream, messages: user(prompt), tools: runnable });
  return runner.finalContent();
}

const whole = (request) => client.responses.create(request);
const streamed = (request) => client.responses.stream(request).finalResponse();

await main({
  chat: (prompt) =>
    chat(prompt, async (request) => (await client.chat.completions.create(request)).choices[0].message),
  'chat-stream': (prompt) =>
    chat(prompt, async (request) => (await client.chat.completions.stream(request).finalChatCompletion()).choices[0].message),
  'chat-tool-runner': (prompt) => runTools(prompt, false),
  'chat-tool-runner-stream': (prompt) => runTools(prompt, true),
  responses: (prompt) => responses(prompt, whole),
  'responses-stream': (prompt) => responses(prompt, streamed),
  'responses-stateful': (prompt) => stateful(prompt, whole),
  'responses-stateful-stream': (prompt) => stateful(prompt, streamed),
});
