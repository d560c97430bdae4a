// A window without VS Code, as a program: the whole extension with a fake API, dialling a real gateway. What happens is a JSON line each;
// a line that comes in, {"model", "text"}, asks a model of the gateway as VS Code's chat would; {"command"} is one of the palette. What
// VS Code keeps for the extension is in the file memory.json of the home folder, where the next window finds it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type * as vscode from 'vscode';
import { Bridge } from '../src/bridge';
import { CallPart, ChatMessage, contextOf, DataPart, FakeModel, FakeWindow, Markdown, ModelError, ResultPart, saying, TextPart, TokenSource } from './fake';
import type { Sent } from './fake';

const tell = (event: object) => void process.stdout.write(`${JSON.stringify(event)}\n`);
const sleep = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds));

function usage() {
  return new DataPart(Buffer.from('{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}'), 'usage');
}

/** Calls every tool it has, then says what came of it. */
async function* calling({ messages, options }: Sent): AsyncGenerator<unknown> {
  const results = messages.flatMap(message => message.content).filter(part => part instanceof ResultPart);
  const tools = (options.tools ?? []) as { name: string }[];
  if (results.length) yield new TextPart(`results: ${results.map(result => (result.content[0] as TextPart).value).join(', ')}`);
  else for (const [index, { name }] of tools.entries()) yield new CallPart(`call_${index}`, name, { place: `at ${index}` });
  yield usage();
}

async function* endless({ token }: Sent): AsyncGenerator<unknown> {
  for (let turn = 0; !token.isCancellationRequested; turn++) {
    yield new TextPart(`${turn} `);
    await sleep(10);
  }
  tell({ cancelled: true });
}

async function* failing(): AsyncGenerator<unknown> {
  throw Object.assign(new Error('slow down'), { name: 'ChatRateLimited' });
}

const MEMORY = join(homedir(), 'memory.json');
const window = new FakeWindow();
if (existsSync(MEMORY)) for (const [name, value] of Object.entries(JSON.parse(readFileSync(MEMORY, 'utf8')))) window.memory.set(name, value);
const denied = new FakeModel('fake', 'denied');
denied.refusal = ModelError.NoPermissions("Language model 'fake/denied' cannot be used by 'toolwire.toolwire'.");
window.models = [
  new FakeModel('fake', 'text', () => saying(new TextPart('Hello '), new TextPart('world'), usage())),
  new FakeModel('fake', 'calls', calling),
  new FakeModel('fake', 'endless', endless),
  new FakeModel('fake', 'long', () => saying(...Array.from({ length: 20_000 }, () => new TextPart('x'.repeat(50))), usage())),
  new FakeModel('fake', 'fails', failing),
  denied,
];
for (const model of window.models) model.maxInputTokens = 100_000;

const subscriptions: { dispose(): unknown }[] = [];
const bridge = new Bridge(window.api, contextOf(window, subscriptions));
const provider = window.providers.get('toolwire')!;
const offered = () => provider.provideLanguageModelChatInformation({ silent: true }, new TokenSource().token as unknown as vscode.CancellationToken) as vscode.LanguageModelChatInformation[];
provider.onDidChangeLanguageModelChatInformation!(() => tell({ offered: offered().map(model => model.id) }));

let shown = '';
setInterval(() => {
  const tooltip = typeof window.item.tooltip === 'string' ? window.item.tooltip : (window.item.tooltip as Markdown).value;
  if (tooltip !== shown) tell({ status: (shown = tooltip), state: bridge.state.kind });
}, 20);

async function run(command: string): Promise<void> {
  const running = window.commands.get(command)!();
  setTimeout(() => writeFileSync(MEMORY, JSON.stringify(Object.fromEntries(window.memory))), 100);
  await running;
  tell({ done: command, messages: window.messages });
}

async function ask({ model, text }: { model: string; text: string }): Promise<void> {
  const parts: unknown[] = [];
  try {
    await provider.provideLanguageModelChatResponse(
      offered().find(one => one.id === model)!,
      [ChatMessage.User(text)] as unknown as vscode.LanguageModelChatRequestMessage[],
      { toolMode: 1 },
      { report: part => parts.push(part) },
      new TokenSource().token as unknown as vscode.CancellationToken,
    );
    const texts = parts.filter(part => part instanceof TextPart).map(part => part.value);
    tell({ answer: texts.join(''), mimes: parts.filter(part => part instanceof DataPart).map(part => part.mimeType) });
  } catch (error) {
    tell({ failed: String(error) });
  }
}

createInterface({ input: process.stdin })
  .on('line', line => {
    const given = JSON.parse(line);
    void (given.command ? run(given.command) : ask(given));
  })
  .on('close', () => process.exit());
