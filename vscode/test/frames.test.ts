import assert from 'node:assert/strict';
import test from 'node:test';
import { decode, encode } from '../src/frames';
import { judgedFromWindow } from './judged';

test('half a surrogate pair becomes a replacement character, in values and names, and nothing else changes', () => {
  const input = { 'a\ud800': 'b\udc00c', plain: '\\ud800 \u{1f600}' };
  const text = encode({ type: 'parts', id: '1', seq: 0, parts: [{ t: 'call', id: 'c', name: 'n', input }] });
  judgedFromWindow(text);
  assert.deepEqual(JSON.parse(text).parts[0].input, { 'a\ufffd': 'b\ufffdc', plain: '\\ud800 \u{1f600}' });
});

test('what is no frame is none', () => {
  for (const text of ['', '{', '1', 'null', '[]', '{}', '{"type":1}']) assert.equal(decode(text), undefined);
  assert.deepEqual(decode('{"type":"new","x":1}'), { type: 'new', x: 1 });
});
