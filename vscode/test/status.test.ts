import assert from 'node:assert/strict';
import test from 'node:test';
import type * as vscode from 'vscode';
import type { State } from '../src/link';
import { Status } from '../src/status';
import { FakeWindow } from './fake';

function setUp() {
  const window = new FakeWindow();
  const log = { info: (text: string) => void window.logged.push(text) } as unknown as vscode.LogOutputChannel;
  return { window, status: new Status(window.api, log) };
}

const CONNECTED: State = { kind: 'connected', gateway: '0.1.0' };

test('every state has its own words and sign', () => {
  const { window, status } = setUp();
  const seen: string[][] = [];
  const states: State[] = [{ kind: 'connecting' }, CONNECTED, { kind: 'waiting', why: 'nobody is there.', seconds: 0.3 }, { kind: 'stopped' }];
  for (const state of states) {
    status.show(state, 2, []);
    seen.push([window.item.text, window.item.tooltip]);
  }
  assert.deepEqual(seen, [
    ['$(sync~spin) toolwire', 'Toolwire: connecting.'],
    ['$(plug) toolwire', 'Toolwire: connected to toolwire 0.1.0; it may ask 2 models of this window.'],
    ['$(debug-disconnect) toolwire', 'Toolwire: not connected: nobody is there. Next attempt in 1 s.'],
    ['$(circle-slash) toolwire', 'Toolwire: stopped.'],
  ]);
});

test('attempts that fail alike neither blink nor fill the log', () => {
  const { window, status } = setUp();
  for (let seconds = 1; seconds < 30; seconds++) {
    status.show({ kind: 'connecting' }, 0, []);
    status.show({ kind: 'waiting', why: 'nobody is there.', seconds }, 0, []);
    status.show({ kind: 'connecting' }, 0, []);
    assert.equal(window.item.text, '$(debug-disconnect) toolwire');
  }
  assert.deepEqual(window.logged, ['connecting.', 'not connected: nobody is there.']);
});

test('a connection that is made anew is seen to be', () => {
  const { window, status } = setUp();
  status.show(CONNECTED, 2, []);
  status.show({ kind: 'connecting' }, 2, []);
  assert.equal(window.item.text, '$(sync~spin) toolwire');
});

test('a click asks for what was refused, otherwise it shows the log', () => {
  const { window, status } = setUp();
  status.show(CONNECTED, 2, ['GPT', 'Sonnet']);
  assert.deepEqual([window.item.text, window.item.command], ['$(warning) toolwire', 'toolwire.consent']);
  assert.match(window.item.tooltip, /GPT, Sonnet may not be used yet/);
  status.show({ kind: 'waiting', why: 'x.', seconds: 1 }, 2, ['GPT']);
  assert.equal(window.item.command, 'toolwire.showLog');
});
