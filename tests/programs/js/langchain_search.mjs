// LangChain in JavaScript as a note-taking plugin uses it: tools bound to a model, every answer streamed, the calls put together from
// their chunks by the plugin's own hand. Prints what was called, what was said and what was sent.
import { readFileSync } from 'node:fs';
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const task = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const MOST_TURNS = 6;

const searches = [
  tool(() => '', {
    name: 'localSearch',
    description: 'Search the notes.',
    schema: z.object({ query: z.string(), limit: z.number().int().optional() }),
  }),
  tool(() => '', {
    name: 'webSearch',
    description: 'Search the web.',
    schema: z.object({ query: z.string(), deep: z.object({ pages: z.array(z.number().int()) }).optional() }),
  }),
];

async function search(useResponsesApi, { prompt, results }) {
  const sent = [];
  const model = new ChatOpenAI({
    model: task.model,
    apiKey: task.key,
    maxRetries: 0,
    streaming: true,
    useResponsesApi,
    configuration: {
      baseURL: `${task.address}/v1`,
      fetch: (url, options) => {
        sent.push(JSON.parse(options.body));
        return fetch(url, options);
      },
    },
  }).bindTools(searches);
  const messages = [new SystemMessage('You help with notes.'), new HumanMessage(prompt)];
  const called = [];
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const { text, calls, whole } = await streamed(model, messages);
    if (!calls.length) return { text, called, sent };
    for (const call of calls) called.push(call);
    if (JSON.stringify(whole) !== JSON.stringify(calls.map(({ name, args }) => [name, args])))
      throw new Error(`LangChain read ${JSON.stringify(whole)}, the chunks are ${JSON.stringify(calls)}`);
    messages.push(new AIMessage({ content: text, tool_calls: calls.map(({ id, name, args }) => ({ id, name, args })) }));
    for (const { id, name } of calls)
      messages.push(new ToolMessage({ content: results[called.length - 1], tool_call_id: id, name }));
  }
  throw new Error(`no end after ${MOST_TURNS} turns: ${JSON.stringify(called)}`);
}

// A chunk's index says which call it belongs to; names and arguments are appended, as the plugin does.
async function streamed(model, messages) {
  const calls = new Map();
  let text = '';
  let whole;
  for await (const chunk of await model.stream(messages)) {
    whole = whole ? whole.concat(chunk) : chunk;
    text += chunk.text;
    for (const { index, id, name, args } of chunk.tool_call_chunks ?? []) {
      const call = calls.get(index) ?? { id: '', name: '', raw: '' };
      calls.set(index, { id: call.id || id || '', name: call.name + (name ?? ''), raw: call.raw + (args ?? '') });
    }
  }
  const found = [...calls.values()].map((call) => ({ ...call, args: JSON.parse(call.raw) }));
  return { text, calls: found, whole: (whole.tool_calls ?? []).map(({ name, args }) => [name, args]) };
}

const told = {};
for (const [name, one] of Object.entries(task.cases)) {
  try {
    told[name] = await search(name === 'responses', one);
  } catch (error) {
    told[name] = { error: String(error?.stack ?? error).slice(0, 2000) };
  }
}
console.log(JSON.stringify(told));
process.exit(0);
