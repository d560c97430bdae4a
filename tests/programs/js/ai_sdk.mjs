// The AI SDK: its providers for each dialect, by generateText and streamText.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { described, main, task, tools } from './cases.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;
const url = { baseURL: `${task.address}/v1`, apiKey: task.key };
const openai = createOpenAI(url);
const models = {
  compatible: createOpenAICompatible({ name: 'toolwire', ...url })(task.model),
  chat: openai.chat(task.model),
  responses: openai(task.model),
  messages: createAnthropic(url)(task.model),
};
const declared = Object.fromEntries(
  described.map(({ name, description, parameters }) => [
    name,
    tool({ description, inputSchema: jsonSchema(parameters), execute: async (input) => tools[name](input) }),
  ]),
);
const asked = (model, prompt) => ({ model, prompt, tools: declared, stopWhen: isStepCount(6), maxRetries: 0 });

const cases = {};
for (const [name, model] of Object.entries(models)) {
  cases[name] = async (prompt) => (await generateText(asked(model, prompt))).text;
  cases[`${name}-stream`] = async (prompt) => {
    let fault;
    const result = streamText({ ...asked(model, prompt), onError: ({ error }) => (fault = error) });
    await result.consumeStream();
    if (fault) throw fault;
    return result.text;
  };
}
await main(cases);
