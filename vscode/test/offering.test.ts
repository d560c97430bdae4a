import assert from 'node:assert/strict';
import test from 'node:test';
import type * as vscode from 'vscode';
import type { OfferedModel } from '../src/frames';
import { Offering } from '../src/offering';
import { CallPart, ChatMessage, DataPart, FakeWindow, ModelError, ResultPart, settled, TextPart, TokenSource, TsxPart } from './fake';
import { fromGateway, JudgedWire } from './judged';

const MODEL: OfferedModel = {
  id: 'demo/echo', name: 'Echo', family: 'demo', version: '1', max_input_tokens: 200, max_output_tokens: 30, can_call_tools: true, can_see_images: false,
};

function setUp() {
  const wire = new JudgedWire();
  const offering = new Offering(new FakeWindow().api, wire);
  const source = new TokenSource();
  const seen: unknown[] = [];
  const ask = (messages: ChatMessage[] = [ChatMessage.User('hi')], options: object = { toolMode: 1 }) =>
    offering.provideLanguageModelChatResponse(
      offering.provideLanguageModelChatInformation({ silent: true })[0]!,
      messages as unknown as vscode.LanguageModelChatRequestMessage[],
      options as vscode.ProvideLanguageModelChatResponseOptions,
      { report: part => seen.push(part) },
      source.token as unknown as vscode.CancellationToken,
    );
  offering.take(fromGateway({ type: 'offer', models: [MODEL] }));
  return { wire, offering, source, seen, ask };
}

test('the list is the one of the last offer, and VS Code hears of every change', () => {
  const { wire, offering } = setUp();
  let changes = 0;
  offering.onDidChangeLanguageModelChatInformation(() => changes++);
  offering.take(fromGateway({ type: 'offer', models: [MODEL] }));
  assert.equal(changes, 0);
  assert.deepEqual(offering.provideLanguageModelChatInformation({ silent: true }), [{
    id: 'demo/echo', name: 'Echo', family: 'demo', version: '1', maxInputTokens: 200, maxOutputTokens: 30,
    capabilities: { toolCalling: true, imageInput: false },
  }]);
  offering.abandon();
  assert.equal(offering.provideLanguageModelChatInformation({ silent: false }).length, 1);
  assert.deepEqual(wire.frames, [{ type: 'list' }]);
  offering.take(fromGateway({ type: 'offer', models: [] }));
  assert.equal(changes, 1);
  assert.deepEqual(offering.provideLanguageModelChatInformation({ silent: true }), []);
});

test('an ask holds roles, parts, tools and options, without those of VS Code itself', async () => {
  const { wire, offering, ask } = setUp();
  const running = ask(
    [
      new ChatMessage(3, [new TextPart('rules')]),
      new ChatMessage(1, [new TextPart('hi'), new DataPart(Buffer.from([0]), 'image/png')], 'me'),
      new ChatMessage(2, [new CallPart('c', 'look', { at: 1 })]),
      new ChatMessage(1, [new ResultPart('c', [new TextPart('seen'), new TsxPart({ a: 1 })]), new TsxPart({})]),
    ],
    { toolMode: 2, tools: [{ name: 'look', description: 'd', inputSchema: { type: 'object' } }, { name: 'bare', description: '' }], modelOptions: { temperature: 0, _debug: 1 } },
  );
  const [asked] = wire.of('ask');
  offering.hear(fromGateway({ type: 'end', id: asked!.id, cancelled: false }));
  await running;
  assert.deepEqual(asked, {
    type: 'ask', id: asked!.id, model: 'demo/echo',
    messages: [
      { role: 'system', parts: [{ t: 'text', text: 'rules' }] },
      { role: 'user', name: 'me', parts: [{ t: 'text', text: 'hi' }, { t: 'data', mime: 'image/png', data: 'AA==' }] },
      { role: 'assistant', parts: [{ t: 'call', id: 'c', name: 'look', input: { at: 1 } }] },
      { role: 'user', parts: [{ t: 'result', id: 'c', parts: [{ t: 'text', text: 'seen' }, { t: 'text', text: '{"a":1}' }] }] },
    ],
    tools: [{ name: 'look', description: 'd', schema: { type: 'object' } }, { name: 'bare', description: '' }],
    required: true, options: { temperature: 0 },
  });
});

test('what an extension has left out of its tools and messages is empty', async () => {
  const { wire, ask } = setUp();
  void ask([new ChatMessage(1, [new TextPart(undefined!), new ResultPart(undefined!, [])], 7 as unknown as string)], { toolMode: 1, tools: [{ name: 'bare' }, {}] });
  const { messages, tools } = wire.of('ask')[0]!;
  assert.deepEqual(messages, [{ role: 'user', name: '7', parts: [{ t: 'text', text: '' }, { t: 'result', id: '', parts: [] }] }]);
  assert.deepEqual(tools, [{ name: 'bare', description: '' }, { name: '', description: '' }]);
});

