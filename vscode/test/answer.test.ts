import assert from 'node:assert/strict';
import test from 'node:test';
import { Answer } from '../src/answer';
import { MAX_FRAME } from '../src/frames';
import { settled } from './fake';
import { JudgedWire } from './judged';

function setUp(most?: number) {
  const wire = new JudgedWire();
  return { wire, answer: new Answer('1', wire, most) };
}

test('what comes in one tick leaves in one frame, text merged', async () => {
  const { wire, answer } = setUp();
  answer.add({ t: 'text', text: 'a' });
  answer.add({ t: 'text', text: '' });
  answer.add({ t: 'text', text: 'b' });
  answer.add({ t: 'call', id: 'c', name: 'n', input: {} });
  assert.deepEqual(wire.frames, []);
  await settled();
  answer.add({ t: 'thinking', text: 'h' });
  answer.add({ t: 'thinking', text: 'm' });
  answer.add({ t: 'thinking', text: '', meta: { done: true } });
  answer.end();
  assert.deepEqual(wire.frames, [
    { type: 'parts', id: '1', seq: 0, parts: [{ t: 'text', text: 'ab' }, { t: 'call', id: 'c', name: 'n', input: {} }] },
    { type: 'parts', id: '1', seq: 1, parts: [{ t: 'thinking', text: 'hm' }, { t: 'thinking', text: '', meta: { done: true } }] },
    { type: 'end', id: '1', cancelled: false },
  ]);
});

test('pieces of a thought are merged whatever their ids', () => {
  const { wire, answer } = setUp();
  ['I', ' need', ' to'].forEach((text, index) => answer.add({ t: 'thinking', text, id: `item${index}` }));
  answer.end();
  assert.deepEqual(wire.of('parts').map(frame => frame.parts), [[{ t: 'thinking', text: 'I need to', id: 'item0' }]]);
});

test('a million characters in many small parts of one tick, or in one large part, arrive in frames of bounded size', () => {
  for (const size of [7, 1_000_003]) {
    const { wire, answer } = setUp();
    const text = '\u{1f600}b'.repeat(size);
    const whole = text.repeat(Math.ceil(1_000_000 / text.length));
    for (let at = 0; at < whole.length; at += text.length) answer.add({ t: 'text', text: whole.slice(at, at + text.length) });
    answer.end();
    assert.ok(wire.text === whole);
    assert.deepEqual(wire.of('parts').map(frame => frame.seq), wire.of('parts').map((_, index) => index));
    assert.ok(wire.frames.every(frame => JSON.stringify(frame).length < 2 << 20));
  }
});

test('a pair of surrogates that was cut is put together again, across frames too', async () => {
  const { wire, answer } = setUp();
  for (const text of ['a\ud83d', '\ude00b', '\ud83d', '\ude00', 'end\ud83d']) {
    answer.add({ t: 'text', text });
    await settled();
  }
  answer.end();
  assert.equal(wire.text, 'a\u{1f600}b\u{1f600}end\ufffd');
});

test('no more is read while the socket has not taken what it was given', async () => {
  const { wire, answer } = setUp(100);
  wire.buffered = 101;
  let isFree = false;
  const waiting = answer.room().then(() => (isFree = true));
  await new Promise(resolve => setTimeout(resolve, 30));
  assert.equal(isFree, false);
  wire.buffered = 100;
  await waiting;
  wire.buffered = 101;
  const dropped = answer.room();
  answer.drop();
  await dropped;
});

test('after its end an answer is silent', async () => {
  for (const last of ['end', 'fail', 'cancel', 'drop'] as const) {
    const { wire, answer } = setUp();
    answer.add({ t: 'text', text: 'a' });
    if (last === 'fail') answer.fail({ code: 'Unknown', name: '', message: 'm' });
    else answer[last]();
    answer.add({ t: 'text', text: 'b' });
    answer.end();
    answer.cancel();
    await settled();
    const types = { end: ['parts', 'end'], fail: ['parts', 'error'], cancel: ['end'], drop: [] }[last];
    assert.deepEqual(wire.frames.map(frame => frame.type), types);
  }
});

test('a part that no frame can hold is refused', () => {
  const { wire, answer } = setUp();
  assert.throws(() => answer.add({ t: 'data', mime: 'x', data: 'A'.repeat(MAX_FRAME) }), RangeError);
  assert.throws(() => answer.add({ t: 'call', id: 'c', name: 'n', input: 'A'.repeat(MAX_FRAME) }), RangeError);
  answer.end();
  assert.deepEqual(wire.frames.map(frame => frame.type), ['end']);
});
