// LangChain in JavaScript: an agent on each of the three dialects, whole and streamed.
import { ChatAnthropic } from '@langchain/anthropic';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool } from 'langchain';
import { described, main, task, tools } from './cases.mjs';

const openai = (useResponsesApi) =>
  new ChatOpenAI({
    model: task.model,
    apiKey: task.key,
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: `${task.address}/v1` },
  });
const models = {
  chat: () => openai(false),
  responses: () => openai(true),
  messages: () =>
    new ChatAnthropic({ model: task.model, apiKey: task.key, anthropicApiUrl: task.address, maxTokens: 1000, maxRetries: 0 }),
};
const declared = described.map(({ name, description, parameters }) =>
  tool((input) => tools[name](input), { name, description, schema: parameters }),
);
const asked = (prompt) => ({ messages: [{ role: 'user', content: prompt }] });

const cases = {};
for (const [name, build] of Object.entries(models)) {
  const agent = () => createAgent({ model: build(), tools: declared });
  cases[name] = async (prompt) => (await agent().invoke(asked(prompt))).messages.at(-1).text;
  cases[`${name}-stream`] = async (prompt) => {
    let last;
    const pieces = await agent().stream(asked(prompt), { streamMode: ['messages', 'values'] });
    for await (const [mode, piece] of pieces) if (mode === 'values') last = piece.messages.at(-1);
    return last.text;
  };
}
await main(cases);
