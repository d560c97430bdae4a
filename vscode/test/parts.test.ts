import assert from 'node:assert/strict';
import test from 'node:test';
import type { Part } from '../src/frames';
import { answerPartOf, partOf, valueOf } from '../src/parts';
import { CallPart, DataPart, FakeWindow, ResultPart, TextPart, ThinkingPart, TsxPart } from './fake';

const { api } = new FakeWindow();

test('every part survives the way to VS Code and back', () => {
  const parts: Part[] = [
    { t: 'text', text: 'a' },
    { t: 'call', id: 'c', name: 'n', input: { a: [1] } },
    { t: 'data', mime: 'image/png', data: 'AAEC/w==' },
    { t: 'result', id: 'c', parts: [{ t: 'text', text: 'r' }, { t: 'data', mime: 'x', data: '' }] },
  ];
  assert.deepEqual(parts.map(part => partOf(api, valueOf(api, part))), parts);
});

test('thinking is taken by its looks, and cannot be given', () => {
  assert.deepEqual(answerPartOf(api, new ThinkingPart('hm')), { t: 'thinking', text: 'hm' });
  assert.deepEqual(answerPartOf(api, new ThinkingPart(['a', 'b'], 'i', { done: true })), { t: 'thinking', text: 'ab', id: 'i', meta: { done: true } });
  assert.equal(valueOf(api, { t: 'thinking', text: 'hm' }), undefined);
});

test('what is no part is none', () => {
  for (const value of [undefined, null, 1, 'text', {}, { value: 1 }, new TsxPart({})]) assert.equal(answerPartOf(api, value), undefined);
  assert.equal(answerPartOf(api, new ResultPart('c', [])), undefined);
});

test('parts of a result that have another class become the text of their JSON', () => {
  const result = new ResultPart('c', [new TsxPart({ a: 1 }), new TextPart('t'), new TsxPart('words'), undefined]);
  assert.deepEqual(partOf(api, result), {
    t: 'result', id: 'c',
    parts: [{ t: 'text', text: '{"a":1}' }, { t: 'text', text: 't' }, { t: 'text', text: 'words' }, { t: 'text', text: '' }],
  });
});

test('a call keeps an input that is no object', () => {
  assert.deepEqual(answerPartOf(api, new CallPart('', 'n', 'words' as unknown as object)), { t: 'call', id: '', name: 'n', input: 'words' });
  assert.equal(JSON.stringify(valueOf(api, { t: 'call', id: '', name: 'n', input: null })), '{"callId":"","name":"n","input":{}}');
});

test('bytes of a part that is a view into more are its own', () => {
  const view = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
  assert.deepEqual(answerPartOf(api, new DataPart(view, 'x')), { t: 'data', mime: 'x', data: 'AgM=' });
});
