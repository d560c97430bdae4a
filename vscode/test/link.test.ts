import assert from 'node:assert/strict';
import test from 'node:test';
import type { TestContext } from 'node:test';
import type { FromGateway, FromWindow } from '../src/frames';
import { MAX_FRAME } from '../src/frames';
import { Link } from '../src/link';
import type { State } from '../src/link';
import { bridgeUrl } from '../src/place';
import type { Events } from '../src/socket';
import { fromGateway, judgedFromWindow } from './judged';

const WELCOME = fromGateway({ type: 'welcome', v: 1, gateway: '0.1.0' });

function setUp(t: TestContext, random = 1) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const sockets: { events: Events; sent: FromWindow[]; isClosed: boolean; bufferedAmount: number }[] = [];
  const heard: FromGateway[] = [];
  const states: State[] = [];
  const logged: string[] = [];
  let losses = 0;
  let place = async () => ({ url: bridgeUrl('http://127.0.0.1:1'), token: 't' });
  const link = new Link({
    place: () => place(),
    dial: (_place, events) => {
      const socket = {
        events, sent: [] as FromWindow[], isClosed: false, bufferedAmount: 7,
        send: (text: string) => void socket.sent.push(judgedFromWindow(text)),
        close: () => void (socket.isClosed = true),
      };
      sockets.push(socket);
      return socket;
    },
    reason: async () => 'nobody is there.',
    hello: () => ({ type: 'hello', v: 1, window: 'w', vscode: '1', extension: '0', focused: true }),
    heard: frame => heard.push(frame),
    lost: () => losses++,
    changed: state => states.push(state),
    log: words => logged.push(words),
    random: () => random,
  });
  const opened = async () => {
    await flushed();
    const socket = sockets.at(-1)!;
    socket.events.opened();
    socket.events.heard(JSON.stringify(WELCOME));
    return socket;
  };
  return { link, sockets, heard, states, logged, opened, losses: () => losses, place: (next: typeof place) => (place = next), tick: (ms: number) => t.mock.timers.tick(ms) };
}

async function flushed(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

test('it says hello first, is connected by the welcome, and speaks only between that and the end', async t => {
  const { link, sockets, heard, opened, losses } = setUp(t);
  link.connect();
  assert.equal(link.send({ type: 'list' }), false);
  await flushed();
  sockets[0]!.events.heard('{"type":"refresh"}');
  assert.deepEqual([sockets[0]!.sent, heard], [[], []]);
  const socket = await opened();
  assert.deepEqual(socket.sent.map(frame => frame.type), ['hello']);
  assert.deepEqual([link.isOpen, link.buffered, heard], [true, 7, [WELCOME]]);
  assert.equal(link.send({ type: 'list' }), true);
  socket.events.heard('{"type":"ping","n":1}');
  socket.events.closed(1001, 'the gateway ends; connect again.');
  socket.events.heard('{"type":"ping","n":2}');
  assert.deepEqual(heard.slice(1), [{ type: 'ping', n: 1 }]);
  assert.deepEqual([link.send({ type: 'list' }), losses(), link.buffered], [false, 1, 0]);
});

test('it dials again after 0.5 s, twice that, and never less often than every 30 s; a connection that lasts starts it over', async t => {
  const { link, sockets, states, opened, tick } = setUp(t);
  link.connect();
  const waits: number[] = [];
  for (let turn = 0; turn < 9; turn++) {
    await flushed();
    sockets.at(-1)!.events.closed(1006, '');
    await flushed();
    const state = states.at(-1)!;
    assert.ok(state.kind === 'waiting' && state.why === 'nobody is there.');
    waits.push(state.seconds);
    tick(state.seconds * 1000 - 1);
    await flushed();
    assert.equal(sockets.length, turn + 1);
    tick(1);
  }
  assert.deepEqual(waits, [0.5, 1, 2, 4, 8, 16, 30, 30, 30]);
  for (const [lasts, seconds] of [[4999, 30], [5000, 0.5], [0, 1]] as const) {
    const socket = await opened();
    tick(lasts);
    socket.events.closed(1006, '');
    assert.deepEqual(states.at(-1), { kind: 'waiting', seconds, why: 'the connection was lost (1006).' });
    tick(seconds * 1000);
  }
});

test('windows do not dial all at once: chance takes up to half of the wait', async t => {
  const { link, sockets, states } = setUp(t, 0);
  link.connect();
  await flushed();
  sockets[0]!.events.closed(1006, '');
  await flushed();
  const state = states.at(-1)!;
  assert.ok(state.kind === 'waiting' && state.seconds === 0.25);
});

test('a gateway that does not greet, or greets in another version, is left', async t => {
  const { link, sockets, states, tick } = setUp(t);
  link.connect();
  await flushed();
  sockets[0]!.events.opened();
  tick(10_000);
  assert.match((states.at(-1) as { why: string }).why, /did not answer the greeting/);
  assert.ok(sockets[0]!.isClosed);
  tick(500);
  await flushed();
  sockets[1]!.events.opened();
  sockets[1]!.events.heard('{"type":"welcome","v":2,"gateway":"9"}');
  assert.match((states.at(-1) as { why: string }).why, /version 2.*toolwire vscode install/);
  assert.equal(link.isOpen, false);
});

test('a gateway that says nothing any more is left; every word of it counts', async t => {
  const { link, states, opened, losses, tick } = setUp(t);
  link.connect();
  const socket = await opened();
  for (let turn = 0; turn < 3; turn++) {
    tick(44_999);
    assert.ok(link.isOpen);
    socket.events.heard('{"type":"ping","n":1}');
  }
  tick(45_000);
  assert.deepEqual([states.at(-1), losses(), socket.isClosed], [{ kind: 'waiting', why: 'the gateway says nothing.', seconds: 0.5 }, 1, true]);
});

test('where the place is not known it waits, and says why', async t => {
  const { link, sockets, states, place, tick } = setUp(t);
  place(async () => { throw new Error('there is no token.'); });
  link.connect();
  await flushed();
  assert.deepEqual(states.at(-1), { kind: 'waiting', why: 'there is no token.', seconds: 0.5 });
  place(async () => ({ url: bridgeUrl('http://127.0.0.1:1'), token: 't' }));
  tick(500);
  await flushed();
  assert.equal(sockets.length, 1);
});

test('connect leaves the old socket behind, hurry only ends a wait, stop ends all', async t => {
  const { link, sockets, opened, losses, tick } = setUp(t);
  link.connect();
  const old = await opened();
  link.hurry();
  await flushed();
  assert.equal(sockets.length, 1);
  link.connect();
  assert.deepEqual([old.isClosed, losses()], [true, 1]);
  old.events.closed(1000, '');
  await flushed();
  assert.equal(sockets.length, 2);
  sockets[1]!.events.closed(1006, '');
  await flushed();
  link.hurry();
  await flushed();
  assert.equal(sockets.length, 3);
  link.stop();
  sockets[2]!.events.closed(1006, '');
  tick(60_000);
  await flushed();
  assert.equal(sockets.length, 3);
});

test('what is no frame is ignored; what is too large is not sent', async t => {
  const { link, logged, heard, opened } = setUp(t);
  link.connect();
  const socket = await opened();
  socket.events.heard('nonsense');
  socket.events.heard('{"type":"new"}');
  assert.equal(logged.length, 1);
  assert.deepEqual(heard.at(-1), { type: 'new' });
  const parts = [{ t: 'text' as const, text: '\u00e4'.repeat(MAX_FRAME / 2) }];
  assert.equal(link.send({ type: 'parts', id: '1', seq: 0, parts }), false);
  assert.equal(socket.sent.length, 1);
});
