// Ollama's own JavaScript client against the gateway. Reads its task from argv[2], prints what it saw as one JSON object.
import { Ollama } from 'ollama';

const task = JSON.parse(process.argv[2]);
const { model } = task;
const clientWith = (key) => new Ollama({ host: task.address, headers: { authorization: `Bearer ${key}` } });
const client = clientWith(task.key);

const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather at a place.', parameters } }];
const user = (content) => ({ role: 'user', content });
const weather = ({ location }) => `${location} has 18 C`;
const result = (call) => ({ role: 'tool', tool_name: call.function.name, content: weather(call.function.arguments) });

async function chat() {
  const messages = [user(task.loop)];
  const first = await client.chat({ model, messages, tools });
  messages.push(first.message, ...first.message.tool_calls.map(result));
  const last = await client.chat({ model, messages, tools });
  return [first.done_reason, last.message.content];
}

async function read(messages) {
  const message = { role: 'assistant', content: '', tool_calls: [] };
  let reason;
  for await (const part of await client.chat({ model, messages, tools, stream: true })) {
    message.content += part.message.content;
    message.tool_calls.push(...(part.message.tool_calls ?? []));
    reason = part.done_reason ?? reason;
  }
  return [message, reason];
}

async function stream() {
  const messages = [user(task.loop)];
  const [first, reason] = await read(messages);
  messages.push(first, ...first.tool_calls.map(result));
  const [last] = await read(messages);
  return [reason, first.content, last.content];
}

async function models() {
  const { models: listed } = await client.list();
  const shown = await client.show({ model });
  const { models: loaded } = await client.ps();
  return listed.some((one) => one.model === model) && shown.capabilities.includes('tools') && loaded.length === 0;
}

async function failing(work) {
  try {
    await work();
    return ['no error', 0, ''];
  } catch (error) {
    return [error.constructor.name, error.status_code ?? 0, error.message];
  }
}

const limited = { model, messages: [user(task.limited)] };

console.log(
  JSON.stringify({
    chat: await chat(),
    stream: await stream(),
    models: await models(),
    rateLimit: await failing(() => client.chat(limited)),
    rateLimitStreaming: await failing(() => read(limited.messages)),
    wrongKey: await failing(() => clientWith('wrong').chat(limited)),
    unknownModel: await failing(() => client.chat({ model: 'nowhere/none', messages: [user('hi')] })),
    midStream: await failing(() => read([user(task.breaks)])),
  }),
);
