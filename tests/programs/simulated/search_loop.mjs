// LangChain in JavaScript as the Obsidian plugin uses it: bound tools, stream, and a loop of its own over two searches.
import { readFileSync } from 'node:fs';
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';

const task = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const search = (name, description) => ({
  type: 'function',
  function: {
    name,
    description,
    parameters: {
      type: 'object',
      properties: { query: { type: 'string' }, salientTerms: { type: 'array', items: { type: 'string' } } },
      required: ['query', 'salientTerms'],
    },
  },
});
const found = { localSearch: 'a note about tea', webSearch: 'a page about tea' };

async function loop(useResponsesApi) {
  const model = new ChatOpenAI({
    model: task.model,
    apiKey: task.key,
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: `${task.address}/v1` },
  }).bindTools([search('localSearch', 'Search the notes.'), search('webSearch', 'Search the web.')]);
  const messages = [new SystemMessage('You are a helpful assistant.'), new HumanMessage(task.prompt)];
  const called = [];
  for (let turn = 0; turn < 6; turn++) {
    let whole;
    for await (const chunk of await model.stream(messages)) whole = whole ? whole.concat(chunk) : chunk;
    messages.push(whole);
    if (!whole.tool_calls.length) return { called, text: whole.text };
    for (const call of whole.tool_calls) {
      called.push({ name: call.name, args: call.args, id: call.id });
      messages.push(new ToolMessage({ content: found[call.name], tool_call_id: call.id, name: call.name }));
    }
  }
  return { called, text: 'it did not end' };
}

console.log(JSON.stringify({ chat: await loop(false), responses: await loop(true) }));
process.exit(0);
