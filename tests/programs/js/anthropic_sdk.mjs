// Anthropic's JavaScript SDK: Messages whole and streamed, its tool runner with threads on the server and without.
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { described, main, task, tools } from './cases.mjs';

const client = new Anthropic({ baseURL: task.address, apiKey: task.key, maxRetries: 0, timeout: 20_000 });
const { model } = task;
const declared = described.map(({ parameters, ...rest }) => ({ ...rest, input_schema: parameters }));
const textOf = (message) =>
  message.content
    .filter((block) => block.type === 'text')
    .map((block) => block.text)
    .join('');
const results = (message) =>
  message.content
    .filter((block) => block.type === 'tool_use')
    .map((block) => ({ type: 'tool_result', tool_use_id: block.id, content: tools[block.name](block.input) }));

async function messages(prompt, ask) {
  const history = [{ role: 'user', content: prompt }];
  for (;;) {
    const message = await ask({ model, max_tokens: 1000, tools: declared, messages: history });
    const answers = results(message);
    if (!answers.length) return textOf(message);
    history.push({ role: 'assistant', content: message.content }, { role: 'user', content: answers });
  }
}

async function toolRunner(prompt, stream) {
  const runnable = described.map(({ parameters, ...rest }) =>
    betaTool({ ...rest, inputSchema: parameters, run: tools[rest.name] }),
  );
  const asked = { model, max_tokens: 1000, tools: runnable, messages: [{ role: 'user', content: prompt }], stream };
  let last;
  for await (const turn of client.beta.messages.toolRunner(asked)) last = stream ? await turn.finalMessage() : turn;
  return textOf(last);
}

// A thread that is not kept throws here, where the runner would go on without.
async function thread(prompt) {
  const kept = client.beta.messages.thread({ model, max_tokens: 1000, tools: declared });
  let message = await kept.send({ role: 'user', content: prompt });
  for (let answers; (answers = results(message)).length; )
    message = await kept.send({ role: 'user', content: answers });
  return textOf(message);
}

await main({
  messages: (prompt) => messages(prompt, (request) => client.messages.create(request)),
  'messages-stream': (prompt) => messages(prompt, (request) => client.messages.stream(request).finalMessage()),
  'tool-runner': (prompt) => toolRunner(prompt, false),
  'tool-runner-stream': (prompt) => toolRunner(prompt, true),
  thread,
});
