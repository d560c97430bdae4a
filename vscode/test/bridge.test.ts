import assert from 'node:assert/strict';
import test from 'node:test';
import type { TestContext } from 'node:test';
import type * as vscode from 'vscode';
import { Bridge } from '../src/bridge';
import type { FromGateway, FromWindow } from '../src/frames';
import { NotRunning } from '../src/place';
import type { Events } from '../src/socket';
import { contextOf, FakeMachine, FakeModel, FakeWindow, Markdown, ModelError, saying, settled, TextPart } from './fake';
import { fromGateway, judgedFromWindow } from './judged';

async function setUp(t: TestContext, ...models: FakeModel[]) {
  const window = new FakeWindow();
  window.models = models;
  const dialled: { token: string; events: Events; sent: FromWindow[] }[] = [];
  const subscriptions: { dispose(): unknown }[] = [];
  const machine = new FakeMachine();
  const bridge = new Bridge(window.api, contextOf(window, subscriptions), {
    dial: ({ token }, events) => {
      const sent: FromWindow[] = [];
      dialled.push({ token, events, sent });
      return { bufferedAmount: 0, send: text => void sent.push(judgedFromWindow(text)), close() {} };
    },
    reason: async () => new NotRunning('nobody is there.'),
    random: () => 1,
    environment: { TOOLWIRE_BRIDGE_TOKEN: 'very-secret-token' },
    machine,
  });
  t.after(() => subscriptions.forEach(one => one.dispose()));
  const say = async (frame: FromGateway) => {
    dialled.at(-1)!.events.heard(JSON.stringify(fromGateway(frame)));
    await settled();
  };
  const welcome = async () => {
    await settled();
    dialled.at(-1)!.events.opened();
    await say({ type: 'welcome', v: 1, gateway: '0.1.0' });
  };
  const sent = () => dialled.at(-1)!.sent;
  return { window, bridge, dialled, machine, say, welcome, sent };
}

const chat = (id: string): FromGateway => ({ type: 'chat', id, model: 'v/m', messages: [{ role: 'user', parts: [{ t: 'text', text: 'hi' }] }] });

test('it greets, lists its models, wants those of the gateway, and says so in the status bar', async t => {
  const { window, welcome, sent } = await setUp(t, new FakeModel('v', 'm'));
  await welcome();
  const [hello, ...rest] = sent();
  assert.ok(hello!.type === 'hello');
  assert.deepEqual({ ...hello, window: '' }, { type: 'hello', v: 1, window: '', vscode: '1.139.1', extension: '0.1.0', copilot: '0.67.0', focused: true, folder: 'folder' });
  assert.match(hello.window, /^[0-9a-f-]{36}$/);
  assert.deepEqual(rest.map(frame => frame.type), ['list', 'models']);
  assert.deepEqual([window.item.text, window.item.command], ['$(plug) toolwire', 'toolwire.showLog']);
  assert.match(window.item.tooltip, /connected to toolwire 0\.1\.0; it may ask 1 model of this window/);
});

test('two windows have names of their own, and one keeps its name when it connects again', async t => {
  const one = await setUp(t);
  const two = await setUp(t);
  await one.welcome();
  await two.welcome();
  const nameOf = ({ sent }: typeof one) => (sent()[0] as { window: string }).window;
  const first = nameOf(one);
  assert.notEqual(first, nameOf(two));
  one.window.commands.get('toolwire.reconnect')!();
  await one.welcome();
  assert.equal(one.dialled.length, 2);
  assert.equal(nameOf(one), first);
});

test('frames go where they belong', async t => {
  const model = new FakeModel('v', 'm', () => saying(new TextPart('yes')));
  const { window, say, welcome, sent } = await setUp(t, model);
  await welcome();
  const before = sent().length;
  await say({ type: 'ping', n: 5 });
  await say(chat('1'));
  await say({ type: 'count', id: '2', model: 'v/m', text: 'four' });
  await say({ type: 'cancel', id: 'nobody' });
  await say({ type: 'refresh' });
  await say({ type: 'end', id: 'nobody', cancelled: false });
  await say({ type: 'offer', models: [{ id: 'a', name: 'A', family: 'f', version: '1', max_input_tokens: 1, max_output_tokens: 1, can_call_tools: true, can_see_images: true }] });
  window.stateChanged.fire({ focused: false });
  assert.deepEqual(sent().slice(before).map(frame => frame.type), ['pong', 'parts', 'end', 'count', 'models', 'focus']);
  const listed = window.providers.get('toolwire')!.provideLanguageModelChatInformation({ silent: true }, {} as vscode.CancellationToken);
  assert.deepEqual((listed as { id: string }[]).map(one => one.id), ['a']);
});

