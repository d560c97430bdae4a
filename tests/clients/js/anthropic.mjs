// Anthropic's own JavaScript client against the gateway. Reads its task from argv[2], prints what it saw as one JSON object.
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';

const task = JSON.parse(process.argv[2]);
const client = new Anthropic({ baseURL: task.address, apiKey: task.key, maxRetries: 0, timeout: 20_000 });
const { model } = task;

const inputSchema = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
const described = { name: 'get_weather', description: 'The weather at a place.' };
const tools = [{ ...described, input_schema: inputSchema }];
const weather = ({ location }) => `${location} has 18 C`;
const asked = (content) => ({ model, max_tokens: 500, tools, messages: [{ role: 'user', content }] });

function answered(request, message) {
  const call = message.content.find((block) => block.type === 'tool_use');
  const result = { type: 'tool_result', tool_use_id: call.id, content: weather(call.input) };
  const messages = [
    ...request.messages,
    { role: 'assistant', content: message.content },
    { role: 'user', content: [result] },
  ];
  return { ...request, messages };
}

async function create() {
  const request = asked(task.loop);
  const first = await client.messages.create(request);
  const last = await client.messages.create(answered(request, first));
  return [first.stop_reason, last.content[0].text];
}

async function stream() {
  const request = asked(task.loop);
  const first = await client.messages.stream(request).finalMessage();
  const second = client.messages.stream(answered(request, first));
  let text = '';
  second.on('text', (delta) => (text += delta));
  const last = await second.finalMessage();
  return [first.stop_reason, text, last.stop_reason];
}

async function toolRunner(isStreaming) {
  const run = betaTool({ ...described, inputSchema, run: weather });
  const runner = client.beta.messages.toolRunner({ ...asked(task.loop), tools: [run], stream: isStreaming });
  const reasons = [];
  let last;
  for await (const turn of runner) {
    last = isStreaming ? await turn.finalMessage() : turn;
    reasons.push(last.stop_reason);
  }
  return [reasons, last.content[0].text];
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

const results = {
  create: await create(),
  stream: await stream(),
  toolRunner: await toolRunner(false),
  toolRunnerStreaming: await toolRunner(true),
  models: await models(),
  counted: (await client.messages.countTokens({ model, messages: asked('How long?').messages })).input_tokens > 0,
  rateLimit: await failure(() => client.messages.create(asked(task.limited))),
  rateLimitStreaming: await failure(() => client.messages.stream(asked(task.limited)).finalMessage()),
  wrongKey: await failure(() => client.withOptions({ apiKey: 'wrong' }).models.list()),
  unknownModel: await failure(() => client.messages.create({ ...asked('hello'), model: 'nowhere/none' })),
  midStream: await failure(() => client.messages.stream(asked(task.breaks)).finalMessage()),
};
console.log(JSON.stringify(results));
