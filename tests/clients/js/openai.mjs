// OpenAI's own JavaScript client against the gateway. Reads its task from argv[2], prints what it saw as one JSON object.
import OpenAI from 'openai';

const task = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL: `${task.address}/v1`, apiKey: task.key, maxRetries: 0, timeout: 20_000 });
const { model } = task;

const parameters = {
  type: 'object',
  properties: { location: { type: 'string' } },
  required: ['location'],
  additionalProperties: false,
};
const described = { name: 'get_weather', description: 'The weather at a place.', parameters };
const chatTools = [{ type: 'function', function: described }];
const flatTools = [{ type: 'function', strict: false, ...described }];
const weather = ({ location }) => `${location} has 18 C`;
const user = (content) => [{ role: 'user', content }];

async function chatCreate() {
  const messages = user(task.loop);
  const first = await client.chat.completions.create({ model, messages, tools: chatTools });
  const { message, finish_reason } = first.choices[0];
  const call = message.tool_calls[0];
  messages.push(message, {
    role: 'tool',
    tool_call_id: call.id,
    content: weather(JSON.parse(call.function.arguments)),
  });
  const last = await client.chat.completions.create({ model, messages, tools: chatTools });
  return [finish_reason, last.choices[0].message.content];
}

async function chatStream() {
  const messages = user(task.loop);
  const stream = client.chat.completions.stream({ model, messages, tools: chatTools });
  let text = '';
  stream.on('content', (delta) => (text += delta));
  const { finish_reason, message } = (await stream.finalChatCompletion()).choices[0];
  return [finish_reason, text, message.tool_calls[0].function.arguments];
}

async function chatRunTools(stream) {
  const run = { function: weather, parse: JSON.parse, ...described };
  const runner = client.chat.completions.runTools({
    model,
    stream,
    messages: user(task.loop),
    tools: [{ type: 'function', function: run }],
  });
  const results = [];
  runner.on('functionToolCallResult', (result) => results.push(result));
  return [await runner.finalContent(), results];
}

async function responsesCreate() {
  const input = user(task.loop);
  const first = await client.responses.create({ model, input, tools: flatTools, store: false });
  const call = first.output.find((item) => item.type === 'function_call');
  input.push(...first.output, {
    type: 'function_call_output',
    call_id: call.call_id,
    output: weather(JSON.parse(call.arguments)),
  });
  const last = await client.responses.create({ model, input, tools: flatTools, store: false });
  return [first.status, last.output_text];
}

async function responsesStream() {
  const stream = client.responses.stream({ model, input: user(task.loop), tools: flatTools });
  let text = '';
  stream.on('response.output_text.delta', (event) => (text += event.delta));
  const final = await stream.finalResponse();
  const call = final.output.find((item) => item.type === 'function_call');
  return [final.status, text, call.arguments];
}

async function models() {
  const ids = [];
  for await (const listed of client.models.list()) ids.push(listed.id);
  return ids.includes(model) && ids.includes('demo/echo-tools');
}

async function failure(work) {
  try {
    await work();
    return 'no error';
  } catch (error) {
    return [error.constructor.name, error.status ?? null, error.message];
  }
}

async function drained(stream) {
  for await (const _ of await stream);
}

const results = {
  chatCreate: await chatCreate(),
  chatStream: await chatStream(),
  chatRunTools: await chatRunTools(false),
  chatRunToolsStreaming: await chatRunTools(true),
  responsesCreate: await responsesCreate(),
  responsesStream: await responsesStream(),
  models: await models(),
  rateLimit: await failure(() => client.responses.create({ model, input: task.limited })),
  rateLimitStreaming: await failure(() =>
    drained(client.chat.completions.create({ model, messages: user(task.limited), stream: true })),
  ),
  wrongKey: await failure(() => client.withOptions({ apiKey: 'wrong' }).models.list()),
  unknownModel: await failure(() => client.responses.create({ model: 'nowhere/none', input: 'hello' })),
  midStream: await failure(() =>
    drained(client.chat.completions.create({ model, messages: user(task.breaks), stream: true })),
  ),
};
console.log(JSON.stringify(results));
