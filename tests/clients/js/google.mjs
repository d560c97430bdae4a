// Google's own JavaScript client against the gateway. Reads its task from argv[2], prints what it saw as one JSON object.
import { GoogleGenAI, Type } from '@google/genai';

const task = JSON.parse(process.argv[2]);
const { model } = task;
const clientWith = (apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: task.address, timeout: 20_000 } });
const client = clientWith(task.key);

const parameters = { type: Type.OBJECT, properties: { location: { type: Type.STRING } }, required: ['location'] };
const functionDeclarations = [{ name: 'get_weather', description: 'The weather at a place.', parameters }];
const config = { tools: [{ functionDeclarations }] };
const user = (text) => ({ role: 'user', parts: [{ text }] });
const weather = ({ location }) => `${location} has 18 C`;

function answerTo(call) {
  const response = { output: weather(call.args) };
  return { functionResponse: { id: call.id, name: call.name, response } };
}

async function generate() {
  const contents = [user(task.loop)];
  const first = await client.models.generateContent({ model, contents, config });
  contents.push(first.candidates[0].content, { role: 'user', parts: [answerTo(first.functionCalls[0])] });
  const last = await client.models.generateContent({ model, contents, config });
  return [first.candidates[0].finishReason, last.text];
}

async function stream() {
  const contents = [user(task.loop)];
  const parts = [];
  let reason;
  for await (const chunk of await client.models.generateContentStream({ model, contents, config })) {
    parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
    reason = chunk.candidates?.[0]?.finishReason ?? reason;
  }
  const said = parts.map((part) => part.text ?? '').join('');
  const call = parts.find((part) => part.functionCall).functionCall;
  contents.push({ role: 'model', parts }, { role: 'user', parts: [answerTo(call)] });
  let text = '';
  for await (const chunk of await client.models.generateContentStream({ model, contents, config })) {
    text += chunk.text ?? '';
  }
  return [reason, said, text];
}

async function chat() {
  const talk = client.chats.create({ model, config });
  const first = await talk.sendMessage({ message: task.loop });
  const second = await talk.sendMessage({ message: answerTo(first.functionCalls[0]) });
  return [second.text, talk.getHistory().length];
}

async function interactions() {
  const declared = [{ type: 'function', name: 'get_weather', parameters: { type: 'object', properties: { location: { type: 'string' } } } }];
  const first = await client.interactions.create({ model, input: task.loop, tools: declared });
  const call = first.steps.find((step) => step.type === 'function_call');
  const input = [{ type: 'function_result', call_id: call.id, name: call.name, result: weather(call.arguments) }];
  const follow = { model, input, tools: declared, previous_interaction_id: first.id, stream: true };
  let text = '';
  for await (const event of await client.interactions.create(follow)) text += event.delta?.text ?? '';
  return [first.status, text];
}

async function models() {
  const names = [];
  for await (const listed of await client.models.list()) names.push(listed.name);
  return names.includes(`models/${model}`);
}

async function counted() {
  const { totalTokens } = await client.models.countTokens({ model, contents: 'how many?' });
  return totalTokens > 0;
}

async function failing(work) {
  try {
    await work();
    return ['no error', 0, ''];
  } catch (error) {
    return [error.constructor.name, error.status ?? 0, error.message];
  }
}

const limited = { model, contents: task.limited };
const whole = (from, asked) => from.models.generateContent(asked);

async function read(asked) {
  for await (const chunk of await client.models.generateContentStream(asked)) void chunk;
}

console.log(
  JSON.stringify({
    generate: await generate(),
    stream: await stream(),
    chat: await chat(),
    interactions: await interactions(),
    models: await models(),
    counted: await counted(),
    rateLimit: await failing(() => whole(client, limited)),
    rateLimitStreaming: await failing(() => read(limited)),
    wrongKey: await failing(() => whole(clientWith('wrong'), limited)),
    unknownModel: await failing(() => whole(client, { model: 'nowhere/none', contents: 'hi' })),
    midStream: await failing(() => read({ model, contents: task.breaks })),
  }),
);
