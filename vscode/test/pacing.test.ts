import assert from 'node:assert/strict';
import test from 'node:test';
import type { TestContext } from 'node:test';
import type { AnswerPart } from '../src/frames';
import { Pacer } from '../src/pacing';

const text = (words: string): AnswerPart => ({ t: 'text', text: words });
const call: AnswerPart = { t: 'call', id: 'c', name: 'n', input: {} };

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0.3;
  const seen: { at: number; part: AnswerPart }[] = [];
  const pacer = new Pacer(part => seen.push({ at: Math.floor(now), part }), () => now);
  const pass = (milliseconds: number) => {
    now += milliseconds;
    t.mock.timers.tick(milliseconds);
  };
  return { pacer, seen, pass };
}

test('the first part goes out at once, the next 40 ms later, merged and in order', t => {
  const { pacer, seen, pass } = setUp(t);
  for (const letter of 'abcdefghijk') {
    pacer.add([text(letter)]);
    pass(10);
  }
  pacer.add([call, text('l')]);
  pacer.add([text('m')]);
  pass(10);
  assert.deepEqual(seen, [
    { at: 0, part: text('a') },
    { at: 40, part: text('bcd') },
    { at: 80, part: text('efgh') },
    { at: 120, part: text('ijk') },
    { at: 120, part: call },
    { at: 120, part: text('lm') },
  ]);
});

test('after a rest the next part goes out at once', t => {
  const { pacer, seen, pass } = setUp(t);
  pacer.add([text('a')]);
  pass(40);
  pacer.add([text('b')]);
  assert.deepEqual(seen.map(({ at }) => at), [0, 40]);
});

test('flush leaves nothing behind, drop leaves nothing at all', t => {
  const { pacer, seen, pass } = setUp(t);
  pacer.add([text('a')]);
  pacer.add([text('b')]);
  pacer.flush();
  pacer.add([text('c')]);
  pacer.drop();
  pass(100);
  assert.deepEqual(seen.map(({ part }) => part), [text('a'), text('b')]);
});

test('what it is given is not changed', t => {
  const given = [text('a'), text('b')];
  setUp(t).pacer.add(given);
  assert.deepEqual(given, [text('a'), text('b')]);
});
