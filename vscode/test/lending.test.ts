import assert from 'node:assert/strict';
import test from 'node:test';
import type { Chat } from '../src/frames';
import { Lender } from '../src/lending';
import { CallPart, DataPart, FakeModel, FakeWindow, ModelError, ResultPart, saying, settled, TextPart } from './fake';
import { fromGateway, JudgedWire } from './judged';

async function setUp(...models: FakeModel[]) {
  const window = new FakeWindow();
  window.models = models;
  const wire = new JudgedWire();
  const logged: string[] = [];
  const denied: string[] = [];
  const allowed: string[] = [];
  const lender = new Lender(window.api, wire, {
    log: words => logged.push(words), denied: model => denied.push(model.id), allowed: model => allowed.push(model.id),
  });
  await lender.list(true);
  return { window, wire, lender, logged, denied, allowed };
}

function chat(more: Partial<Chat> = {}): Chat {
  return fromGateway({ type: 'chat', id: '1', model: 'v/m', messages: [{ role: 'user', parts: [{ t: 'text', text: 'hi' }] }], ...more });
}

test('models are listed with what VS Code knows of them, never our own, and again only when they change or are wanted', async () => {
  const model = new FakeModel('v', 'm');
  model.capabilities = { supportsToolCalling: true, supportsImageToText: false };
  model.maxInputTokens = Infinity;
  const { window, wire, lender } = await setUp(model, new FakeModel('toolwire', 'own'));
  const listed = { key: 'v/m', id: 'm', vendor: 'v', family: 'family', version: '1', name: 'The m', max_input_tokens: 0 };
  delete (model as { capabilities?: object }).capabilities;
  await lender.list(false);
  await lender.list(false);
  window.models = [];
  await Promise.all([lender.list(true), lender.list(false)]);
  await lender.list(true);
  lender.abandon();
  await lender.list(false);
  assert.deepEqual(wire.of('models').map(frame => frame.models), [
    [{ ...listed, can_call_tools: true, can_see_images: false }],
    [listed],
    [], [], [],
  ]);
});

test('what a provider has left out of a model costs nobody the others', async () => {
  const bare = Object.assign(new FakeModel('v', 'bare'), { name: undefined, family: null, version: 3, maxInputTokens: 1e300 });
  const { wire } = await setUp(new FakeModel('v', 'm'), bare, Object.assign(new FakeModel('v', 'x'), { id: undefined }));
  const [first, second, ...more] = wire.of('models')[0]!.models;
  assert.deepEqual([first!.key, second, more], [
    'v/m', { key: 'v/bare', id: 'bare', vendor: 'v', family: '', version: '3', name: '', max_input_tokens: Number.MAX_SAFE_INTEGER }, [],
  ]);
});

test('what a provider has left out of a part is empty', async () => {
  const parts = [new CallPart(undefined!, undefined!, undefined!), new DataPart(Buffer.from('a'), undefined!), new TextPart(undefined!), new TextPart('b')];
  const { wire, lender } = await setUp(new FakeModel('v', 'm', () => saying(...parts)));
  await lender.chat(chat());
  assert.deepEqual(wire.of('parts').flatMap(frame => frame.parts), [
    { t: 'call', id: '', name: '', input: null }, { t: 'data', mime: '', data: 'YQ==' }, { t: 'text', text: 'b' },
  ]);
});

test('a list that could not be sent is sent when it can', async () => {
  const { wire, lender } = await setUp(new FakeModel('v', 'm'));
  lender.abandon();
  wire.isOpen = false;
  await lender.list(false);
  wire.isOpen = true;
  await lender.list(false);
  assert.equal(wire.of('models').length, 2);
});