test('frames that are not known, or not right, are noted and do no harm', async t => {
  const { window, dialled, welcome, say, sent } = await setUp(t);
  await welcome();
  const before = window.logged.length;
  for (const text of ['{"type":"new"}', '{"type":"new"}', '{"type":"offer"}', '{"type":"chat"}', 'nonsense']) dialled[0]!.events.heard(text);
  await settled();
  assert.equal(window.logged.slice(before).filter(line => line.includes('"new"')).length, 1);
  assert.ok(window.logged.some(line => line.includes('"offer" is not as it should be')));
  await say({ type: 'ping', n: 1 });
  assert.equal(sent().at(-1)!.type, 'pong');
});

test('changes of models come in bursts and are told once', async t => {
  const { window, welcome, sent } = await setUp(t);
  await welcome();
  window.models = [new FakeModel('v', 'm')];
  for (let turn = 0; turn < 5; turn++) window.modelsChanged.fire();
  await new Promise(resolve => setTimeout(resolve, 250));
  window.modelsChanged.fire();
  await new Promise(resolve => setTimeout(resolve, 250));
  assert.equal(sent().filter(frame => frame.type === 'models').length, 2);
});

test('a gateway that ends and comes back finds everything again', async t => {
  const { window, dialled, welcome, say } = await setUp(t, new FakeModel('v', 'm', async function* ({ token }) {
    await new Promise<void>(resolve => token.onCancellationRequested(() => resolve()));
  }));
  await welcome();
  await say(chat('1'));
  dialled[0]!.events.closed(1001, 'the gateway ends; connect again.');
  assert.match(window.item.tooltip, /not connected: the gateway closed the connection: the gateway ends/);
  assert.equal(window.item.text, '$(debug-disconnect) toolwire');
  window.stateChanged.fire({ focused: true });
  await welcome();
  assert.equal(dialled.length, 2);
  assert.deepEqual(dialled[1]!.sent.map(frame => frame.type), ['hello', 'list', 'models']);
  assert.ok(!dialled[0]!.sent.some(frame => frame.type === 'end'));
});

test('other settings are used at once', async t => {
  const { window, dialled, welcome } = await setUp(t);
  await welcome();
  window.settingsChanged.fire({ affectsConfiguration: section => section === 'editor' });
  await settled();
  assert.equal(dialled.length, 1);
  window.settingsChanged.fire({ affectsConfiguration: section => section === 'toolwire' });
  await settled();
  assert.equal(dialled.length, 2);
});

test('where consent is missing the status bar asks for it, and the gateway is told when it is there', async t => {
  const model = new FakeModel('v', 'm', () => saying(new TextPart('yes')));
  model.refusal = ModelError.NoPermissions('no');
  const { window, say, welcome, sent } = await setUp(t, model);
  await welcome();
  await say(chat('1'));
  const told = sent().length;
  assert.deepEqual(window.messages, ['Toolwire was not allowed to use The m.']);
  assert.deepEqual([window.item.text, window.item.command], ['$(warning) toolwire', 'toolwire.consent']);
  await window.commands.get('toolwire.consent')!();
  assert.match(window.messages.at(-1)!, /may not use The m \(no\)/);
  await settled();
  model.refusal = undefined;
  const before = sent().length;
  assert.equal(before, told); // refused once more is nothing new to the gateway
  await window.commands.get('toolwire.consent')!();
  await settled();
  assert.equal(window.messages.at(-1), 'Toolwire may use The m.');
  assert.deepEqual(sent().slice(before).map(frame => frame.type), ['models']);
  assert.equal(window.item.command, 'toolwire.showLog');
});

test('a model whose provider fails after the user has allowed it is not asked for again', async t => {
  const model = new FakeModel('v', 'm', async function* () { throw ModelError.NoPermissions('the plan has no such model'); });
  model.refusal = ModelError.NoPermissions('no');
  const { window, say, welcome } = await setUp(t, model);
  await welcome();
  await say(chat('1'));
  model.refusal = undefined;
  await window.commands.get('toolwire.consent')!();
  await settled();
  assert.match(window.messages.at(-1)!, /they failed: The m \(the plan has no such model\)/);
  assert.equal(window.item.command, 'toolwire.showLog');
});

test('a model that is used after all, or is there no more, is not asked for again', async t => {
  const models = ['m', 'n'].map(id => new FakeModel('v', id));
  const { window, say, welcome } = await setUp(t, ...models);
  await welcome();
  for (const model of models) {
    model.refusal = ModelError.NoPermissions('no');
    await say({ ...chat(model.id), model: `v/${model.id}` } as FromGateway);
  }
  assert.match(window.item.tooltip, /The m, The n may not be used/);
  models[0]!.refusal = undefined;
  await say(chat('again'));
  assert.match(window.item.tooltip, /but The n may not be used/);
  window.models = [models[0]!];
  await say({ type: 'refresh' });
  assert.match(window.item.tooltip, /may ask 1 model of this window/);
});

