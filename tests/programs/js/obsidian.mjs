// The model layer of Copilot for Obsidian (4.0.2): LangChain's ChatOpenAI made from the plugin's data.json, Responses where the model's
// name begins with gpt-5, tools bound, every answer streamed. Arguments: data.json, the key. Prints what was called, said and asked where.
import { readFileSync } from 'node:fs';
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';

const data = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const [enabled] = data.backends.chat.enabledModels;
const configured = data.configuredModels.find(({ configuredModelId }) => configuredModelId === enabled);
const provider = data.providers[configured.providerId];
const model = configured.info.id;
const paths = [];

const chat = new ChatOpenAI({
  modelName: model,
  apiKey: process.argv[3],
  streaming: true,
  maxRetries: 0,
  useResponsesApi: model.startsWith('gpt-5'),
  configuration: {
    baseURL: provider.baseUrl,
    fetch: (url, options) => {
      paths.push(new URL(url).pathname);
      const headers = new Headers(options.headers);
      headers.set('origin', 'app://obsidian.md'); // as Obsidian's window sends it
      return fetch(url, { ...options, headers });
    },
  },
});
chat.getNumTokens = async (content) => Math.ceil(String(content).length / 4); // as the plugin does: LangChain's downloads a table

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const messages = [new SystemMessage('You help with notes.'), new HumanMessage('What is the weather in Paris?')];
const called = [];
let text = '';
for (let turn = 0; turn < 4; turn++) {
  let whole;
  for await (const chunk of await chat.bindTools([weather]).stream(messages)) whole = whole ? whole.concat(chunk) : chunk;
  messages.push(whole);
  text = whole.text;
  if (!whole.tool_calls.length) break;
  for (const { id, name, args } of whole.tool_calls) {
    called.push({ name, args });
    messages.push(new ToolMessage({ content: '18 degrees and rain', tool_call_id: id, name }));
  }
}
console.log(JSON.stringify({ paths, called, text }));
process.exit(0);