test('a request arrives with its messages, tools, mode and options', async () => {
  const model = new FakeModel('v', 'm', () => saying(new TextPart('yes'), new CallPart('c2', 'look', { at: 2 }), new DataPart(Buffer.from('{}'), 'usage')));
  const { wire, lender } = await setUp(model);
  await lender.chat(chat({
    messages: [
      { role: 'user', name: 'me', parts: [{ t: 'text', text: 'hi' }, { t: 'data', mime: 'image/png', data: 'AA==' }] },
      { role: 'assistant', parts: [{ t: 'thinking', text: 'hm' }, { t: 'call', id: 'c', name: 'look', input: { at: 1 } }] },
      { role: 'user', parts: [{ t: 'result', id: 'c', parts: [{ t: 'text', text: 'seen' }] }] },
    ],
    tools: [{ name: 'look', description: 'd', schema: { type: 'object' } }, { name: 'bare', description: '' }],
    required: true, options: { temperature: 0 }, justification: 'why',
  }));
  const [sent] = model.sent;
  assert.deepEqual(sent!.messages.map(({ role, name, content }) => [role, name, content]), [
    [1, 'me', [new TextPart('hi'), new DataPart(Buffer.from([0]), 'image/png')]],
    [2, undefined, [new CallPart('c', 'look', { at: 1 })]],
    [1, undefined, [new ResultPart('c', [new TextPart('seen')])]],
  ]);
  assert.deepEqual(sent!.options, {
    tools: [{ name: 'look', description: 'd', inputSchema: { type: 'object' } }, { name: 'bare', description: '' }],
    toolMode: 2, modelOptions: { temperature: 0 }, justification: 'why',
  });
  assert.deepEqual(wire.frames.slice(1), [
    { type: 'parts', id: '1', seq: 0, parts: [{ t: 'text', text: 'yes' }, { t: 'call', id: 'c2', name: 'look', input: { at: 2 } }, { t: 'data', mime: 'usage', data: 'e30=' }] },
    { type: 'end', id: '1', cancelled: false },
  ]);
});

test('without tools there is no mode, with tools it is Auto unless required', async () => {
  const model = new FakeModel('v', 'm');
  const { lender } = await setUp(model);
  await lender.chat(chat());
  await lender.chat(chat({ tools: [{ name: 'look', description: 'd' }] }));
  assert.deepEqual(model.sent.map(({ options }) => options), [{}, { tools: [{ name: 'look', description: 'd' }], toolMode: 1 }]);
});

test('eight requests at once do not mix', async () => {
  const model = new FakeModel('v', 'm', async function* ({ messages }) {
    for (let piece = 0; piece < 5; piece++) {
      yield new TextPart((messages[0]!.content[0] as TextPart).value);
      await settled();
    }
  });
  const { wire, lender } = await setUp(model);
  const ids = [...'abcdefgh'];
  await Promise.all(ids.map(id => lender.chat(chat({ id, messages: [{ role: 'user', parts: [{ t: 'text', text: id }] }] }))));
  for (const id of ids) {
    const frames = wire.of('parts').filter(frame => frame.id === id);
    assert.equal(frames.flatMap(frame => frame.parts).map(part => (part.t === 'text' ? part.text : '')).join(''), id.repeat(5));
  }
  assert.equal(wire.of('end').length, 8);
});

test('an error keeps what was said before it', async () => {
  const model = new FakeModel('v', 'm', async function* () {
    yield new TextPart('half');
    throw Object.assign(new Error('slow down'), { name: 'ChatRateLimited' });
  });
  const { wire, lender, denied, logged } = await setUp(model);
  await lender.chat(chat());
  assert.deepEqual(wire.frames.slice(1), [
    { type: 'parts', id: '1', seq: 0, parts: [{ t: 'text', text: 'half' }] },
    { type: 'error', id: '1', code: 'Unknown', name: 'ChatRateLimited', message: 'slow down' },
  ]);
  assert.deepEqual(denied, []);
  assert.ok(logged[0]!.includes('ChatRateLimited') && !logged[0]!.includes('slow down'));
});

test('a rejection that is no error, no model and a request that is none are told too', async () => {
  const model = new FakeModel('v', 'm');
  model.refusal = { isTrusted: false };
  const { wire, lender } = await setUp(model);
  await lender.chat(chat());
  await lender.chat(chat({ model: 'v/other' }));
  await lender.chat({ type: 'chat', id: '2', model: 'v/m' } as Chat);
  const [image, other, broken] = wire.of('error');
  assert.match(image!.message, /could not be decoded/);
  assert.deepEqual([other!.code, other!.message], ['NotFound', 'this window has no model "v/other".']);
  assert.equal(broken!.name, 'TypeError');
});

test('the use of a model that was not allowed is said once to the user', async () => {
  const model = new FakeModel('v', 'm');
  model.refusal = ModelError.NoPermissions("cannot be used by 'x'.");
  const { wire, lender, denied, allowed } = await setUp(model);
  await lender.chat(chat());
  assert.deepEqual([denied, allowed], [['m'], []]);
  assert.deepEqual([wire.of('error')[0]!.code, wire.of('error')[0]!.refused_by_user], ['NoPermissions', true]);
  model.refusal = undefined;
  await lender.chat(chat());
  assert.deepEqual([denied, allowed], [['m'], ['m']]);
});

