import assert from 'node:assert/strict';
import test from 'node:test';
import type { TestContext } from 'node:test';
import { NotRunning } from '../src/place';
import { dial, reasonOf } from '../src/socket';
import type { Place } from '../src/place';
import { TestServer } from './server';

// VS Code 1.106, the first that the extension takes, has Node 22; before it Node has a WebSocket only behind a flag.
const skip = typeof WebSocket === 'undefined' && 'this Node has no WebSocket';

async function serving(t: TestContext) {
  const server = new TestServer();
  const place = await server.start();
  t.after(() => server.stop());
  return { server, place };
}

function dialled(place: Place) {
  const told: unknown[] = [];
  let over = () => {};
  let open = () => {};
  const closed = new Promise<void>(resolve => (over = resolve));
  const opened = new Promise<void>(resolve => (open = resolve));
  const socket = dial(place, {
    opened: () => (told.push('opened'), open()),
    heard: text => told.push(text),
    closed: (code, reason) => (told.push([code, reason]), over()),
  });
  return { socket, told, opened, closed };
}

test('it opens with the token, says, hears, and closes with the reason', { skip }, async t => {
  const { server, place } = await serving(t);
  const { socket, told, opened, closed } = dialled(place);
  await opened;
  const { headers, url } = server.requests[0]!;
  assert.deepEqual([url, headers.authorization, headers.origin], ['/bridge', 'Bearer secret', undefined]);
  socket.send('to the gateway');
  socket.send('\u00e4'.repeat(100_000));
  server.say('to the window');
  while (server.heard.length < 2) await new Promise(resolve => setTimeout(resolve, 5));
  assert.deepEqual(server.heard, ['to the gateway', '\u00e4'.repeat(100_000)]);
  server.close(1008, 'no hello');
  await closed;
  assert.deepEqual(told, ['opened', 'to the window', [1008, 'no hello']]);
});

test('what the gateway has not read counts as buffered', { skip }, async t => {
  const { server, place } = await serving(t);
  const { socket, opened } = dialled(place);
  await opened;
  server.sockets[0]!.pause();
  const piece = 'x'.repeat(1 << 20);
  for (let turn = 0; turn < 16; turn++) socket.send(piece);
  await new Promise(resolve => setTimeout(resolve, 50));
  assert.ok(socket.bufferedAmount > 1 << 20, `${socket.bufferedAmount} bytes`);
  server.sockets[0]!.destroy();
});

test('a handshake that fails is told once', { skip }, async t => {
  const { server, place } = await serving(t);
  server.refusal = { status: '401 Unauthorized', body: 'it has another token.' };
  const { told, closed } = dialled(place);
  await closed;
  await new Promise(resolve => setTimeout(resolve, 20));
  assert.deepEqual(told, [[1006, '']]);
});

test('a connection that breaks is told once', { skip }, async t => {
  const { server, place } = await serving(t);
  const { told, opened, closed } = dialled(place);
  await opened;
  server.sockets[0]!.destroy();
  await closed;
  await new Promise(resolve => setTimeout(resolve, 20));
  assert.deepEqual(told, ['opened', [1006, '']]);
});

test('the reason is the one that the gateway gives', async t => {
  const { server, place } = await serving(t);
  server.refusal = { status: '401 Unauthorized', body: 'it has another token.' };
  assert.match(String(await reasonOf(place)), /^the gateway at http:\/\/127\.0\.0\.1:\d+ refuses this window \(401\): it has another token\.$/);
  assert.equal(server.requests[0]!.headers.authorization, 'Bearer secret');
  server.refusal = { status: '404 Not Found', body: '{}' };
  assert.match(String(await reasonOf(place)), /no toolwire gateway/);
  server.refusal = undefined;
  assert.equal(await reasonOf(place), 'the connection was lost.');
});

test('nobody there is said so', async t => {
  const { server, place } = await serving(t);
  await server.stop();
  const reason = await reasonOf(place);
  assert.ok(reason instanceof NotRunning);
  assert.match(reason.message, /no gateway runs at http:\/\/127\.0\.0\.1:\d+\. Start it with "toolwire serve"\./);
});
