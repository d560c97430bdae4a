import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { findProgram, Gateway, MACHINE, wordsFor } from '../src/gateway';
import { bridgeUrl } from '../src/place';
import { contextOf, FakeMachine, FakeWindow } from './fake';

const BRIDGE = bridgeUrl('http://127.0.0.1:18741');

async function setUp(window = new FakeWindow()) {
  const machine = new FakeMachine();
  const lines: string[] = [];
  const environment = { PATH: '/bin', VSCODE_PID: '1', ELECTRON_RUN_AS_NODE: '1', NODE_OPTIONS: '--inspect' };
  const gateway = new Gateway(machine, contextOf(window).globalState, environment, line => lines.push(line));
  await gateway.look('');
  return { gateway, machine, lines, window };
}

test('it is started where the window looks for it, with a mark that only windows know', async () => {
  const { gateway, machine, lines } = await setUp();
  assert.ok(gateway.canStart);
  const ended = gateway.start(BRIDGE);
  await new Promise(setImmediate);
  const { program, words, environment, heard } = machine.launched[0]!;
  assert.deepEqual([program, words], ['/usr/bin/toolwire', ['serve', '--host', '127.0.0.1', '--port', '18741']]);
  const { TOOLWIRE_STARTED_BY: mark, ...rest } = environment;
  assert.match(mark!, /^[0-9a-f-]{36}$/);
  assert.deepEqual(rest, { PATH: '/bin' }); // nothing that VS Code set for itself
  heard('toolwire 0.1.0 at http://127.0.0.1:18741');
  assert.equal(lines.length, 1);
  machine.launched[0]!.ended('it ended with 1');
  assert.equal(await ended, 'it ended with 1');
});

test('only what a window has started can be stopped, by any window', async () => {
  const first = await setUp();
  void first.gateway.start(BRIDGE);
  await new Promise(setImmediate);
  const mark = first.machine.launched[0]!.environment.TOOLWIRE_STARTED_BY!;
  const { gateway, machine } = await setUp(first.window);
  const welcome = { type: 'welcome', v: 1, gateway: '0.1.0' } as const;
  for (const other of [welcome, { ...welcome, pid: 7, started_by: 'somebody-else' }, { ...welcome, started_by: mark }]) {
    gateway.greeted(other);
    assert.ok(!gateway.canStop && !gateway.canStart);
    gateway.stop();
  }
  assert.deepEqual(machine.ended, []);
  gateway.greeted({ ...welcome, pid: 7, started_by: mark });
  assert.ok(gateway.canStop);
  gateway.stop();
  gateway.greeted(undefined);
  gateway.stop();
  assert.deepEqual(machine.ended, [7]);
});

test('without the program nothing is started', async () => {
  const { gateway, machine } = await setUp();
  machine.program = undefined;
  await gateway.look('');
  assert.ok(!gateway.canStart);
  await assert.rejects(gateway.start(BRIDGE), /not installed/);
});

test('the address says where it listens', () => {
  assert.deepEqual(wordsFor(bridgeUrl('http://localhost:1/v1')), ['serve', '--port', '1']);
  assert.deepEqual(wordsFor(bridgeUrl('http://[::1]')), ['serve', '--host', '::1', '--port', '80']);
  for (const address of ['https://127.0.0.1:1', 'http://127.0.0.1:1/behind']) assert.throws(() => wordsFor(bridgeUrl(address)), /start it by hand/);
});

test('the program is found by its setting, on the PATH, and where installers put it', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'toolwire-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'toolwire');
  assert.equal(await findProgram(program, {}, 'linux', folder), undefined);
  writeFileSync(program, '#!/bin/sh\necho "$@"; echo "$TOOLWIRE_STARTED_BY" >&2; exit 3\n');
  chmodSync(program, 0o644);
  assert.equal(await findProgram('', { PATH: folder }, 'linux', '/nowhere'), undefined); // not to be run
  chmodSync(program, 0o755);
  assert.equal(await findProgram('', { PATH: `/nowhere:${folder}` }, 'linux', '/nowhere'), program);
  assert.equal(await findProgram('~/toolwire', {}, 'linux', folder), program);
  assert.equal(await findProgram(join(folder, 'other'), { PATH: folder }, 'linux', folder), undefined); // the setting alone counts
  const lines: string[] = [];
  const why = await MACHINE.launch(program, ['serve', '--port', '1'], { TOOLWIRE_STARTED_BY: 'mark' }, line => lines.push(line));
  assert.match(why, /^it ended with 3: /);
  assert.deepEqual(lines.sort(), ['mark', 'serve --port 1']);
  assert.match(await MACHINE.launch(join(folder, 'none'), [], {}, () => {}), /ENOENT/);
});