test('a plain ask has no empty members', async () => {
  const { wire, ask } = setUp();
  void ask(undefined, { toolMode: 2, tools: [], modelOptions: { _a: 1 } });
  assert.deepEqual(Object.keys(wire.of('ask')[0]!), ['type', 'id', 'model', 'messages']);
});

test('an answer is reported part by part, thinking left out, and ends', async () => {
  const { wire, offering, seen, ask } = setUp();
  const running = ask();
  const id = wire.of('ask')[0]!.id;
  offering.hear(fromGateway({ type: 'parts', id, seq: 0, parts: [{ t: 'thinking', text: 'hm' }, { t: 'text', text: 'a' }] }));
  offering.hear(fromGateway({ type: 'parts', id, seq: 1, parts: [{ t: 'text', text: 'b' }] }));
  offering.hear(fromGateway({ type: 'parts', id, seq: 2, parts: [{ t: 'call', id: 'c', name: 'n', input: {} }, { t: 'data', mime: 'usage', data: 'e30=' }] }));
  assert.deepEqual(seen, [new TextPart('a')]);
  offering.hear(fromGateway({ type: 'end', id, cancelled: false }));
  await running;
  assert.deepEqual(seen, [new TextPart('a'), new TextPart('b'), new CallPart('c', 'n', {}), new DataPart(Buffer.from('{}'), 'usage')]);
  offering.hear(fromGateway({ type: 'parts', id, seq: 3, parts: [{ t: 'text', text: 'late' }] }));
  assert.equal(seen.length, 4);
});

test('a refusal is thrown as VS Code knows it, after what was said', async () => {
  const { wire, offering, seen, ask } = setUp();
  const running = ask();
  const id = wire.of('ask')[0]!.id;
  offering.hear(fromGateway({ type: 'parts', id, seq: 0, parts: [{ t: 'text', text: 'a' }] }));
  offering.hear(fromGateway({ type: 'parts', id, seq: 1, parts: [{ t: 'text', text: 'b' }] }));
  offering.hear(fromGateway({ type: 'error', id, status: 429, code: 'Blocked', name: 'rate_limited', message: 'Too many.' }));
  await assert.rejects(running, (error: ModelError) => error.code === 'Blocked' && error.message === 'Too many.');
  assert.deepEqual(seen, [new TextPart('a'), new TextPart('b')]);
});

test('a cancel is sent as stop and ends the answer', async () => {
  const { wire, source, seen, ask, offering } = setUp();
  const running = ask();
  const id = wire.of('ask')[0]!.id;
  offering.hear(fromGateway({ type: 'parts', id, seq: 0, parts: [{ t: 'text', text: 'a' }] }));
  offering.hear(fromGateway({ type: 'parts', id, seq: 1, parts: [{ t: 'text', text: 'b' }] }));
  source.cancel();
  await running;
  await settled();
  assert.deepEqual(wire.of('stop'), [{ type: 'stop', id }]);
  assert.deepEqual(seen, [new TextPart('a')]);
  await ask();
  assert.equal(wire.of('ask').length, 1);
});

test('without a gateway, or when it goes away, the user is told', async () => {
  const { wire, offering, ask } = setUp();
  const running = ask();
  offering.abandon();
  await assert.rejects(running, /went away/);
  wire.isOpen = false;
  await assert.rejects(ask(), /not connected.*toolwire serve/);
});

test('what is too large for a frame is said to be', async () => {
  const { wire, ask } = setUp();
  wire.send = () => false;
  await assert.rejects(ask(), /32 MiB/);
});

test('tokens are counted here, quickly', async () => {
  const { wire, offering } = setUp();
  const model = offering.provideLanguageModelChatInformation({ silent: true })[0]!;
  const count = (text: unknown) => offering.provideTokenCount(model, text as string);
  assert.equal(await count('12345678'), 2);
  assert.equal(await count('\u4e2d\u6587\u5b57\u7b26'), 3);
  assert.equal(await count(new ChatMessage(1, [new TextPart('12345678'), new DataPart(Buffer.alloc(1 << 20), 'image/png')])), 1006);
  assert.equal(await count(new ChatMessage(1, [new ResultPart('c', [new TextPart('1234'), new DataPart(Buffer.alloc(8), 'x')]), new CallPart('c', 'n', {})])), 20);
  const started = performance.now();
  for (let turn = 0; turn < 5000; turn++) await count('x'.repeat(2000));
  assert.ok(performance.now() - started < 1000);
  assert.deepEqual(wire.frames, []);
});
