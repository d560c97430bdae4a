// A provider of models in VS Code for the tests: SC=... in the conversation names the scene that a model plays, TAG=... tells requests
// apart. What it was asked, and how that ended, is written to the file PLAYED_JOURNAL, a line of JSON each.
const { createHash } = require('node:crypto');
const { appendFileSync } = require('node:fs');
const vscode = require('vscode');

const CROWD = 8; // of the scene "crowd"
const LONGEST = 4000; // characters of a text that the journal has in full
const waiting = [];
let requests = 0;

exports.activate = context => {
  context.subscriptions.push(vscode.lm.registerLanguageModelChatProvider('played', {
    provideLanguageModelChatInformation: () => [
      model('player', 'Player 4.5', { capabilities: { toolCalling: true, imageInput: true } }),
      model('counter', 'Counter', { capabilities: { toolCalling: true } }),
      model('private', 'Private player', { capabilities: { toolCalling: true }, requiresAuthorization: { label: 'Somebody' } }),
    ],
    provideTokenCount: async (_, text) => Math.ceil(wordsOf(text).length / 4),
    provideLanguageModelChatResponse: answer,
  }));
};

function model(id, name, more) {
  return { id, name, family: `${id}-4.5`, version: '1', maxInputTokens: 2_000_000, maxOutputTokens: 500_000, ...more };
}

async function answer(chosen, messages, options, progress, token) {
  const texts = messages.map(wordsOf);
  const { scene = 'plain', tag = '' } = /SC=(?<scene>\w+) TAG=(?<tag>\w+)/.exec(texts.findLast(text => text.includes('SC='))) ?.groups ?? {};
  const note = record => write({ number: `${process.pid}-${number}`, pid: process.pid, tag, ...record });
  const number = ++requests;
  const since = messages.slice(texts.findLastIndex(text => text.includes('SC=')));
  const found = since.flatMap(({ content }) => content).filter(part => part instanceof vscode.LanguageModelToolResultPart)
    .map(part => /FOUND_\w+/.exec(part.content.map(({ value }) => value ?? '').join(''))?.[0] ?? 'nothing');
  note({
    state: 'open', scene, model: chosen.id, isFocused: vscode.window.state.focused, tools: options.tools ?? [], mode: options.toolMode, options: options.modelOptions ?? {},
    messages: messages.map(({ role, content }) => ({ role, content: content.map(described) })),
  });
  const stage = {
    tag, found, token,
    say: text => progress.report(new vscode.LanguageModelTextPart(text)),
    call: (id, name, input) => progress.report(new vscode.LanguageModelToolCallPart(id, offered(options.tools, name), input)),
    report: part => progress.report(part),
  };
  try {
    await SCENES[scene](stage);
    note({ state: token.isCancellationRequested ? 'cancelled' : 'done' });
  } catch (error) {
    note({ state: 'failed' });
    throw error;
  }
}

const SCENES = {
  async plain({ say, tag }) {
    for (const piece of ['Hel', 'lo ', tag, ' wor', 'ld.']) say(piece);
  },
  async pair(stage) {
    if (stage.found.length) return done(stage);
    stage.say('Let me check.\n');
    stage.call('one', 'get_weather', { city: 'Paris' });
    stage.call('two', 'get_weather', { city: 'Zürich 中😀 "q" \\' });
  },
  async loop(stage) {
    if (!stage.found.length) {
      stage.say('Notes first.\n');
      return stage.call('search', 'localSearch', { query: `notes ${stage.tag}`, limit: 3 });
    }
    if (stage.found.length === 1) return stage.call('search2', 'webSearch', { query: `${stage.found[0]} é中 "q"`, deep: { pages: [1, 2] } });
    done(stage);
  },
  // As Copilot's own provider does with arguments that are no JSON: they become {}. Told that something is missing, it thinks again.
  async careless(stage) {
    stage.call('careless', 'get_weather', stage.found.length ? { city: 'Paris' } : {});
  },
  async think({ report, say, tag }) {
    report(new vscode.LanguageModelThinkingPart('Thinking hard', 'thought'));
    say(`Hello ${tag} world.`);
  },
  async counted({ report, say, tag }) {
    say(`Hello ${tag} world.`);
    const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, prompt_tokens_details: { cached_tokens: 30 } };
    report(vscode.LanguageModelDataPart.json(usage, 'usage'));
  },
  // A million characters, some of which are two units of JavaScript.
  async flood({ say }) {
    for (let line = 0; line < 50_000; line += 5) say([0, 1, 2, 3, 4].map(more => `${String(line + more).padStart(6, '0')} é中😀 "q\\" end\n`).join(''));
  },
  async crowd(stage) {
    await new Promise(resolve => {
      waiting.push(resolve);
      if (waiting.length === CROWD) waiting.splice(0).forEach(go => go());
    });
    await SCENES.plain(stage);
  },
  async slow({ say, token }) {
    for (let number = 0; number < 2000 && !token.isCancellationRequested; number++) {
      say(`w${number} `);
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  },
  async silent({ token }) {
    await new Promise(resolve => token.onCancellationRequested(resolve));
  },
  async blocked() {
    throw vscode.LanguageModelError.Blocked('too much of it');
  },
  async forbidden() {
    throw vscode.LanguageModelError.NoPermissions('the organisation has switched off this model');
  },
  async limited() {
    throw named('ChatRateLimited', 'Sorry, you have been rate-limited.');
  },
  async quota() {
    throw named('ChatQuotaExceeded', 'You have used your allowance.');
  },
  async context() {
    throw new Error('Message exceeds token limit.');
  },
  async refused() {
    throw new Error('Request Failed: 400 {"error":{"message":"bad tool schema","type":"invalid_request_error"}}');
  },
  async plainly() {
    throw new Error('the cat sat on the cable');
  },
  async midway({ say }) {
    say('half ');
    await new Promise(resolve => setTimeout(resolve, 200));
    throw new Error('the cat sat on the cable');
  },
};

function done({ say, tag, found }) {
  for (const piece of ['ALLDONE ', tag, ' ', found.join(' ')]) say(piece);
}

// Frameworks have their own ways to write a name: web_search, Plugin-webSearch.
function offered(tools, name) {
  const plain = text => text.replace(/[^a-z]/gi, '').toLowerCase();
  return tools?.find(tool => plain(tool.name).endsWith(plain(name)))?.name ?? name;
}

function named(name, message) {
  return Object.assign(new Error(message), { name });
}

function wordsOf(message) {
  return typeof message === 'string' ? message : message.content.map(({ value }) => (typeof value === 'string' ? value : '')).join('');
}

function described(part) {
  if (part instanceof vscode.LanguageModelTextPart) return { text: short(part.value) };
  if (part instanceof vscode.LanguageModelToolCallPart) return { call: part.callId, name: part.name, input: part.input };
  if (part instanceof vscode.LanguageModelToolResultPart) return { result: part.callId, content: part.content.map(described) };
  if (part instanceof vscode.LanguageModelDataPart) return { mime: part.mimeType, size: part.data.length, sha256: hash(part.data) };
  return { unknown: part?.constructor?.name ?? typeof part };
}

function short(text) {
  return text.length <= LONGEST ? text : { length: text.length, sha256: hash(text) };
}

function hash(data) {
  return createHash('sha256').update(data).digest('hex');
}

function write(record) {
  appendFileSync(process.env.PLAYED_JOURNAL, `${JSON.stringify(record)}\n`);
}