test("a provider's own NoPermissions is no refusal of the user's", async () => {
  const model = new FakeModel('v', 'm', async function* () {
    throw ModelError.NoPermissions('switched off by the organisation');
  });
  const { wire, lender, denied } = await setUp(model);
  await lender.chat(chat());
  const { code, message, refused_by_user: isRefused } = wire.of('error')[0]!;
  assert.deepEqual([denied, code, message, isRefused], [[], 'NoPermissions', 'switched off by the organisation', undefined]);
});

test('a cancel fires the token, ends the answer at once, and what comes then is not sent', async () => {
  const model = new FakeModel('v', 'm', async function* ({ token }) {
    yield new TextPart('a');
    await settled();
    await new Promise<void>(resolve => token.onCancellationRequested(() => resolve()));
    yield new TextPart('late');
    throw new Error('network request aborted');
  });
  const { wire, lender, logged, allowed } = await setUp(model);
  const running = lender.chat(chat());
  await settled();
  lender.cancel('1');
  lender.cancel('1');
  assert.deepEqual(wire.frames.at(-1), { type: 'end', id: '1', cancelled: true });
  await running;
  assert.equal(wire.text, 'a');
  assert.deepEqual(wire.frames.map(frame => frame.type), ['models', 'parts', 'end']);
  assert.deepEqual([logged, allowed], [[], []]);
});

test('a model that never stops does not keep its name: the id is free after a cancel', async () => {
  const model = new FakeModel('v', 'm', async function* () { await new Promise(() => {}); });
  const { wire, lender } = await setUp(model);
  void lender.chat(chat());
  await settled();
  lender.cancel('1');
  model.script = () => saying(new TextPart('second'));
  await lender.chat(chat());
  assert.equal(wire.text, 'second');
});

test('when the gateway is gone everything is cancelled and nothing more is said', async () => {
  const tokens: { isCancellationRequested: boolean }[] = [];
  const model = new FakeModel('v', 'm', async function* ({ token }) {
    tokens.push(token);
    await new Promise<void>(resolve => token.onCancellationRequested(() => resolve()));
  });
  const { wire, lender } = await setUp(model);
  const running = [lender.chat(chat({ id: 'a' })), lender.chat(chat({ id: 'b' }))];
  await settled();
  lender.abandon();
  await Promise.all(running);
  assert.deepEqual(tokens.map(token => token.isCancellationRequested), [true, true]);
  assert.deepEqual(wire.frames.map(frame => frame.type), ['models']);
});

test('the same id twice is not a second request', async () => {
  const model = new FakeModel('v', 'm', async function* () { await settled(); yield new TextPart('one'); });
  const { wire, lender, logged } = await setUp(model);
  await Promise.all([lender.chat(chat()), lender.chat(chat())]);
  assert.equal(model.sent.length, 1);
  assert.equal(wire.text, 'one');
  assert.match(logged[0]!, /is taken or none/);
});

test('a part that no frame can hold is an error, and the model is stopped', async () => {
  let token = { isCancellationRequested: false };
  const model = new FakeModel('v', 'm', sent => ((token = sent.token), saying(new DataPart(Buffer.alloc(25 << 20), 'x'))));
  const { wire, lender } = await setUp(model);
  await lender.chat(chat());
  assert.equal(wire.of('error')[0]!.name, 'RangeError');
  assert.ok(token.isCancellationRequested);
});

test('tokens are counted by the model itself', async () => {
  const model = new FakeModel('v', 'm');
  const { wire, lender } = await setUp(model);
  await lender.count(fromGateway({ type: 'count', id: '1', model: 'v/m', text: 'four' }));
  model.refusal = new Error('no counter');
  await lender.count(fromGateway({ type: 'count', id: '2', model: 'v/m', text: '' }));
  await lender.count(fromGateway({ type: 'count', id: '3', model: 'v/none', text: '' }));
  assert.deepEqual(wire.frames.slice(1).map(frame => [frame.type, 'tokens' in frame ? frame.tokens : 'code' in frame && frame.code]), [
    ['count', 4], ['error', 'Unknown'], ['error', 'NotFound'],
  ]);
});