test('a window whose page does not answer does not say that it lives, and comes back only when it does', async t => {
  const { window, dialled, say, welcome, sent } = await setUp(t);
  await welcome();
  let revive = () => {};
  window.page = new Promise(resolve => (revive = resolve));
  const before = [sent().length, window.pagesAsked];
  await say({ type: 'ping', n: 1 });
  await say({ type: 'ping', n: 2 });
  assert.deepEqual([sent().length, window.pagesAsked], [before[0], before[1]! + 1]);
  dialled[0]!.events.closed(4000, 'the window did not answer a ping.');
  window.commands.get('toolwire.reconnect')!();
  await settled();
  assert.equal(dialled.length, 1);
  revive();
  await welcome();
  assert.equal(dialled.length, 2);
  await say({ type: 'ping', n: 3 });
  assert.deepEqual(sent().at(-1), { type: 'pong', n: 3 });
});

test('the button of the notification asks at once; without models there is nothing to ask', async t => {
  const model = new FakeModel('v', 'm');
  model.refusal = ModelError.NoPermissions('no');
  const { window, say, welcome } = await setUp(t, model);
  await welcome();
  window.answer = 'Ask me again';
  await say(chat('1'));
  assert.equal(model.sent.length, 2);
  const { window: empty } = await setUp(t);
  await empty.commands.get('toolwire.consent')!();
  assert.match(empty.messages[0]!, /no models to ask for/);
});

test('where no gateway runs a click starts it, and a link stops what was started', async t => {
  const { window, dialled, machine, say, welcome } = await setUp(t);
  await settled();
  dialled[0]!.events.closed(1006, '');
  await settled();
  assert.deepEqual([window.item.command, window.keys['toolwire.canStart']], ['toolwire.startGateway', true]);
  assert.match(window.item.tooltip, /nobody is there\. Next attempt in 1 s\. Click to start it\./);
  void window.commands.get('toolwire.startGateway')!();
  void window.commands.get('toolwire.startGateway')!(); // twice is once
  await settled();
  assert.deepEqual([machine.launched.length, dialled.length], [1, 2]);
  await welcome();
  const mark = machine.launched[0]!.environment.TOOLWIRE_STARTED_BY!;
  assert.deepEqual([window.keys['toolwire.canStart'], window.keys['toolwire.canStop']], [false, false]);
  await window.commands.get('toolwire.stopGateway')!();
  assert.match(window.messages.at(-1)!, /was not started from VS Code/);
  await say({ type: 'welcome', v: 1, gateway: '0.1.0', pid: 42, started_by: mark });
  assert.equal(window.keys['toolwire.canStop'], true);
  const { value, isTrusted } = window.item.tooltip as unknown as Markdown;
  assert.match(value, /connected to toolwire 0\.1\.0.*\[Stop the gateway\]\(command:toolwire\.stopGateway\)/s);
  assert.deepEqual(isTrusted, { enabledCommands: ['toolwire.stopGateway'] });
  await window.commands.get('toolwire.stopGateway')!();
  assert.deepEqual(machine.ended, [42]);
});

test('a gateway that does not start says why; where the program is missing no click starts it', async t => {
  const { window, dialled, machine } = await setUp(t);
  await settled();
  dialled[0]!.events.closed(1006, '');
  await settled();
  void window.commands.get('toolwire.startGateway')!();
  await settled();
  machine.launched[0]!.ended('it ended with 2: the address is in use');
  await settled();
  assert.equal(window.messages.at(-1), 'Toolwire: the gateway does not run: it ended with 2: the address is in use');
  machine.program = undefined;
  window.settingsChanged.fire({ affectsConfiguration: () => true });
  await settled();
  dialled.at(-1)!.events.closed(1006, '');
  await settled();
  assert.deepEqual([window.item.command, window.keys['toolwire.canStart']], ['toolwire.showLog', false]);
  await window.commands.get('toolwire.startGateway')!();
  assert.match(window.messages.at(-1)!, /cannot be started: the program toolwire is not installed/);
});

test('no secret is in the log or the status bar', async t => {
  const { window, dialled, welcome } = await setUp(t);
  await welcome();
  dialled[0]!.events.closed(1008, 'a second hello came.');
  window.commands.get('toolwire.showLog')!();
  assert.equal(dialled[0]!.token, 'very-secret-token');
  assert.ok(window.logged.includes('[shown]'));
  assert.ok(![...window.logged, window.item.tooltip].some(line => line.includes('very-secret')));
});
